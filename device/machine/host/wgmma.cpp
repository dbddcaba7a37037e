// Products of a warpgroup. Issuing is asynchronous: a thread leaves its part and runs on; the last
// of the 128 sets the product going, and only a wait makes them meet.
#include <cstring>

#include "device/machine/host/numbers.hpp"
#include "device/machine/host/products.hpp"

namespace plumbline::device::host {
namespace {

constexpr int most_columns = 256;
thread_local float left[64 * 16], right[16 * most_columns], sums[64 * most_columns];

// Between a thread's registers and the 64 x columns accumulator.
template <class Move> void each_sum(int t, int columns, Move move) {
  for (int i = 0; i < columns / 2; ++i) {
    const int row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
    move(i, sums[row * columns + i / 4 * 8 + t % 4 * 2 + i % 2]);
  }
}

}  // namespace

// What the hardware does with a descriptor, 16 bytes at a time. K-major: eight rows of 128 bytes
// make an atom, `stride` leads to the next eight. Transposed: `row` counts depth, `column` crosses
// panels of 64, `leading` apart. Then address bits 4-6 are exchanged with bits 7-9.
const void* Machine::operand_row(const WarpgroupProduct& product, bool is_left, int row,
                                 int column) const {
  const std::uint64_t bits = (is_left ? product.a : product.b).bits;
  const auto field = [&](int shift) {
    return static_cast<std::uint32_t>(bits >> shift & 0x3FFF) << 4;
  };
  const auto r = static_cast<std::uint32_t>(row), c = static_cast<std::uint32_t>(column);
  std::uint32_t at = field(0) + r % 8 * 128 + r / 8 * field(32);
  at += !is_left && product.transposed ? c / 64 * field(16) + c % 64 * 2 : c * 2;
  at ^= (at >> 7 & 7) << 4;
  if (bits >> 62 != 1) throw Crime("DESCRIPTOR without 128-byte swizzle");
  if (at + 16 > shared_->bytes())
    throw Crime("OUT OF BOUNDS: a descriptor reaches shared byte " + std::to_string(at) + " of " +
                std::to_string(shared_->bytes()));
  return shared_->base() + at;
}

Issue& Machine::issue(bool commit, Where at) {
  Warpgroup& group = tensor_[me_id() / 128];
  const auto k = static_cast<std::size_t>(me().issues++ - group.passed);
  if (k >= group.issues.size()) {
    group.issues.emplace_back();
    group.issues.back().commit = commit, group.issues.back().at = at;
  }
  Issue& issue = group.issues[k];
  if (issue.commit != commit || issue.at != at)
    throw Crime("DIVERGENT warpgroup: thread " + std::to_string(me_id()) + " at " + text(at) +
                ", others at " + text(issue.at));
  if (me_id() % 32 == 0) issue.clock[me_id() % 128 / 32] = me().clock;
  ++issue.arrived;
  return issue;
}

void Machine::wgmma(AccumulatorState& state, float* acc, int columns, const std::uint32_t* fragment,
                    std::uint32_t fragment_written, Descriptor a, Descriptor b, bool add,
                    bool transposed, Where at) {
  if (state.written > me().register_fence || (fragment && fragment_written > me().register_fence))
    throw Crime(std::string("WGMMA FENCE missing: ") +
                (state.written > me().register_fence ? "the accumulator" : "the register operand") +
                " was written by ordinary code of thread " + std::to_string(me_id()) +
                " after its last fence, at " + text(at));
  Issue& here = issue(false, at);
  WarpgroupProduct& product = here.product;
  if (here.arrived == 1) {
    product.columns = columns, product.a = a, product.b = b, product.add = add;
    product.a_in_registers = fragment != nullptr, product.transposed = transposed;
  } else if (product.a.bits != a.bits || product.b.bits != b.bits || product.add != add) {
    throw Crime("WGMMA operands of thread " + std::to_string(me_id()) + " differ from others' at " +
                text(at));
  }
  const std::size_t t = me_id() % 128;
  product.state[t] = &state, product.accumulator[t] = acc;
  state.in_flight = true;
  if (fragment) std::memcpy(product.fragment[t].data(), fragment, 16);
  if (here.arrived == 128) pass(tensor_[me_id() / 128], me_id() / 128);
}

void Machine::wgmma_commit(Where at) {
  if (issue(true, at).arrived == 128) pass(tensor_[me_id() / 128], me_id() / 128);
}

void Machine::pass(Warpgroup& group, std::size_t number) {
  const Issue issue = std::move(group.issues.front());
  group.issues.pop_front();
  ++group.passed;
  if (issue.commit) {
    group.groups.push_back(std::move(group.open));
    group.open.clear();
    return;
  }
  ++group.products;
  if (options.shadow) charge(issue, number);
  group.open.push_back(issue.product);
  if (!options.late) multiply(group.open.back());
}

// Each warp's tensor core reads its 16 rows of A and all of B. B is visited once for all warps that
// know the same, which is nearly always all four.
void Machine::charge(const Issue& issue, std::size_t number) {
  const WarpgroupProduct& m = issue.product;
  const auto first = 2 * static_cast<std::uint32_t>(threads) + bulk_actors +
                     static_cast<std::uint32_t>(number) * 4;
  std::uint32_t charged = 0;
  for (std::uint32_t w = 0; w < 4; ++w) {
    const auto touch = [&](const void* row, std::uint32_t warps) {
      const Epoch epoch{tensor_[number].products, first + w};
      shared_->touch(row, 16, Touch::read,
                     {epoch, warps << (first % 32), issue.clock[w], issue.at, true});
    };
    for (int r = 0; r < 16 && !m.a_in_registers; ++r)
      for (int k = 0; k < 16; k += 8)
        touch(operand_row(m, true, static_cast<int>(w) * 16 + r, k), 1u << w);
    if (charged >> w & 1) continue;
    std::uint32_t alike = 0;
    for (std::uint32_t v = 0; v < 4; ++v)
      if (issue.clock[v].seen == issue.clock[w].seen &&
          issue.clock[v].fenced == issue.clock[w].fenced)
        alike |= 1u << v;
    charged |= alike;
    const int rows = m.transposed ? 16 : m.columns, width = m.transposed ? m.columns : 16;
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < width; c += 8) touch(operand_row(m, false, r, c), alike);
  }
}

