#include "reference/csa_indexer/csa_indexer.hpp"

#include "reference/csa_indexer/tokens.hpp"
#include "reference/indexer/cotangent.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_indexer {
namespace {

template <class T> struct Index {
  Array<T> q, k, w;
  StoredTensor q_view, k_view, w_view;
  IndexTensors tensors;

  Index(const Tokens<T>& tokens, const Options& options, const Run& run,
        const typename Tokens<T>::Chosen& blocks)
      : q(tokens.sizes().shape("B S A e")),
        k(tokens.sizes().shape("B N e")),
        w(tokens.sizes().shape("B S A")) {
    tokens.make_q(run, tokens.all(), tokens.latent(), q);
    tokens.make_k(run, blocks, k);
    tokens.make_w(run, tokens.all(), w);
    q_view = view(q, "index_q");
    k_view = view(k, "index_k");
    w_view = view(w, "index_w");
    tensors = {&q_view, &k_view, &w_view, options.score_scale, true};
  }
  Index(const Index&) = delete;
};

}  // namespace

MaskView Op::mask_view(const Inputs& in, const Options& options) {
  return {Tokens<f64>(in, options, RowNote::unread).visibility(),
          *options.m,
          {},
          in.given.selected,
          in.given.indices};
}

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  const Tokens<T> tokens(in, options, RowNote::unread);
  Index<T> index(tokens, options, run, tokens.compressor().all());
  auto chosen = indexer::select_rows<T>(index.tensors, tokens.visibility(), options, in.given, run,
                                        run.wants("scores"), run.wants("selected"));
  Outputs<T> out;
  out.scores = std::move(chosen.scores);
  out.indices = std::move(chosen.indices);
  out.selected = std::move(chosen.selected);
  out.index_q = std::move(index.q);
  out.index_k = std::move(index.k);
  out.index_w = std::move(index.w);
  return out;
}

template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& given) {
  // A token that nothing reads is blank on the way back, unless a cotangent of its own reads it.
  const bool all = given.index_q.given() || given.index_k.given() || given.index_w.given();
  const Tokens<T> tokens(in, options, all ? RowNote::unread : RowNote::blank);
  Sizes sizes = tokens.sizes();
  Cotangents named = given;
  sizes.unify_all(named);
  Array<T> dq = indexer::whole<T>(given.index_q, sizes.shape("B S A e"));
  Array<T> dk = indexer::whole<T>(given.index_k, sizes.shape("B N e"));
  Array<T> dw = indexer::whole<T>(given.index_w, sizes.shape("B S A"));
  if (given.scores.given() && !in.given.scores.given()) {
    const Index<T> index(tokens, options, run, tokens.seen());
    indexer::pull_back_scores<T>(index.tensors, tokens.visibility(), given.scores, run, dq, dk, dw);
  }
  Gradients<T> grad;
  tokens.pull_back(run, tokens.all(), tokens.latent(), dq, dk, dw, grad);
  return grad;
}

#define INSTANTIATE(T)                                                             \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);   \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_indexer
