// Sizes differ from each other, chunks do not divide them, selections are smaller than what rows see: what hides no
// mistake. docs/families.md says what the families put into them.
#include <algorithm>

#include "reference/error.hpp"
#include "tests/mutants/edits.hpp"

namespace plumbline::mutants {
namespace {

// A row names its first key again: in an empty slot, or else in its last.
void name_keys_twice(Problem& problem) {
  Numbers indices = numbers_of(problem.in.at("indices"));
  const std::int64_t slots = indices.shape[2];
  for (std::int64_t b = 0; b < indices.shape[0]; ++b)
    for (std::int64_t t = 0; t < indices.shape[1]; ++t) {
      std::int64_t live = -1, empty = slots - 1;
      for (std::int64_t k = slots; k-- > 0;) (indices({b, t, k}) < 0 ? empty : live) = k;
      if (live >= 0 && live != empty) indices({b, t, empty}) = indices({b, t, live});
    }
  put(problem.in, "indices", indices, Dtype::i32);
}

// What reaches anything but the indexer is then exactly 0.
void loss_alone(Problem& problem) {
  Numbers none = numbers_of(problem.cot.at("output"));
  none.each([](double) { return 0; });
  put(problem.cot, "output", none);
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> list = {
      {"csa_indexer_loss",
       R"({"op":"csa_indexer_loss","dims":{"B":2,"T":11,"m":3,"H":3,"D":5},"grad":true,
           "options":{"coefficient":0.5},"outputs":["head_sum","target","student"]})"},
      {"csa_indexer_loss, joint",
       R"({"op":"csa_indexer_loss","dims":{"B":2,"T":11,"m":3,"H":3,"D":5},"grad":true,
           "options":{"preset":"megatron_csa_eager","window":4}})"},
      {"csa_indexer_loss, zero_below",
       R"({"op":"csa_indexer_loss","dims":{"B":2,"T":11,"m":2,"H":2,"D":5},"grad":true,
           "options":{"preset":"veomni","window":3}})"},
      {"dsa_indexer_loss, from the indexer",
       R"({"op":"dsa_indexer_loss","dims":{"B":2,"T":7,"H":4,"Hk":2,"D":5,"A":3,"e":2},"grad":true,
           "options":{"preset":"exact"}})"},
      {"dsa_indexer_loss, sparse",
       R"({"op":"dsa_indexer_loss","dims":{"B":2,"T":9,"H":4,"Hk":2,"D":3},"grad":true,
           "options":{"sparse":true,"preset":"megatron"},"outputs":["target","student"]})"},
      {"dsa_indexer_loss, slots",
       R"({"op":"dsa_indexer_loss","dims":{"B":2,"T":9,"H":2,"D":3,"k":4},"grad":true,
           "options":{"sparse":true,"layout":"slots","preset":"exact"}})"},
      {"dsa_indexer_loss, clipped",
       R"({"op":"dsa_indexer_loss","dims":{"B":2,"T":7,"H":2,"D":3},"grad":true,
           "options":{"preset":"tilelang"}})"},
      {"indexer_scores",
       R"({"op":"indexer_scores","dims":{"B":2,"T":4,"K":7,"A":3,"e":5},"grad":true})"},
      {"indexer_scores, one channel",
       R"({"op":"indexer_scores","dims":{"B":2,"T":4,"K":7,"A":3,"e":1},"grad":true})"},
      {"topk", R"({"op":"topk","dims":{"B":2,"T":11,"k":4},"dtype":"F32"})"},
      {"topk, blocks",
       R"({"op":"topk","dims":{"B":2,"T":17,"m":3,"k":2},"options":{"keys":"blocks"},"dtype":"F32"})"},
      {"dsa_indexer",
       R"({"op":"dsa_indexer","dims":{"B":2,"S":7,"E":6,"Rq":5,"A":3,"e":6},"grad":true,
           "options":{"k":3,"rope":{"theta":100,"dim":4}},"outputs":["scores"]})"},
      {"csa_indexer",
       R"({"op":"csa_indexer","dims":{"B":2,"S":10,"E":6,"Rq":5,"A":3,"e":4,"m":3},"grad":true,
           "options":{"k":2,"rope":{"theta":100,"dim":2}},"outputs":["scores"]})"},
      {"csa_compress",
       R"({"op":"csa_compress","dims":{"B":2,"S":11,"m":3,"D":4},"grad":true,
           "options":{"rope":{"theta":100,"dim":2}}})"},
      {"csa_compress, prior",
       R"({"op":"csa_compress","dims":{"B":2,"S":11,"m":3,"D":4},"grad":true,
           "with":["prior_kv","prior_gate","prior_present"]})"},
      {"csa_attention",
       R"({"op":"csa_attention","dims":{"B":2,"T":13,"H":3,"D":5,"m":3,"W":4,"k":3},"grad":true,
           "options":{"softmax_scale":0.5}})"},
      {"csa_attention, all blocks",
       R"({"op":"csa_attention","dims":{"B":2,"T":13,"H":3,"D":5,"m":3,"W":4},"grad":true,
           "without":["indices"],"options":{"lse_includes_sink":true}})"},
      {"mla_attention",
       R"({"op":"mla_attention","dims":{"B":2,"T":7,"H":4,"Hk":2,"D":3,"Dv":5},"grad":true,"with":["sink"],
           "options":{"softmax_scale":0.5,"lse_includes_sink":true},"outputs":["max_logit"]})"},
      {"mla_attention, indices",
       R"({"op":"mla_attention","dims":{"B":2,"T":9,"H":2,"D":3,"k":5},"grad":true,
           "options":{"duplicates":"set"}})",
       name_keys_twice},
      {"mla_attention, last rows",
       R"({"op":"mla_attention","dims":{"B":2,"T":4,"S":9,"H":2,"D":3},"grad":true,"with":["sink"]})"},
      {"merge_attention",
       R"({"op":"merge_attention","dims":{"P":3,"B":2,"T":4,"H":2,"D":5},"grad":true,"with":["sink"]})"},
      {"mla_projection",
       R"({"op":"mla_projection","dims":{"B":2,"S":5,"E":6,"H":2,"Rq":5,"Rkv":3},"grad":true,
           "with":["bkv_b"],"options":{"nope_dim":3,"rope_dim":4,"v_dim":3,
             "rope":{"theta":100,"dim":4,"yarn":{"factor":4,"original_max_position":64,
                     "beta_fast":32,"beta_slow":1}},
             "mscale":1,"max_position":256,"original_max_position":64}})"},
      {"mla_layer",
       R"({"op":"mla_layer","dims":{"B":1,"S":7,"E":5,"H":2,"Rq":4,"Rkv":3,"A":3,"e":4},"grad":true,
           "options":{"nope_dim":3,"rope_dim":2,"v_dim":5,"rope":{"theta":100,"dim":2},
             "indexer":{"k":3,"rope":{"theta":100,"dim":2}},"loss":{"sparse":true,"preset":"megatron"}}})"},
      {"mla_layer, loss alone",
       R"({"op":"mla_layer","dims":{"B":1,"S":7,"E":5,"H":2,"Rq":4,"Rkv":3,"A":3,"e":4},"grad":true,
           "options":{"nope_dim":3,"rope_dim":2,"v_dim":5,"rope":{"theta":100,"dim":2},
             "indexer":{"k":3,"rope":{"theta":100,"dim":2}},"loss":{"sparse":true,"preset":"megatron"}}})",
       loss_alone},
      {"csa_layer",
       R"({"op":"csa_layer","dims":{"B":1,"S":11,"E":5,"H":4,"D":4,"G":2,"Rq":3,"r":2,"A":3,"e":4,"m":2},
           "grad":true,"options":{"window":3,"rope":{"theta":100,"dim":2},"compress_rope":{"theta":30,"dim":4},
             "indexer":{"k":2},"loss":{"sparse":true,"preset":"megatron_csa_fused"}}})"},
      {"csa_layer, loss alone",
       R"({"op":"csa_layer","dims":{"B":1,"S":11,"E":5,"H":4,"D":4,"G":2,"Rq":3,"r":2,"A":3,"e":4,"m":2},
           "grad":true,"options":{"window":3,"rope":{"theta":100,"dim":2},"compress_rope":{"theta":30,"dim":4},
             "indexer":{"k":2},"loss":{"sparse":true,"preset":"megatron_csa_fused"}}})",
       loss_alone},
      {"rope",
       R"({"op":"rope","dims":{"B":2,"S":9,"H":3,"D":6},"grad":true,
           "options":{"rope":{"theta":100,"dim":4,"attention_factor":1.25}}})"},
      {"rope, yarn",
       R"({"op":"rope","dims":{"B":2,"S":9,"H":2,"D":34},"grad":true,
           "options":{"rope":{"theta":10000,"dim":32,"yarn":{"factor":4,"original_max_position":64,
             "beta_fast":32,"beta_slow":1}}}})"},
      {"rope, far",
       R"({"op":"rope","dims":{"B":1,"S":300,"H":1,"D":4},"grad":true,
           "options":{"rope":{"theta":100,"dim":4}}})"},
      {"rms_norm", R"({"op":"rms_norm","dims":{"n":5,"D":6},"grad":true,"options":{"eps":1e-5}})"},
      {"layer_norm", R"({"op":"layer_norm","dims":{"n":5,"D":6},"grad":true,"with":["bias"]})"},
      {"linear",
       R"({"op":"linear","dims":{"n":5,"I":7,"G":2,"O":4},"grad":true,"with":["bias"],
           "options":{"slice_bounds":[1,3]}})"},
      {"linear, long", R"({"op":"linear","dims":{"n":3,"I":129,"G":1,"O":2},"grad":true})"},
  };
  return list;
}

const Setting& setting(const std::string& name) {
  const auto found = std::find_if(settings().begin(), settings().end(),
                                  [&](const Setting& each) { return each.name == name; });
  if (found == settings().end()) throw Error("setting", name, "one of settings()");
  return *found;
}

const Mutants& all_mutants() {
  static const Mutants list = [] {
    Mutants all;
    for (const auto& part : {of_losses(), of_loss_rows(), of_selection(), of_compressed_attention(),
                             of_attention(), of_layers(), of_basics(), of_arithmetic()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return list;
}

}  // namespace plumbline::mutants
