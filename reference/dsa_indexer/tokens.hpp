// reference/dsa_indexer/tokens.hpp
//
// The per-token half of the V3.2 indexer: index_q, index_k, index_w of blocks of tokens, and the way back.
#pragma once
#include <optional>
#include <string>

#include "reference/dsa_indexer/dsa_indexer.hpp"
#include "reference/linear/contract.hpp"
#include "reference/linear/weight_sum.hpp"
#include "reference/rope/rotation.hpp"
#include "reference/tensor/sizes.hpp"

namespace plumbline::dsa_indexer {

template <class T> class Tokens {
 public:
  // Letters of all tensors unified and everything that does not depend on the data checked. `otherwise`: how a
  // token that no real row reads is read.
  // `where` stands before the names of options in errors.
  Tokens(const Inputs& in, const Options& options, RowNote otherwise,
         const std::string& where = "option ");

  const Sizes& sizes() const { return sizes_; }
  const Visibility& visibility() const { return *visibility_; }
  std::int64_t rows() const { return sizes_["B"] * sizes_["S"]; }

  // Runs of tokens [first, last), at most a block each; all of them.
  using Runs = std::vector<std::array<std::int64_t, 2>>;
  Runs all() const;
  // Outputs over whole arrays, made for some tokens; what is given is copied.
  void make_q(const Run& run, const Runs& tokens, Array<T>& index_q) const;
  void make_k(const Run& run, const Runs& tokens, Array<T>& index_k) const;
  void make_w(const Run& run, const Runs& tokens, Array<T>& index_w) const;
  // Adds to the gradients what cotangents of the whole outputs send back; a given output sends nothing.
  void pull_back(const Run& run, const Array<T>& dq, const Array<T>& dk, const Array<T>& dw,
                 Gradients<T>& grad) const;

 private:
  using Turn = typename Rotation<T>::Turn;
  Turn turn_of(std::int64_t row) const;
  std::string place_of(std::int64_t row) const;

  Inputs in_;
  double eps_;
  Sizes sizes_;
  std::optional<Visibility> visibility_;
  std::optional<Rotation<T>> rotation_;
  std::optional<Contraction<T>> to_q_, to_k_, to_w_;
  StoredTensor no_bias_;
};

}  // namespace plumbline::dsa_indexer
