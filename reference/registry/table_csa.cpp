#include "reference/csa_attention/csa_attention.hpp"
#include "reference/csa_compress/csa_compress.hpp"
#include "reference/csa_indexer/csa_indexer.hpp"
#include "reference/csa_layer/csa_layer.hpp"
#include "reference/csa_step/csa_step.hpp"
#include "reference/registry/make_operation.hpp"
#include "reference/registry/table.hpp"

namespace plumbline {

std::vector<const Operation*> table_of_csa() {
  return {
      make_operation<csa_attention::Op>(), make_operation<csa_compress::Op>(),
      make_operation<csa_indexer::Op>(),   make_operation<csa_layer::Op>(),
      make_operation<csa_step::Op>(),
  };
}

}  // namespace plumbline
