// properties/csa_attention_check.hpp
//
// Evaluations of a CsaCase with types, also through mla_attention.
#pragma once
#include "properties/agreement_check.hpp"
#include "properties/csa_attention_case.hpp"

namespace plumbline::properties {

template <class T> Typed<T> attend(const Problem& problem, bool backward = true) {
  Evaluation how;
  how.backward = backward;
  return support::evaluate<csa_attention::Op, T>(problem, how);
}
inline Result attend_f64(const Problem& problem, int threads = 1) {
  Evaluation how;
  how.precision = Precision::f64;
  how.backward = true;
  how.threads = threads;
  return operation("csa_attention").evaluate(problem, how);
}
inline Typed<mp50> evaluate_mla(const Problem& problem) {
  return support::evaluate<mla_attention::Op, mp50>(problem);
}

// Options of the same softmax in mla_attention, whose values are its keys.
inline Json mla_options(const CsaCase& x) {
  Json options = {{"v_dim", x.D}};
  for (const char* name : {"softmax_scale", "lse_base", "lse_includes_sink"}) {
    if (x.problem.options.contains(name)) options[name] = x.problem.options[name];
  }
  return options;
}
// The case through mla_attention over its S tokens and then its N blocks.
Typed<mp50> attend_as_mla(const CsaCase& attention);

}  // namespace plumbline::properties
