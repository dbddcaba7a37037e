// Sizes and choices of the generator: letters that are derived, tensors that options decide on, mistakes by name.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fixtures/generate_plan.hpp"
#include "reference/error.hpp"
#include "tests/generator_testing.hpp"

namespace plumbline {
namespace {

TEST(Plan, LettersAreDerived) {
  const GeneratedCase made =
      generate(request(R"({"op":"csa_indexer_loss","dims":{"T":11,"m":3,"e":6}})"), 1);
  EXPECT_EQ(find(made, "in.compressed")->shape[1], 3);
  EXPECT_EQ(find(made, "in.index_k")->shape, (Shape{2, 3, 6}));
  EXPECT_EQ(find(made, "in.scores"), nullptr);
  const GeneratedCase blocks =
      generate(request(R"({"op":"csa_indexer_loss","dims":{"N":4},"options":{"m":5}})"), 1);
  EXPECT_EQ(find(blocks, "in.query")->shape[1], 20);
}

TEST(Plan, DefaultsDifferFromEachOther) {
  const GeneratedCase made = generate(request(R"({"op":"indexer_scores"})"), 1);
  std::set<std::int64_t> sizes;
  for (const std::int64_t size : find(made, "in.q")->shape) sizes.insert(size);
  sizes.insert(find(made, "in.k")->shape[1]);
  EXPECT_EQ(sizes.size(), 5u);
}

TEST(Plan, OptionsDecideWhichTensorsAreWritten) {
  struct Row {
    const char *text, *written, *not_written;
  };
  for (
      const Row& row : {
          Row{R"({"op":"dsa_indexer_loss"})", "in.scores", "in.selected"},
          Row{R"({"op":"dsa_indexer_loss","options":{"sparse":true}})", "in.selected",
              "in.indices"},
          Row{R"({"op":"dsa_indexer_loss","options":{"sparse":true},"dims":{"k":3}})", "in.indices",
              "in.selected"},
          Row{R"({"op":"dsa_indexer_loss","options":{"sparse":true,"layout":"slots"}})",
              "in.indices", "in.selected"},
          Row{R"({"op":"csa_indexer_loss","options":{"preset":"primus","window":2}})", "in.kv",
              "in.segment_ids"},
          Row{R"({"op":"csa_indexer_loss","options":{"preset":"primus","window":0}})", "in.sink",
              "in.kv"},
          Row{R"({"op":"csa_indexer_loss","options":{"teacher":"joint_window","window":2}})",
              "in.kv", "in.sink"},
          Row{R"({"op":"csa_indexer_loss","with":["index_q"]})", "in.index_w", "in.scores"},
          Row{R"({"op":"topk","with":["valid"],"dims":{"B":1}})", "in.valid", "in.row_mask"},
          Row{R"({"op":"topk","with":["cu_seqlens"],"family":"documents"})", "in.cu_seqlens",
              "in.positions"},
          Row{R"({"op":"mla_layer","options":{"nope_dim":3,"rope_dim":2,"v_dim":5,"rope":{"theta":9,"dim":2}}})",
              "in.wq", "in.indexer_wk"},
          Row{R"({"op":"csa_layer","options":{"window":2,"rope":{"theta":9,"dim":2}}})",
              "in.kv_proj", "in.indexer_q_proj"},
          Row{R"({"op":"csa_layer","options":{"window":2,"rope":{"theta":9,"dim":2},"indexer":{"k":1}}})",
              "in.indexer_q_proj", "in.valid"},
          Row{R"({"op":"csa_layer","family":"empty_rows","options":{"kind":"window","window":2,"rope":{"theta":9,"dim":2}}})",
              "in.row_mask", "in.valid"},
          Row{R"({"op":"csa_layer","options":{"kind":"window","window":2,"rope":{"theta":9,"dim":2}}})",
              "in.sink", "in.kv_proj"},
          Row{R"({"op":"csa_step","options":{"kind":"hca","window":2,"rope":{"theta":9,"dim":2}}})",
              "in.state.partial_kv", "in.state.prior_kv"},
          Row{R"({"op":"csa_step","options":{"kind":"window","window":2,"rope":{"theta":9,"dim":2}}})",
              "in.state.kv", "in.state.partial_kv"},
          Row{R"({"op":"csa_step","options":{"window":2,"rope":{"theta":9,"dim":2},"indexer":{"k":1}}})",
              "in.state.indexer_index_k", "in.row_mask"},
          Row{R"({"op":"mla_step","options":{"rope":{"theta":9,"dim":2}}})", "in.state.k_pe",
              "in.state.indexer_index_k"},
          Row{R"({"op":"topk","family":"poison","without":["row_mask"]})", "in.valid",
              "in.row_mask"},
      }) {
    const GeneratedCase made = generate(request(row.text), 1);
    EXPECT_NE(find(made, row.written), nullptr) << row.text;
    EXPECT_EQ(find(made, row.not_written), nullptr) << row.text;
  }
}

TEST(Plan, LettersThatAKindMakes) {
  const std::string layer = R"({"op":"csa_layer","dims":{"D":4,"H":6,"r":5,"m":2},"options":)";
  const GeneratedCase csa =
      generate(request(layer + R"({"window":2,"rope":{"theta":9,"dim":2}}})"), 1);
  EXPECT_EQ(find(csa, "in.kv_proj")->shape, (Shape{11, 8}));
  EXPECT_EQ(find(csa, "in.position_bias")->shape, (Shape{2, 8}));
  EXPECT_EQ(find(csa, "in.o_a")->shape, (Shape{2, 12, 5}));
  EXPECT_EQ(find(csa, "in.o_b")->shape, (Shape{10, 11}));
  const GeneratedCase hca =
      generate(request(layer + R"({"kind":"hca","window":2,"rope":{"theta":9,"dim":2}}})"), 1);
  EXPECT_EQ(find(hca, "in.kv_proj")->shape, (Shape{11, 4}));
}

// A state is that of its lengths: positions and documents go on, priors only where a block is, NaN beyond.
TEST(Plan, StatesOfServers) {
  for (int seed = 0; seed < 20; ++seed) {
    const GeneratedCase made = generate(
        request(
            R"({"op":"csa_step","family":"poison","dims":{"B":3,"L":2,"P":11,"m":2},"dtype":"F64",
                    "options":{"window":3,"rope":{"theta":9,"dim":2},"indexer":{"k":1}},"seed":)" +
            std::to_string(seed) + "}"),
        1);
    const auto at = [&](const char* name) { return stored(*find(made, name)); };
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::int64_t length = integer_at(at("in.state.length"), {b});
      EXPECT_LE(length + 2, 11);
      EXPECT_GE(length, 0);
      if (boolean_at(at("in.state.prior_present"), {b})) {
        EXPECT_GE(length, 2);
      }
      std::int64_t last = -1, document = -1;
      for (std::int64_t s = 0; s < length + 2; ++s) {
        const bool old = s < length;
        const std::string of = old ? "in.state." : "in.";
        const std::int64_t i = old ? s : s - length;
        const std::int64_t segment = integer_at(at((of + "segment_ids").c_str()), {b, i}),
                           position = integer_at(at((of + "positions").c_str()), {b, i});
        EXPECT_EQ(position, segment == document ? last + 1 : 0);
        last = position, document = segment;
      }
      for (std::int64_t s = 0; s < 11; ++s) {
        const bool read = s < length && s > length - 3;
        EXPECT_EQ(std::isfinite(element<double>(at("in.state.kv"), {b, s, 0})), read) << s;
      }
      for (std::int64_t j = 0; j < 5; ++j) {
        EXPECT_EQ(std::isfinite(element<double>(at("in.state.compressed"), {b, j, 0})),
                  j < length / 2);
      }
      for (std::int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(std::isfinite(element<double>(at("in.state.indexer_partial_gate"), {b, i, 0})),
                  i < length % 2);
      }
    }
  }
}

