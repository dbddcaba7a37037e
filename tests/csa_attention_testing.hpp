// tests/csa_attention_testing.hpp: what the tests of csa_attention share.
#pragma once
#include "reference/csa_attention/csa_attention.hpp"
#include "tests/attention_testing.hpp"

namespace plumbline::attention_testing {

inline Result attend(const Problem& problem) { return evaluate(problem, "csa_attention"); }

// Queries of 0: every key weighs the same, and output times the number of keys is their sum. Token s is 2^s and block
// j is 2^(20 + j), so that the sum says which keys a row has.
inline Problem counted(std::int64_t batch, std::int64_t rows, std::int64_t tokens,
                       std::int64_t blocks, Json options) {
  Numbers kv, compressed;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t s = 0; s < tokens; ++s) kv.push_back(std::ldexp(1, static_cast<int>(s)));
    for (std::int64_t j = 0; j < blocks; ++j)
      compressed.push_back(std::ldexp(1, static_cast<int>(20 + j)));
  }
  return support::problem(
      std::move(options),
      {{"query", f64s({batch, rows, 1, 1}, Numbers(static_cast<std::size_t>(batch * rows), 0))},
       {"kv", f64s({batch, tokens, 1}, kv)},
       {"compressed", f64s({batch, blocks, 1}, compressed)}});
}
using Keys = std::vector<std::int64_t>;  // of a row: tokens, and blocks as 20 + j
inline std::vector<Keys> keys_of(const Problem& problem) {
  const Result result = attend(problem);
  const Value &out = output(result, "output"), &lse = output(result, "lse");
  std::vector<Keys> all;
  for (std::size_t row = 0; row < out.high.size(); ++row) {
    const auto sum = static_cast<std::uint64_t>(
        std::llround(out.high[row] * std::round(std::exp(lse.high[row]))));
    Keys keys;
    for (std::int64_t key = 0; key < 60; ++key) {
      if ((sum >> key & 1) != 0) keys.push_back(key);
    }
    all.push_back(keys);
  }
  return all;
}

// One head, one row at token 5 of 6, W = 2, m = 2, of whose blocks 0 and 2 are selected. Channel 0 holds the logits
// of window and blocks, 0, ln 2 | ln 3, ln 4, and channel 1 the values 1, 2 | 3, 4; what the row has not is NaN.
struct WorkedRow {
  Array<mp50> kv, compressed, sink;
  Problem problem;
  WorkedRow()
      : kv({1, 6, 2}, not_a_number<mp50>()),
        compressed({1, 3, 2}, not_a_number<mp50>()),
        sink({1}, ln(6)) {
    kv({0, 4, 0}) = 0, kv({0, 4, 1}) = 1;
    kv({0, 5, 0}) = ln(2), kv({0, 5, 1}) = 2;
    compressed({0, 0, 0}) = ln(3), compressed({0, 0, 1}) = 3;
    compressed({0, 2, 0}) = ln(4), compressed({0, 2, 1}) = 4;
    problem = support::problem({{"m", 2}, {"window", 2}},
                               {{"query", f64s({1, 1, 1, 2}, {1, 0})},
                                {"kv", working(kv)},
                                {"compressed", working(compressed)},
                                {"sink", working(sink)},
                                {"indices", i32s({1, 1, 4}, {-1, 2, -1, 0})}},
                               {{"output", f64s({1, 1, 1, 2}, {0, 1})}});
  }
  WorkedRow(const WorkedRow&) = delete;
  WorkedRow& operator=(const WorkedRow&) = delete;
};

}  // namespace plumbline::attention_testing
