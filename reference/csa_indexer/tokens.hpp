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
  using Chosen = typename csa_compress::Compressor<T>::Chosen;  // [B, N]
  const StoredTensor& latent() const { return in_.q_latent; }   // with notes of who reads what
  const Chosen& seen() const { return seen_; }                  // blocks that some real row sees

  // Tokens b·S + s, one for each row of what is made; −1 for a row that is not wanted. A layer makes them for its
  // query rows, the operation for all tokens.
  using Rows = std::vector<std::int64_t>;
  Rows all() const;
  // latent: a query latent for each row.
  void make_q(const Run& run, const Rows& tokens, const StoredTensor& latent,
              Array<T>& index_q) const;
  void make_w(const Run& run, const Rows& tokens, Array<T>& index_w) const;
  void make_k(const Run& run, const Chosen& blocks, Array<T>& index_k) const;
  // Adds to the gradients what cotangents send back (that of q_latent has the shape of latent); a given output sends
  // nothing, and a block whose cotangent is 0 is not looked at. Tokens are distinct.
  void pull_back(const Run& run, const Rows& tokens, const StoredTensor& latent, const Array<T>& dq,
                 const Array<T>& dk, const Array<T>& dw, Gradients<T>& grad) const;

 private:
  using Turn = typename Rotation<T>::Turn;
  // f(n, token) for the rows [first, last) that are wanted.
  template <class F>
  static void each(const Rows& tokens, std::int64_t first, std::int64_t last, F f);
  Turn turn_of(std::int64_t token) const;
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
