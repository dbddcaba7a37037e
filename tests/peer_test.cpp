// Every case of tests/peer against the numbers another project's code gave for it: an independent path.
// What it is meant to catch: a convention read wrongly. What it cannot: anything below float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "fixtures/case.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline {
namespace {

std::vector<std::string> peer_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(PLUMBLINE_PEER_CASES)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::int64_t> place_of(std::size_t i, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = static_cast<std::int64_t>(i % static_cast<std::size_t>(shape[axis]));
    i /= static_cast<std::size_t>(shape[axis]);
  }
  return index;
}

void expect_agrees(const Value& ours, const StoredTensor& theirs) {
  ASSERT_EQ(ours.shape, theirs.shape) << theirs.name;
  const auto count = static_cast<std::size_t>(count_of(ours.shape));
  double scale = 0, worst = 0;
  std::size_t worst_at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<std::int64_t> place = place_of(i, ours.shape);
    const Index index(place);
    if (ours.kind == Kind::integer) {
      ASSERT_EQ(ours.integers[i], integer_at(theirs, index)) << theirs.name << to_string(index);
    } else if (ours.kind == Kind::boolean) {
      ASSERT_EQ(ours.booleans[i] != 0, boolean_at(theirs, index))
          << theirs.name << to_string(index);
    } else {
      const double x = ours.high[i], y = Fetch<double>::element(theirs, index);
      if (std::isfinite(y)) scale = std::max(scale, std::abs(y));
      if (x == y) continue;  // infinities included
      ASSERT_TRUE(std::isfinite(x) && std::isfinite(y))
          << theirs.name << to_string(index) << " " << x << " " << y;
      if (std::abs(x - y) > worst) worst = std::abs(x - y), worst_at = i;
    }
  }
  EXPECT_LE(worst, std::ldexp(scale, -15))
      << theirs.name << to_string(Index(place_of(worst_at, ours.shape))) << ", largest value "
      << scale;
}

// Test names are letters, digits and _.
std::string printable_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

class Peer : public testing::TestWithParam<std::string> {};

TEST_P(Peer, AgreesWithTheirNumbers) {
  const Case peer =
      load_case(std::string(PLUMBLINE_PEER_CASES) + "/" + GetParam() + ".safetensors");
  Evaluation how;
  how.precision = Precision::f192;
  const auto has = [&](const std::string& prefix) {
    return std::any_of(peer.file.tensors().begin(), peer.file.tensors().end(),
                       [&](const FileTensor& tensor) { return tensor.name.starts_with(prefix); });
  };
  how.backward = has("peer.grad.");
  Problem problem = peer.problem;
  for (const FileTensor& tensor : peer.file.tensors()) {
    if (tensor.name.starts_with("peer.out.")) problem.outputs.push_back(tensor.name.substr(9));
  }
  const Result result = operation(peer.op()).evaluate(problem, how);
  int compared = 0;
  for (const FileTensor& tensor : peer.file.tensors()) {
    const std::string& name = tensor.name;
    const bool out = name.starts_with("peer.out."), grad = name.starts_with("peer.grad.");
    if (!out && !grad) continue;
    const Value* ours = result.find(name.substr(out ? 9 : 10), grad);
    ASSERT_NE(ours, nullptr) << name;
    expect_agrees(*ours, peer.file.stored(tensor));
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, Peer, testing::ValuesIn(peer_files()),
                         [](const auto& instance) { return printable_name(instance.param); });

}  // namespace
}  // namespace plumbline
