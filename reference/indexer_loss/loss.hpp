// reference/indexer_loss/loss.hpp
//
// KL(teacher ‖ student) per query row over its set of keys S_t: dsa_indexer_loss (keys are tokens) and
// csa_indexer_loss (keys are blocks) are this one function; docs/ops/csa_indexer_loss.md derives it.
// Guarantees: value and gradient in T. Nothing stored in a hidden place is read. T is kept as ln T, so no row
// vanishes by underflow. With barrier false no array over keys is held, only key_block numbers at a time.
// Source: DeepSeek-V3.2 report, equations 3-4; DeepSeek-V4 report, section 2.3.1, equations 13-17.
#pragma once
#include "reference/indexer_loss/options.hpp"
#include "reference/operation/run.hpp"

namespace plumbline::indexer_loss {

// Tensors under the names of the files. key is [B, K, Hk, D]; for blocks Hk = 1.
struct Tensors {
  StoredTensor scores, index_q, index_k, index_w;
  StoredTensor query, key, kv, sink, selected, indices;
  StoredTensor given_log_mass, given_head_sum, given_target;
  MaskInputs mask;
};

struct Cotangents {
  StoredTensor loss, row_loss;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("loss", loss, "", "of the loss");
    v.optional("row_loss", row_loss, "B T", "of the row losses");
  }
};

template <class T> struct Outputs {
  Array<T> loss, row_loss, log_mass, head_sum, target, student;
  Array<std::uint8_t> row_valid;

  // plane: "B T S", "B T N" or, in layout slots, "B T k"
  template <class Visitor> void fields(Visitor& v) {
    v("loss", loss, "", "coefficient times the reduced row losses");
    v("row_loss", row_loss, "B T", "sum of t (ln t - ln p) over the row's keys");
    v("row_valid", row_valid, "B T", "the row is real and sees a key");
    v("log_mass", log_mass, "B T H", "ln Z of each head");
    v.on_request("head_sum", head_sum, "B T K", "T, the sum of P over heads");
    v.on_request("target", target, "B T K", "t");
    v.on_request("student", student, "B T K", "p");
  }
};

template <class T> struct Gradients {
  Array<T> scores, index_q, index_k, index_w;
  template <class Visitor> void fields(Visitor& v) {
    v("scores", scores);
    v("index_q", index_q);
    v("index_k", index_k);
    v("index_w", index_w);
  }
};

// sizes hold the letters of all tensors.
template <class T> Outputs<T> forward(const Tensors&, const Options&, const Run&, Sizes sizes);
template <class T>
Gradients<T> backward(const Tensors&, const Options&, const Run&, Sizes sizes, const Cotangents&);

// The checks that do not depend on the precision: which inputs belong together.
void check(const Tensors& tensors, const Options& options, bool blocks);

}  // namespace plumbline::indexer_loss
