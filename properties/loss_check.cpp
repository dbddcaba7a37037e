#include "properties/loss_check.hpp"

#include "reference/csa_indexer_loss/csa_indexer_loss.hpp"
#include "reference/dsa_indexer_loss/dsa_indexer_loss.hpp"
#include "reference/indexer_scores/indexer_scores.hpp"

namespace plumbline::properties {

template <class T> Typed<T> evaluate(const LossCase& loss, const Problem& problem, int threads) {
  const Evaluation how{.precision = precision_of<T>(), .backward = true, .threads = threads};
  return loss.blocks ? support::evaluate<csa_indexer_loss::Op, T>(problem, how)
                     : support::evaluate<dsa_indexer_loss::Op, T>(problem, how);
}

Result evaluate_f64(const LossCase& loss, const Problem& problem, int threads) {
  return operation(loss.op()).evaluate(
      problem, {.precision = Precision::f64, .backward = true, .threads = threads});
}

Typed<f192> indexer_scores_f192(const Problem& problem, bool backward) {
  return support::evaluate<indexer_scores::Op, f192>(problem,
                                                     {.forward = !backward, .backward = backward});
}

template Typed<f64> evaluate<f64>(const LossCase&, const Problem&, int);
template Typed<f192> evaluate<f192>(const LossCase&, const Problem&, int);
template Typed<mp50> evaluate<mp50>(const LossCase&, const Problem&, int);

}  // namespace plumbline::properties
