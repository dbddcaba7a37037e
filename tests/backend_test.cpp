// The operations' own text compiled with another multiprecision back end: cpp_bin_float shares no arithmetic with
// MPFR, so a fault of either shows. (A double literal in the text would hide from this; tests/truth is for that.)
#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "reference/csa_indexer_loss/csa_indexer_loss.hpp"
#include "reference/indexer_loss/backward.cpp"
#undef INSTANTIATE
#include "reference/indexer_loss/forward.cpp"
#undef INSTANTIATE
#include "reference/indexer_loss/row.cpp"
#undef INSTANTIATE
#include "reference/indexer_loss/teacher.cpp"
#undef INSTANTIATE
#include "reference/indexer_scores/score_row.cpp"
#undef INSTANTIATE
#include "reference/tensor/tensor.cpp"
#undef INSTANTIATE

namespace plumbline {
namespace {

using bin50 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>,
                                            boost::multiprecision::et_off>;

StoredTensor tensor(const char* name, const Shape& shape, const std::vector<double>& values) {
  StoredTensor t;
  t.name = name;
  t.data = reinterpret_cast<const std::byte*>(values.data());
  t.shape = shape;
  t.stride = row_major(shape);
  t.present = true;
  return t;
}

std::vector<double> dyadics(std::size_t n, unsigned seed) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(std::ldexp(static_cast<double>(static_cast<int>(seed >> 8) - (1 << 23)), -22));
  }
  return values;
}

template <class T> struct Both {
  indexer_loss::Outputs<T> out;
  indexer_loss::Gradients<T> grad;
};

template <class T>
Both<T> run(const indexer_loss::Tensors& in, const indexer_loss::Options& options) {
  Sizes sizes;
  sizes.set("B", 1, "");
  sizes.set("T", 7, "");
  return {indexer_loss::forward<T>(in, options, Run{}, sizes),
          indexer_loss::backward<T>(in, options, Run{}, sizes, {})};
}

void expect_equal(const std::vector<mp50>& x, const std::vector<bin50>& y) {
  ASSERT_EQ(x.size(), y.size());
  mp100 scale(0), worst(0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const mp100 a(x[i].str(60, std::ios::scientific)), b(y[i].str(60, std::ios::scientific));
    scale = std::max(scale, magnitude(a));
    worst = std::max(worst, magnitude(mp100(a - b)));
  }
  EXPECT_GT(scale, mp100(0));
  EXPECT_LE(worst, scale * mp100("1e-46"));
}

TEST(Backend, LossOnCppBinFloatAgreesWithMpfrTo46Digits) {
  const std::vector<double> q = dyadics(7 * 3 * 4, 1), k = dyadics(3 * 4, 2),
                            iq = dyadics(7 * 2 * 5, 3), ik = dyadics(3 * 5, 4),
                            iw = dyadics(7 * 2, 5);
  indexer_loss::Tensors in;
  in.query = tensor("in.query", {1, 7, 3, 4}, q);
  in.key = tensor("in.compressed", {1, 3, 1, 4}, k);
  in.index_q = tensor("in.index_q", {1, 7, 2, 5}, iq);
  in.index_k = tensor("in.index_k", {1, 3, 5}, ik);
  in.index_w = tensor("in.index_w", {1, 7, 2}, iw);
  for (const indexer_loss::Preset& preset : csa_indexer_loss::Op::presets()) {
    indexer_loss::Options options;
    preset.apply(options);
    options.teacher = indexer_loss::Teacher::own;
    options.m = 2;
    const Both<mp50> x = run<mp50>(in, options);
    const Both<bin50> y = run<bin50>(in, options);
    expect_equal(x.out.row_loss.values, y.out.row_loss.values);
    expect_equal(x.grad.index_q.values, y.grad.index_q.values);
    expect_equal(x.grad.index_k.values, y.grad.index_k.values);
    expect_equal(x.grad.index_w.values, y.grad.index_w.values);
  }
}

}  // namespace
}  // namespace plumbline
