// What families of inputs do not make of an attention: infinite sinks, duplicates, rows whose first
// tiles are empty, launches that are refused. Judged as all kernels are.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "device/csa_attention/launch.hpp"
#include "device/mla_attention/launch.hpp"
#include "tools/kernels/trial.hpp"

namespace plumbline {
namespace {

namespace host = device::host;

class Attentions : public testing::TestWithParam<const Kernel*> {
 protected:
  const Kernel& kernel() const { return *GetParam(); }
  bool backward() const { return kernel().name == "naive"; }

  // A case of this kernel in BF16, forward and, where it has one, backward.
  KernelCase made(Json entry) const {
    entry["grad"] = backward();
    Kernel one = kernel();
    one.odd = {entry};
    KernelCase found = cases_of(one, "").front();
    EXPECT_EQ(found.refused, "");
    return found;
  }
  void expect_pass(const KernelCase& one) const {
    Trials trials(kernel(), one);
    for (std::uint64_t n = 0; n < 3; ++n) {
      const Trial trial = trials.run(machine_number(n));
      EXPECT_TRUE(trial.passed()) << kernel().op << " " << kernel().name << " " << one.name << ", "
                                  << describe(machine_number(n)) << ": " << trial.verdict() << " "
                                  << trial.reason();
    }
  }
  Json dims() const { return sizes().at(kernel().op); }

