// properties/csa_step_property.cpp
//
// A server's calls from an empty state: the rows of the whole layer, of every kind, whatever lies beyond the lengths.
#include "properties/csa_layer_check.hpp"
#include "reference/csa_step/csa_step.hpp"

namespace plumbline::properties {
namespace {

using support::pick;
using support::put_in;

// Window keys, blocks and pools of a state, of T, with NaN wherever its lengths say that nothing is.
class Server {
 public:
  Server(Drawn& drawn, std::int64_t capacity) : n_(drawn.n), call_(drawn.problem()), P_(capacity) {
    for (const char* name : {"segment_ids", "positions"}) call_.in.erase(name);
    call_.outputs.clear();
    lengths_.assign(place(n_.B), 0);
    Array<mp50> none;
    keep("kv", none, P_, n_.D, 0);
    if (n_.kind != "window") keep_pool("", "compressed", nullptr, n_.D, n_.lanes());
    if (n_.indexer) keep_pool("indexer_", "indexer_index_k", nullptr, n_.e, 2 * n_.e);
    keep_flags({});
    keep_tokens({}, {});
  }
  // The next `count` tokens of every sequence.
  Array<mp50> feed(const Drawn& drawn, std::int64_t count) {
    const std::int64_t first = length();
    const std::vector<std::int64_t> range = support::range(first, first + count);
    put_in(call_, "x", support::take(drawn.write.made.problem.in.at("x"), 1, range));
    if (n_.documents) {
      for (const char* name : {"segment_ids", "positions"})
        put_in(call_, name, support::take(drawn.write.made.problem.in.at(name), 1, range));
    }
    Typed<mp50> made = support::evaluate<csa_step::Op, mp50>(call_, {});
    zeros_beyond(made);
    lengths_ = made.integers.at("state.length").values;
    RC_ASSERT(length() == first + count);
    keep("kv", made.outputs.at("state.kv"), P_, n_.D, length());
    if (n_.kind != "window") keep_pool("", "compressed", &made, n_.D, n_.lanes());
    if (n_.indexer) keep_pool("indexer_", "indexer_index_k", &made, n_.e, 2 * n_.e);
    if (n_.kind == "csa") keep_flags(made.flags.at("state.prior_present").values);
    keep_tokens(made.integers.at("state.positions").values,
                made.integers.at("state.segment_ids").values);
    return std::move(made.outputs.at("output"));
  }
  std::int64_t length() const { return lengths_.front(); }

 private:
  void zeros_beyond(const Typed<mp50>& made) const {
    const std::int64_t live = made.integers.at("state.length").values.front();
    const Array<mp50>& kv = made.outputs.at("state.kv");
    for (std::int64_t i = 0; i < n_.B * P_ * n_.D; ++i) {
      if (i / n_.D % P_ >= live) RC_ASSERT(kv.values[place(i)] == 0);
    }
  }
  void keep(const std::string& name, const Array<mp50>& made, std::int64_t rows, std::int64_t width,
            std::int64_t live) {
    const auto held = std::make_shared<Array<mp50>>(Shape{n_.B, rows, width});
    for (std::int64_t i = 0; i < n_.B * rows * width; ++i)
      held->values[place(i)] =
          i / width % rows < live ? made.values[place(i)] : not_a_number<mp50>();
    StoredTensor tensor = support::working(*held);
    tensor.owner = held;
    put_in(call_, "state." + name, tensor);
  }
  void keep_pool(const std::string& of, const char* blocks, const Typed<mp50>* made,
                 std::int64_t width, std::int64_t lanes) {
    const auto one = [&](const std::string& name, std::int64_t rows, std::int64_t w,
                         std::int64_t live) {
      const Array<mp50> none;
      keep(name, made == nullptr ? none : made->outputs.at("state." + name), rows, w,
           made == nullptr ? 0 : live);
    };
    one(blocks, P_ / n_.m, width, length() / n_.m);
    for (const char* part : {"kv", "gate"}) {
      one(of + "partial_" + part, n_.m, lanes, length() % n_.m);
      if (n_.kind == "csa") one(of + "prior_" + part, n_.m, lanes, length() >= n_.m ? n_.m : 0);
    }
  }
  void keep_flags(support::Flags flags) {
    if (n_.kind != "csa") return;
    flags.resize(place(n_.B), 0);
    put_in(call_, "state.prior_present", support::bools({n_.B}, flags));
    put_in(call_, "state.length", support::i32s({n_.B}, lengths_));
  }
  void keep_tokens(support::Integers positions, support::Integers segments) {
    positions.resize(place(n_.B * P_)), segments.resize(place(n_.B * P_));
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (static_cast<std::int64_t>(i) % P_ >= length()) positions[i] = segments[i] = -77;
    }
    put_in(call_, "state.positions", support::i32s({n_.B, P_}, positions));
    put_in(call_, "state.segment_ids", support::i32s({n_.B, P_}, segments));
    put_in(call_, "state.length", support::i32s({n_.B}, lengths_));
  }

  CsaLayerSizes n_;
  Problem call_;
  std::int64_t P_;
  support::Integers lengths_;
};

TEST(CsaStep, CallsFromAnEmptyStateGiveTheLayersRows) {
  property([](Distribution& d) {
    Drawn drawn = draw(all_kinds);
    drawn.write.whole_layer();
    const CsaLayerSizes& n = drawn.n;
    const Array<mp50> expected = layer<mp50>(drawn.problem(), false).outputs.at("output");
    Server server(drawn, n.S + pick(0, 3));
    int calls = 0;
    bool across = false;
    for (; server.length() < n.S; ++calls) {
      const std::int64_t first = server.length(),
                         count = pick(1, std::min<std::int64_t>(5, n.S - first));
      const Array<mp50> rows = server.feed(drawn, count);
      Array<mp50> whole({n.B, count, n.E});
      for (std::int64_t b = 0; b < n.B; ++b) {
        const auto from = expected.values.begin() + (b * n.S + first) * n.E;
        std::copy_n(from, count * n.E, whole.values.begin() + b * count * n.E);
      }
      const Agreement agreement = support::agreement(rows, whole, "rows", 1);
      RC_LOG() << n.kind << " call " << calls << ", tokens " << first << " + " << count << ": "
               << agreement.digits << " digits; " << agreement.where << std::endl;
      RC_ASSERT(agreement.digits >= high_digits);
      across = across || (n.kind != "window" && first % n.m != 0);
    }
    notes_of(d, n);
    d.needs("several calls", calls > 1);
    d.needs("a block over two calls", across);
  });
}

}  // namespace
}  // namespace plumbline::properties
