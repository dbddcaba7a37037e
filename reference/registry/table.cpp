#include "reference/registry/table.hpp"

#include "reference/csa_indexer_loss/csa_indexer_loss.hpp"
#include "reference/dsa_indexer_loss/dsa_indexer_loss.hpp"
#include "reference/indexer_scores/indexer_scores.hpp"
#include "reference/registry/make_operation.hpp"
#include "reference/stage_routing/stage_routing.hpp"
#include "reference/topk/topk.hpp"

namespace plumbline {

std::vector<const Operation*> table_of_losses() {
  return {
      make_operation<csa_indexer_loss::Op>(),
      make_operation<dsa_indexer_loss::Op>(),
      make_operation<indexer_scores::Op>(),
      make_operation<stage_routing::Op>(),
      make_operation<topk::Op>(),
  };
}

}  // namespace plumbline