void Machine::multiply(WarpgroupProduct& m) {
  const auto read = [&](bool is_left, int row, int column, auto&& put) {
    const auto* const p = static_cast<const bf16*>(operand_row(m, is_left, row, column));
    for (int i = 0; i < 8; ++i) put(i, to_float(p[i]));
  };
  if (m.a_in_registers) {
    for (int t = 0; t < 128; ++t)
      for (int i = 0; i < 4; ++i)
        for (int h = 0; h < 2; ++h) {
          const int row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8, column = t % 4 * 2 + i / 2 * 8 + h;
          const auto& registers = m.fragment[static_cast<std::size_t>(t)];
          left[row * 16 + column] = to_float(half_of(registers[static_cast<std::size_t>(i)], h));
        }
  } else {
    for (int r = 0; r < 64; ++r)
      for (int k = 0; k < 16; k += 8)
        read(true, r, k, [&](int i, float x) { left[r * 16 + k + i] = x; });
  }
  const int n = m.columns;
  if (m.transposed) {
    for (int k = 0; k < 16; ++k)
      for (int c = 0; c < n; c += 8)
        read(false, k, c, [&](int i, float x) { right[k * n + c + i] = x; });
  } else {
    for (int r = 0; r < n; ++r)
      for (int k = 0; k < 16; k += 8)
        read(false, r, k, [&](int i, float x) { right[(k + i) * n + r] = x; });
  }
  for (int t = 0; t < 128; ++t) {
    const float* const acc = m.accumulator[static_cast<std::size_t>(t)];
    each_sum(t, n, [&](int i, float& sum) { sum = m.add ? acc[i] : 0.f; });
  }
  accumulate(options.products, sums, left, right, 64, n);
  for (int t = 0; t < 128; ++t) {
    float* const acc = m.accumulator[static_cast<std::size_t>(t)];
    each_sum(t, n, [&](int i, float& sum) { acc[i] = sum; });
  }
}

// A warp learns of its own tensor core only; what the other three have read it must hear from them.
void Machine::wgmma_wait(std::size_t left_over, Where at) {
  const std::size_t number = me_id() / 128;
  Meeting& meeting = groups_[number];
  void** const parts = meet(meeting, 128, static_cast<int>(me_id() % 128), &me(), "wgmma_wait", at);
  if (!parts) return;
  Warpgroup& group = tensor_[number];
  for (; group.groups.size() > left_over; group.groups.pop_front())
    for (WarpgroupProduct& product : group.groups.front()) {
      if (options.late) multiply(product);
      for (AccumulatorState* state : product.state) state->in_flight = false;
    }
  std::size_t flying = group.open.size();
  for (const auto& products : group.groups) flying += products.size();
  // An accumulator that a later product names is still in flight.
  const auto hold = [](std::vector<WarpgroupProduct>& products) {
    for (WarpgroupProduct& product : products)
      for (AccumulatorState* state : product.state) state->in_flight = true;
  };
  hold(group.open);
  for (auto& products : group.groups) hold(products);
  const std::uint32_t done = group.products - static_cast<std::uint32_t>(flying);
  for (std::size_t w = 0; w < 4 && options.shadow; ++w) {
    auto* const vector = new Vector(actors());
    const Known taught(vector);
    vector->at[2 * static_cast<std::size_t>(threads) + bulk_actors + number * 4 + w] = done;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      Clock& clock = static_cast<Thread*>(parts[w * 32 + lane])->clock;
      clock.seen = merge_seen_(clock.seen, taught);
    }
  }
  dismiss(meeting);
}

}  // namespace plumbline::device::host
