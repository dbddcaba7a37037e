// reference/csa_indexer/tokens.hpp
//
// What comes before the scores of the V4 indexer: index_q and index_w of chosen tokens, index_k of chosen blocks, and
// the way back. A layer makes only what its rows read.
#pragma once
#include <optional>
#include <string>

#include "reference/csa_compress/projected.hpp"
#include "reference/csa_indexer/csa_indexer.hpp"
#include "reference/tensor/sizes.hpp"

namespace plumbline::csa_indexer {

template <class T> class Tokens {
 public:
  // Letters of all tensors unified and everything that does not depend on the data checked. `otherwise`: how a
  // token that nothing reads is read, unless x brings notes of its own. `where` stands before the names of options
  // in errors.
  Tokens(const Inputs& in, const Options& options, RowNote otherwise,
         const std::string& where = "option ");
  Tokens(const Tokens&) = delete;

  const Sizes& sizes() const { return sizes_; }
  const Visibility& visibility() const { return *visibility_; }
  const csa_compress::Compressor<T>& compressor() const { return *compressor_; }
  std::int64_t rows() const { return sizes_["B"] * sizes_["S"]; }
  using Chosen = typename csa_compress::Compressor<T>::Chosen;  // [B, N]
  const Chosen& seen() const { return seen_; }                  // blocks that some real row sees

  // Runs of tokens [first, last), at most a block of rows each; all of them.
  using Runs = std::vector<std::array<std::int64_t, 2>>;
  Runs all() const;
  // Outputs over whole arrays, made for some tokens or blocks; what is given is copied.
  void make_q(const Run& run, const Runs& tokens, Array<T>& index_q) const;
  void make_k(const Run& run, const Chosen& blocks, Array<T>& index_k) const;
  void make_w(const Run& run, const Runs& tokens, Array<T>& index_w) const;
  // Adds to the gradients what cotangents of the whole outputs send back; a given output sends nothing, and a block
  // whose cotangent is 0 is not looked at.
  void pull_back(const Run& run, const Array<T>& dq, const Array<T>& dk, const Array<T>& dw,
                 Gradients<T>& grad) const;

 private:
  using Turn = typename Rotation<T>::Turn;
  Turn turn_of(std::int64_t row) const;
  void pull_back_k(const Run& run, const Array<T>& dk, Gradients<T>& grad) const;

  Inputs in_;
  Sizes sizes_;
  csa_compress::Parts parts_;
  std::optional<Visibility> visibility_;
  Chosen seen_;
  std::optional<Rotation<T>> rotation_;
  StoredTensor no_bias_;
  std::optional<Contraction<T>> to_q_, to_w_;
  std::optional<csa_compress::ProjectedTokens<T>> projected_;
  std::optional<csa_compress::Compressor<T>> compressor_;
};

}  // namespace plumbline::csa_indexer
