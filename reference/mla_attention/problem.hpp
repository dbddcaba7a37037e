// reference/mla_attention/problem.hpp: what forward and backward share before the first row.
#pragma once
#include "reference/attention/selection.hpp"
#include "reference/mla_attention/latent.hpp"
#include "reference/mla_attention/mla_attention.hpp"

namespace plumbline::mla_attention {

enum class Form { keys, absorbed, expanded };

// Which inputs belong together, and every letter of their shapes.
Form check(const Inputs& in, const Options& options, const Schedule& schedule, Sizes& sizes);

template <class T> struct Problem {
  Problem(const Inputs& in, const Options& options, const Run& run);
  Problem(const Problem&) = delete;  // the setting points into it
  Problem& operator=(const Problem&) = delete;
  // Expanded rows stand beside what a row in flight holds: `arrays` of their size join the counted
  // bytes.
  void count_bytes(const Run& run, std::int64_t arrays) const;

  Sizes sizes;
  Form form;
  Visibility visibility;
  attention::Selection selection;
  std::unique_ptr<Absorbed<T>> absorbed;
  std::unique_ptr<Expanded<T>> expanded;
  attention::Setting<T> setting;
};

}  // namespace plumbline::mla_attention
