// Milliseconds of whole operations, forward and backward, in every precision: one table a run, ratios to f192.
// A row of the loss: bf16-like inputs, 128 blocks, 8 heads of width 64, an indexer of 8 heads of width 32.
#include <chrono>
#include <cstdio>
#include <vector>

#include "reference/registry/operation.hpp"

namespace plumbline {
namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Inputs {
  std::vector<std::vector<float>> storage;
  Problem problem;

  void add(Tensors& to, const std::string& name, const Shape& shape) {
    std::vector<float>& values = storage.emplace_back();
    std::uint32_t state = static_cast<std::uint32_t>(storage.size());
    for (std::int64_t i = 0; i < count_of(shape); ++i) {
      state = state * 1664525u + 1013904223u;
      values.push_back(static_cast<float>(static_cast<int>(state >> 24) - 128) / 64.0f);
    }
    StoredTensor tensor;
    tensor.name = "in." + name;
    tensor.dtype = Dtype::f32;
    tensor.shape = shape;
    tensor.stride = row_major(shape);
    tensor.present = true;
    to.emplace(name, tensor);
  }
  void point() {  // once nothing moves any more
    std::size_t next = 0;
    for (auto* tensors : {&problem.in}) {
      for (const std::string& name : order)
        tensors->at(name).data = reinterpret_cast<const std::byte*>(storage[next++].data());
    }
  }
  std::vector<std::string> order;
  void in(const std::string& name, const Shape& shape) {
    add(problem.in, name, shape);
    order.push_back(name);
  }
};

void time_operation(const char* name, Inputs& inputs, std::int64_t rows) {
  inputs.point();
  std::printf("%-18s", name);
  double base = 0;
  for (const Precision precision :
       {Precision::f192, Precision::f64, Precision::mp50, Precision::mp100}) {
    const double start = seconds();
    operation(name).evaluate(inputs.problem,
                             {.precision = precision, .forward = true, .backward = true});
    const double each = (seconds() - start) / static_cast<double>(rows) * 1e3;
    if (precision == Precision::f192) base = each;
    std::printf("  %s %8.3f (%.3g)",
                std::string(names_of(precision)[static_cast<std::size_t>(precision)]).c_str(), each,
                each / base);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace plumbline

int main() {
  using namespace plumbline;
  std::printf("ms per row, forward and backward, one thread (ratio to f192)\n");
  constexpr std::int64_t rows = 4, blocks = 128, tokens = blocks * 4;
  Inputs loss;
  loss.problem.options = {
      {"m", 4}, {"preset", "maxtext_v4"}, {"softmax_scale", 0.125}, {"S", tokens}};
  loss.in("index_q", {1, rows, 8, 32});
  loss.in("index_k", {1, blocks, 32});
  loss.in("index_w", {1, rows, 8});
  loss.in("query", {1, rows, 8, 64});
  loss.in("compressed", {1, blocks, 64});
  time_operation("csa_indexer_loss", loss, rows);
  return 0;
}
