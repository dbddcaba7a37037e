// Random numbers, hashes, families and plans of the generator.
// What it is meant to catch: a stream that no other language makes, a value that its dtype does not
// hold, a family that does not do what its page says, sizes that contradict each other and pass.
#include "fixtures/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "fixtures/families.hpp"
#include "fixtures/philox.hpp"
#include "fixtures/sha256.hpp"
#include "fixtures/strict_json.hpp"
#include "reference/error.hpp"
#include "reference/tensor/tensor.hpp"
#include "tests/generator_testing.hpp"

namespace plumbline {
namespace {

// ---- Philox: the known answers of the Random123 library -----------------------------------------
TEST(Philox, KnownAnswers) {
  constexpr std::uint32_t all = 0xFFFFFFFF;
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({all, all, all, all}, {all, all}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KeysDifferBySeedAndName) {
  std::set<PhiloxKey> keys;
  for (const std::uint64_t seed : {0ull, 1ull, 256ull, ~0ull}) {
    for (const char* name : {"in.query", "in.key", "cot.query", ""})
      keys.insert(philox_key(seed, name));
  }
  EXPECT_EQ(keys.size(), 16u);
}

// ---- SHA-256: the vectors of FIPS 180-4 and of NIST's example page ------------------------------
TEST(Sha256, NistVectors) {
  EXPECT_EQ(sha256(std::string_view("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(std::string_view("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string_view("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(
      sha256(std::string_view(
          "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklm"
          "nopqrlmnopqrsmnopqrstnopqrstu")),
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

TEST(Sha256, AMillionTimesInPiecesOfAnySize) {
  Sha256 hash;
  std::size_t added = 0;
  for (std::size_t piece = 1; added < 1'000'000; piece = piece * 7 % 251 + 1) {
    const std::size_t n = std::min<std::size_t>(piece, 1'000'000 - added);
    hash.add(std::string(n, 'a'));
    added += n;
  }
  EXPECT_EQ(hash.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// ---- formats ------------------------------------------------------------------------------------
Dyadic dyadic(double x) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  return {std::signbit(x), static_cast<std::uint64_t>(std::ldexp(fraction, 53)), exponent - 53};
}

TEST(Encode, EveryNumberOf16BitsIsItsOwnCode) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      const auto c = static_cast<std::uint16_t>(code);
      const double x = dtype == Dtype::bf16 ? decode_bf16(c) : decode_f16(c);
      if (!std::isfinite(x)) continue;
      ASSERT_EQ(encode(dyadic(x), format_of(dtype)), code) << x;
    }
  }
}

TEST(Encode, RoundsToNearestEvenLikeTheHardware) {
  const Philox stream(3, "encode");
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const PhiloxCounter w = stream.words(i);
    const Dyadic x{(w[0] & 1) != 0, ((std::uint64_t{w[1]} << 32) | w[2]) >> (w[0] >> 8 & 63),
                   static_cast<int>(w[3] % 300) - 220};
    const double exact =
        std::ldexp(static_cast<double>(x.magnitude & ((1ull << 53) - 1)), x.exponent);
    const Dyadic fits{x.negative, x.magnitude & ((1ull << 53) - 1), x.exponent};
    const auto rounded = static_cast<float>(x.negative ? -exact : exact);
    if (!std::isfinite(rounded)) {
      EXPECT_THROW(encode(fits, format_of(Dtype::f32)), Error);
      continue;
    }
    ASSERT_EQ(encode(fits, format_of(Dtype::f32)), std::bit_cast<std::uint32_t>(rounded)) << exact;
    ASSERT_EQ(encode(fits, format_of(Dtype::f64)),
              std::bit_cast<std::uint64_t>(x.negative ? -exact : exact));
  }
}

TEST(Encode, HalvesBelowTheSmallestNumber) {
  const BinaryFormat f32 = format_of(Dtype::f32);
  EXPECT_EQ(encode({false, 1, -150}, f32), 0u);                 // exactly half: to even
  EXPECT_EQ(encode({false, (1ull << 40) + 1, -190}, f32), 1u);  // just above
  EXPECT_EQ(encode({false, 3, -150}, f32), 2u);
  EXPECT_EQ(encode({true, 1, -1000}, f32), 0x80000000u);
}

// ---- generated cases ----------------------------------------------------------------------------
TEST(Families, GaussianHasVarianceOneInEveryDtype) {
  for (const char* dtype : {"BF16", "F16", "F32", "F64"}) {
    GenerateRequest asked = request(
        R"({"op":"indexer_scores","dims":{"B":1,"T":40,"K":3,"A":5,"e":20},"precision":"f64"})");
    asked.dtype = *dtype_named(dtype);
    const std::vector<double> q = numbers(*find(generate(asked, 1), "in.q"));
    double sum = 0, squares = 0;
    for (const double x : q) sum += x, squares += x * x;
    const auto n = static_cast<double>(q.size());
    EXPECT_NEAR(sum / n, 0, 0.06) << dtype;
    EXPECT_NEAR(squares / n, 1, 0.06) << dtype;
  }
}

// Narrower dtypes hold the rounding of what wider ones hold, so one seed is one problem in all of
// them.
TEST(Families, OneSeedIsOneProblemInEveryDtype) {
  GenerateRequest asked = request(R"({"op":"topk","dims":{"B":1,"T":9,"k":2},"dtype":"F64"})");
  const std::vector<double> wide = numbers(*find(generate(asked, 1), "in.scores"));
  asked.dtype = Dtype::f32;
  const std::vector<double> narrow = numbers(*find(generate(asked, 1), "in.scores"));
  for (std::size_t i = 0; i < wide.size(); ++i)
    EXPECT_EQ(static_cast<float>(wide[i]), static_cast<float>(narrow[i]));
}

TEST(Families, ADrawDependsOnItsElementAlone) {
  const auto query = [](const char* dims) {
    const GenerateRequest asked =
        request(std::string(R"({"op":"indexer_scores","seed":5,"dims":)") + dims + "}");
    return numbers(*find(generate(asked, 1), "in.k"));
  };
  const std::vector<double> small = query(R"({"B":1,"T":2,"K":3,"A":2,"e":4})");
  const std::vector<double> large = query(R"({"B":2,"T":5,"K":9,"A":3,"e":4})");
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
}

TEST(Families, IntegersAreExactInF32) {
  const GenerateRequest asked =
      request(R"({"op":"indexer_scores","family":"integers","options":{"score_scale":"none"}})");
  GenerateRequest single = asked;
  single.precision = Precision::f32;
  EXPECT_EQ(numbers(*find(generate(asked, 1), "out.scores")),
            numbers(*find(generate(single, 1), "out.scores")));
}

TEST(Families, TiesFillTheZeroPlateau) {
  const std::vector<double> scores = numbers(*find(
      generate(
          request(
              R"({"op":"indexer_scores","family":"ties","dims":{"B":2,"T":20,"K":20,"A":1,"e":4}})"),
          1),
      "out.scores"));
  const auto zeros = std::count(scores.begin(), scores.end(), 0.0);
  EXPECT_GT(zeros, static_cast<std::ptrdiff_t>(scores.size()) / 2);
  EXPECT_LT(zeros, static_cast<std::ptrdiff_t>(scores.size()));
}

TEST(Families, UnderflowUnderflowsInF32AndOnlyThere) {
  const GeneratedCase made = generate(
      request(
          R"({"op":"dsa_indexer_loss","family":"underflow","dims":{"B":1,"T":16,"H":1,"D":3},"outputs":["student"]})"),
      1);
  const std::vector<double> student = numbers(*find(made, "out.student"));
  const auto lost = std::count_if(student.begin(), student.end(),
                                  [](double p) { return p > 0 && static_cast<float>(p) == 0; });
  EXPECT_GT(lost, 10);
}

TEST(Families, AscendingNeverFalls) {
  const GeneratedCase made = generate(
      request(R"({"op":"topk","family":"ascending","dims":{"B":1,"T":30,"k":1},"dtype":"F32"})"),
      1);
  const std::vector<double> scores = numbers(*find(made, "in.scores"));
  for (std::size_t i = 1; i < 30; ++i) EXPECT_GT(scores[i], scores[i - 1]);
}

TEST(Families, SubnormalsAreSubnormalInTheirDtype) {
  for (const char* dtype : {"BF16", "F16", "F32", "F64"}) {
    GenerateRequest asked =
        request(R"({"op":"topk","family":"subnormals","dims":{"B":1,"T":20,"k":1}})");
    asked.dtype = *dtype_named(dtype);
    const double least =
        std::ldexp(1.0, format_of(asked.dtype).smallest() + format_of(asked.dtype).precision - 1);
    const std::vector<double> scores = numbers(*find(generate(asked, 1), "in.scores"));
    const auto small = std::count_if(scores.begin(), scores.end(),
                                     [&](double x) { return x != 0 && std::fabs(x) < least; });
    EXPECT_NEAR(static_cast<double>(small) / static_cast<double>(scores.size()), 0.5, 0.1) << dtype;
  }
}

TEST(Families, NearEqualScoresStandWithinAFewUlp) {
  const GeneratedCase made = generate(
      request(
          R"({"op":"topk","family":"near_equal","dims":{"B":1,"T":1,"S":99,"k":40},"dtype":"F32"})"),
      1);
  const std::vector<double> scores = numbers(*find(made, "in.scores"));
  const std::set<double> different(scores.begin(), scores.end());
  EXPECT_EQ(different, (std::set<double>{0.5, 1, 1 + 0x1p-23, 1 + 0x1p-22, 1 + 0x1.8p-22, 2}));
}

TEST(Families, CancellationLeavesTheLastDigit) {
  const GeneratedCase made = generate(
      request(
          R"({"op":"indexer_scores","family":"cancellation","dims":{"B":1,"T":9,"K":9,"A":1,"e":4},"dtype":"F32","options":{"relu":false,"score_scale":"none"}})"),
      1);
  const auto largest = [&](const char* name) {
    double most = 0;
    for (const double x : numbers(*find(made, name))) most = std::max(most, std::fabs(x));
    return most;
  };
  EXPECT_LT(largest("out.scores"), 1e-4 * largest("in.q") * largest("in.k"));
  EXPECT_GT(largest("out.scores"), 0);
}

TEST(Families, EmptyRowsAreEmptyAtBothEndsAndInTheMiddle) {
  const GeneratedCase made = generate(
      request(R"({"op":"dsa_indexer_loss","family":"empty_rows","dims":{"B":2,"T":12}})"), 1);
  const std::vector<double> valid = numbers(*find(made, "out.row_valid"));
  for (const std::size_t b : {0u, 1u}) {
    for (const std::size_t t : {0u, 1u, 6u, 11u}) EXPECT_EQ(valid[12 * b + t], 0) << t;
  }
  EXPECT_GT(std::count(valid.begin(), valid.end(), 1.0), 8);
}

TEST(Families, DocumentsRestartAndBlocksStraddle) {
  const GeneratedCase made = generate(
      request(R"({"op":"csa_indexer_loss","family":"documents","dims":{"B":2,"T":24,"m":3}})"), 1);
  const std::vector<double> segments = numbers(*find(made, "in.segment_ids")),
                            positions = numbers(*find(made, "in.positions"));
  int straddling = 0, restarts = 0;
  for (std::size_t s = 1; s < segments.size(); ++s) {
    const bool another = segments[s] != segments[s - 1] || s == 24;
    EXPECT_EQ(positions[s], another ? 0 : positions[s - 1] + 1);
    restarts += another ? 1 : 0;
    straddling += another && s % 24 % 3 != 0 ? 1 : 0;
  }
  EXPECT_GE(restarts, 3);
  EXPECT_GE(straddling, 1);
}

// The poison is where nothing is read: without it every output has the same bits, in every kind of
// selection.
TEST(Families, PoisonIsNeverRead) {
  for (
      const char* text : {
          R"({"op":"topk","dims":{"T":19,"k":4},"options":{"nan":"error","mask":{"padding_segment":3}}})",
          R"({"op":"dsa_indexer_loss","dims":{"T":19,"A":2,"e":3},"options":{"mask":{"padding_segment":3}}})",
          R"({"op":"dsa_indexer_loss","dims":{"T":19,"k":4},"options":{"sparse":true,"layout":"slots"}})",
          R"({"op":"dsa_indexer_loss","dims":{"T":7,"S":19},"options":{"sparse":true,"restrict":"after_softmax"},"with":["row_index","mask"]})",
          R"({"op":"csa_indexer_loss","dims":{"T":19,"m":2},"options":{"preset":"primus","window":3,"sparse":true}})",
          R"({"op":"csa_indexer_loss","dims":{"B":1,"T":29,"m":3,"A":2},"options":{"grid":"document","mask":{"padding_segment":5}}})",
      }) {
    GenerateRequest asked = request(text);
    asked.family = "poison";
    asked.precision = Precision::f64;
    asked.grad = true;
    asked.outputs = {"all"};
    for (asked.seed = 0; asked.seed < 8; ++asked.seed) {
      const GeneratedCase made = generate(asked, 1);
      Problem problem;
      const Json json = parse_json(made.metadata.at("plumbline"), "metadata");
      problem.options = json["options"];
      problem.outputs = asked.outputs;
      std::size_t poisoned = 0;
      for (const GeneratedTensor& tensor : made.tensors) {
        if (!tensor.name.starts_with("in.")) continue;
        StoredTensor clean = stored(tensor);
        if (is_real(tensor.dtype) && tensor.name != "in.mask") {
          auto bytes = std::make_shared<std::vector<std::byte>>(*tensor.bytes);
          const std::vector<double> values = numbers(tensor);
          for (std::size_t i = 0; i < values.size(); ++i) {
            if (std::isfinite(values[i])) continue;
            ++poisoned;
            std::memset(bytes->data() + i * size_of(tensor.dtype), 0, size_of(tensor.dtype));
          }
          clean.data = bytes->data();
          clean.owner = bytes;
        }
        problem.in.emplace(tensor.name.substr(3), clean);
      }
      EXPECT_GT(poisoned, 5u) << text;
      Evaluation how;
      how.precision = asked.precision;
      how.backward = true;
      const Result again = operation(asked.op).evaluate(problem, how);
      for (const auto* list : {&again.outputs, &again.gradients}) {
        for (const Value& value : *list) {
          if (value.kind != Kind::real) continue;
          const GeneratedTensor* tensor =
              find(made, (list == &again.outputs ? "out." : "grad.") + value.name);
          ASSERT_NE(tensor, nullptr);
          EXPECT_EQ(std::memcmp(tensor->bytes->data(), value.high.data(), tensor->bytes->size()), 0)
              << text << value.name;
        }
      }
    }
  }
}

// Every family with every operation: made, or refused by name.
TEST(Families, EveryOperationTakesEveryFamily) {
  for (const Family& family : families()) {
    for (const char* op : {"csa_indexer_loss", "dsa_indexer_loss", "indexer_scores", "topk"}) {
      for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f32, Dtype::f64}) {
        GenerateRequest asked;
        asked.op = op;
        asked.family = family.name;
        asked.dtype = dtype;
        asked.precision = Precision::f64;
        asked.grad = true;
        const bool arranges = family.documents || family.empty_rows;
        if (arranges && std::string_view(op) == "indexer_scores") {
          EXPECT_THROW(generate(asked, 1), Error);
        } else {
          EXPECT_NO_THROW(generate(asked, 1)) << op << " " << family.name << " " << name_of(dtype);
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumbline
