// Which rows and keys a loss looks at.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/mutants/sees.hpp"

namespace plumbline::mutants {
namespace {

const std::string own = "csa_indexer_loss", joint = "csa_indexer_loss, joint",
                  zero_below = "csa_indexer_loss, zero_below", sparse = "dsa_indexer_loss, sparse",
                  slots = "dsa_indexer_loss, slots",
                  from_indexer = "dsa_indexer_loss, from the indexer";

// An empty slot names key 0, where the row does not name it already.
void read_as_key_0(Numbers& indices) {
  for (std::int64_t b = 0; b < indices.size(0); ++b)
    for (std::int64_t t = 0; t < indices.size(1); ++t) {
      bool named = false;
      for (std::int64_t k = 0; k < indices.size(2); ++k) named = named || indices({b, t, k}) == 0;
      for (std::int64_t k = 0; k < indices.size(2); ++k) {
        if (indices({b, t, k}) != -1 || named) continue;
        indices({b, t, k}) = 0;
        named = true;
      }
    }
}

void nan_where_empty(Numbers& gradient, const Scene& scene) {
  const Numbers valid = numbers_of(*scene.correct.find("row_valid"));
  const std::size_t keys = static_cast<std::size_t>(gradient.shape.back());
  for (std::size_t i = 0; i < gradient.at.size(); ++i) {
    if (valid.at[i / keys] == 0) gradient.at[i] = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

Mutants of_loss_rows() {
  return {
      {"block seen early", own, "a block is visible one token before it is complete",
       order(blocks_until(1))},
      {"block seen late", own, "p/m blocks in the place of (p + 1)/m", order(blocks_until(-1))},
      {"straddling block seen", own,
       "a block over a document's end belongs to the document of its last token",
       straddling_blocks_seen()},
      {"documents leak", own, "packed documents are one document", documents_ignored()},
      {"window leaks", joint, "window keys of the document before are in the normaliser",
       [](Problem& problem, const Scene& scene) {
         order([](const Stand& stand, std::int64_t b, std::int64_t t, std::int64_t j) {
           bool one = true;
           for (std::int64_t s = j * stand.m; s < (j + 1) * stand.m; ++s)
             one = one && stand.segment(b, s) == stand.segment(b, stand.token(t));
           return one && blocks_until(0)(stand, b, t, j);
         })(problem, scene);
         problem.options["mask"]["documents"] = false;
       }},
      {"padding mask ignored", own, "`valid` is not read", without({"valid"})},
      {"padding rows counted", own, "`row_mask` is not read", without({"row_mask"})},
      {"empty rows uniform", own,
       "a row whose keys are all masked by a large negative number sees all of them",
       empty_rows_see_all()},
      {"empty rows NaN", own, "0 times NaN in the gradient of a row without keys", nullptr,
       gradient("scores", nan_where_empty)},
      {"last block dropped", own, "blocks in chunks of 2: the ragged chunk is not looked at",
       last_keys_dropped(2)},
      {"joint: block seen early", joint, "the same, beside a window", order(blocks_until(1))},
      {"small rows kept", zero_below, "no row is zeroed: the head sum is normalised whatever it is",
       option("/l1", "none")},
      {"diagonal hidden", sparse, "s < t in the place of s <= t", order(tokens_until(-1))},
      {"next token seen", sparse, "s <= t + 1", order(tokens_until(1))},
      {"not causal", from_indexer, "every row sees every key", option("/mask/causal", false)},
      {"dense student", sparse, "the loss is over all visible keys, not the selected ones",
       all({without({"selected"}), option("/sparse", false)})},
      {"last key dropped", from_indexer, "keys in chunks of 4: the ragged chunk is not looked at",
       last_keys_dropped(4)},
      {"-1 is key 0", slots, "an empty slot is clamped to a legal address",
       integers("indices", read_as_key_0)},
      {"slots shifted", slots, "scores are read one slot off",
       input("scores",
             [](Numbers& x) {
               const std::int64_t k = x.size(2);
               x.reorder(2, [=](std::int64_t i) { return (i + 1) % k; });
             })},
  };
}

}  // namespace plumbline::mutants