 public:
  static const std::map<std::string, Json>& sizes() {  // by operation
    static const std::map<std::string, Json> all = {
        {"csa_attention", {{"B", 2}, {"T", 9}, {"H", 4}, {"D", 8}, {"m", 2}, {"W", 3}, {"k", 3}}},
        {"mla_attention",
         {{"B", 2}, {"T", 9}, {"H", 4}, {"Hk", 2}, {"D", 8}, {"Dv", 6}, {"k", 3}}}};
    return all;
  }
};

// The same tensor with other bytes.
template <class T> void replace(StoredTensor& tensor, const std::vector<T>& values) {
  ASSERT_EQ(static_cast<std::size_t>(count_of(tensor.shape)), values.size());
  const auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  std::memcpy(bytes->data(), values.data(), bytes->size());
  tensor.data = bytes->data();
  tensor.owner = bytes;
  tensor.stride = row_major(tensor.shape);
}

TEST_P(Attentions, TakeInfiniteSinks) {
  for (const bool counted : {false, true}) {
    KernelCase one = made({{"dims", dims()},
                           {"with", {"sink", "indices"}},
                           {"options", {{"lse_includes_sink", counted}}}});
    // +inf, -inf, 1, -200 in bf16
    replace<std::uint16_t>(one.problem.in.at("sink"), {0x7F80, 0xFF80, 0x3F80, 0xC348});
    expect_pass(one);
  }
}

TEST_P(Attentions, CountDuplicatesAsTold) {
  for (const char* rule : {"set", "multiset"}) {
    KernelCase one = made(
        {{"dims", dims()}, {"with", {"sink", "indices"}}, {"options", {{"duplicates", rule}}}});
    StoredTensor& indices = one.problem.in.at("indices");
    ASSERT_EQ(indices.dtype, Dtype::i32);
    std::vector<std::int32_t> values(static_cast<std::size_t>(count_of(indices.shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = i % 3 == 1 ? -1 : static_cast<int>(i / 9 % 2);
    replace(indices, values);
    expect_pass(one);
  }
}

TEST_P(Attentions, HaveRowsOfNothingButTheLastSlot) {
  // Rows that select one late key of many slots, or none: whole tiles are empty.
  Json size = dims();
  size["T"] = 2, size["S"] = 200, size["k"] = 90;
  if (size.contains("W")) size["W"] = 0, size["m"] = 1;
  KernelCase one = made({{"dims", size}, {"with", {"indices"}}, {"without", {"sink"}}});
  StoredTensor& indices = one.problem.in.at("indices");
  std::vector<std::int32_t> values(static_cast<std::size_t>(count_of(indices.shape)), -1);
  values[89] = 7;
  replace(indices, values);
  expect_pass(one);
}

std::vector<const Kernel*> attention_kernels() {
  std::vector<const Kernel*> list;
  for (const Kernel& kernel : kernels()) {
    if (Attentions::sizes().contains(kernel.op)) list.push_back(&kernel);
  }
  return list;
}
INSTANTIATE_TEST_SUITE_P(Table, Attentions, testing::ValuesIn(attention_kernels()),
                         [](const auto& one) { return one.param->op + "_" + one.param->name; });

// By hand: one row, whose first 130 slots are empty.
TEST(AttentionLaunches, SkipEmptyTiles) {
  constexpr int slots = 131, width = 8;
  std::vector<std::uint16_t> query(width, 0x3F80), pool(3 * width, 0x4000), output(width);
  std::vector<float> lse(1);
  std::vector<std::int32_t> stretch = {0, 0}, slot(slots, -1);
  slot.back() = 2;
  for (auto* launcher :
       {host::csa_attention, host::csa_attention_fast, host::csa_attention_fast90}) {
    host::Stream stream{host::Options{}};
    stream.input("query", query.data(), query.size());
    stream.input("pool", pool.data(), pool.size());
    stream.input("stretch", stretch.data(), stretch.size());
    stream.input("slot", slot.data(), slot.size());
    stream.output("output", output.data(), output.size());
    stream.output("lse", lse.data(), lse.size());
    device::Attention args;
    args.batch = args.rows = args.heads = 1, args.width = args.value_width = width;
    args.query = query.data(), args.far = {3, pool.data(), nullptr};
    args.stretch = stretch.data(), args.slots = slots, args.slot = slot.data();
    args.output = output.data(), args.lse = lse.data();
    launcher(stream, args);
    ASSERT_EQ(stream.finish(), "");
    EXPECT_EQ(output, std::vector<std::uint16_t>(width, 0x4000));  // the one key's value
    EXPECT_NEAR(lse[0], 16.f, 1e-5f);                              // q·k
  }
}

TEST(AttentionLaunches, SayWhatIsWrong) {
  const char place[64] = {};
  const std::int32_t stretch[2] = {};
  float lse[1];
  device::Attention right;
  right.batch = right.rows = right.heads = 1, right.width = right.value_width = 8;
  right.query = place, right.near = {1, place, nullptr}, right.stretch = stretch;
  right.output = lse, right.lse = lse;
  const auto refusal = [&](auto change, auto* launcher) {
    device::Attention args = right;
    change(args);
    host::Stream stream{host::Options{}};
    launcher(stream, args);
    return stream.error();
  };
  using A = device::Attention;
  const auto csa = [&](auto change) { return refusal(change, host::csa_attention); };
  EXPECT_EQ(csa([](A& a) { a.rows = -1; }), "csa_attention: a size below 0");
  EXPECT_EQ(csa([](A& a) { a.heads = 0; }), "csa_attention: a size below 1");
  EXPECT_EQ(csa([](A& a) { a.groups = 2; }),
            "csa_attention: groups of keys that do not divide the heads");
  EXPECT_EQ(csa([](A& a) { a.lse = nullptr; }), "csa_attention: no query, output, lse or stretch");
  EXPECT_EQ(csa([](A& a) { a.near.key = nullptr; }), "csa_attention: a pool without keys");
  EXPECT_EQ(csa([](A& a) { a.slots = 3; }),
            "csa_attention: slots, and nothing in them or nothing they could name");
  EXPECT_EQ(csa([](A& a) { a.lse_form.counts_sink = true; }),
            "csa_attention: an lse that counts a sink, and no sink");
  EXPECT_EQ(csa([](A& a) { a.width = a.value_width = 513; }),
            "csa_attention: more than 512 channels");
  EXPECT_EQ(csa([&](A& a) { a.near.value = place; }),
            "csa_attention: keys that are not the values");
  EXPECT_EQ(refusal([](A& a) { a.width = a.value_width = 12; }, host::csa_attention_fast),
            "csa_attention fast: reads bf16 with channels in multiples of 8");
  EXPECT_EQ(refusal([](A& a) { a.type = device::Type::f32; }, host::csa_attention_fast90),
            "csa_attention fast: reads bf16 with channels in multiples of 8");
  EXPECT_EQ(refusal([&](A& a) { a.near.value = place, a.value_width = 257; }, host::mla_attention),
            "mla_attention: more than 256 channels, or 576 with values in keys");
}

}  // namespace
}  // namespace plumbline
