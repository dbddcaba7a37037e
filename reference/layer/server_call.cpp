#include "reference/layer/server_call.hpp"

#include "reference/error.hpp"

namespace plumbline::layer {

void need_state(const StoredTensor& tensor, const char* name, const char* what) {
  if (!tensor.given()) throw Error(std::string("in.") + name, "nothing", what);
}

void refuse_masks(const MaskInputs& masks) {
  for (const StoredTensor* tensor :
       {&masks.valid, &masks.row_mask, &masks.mask, &masks.row_index, &masks.cu_seqlens}) {
    if (tensor->given())
      throw Error(tensor->name, "the tensor", "none: a call of a server does not take it");
  }
}

void check_server_options(bool loss, const MaskOptions& mask) {
  if (loss) throw Error("option loss", "a loss", "null: a call of a server has no loss");
  if (!mask.causal) throw Error("option mask.causal", "false", "true: later tokens are not there");
  if (mask.query_offset) {
    throw Error("option mask.query_offset", std::to_string(*mask.query_offset),
                "none: rows stand at the new tokens");
  }
}

void check_lengths(const StoredTensor& length, const Sizes& sizes) {
  const std::int64_t capacity = sizes["P"], fresh = sizes["L"];
  for (std::int64_t b = 0; b < sizes["B"]; ++b) {
    const std::int64_t held = integer_at(length, {b});
    const std::string where = length.name + "[" + std::to_string(b) + "]";
    if (held < 0 || held > capacity) {
      throw Error(where, std::to_string(held),
                  "a length from 0 to P = " + std::to_string(capacity));
    }
    if (fresh > capacity - held) {
      throw Error(where, std::to_string(held) + " with L = " + std::to_string(fresh),
                  "length + L <= P = " + std::to_string(capacity));
    }
  }
}

NewTokens new_tokens(const StoredTensor& x, const StoredTensor& positions,
                     const StoredTensor& segment_ids, std::int64_t b, std::int64_t before) {
  const std::int64_t fresh = x.size(1);
  NewTokens now;
  now.x = at_rows(at_first(x, b), 0, fresh);
  for (std::int64_t i = 0; i < fresh; ++i) {
    now.positions.push_back(
        static_cast<std::int32_t>(positions.given() ? integer_at(positions, {b, i}) : before + i));
    now.segments.push_back(
        static_cast<std::int32_t>(segment_ids.given() ? integer_at(segment_ids, {b, i}) : 0));
  }
  return now;
}

}  // namespace plumbline::layer