TEST(Plan, CotangentsWhereThereIsNoLoss) {
  const GeneratedCase scores = generate(request(R"({"op":"indexer_scores","grad":true})"), 1);
  EXPECT_EQ(find(scores, "cot.scores")->shape, find(scores, "out.scores")->shape);
  EXPECT_NE(find(scores, "grad.q"), nullptr);
  const GeneratedCase loss = generate(request(R"({"op":"dsa_indexer_loss","grad":true})"), 1);
  EXPECT_EQ(find(loss, "cot.loss"), nullptr);
  EXPECT_NE(find(loss, "grad.scores"), nullptr);
}

TEST(Plan, MistakesAreNamed) {
  struct Row {
    const char *text, *where;
  };
  for (
      const Row& row : {
          Row{R"([])", "test"},
          Row{R"({})", "test.op"},
          Row{R"({"op":"nothing"})", "op"},
          Row{R"({"op":"topk","colour":1})", "test"},
          Row{R"({"op":"topk","dims":{"T":-1}})", "test.dims.T"},
          Row{R"({"op":"topk","dims":{"T":1.5}})", "test.dims.T"},
          Row{R"({"op":"topk","dims":[]})", "test.dims"},
          Row{R"({"op":"topk","dims":{"Z":3}})", "--dims"},
          Row{R"({"op":"topk","dims":{"T":1,"S":1099511627776}})", "S, keys being tokens"},
          Row{R"({"op":"indexer_scores","dims":{"T":1099511627776,"A":1099511627776}})",
              "--dims T"},
          Row{R"({"op":"topk","dims":{"T":9,"S":5}})", "--dims T"},
          Row{R"({"op":"topk","dims":{"k":3},"options":{"k":4}})", "--dims k"},
          Row{R"({"op":"csa_indexer_loss","dims":{"S":9,"m":3,"N":4}})", "--dims N"},
          Row{R"({"op":"csa_indexer_loss","dims":{"m":0}})", "option m"},
          Row{R"({"op":"csa_indexer_loss","dims":{"B":2},"options":{"grid":"document"}})",
              "--dims B"},
          Row{R"({"op":"topk","dims":{"B":2},"with":["cu_seqlens"]})", "--dims B"},
          Row{R"({"op":"topk","options":{"colour":1}})", "option \"colour\""},
          Row{R"({"op":"topk","options":3})", "test.options"},
          Row{R"({"op":"topk","schedule":{"barrier":true}})", "schedule.barrier"},
          Row{R"({"op":"topk","outputs":["nothing"]})", "outputs"},
          Row{R"({"op":"topk","outputs":"all"})", "test.outputs"},
          Row{R"({"op":"topk","family":"nothing"})", "family"},
          Row{R"({"op":"topk","family":"ties+peaked"})", "family"},
          Row{R"({"op":"topk","family":"ties+"})", "family"},
          Row{R"({"op":"indexer_scores","family":"poison"})", "family"},
          Row{R"({"op":"topk","family":"documents","without":["segment_ids"]})", "family"},
          Row{R"({"op":"topk","seed":-1})", "test.seed"},
          Row{R"({"op":"topk","seed":1.5})", "test.seed"},
          Row{R"({"op":"topk","dtype":"I32"})", "test.dtype"},
          Row{R"({"op":"topk","precision":"f128"})", "test.precision"},
          Row{R"({"op":"topk","grad":1})", "test.grad"},
          Row{R"({"op":"topk","with":["scores"]})", "--with"},
          Row{R"({"op":"topk","with":["nothing"]})", "--with"},
          Row{R"({"op":"topk","without":["nothing"]})", "--without"},
          Row{R"({"op":"topk","with":["valid"],"without":["valid"]})", "--with"},
          Row{R"({"op":"dsa_indexer_loss","with":["selected"]})", "in.selected"},
          Row{R"({"op":"dsa_indexer_loss","without":["query"]})", "in.query"},
          Row{R"({"op":"csa_indexer_loss","options":{"preset":"primus"}})", "option window"},
          Row{R"({"op":"csa_step","dims":{"L":5,"P":4},"options":{"window":2,"rope":{"theta":9,"dim":2}}})",
              "--dims L"},
          Row{R"({"op":"csa_step","family":"empty_rows","options":{"window":2,"rope":{"theta":9,"dim":2}}})",
              "family"},
          Row{R"({"op":"csa_layer","with":["indexer_q_proj"],"options":{"window":2,"rope":{"theta":9,"dim":2}}})",
              "in.indexer_q_proj"},
      }) {
    try {
      generate(request(row.text), 1);
      ADD_FAILURE() << "accepted " << row.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.where(), row.where) << row.text << "\n" << error.what();
    }
  }
}

}  // namespace
}  // namespace plumbline
