#include "reference/dsa_indexer/dsa_indexer.hpp"
#include "reference/layer_norm/layer_norm.hpp"
#include "reference/linear/linear.hpp"
#include "reference/merge_attention/merge_attention.hpp"
#include "reference/mla_attention/mla_attention.hpp"
#include "reference/mla_layer/mla_layer.hpp"
#include "reference/mla_projection/mla_projection.hpp"
#include "reference/mla_step/mla_step.hpp"
#include "reference/registry/make_operation.hpp"
#include "reference/registry/table.hpp"
#include "reference/rms_norm/rms_norm.hpp"
#include "reference/rope/rope.hpp"

namespace plumbline {

std::vector<const Operation*> table_of_mla() {
  return {
      make_operation<dsa_indexer::Op>(),    make_operation<layer_norm::Op>(),
      make_operation<linear::Op>(),         make_operation<merge_attention::Op>(),
      make_operation<mla_attention::Op>(),  make_operation<mla_layer::Op>(),
      make_operation<mla_projection::Op>(), make_operation<mla_step::Op>(),
      make_operation<rms_norm::Op>(),       make_operation<rope::Op>(),
  };
}

}  // namespace plumbline
