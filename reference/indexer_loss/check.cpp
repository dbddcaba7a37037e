#include <string>

#include "reference/error.hpp"
#include "reference/indexer_loss/loss.hpp"

namespace plumbline::indexer_loss {
namespace {

void need(const StoredTensor& tensor, std::string_view name, const std::string& why) {
  if (!tensor.given()) throw Error("in." + std::string(name), "nothing", "the tensor: " + why);
}
void exclude(const StoredTensor& tensor, const std::string& why) {
  if (tensor.given()) throw Error(tensor.name, "the tensor", "none: " + why);
}

}  // namespace

void check(const Tensors& in, const Options& options, bool blocks) {
  if (!blocks && options.teacher != Teacher::own) {
    throw Error("option teacher",
                std::string(names_of(options.teacher)[static_cast<std::size_t>(options.teacher)]),
                "own: window and sink stand beside compressed blocks only (csa_indexer_loss)");
  }
  const bool raw = in.index_q.given() || in.index_k.given() || in.index_w.given();
  if (in.scores.given() && raw) {
    exclude(in.index_q.given()   ? in.index_q
            : in.index_k.given() ? in.index_k
                                 : in.index_w,
            "in.scores is given, which index_q, index_k and index_w would make");
  }
  if (!in.scores.given()) {
    const std::string why = "in.scores, or index_q, index_k and index_w";
    if (!raw) need(in.scores, "scores", why);
    need(in.index_q, "index_q", why);
    need(in.index_k, "index_k", why);
    need(in.index_w, "index_w", why);
  }
  if (!options.sparse) {
    exclude(in.selected, "option sparse is false");
    exclude(in.indices, "option sparse is false");
  } else if (in.selected.given() && in.indices.given()) {
    exclude(in.indices, "in.selected is given; a sparse loss takes one of them");
  } else if (!in.selected.given() && !in.indices.given()) {
    throw Error("in.selected", "neither selected nor indices",
                "one of them (option sparse is true)");
  }
  if (options.layout == Layout::slots) {
    if (!options.sparse) throw Error("option layout", "slots with sparse false", "sparse true");
    if (!in.indices.given()) throw Error("option layout", "slots without in.indices", "in.indices");
  }
  if (options.window && *options.window < 0) {
    throw Error("option window", std::to_string(*options.window), "a window >= 0");
  }
  if (in.given_head_sum.given()) return;
  if (in.given_target.given() && !in.query.given()) return;
  const std::string why = "without given.head_sum the teacher is computed";
  need(in.query, "query", why);
  need(in.key, blocks ? "compressed" : "key", why);
  if (options.teacher == Teacher::own || in.given_log_mass.given()) return;
  if (!options.window) {
    throw Error("option window", "nothing", "a window (0 = no window keys): the teacher is joint");
  }
  if (*options.window > 0) need(in.kv, "kv", "a joint teacher with a window reads its keys");
}

}  // namespace plumbline::indexer_loss
