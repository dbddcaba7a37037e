#include "reference/topk/topk.hpp"

#include <algorithm>
#include <numeric>

#include "reference/error.hpp"
#include "reference/numeric/decisions.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline {

std::int64_t checked_k(const std::optional<std::int64_t>& k, const std::string& where) {
  if (!k) throw Error(where, "nothing", "the number of keys to select, k >= 0");
  if (*k < 0) throw Error(where, std::to_string(*k), "k >= 0");
  return *k;
}

void check_slots(std::int64_t k, std::int64_t rows, const std::string& where) {
  constexpr std::int64_t most = std::int64_t{1} << 26;
  if (rows == 0 || k <= most / rows) return;
  throw Error(where, std::to_string(k) + " for " + std::to_string(rows) + " rows",
              "an output that can be held: B T k <= 2^26");
}

namespace {

// x before y: larger first, NaN after everything and equal to NaN.
template <class T> bool better(const T& x, const T& y) {
  if (is_nan(x)) return false;
  return is_nan(y) || x > y;
}

}  // namespace

template <class T> Selection select_best(std::span<const std::int64_t> keys,
                                         std::span<const T> scores, std::int64_t k, Tie tie) {
  std::vector<std::size_t> place(keys.size());
  std::iota(place.begin(), place.end(), std::size_t{0});
  std::stable_sort(place.begin(), place.end(),
                   [&](std::size_t i, std::size_t j) { return better(scores[i], scores[j]); });
  const auto count =
      static_cast<std::size_t>(std::min<std::int64_t>(k, static_cast<std::int64_t>(keys.size())));
  std::size_t last = count;
  if (tie == Tie::threshold && count > 0) {
    while (last < place.size() && !better(scores[place[count - 1]], scores[place[last]])) ++last;
  }
  Selection best;
  for (std::size_t i = 0; i < last; ++i) {
    const std::int64_t key = this_decisions().decide(keys[place[i]], "the selection");
    if (i < count) best.order.push_back(key);
    best.selected.push_back(key);
  }
  return best;
}

#define INSTANTIATE(T)                                                                 \
  template Selection select_best<T>(std::span<const std::int64_t>, std::span<const T>, \
                                    std::int64_t, Tie);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE
namespace topk {
namespace {

// A score of a visible key; ±inf are scores, NaN is one only under nan "last".
template <class T> T score_at(const Inputs& in, const Options& options, std::int64_t b,
                              std::int64_t t, std::int64_t key) {
  const T score = element<T>(in.scores, {b, t, key});
  if (options.nan == Nan::error && is_nan(score)) {
    const std::int64_t place[] = {b, t, key};
    throw Error(in.scores.name + to_string(Index(place)), "NaN",
                "a number (option nan is \"error\")");
  }
  return score;
}

Visibility visibility_of(const Inputs& inputs, const Options& options, Sizes& sizes) {
  const bool blocks = options.keys == Keys::blocks;
  if (blocks && !options.m)
    throw Error("option m", "nothing", "the number of tokens per block, m >= 1");
  if (blocks && *options.m < 1) throw Error("option m", std::to_string(*options.m), "m >= 1");
  Inputs in = inputs;
  sizes.unify_all(in);
  if (!blocks) sizes.set("S", sizes["K"], in.scores.name);
  Visibility visibility(options.mask, in.mask, sizes, Blocks{blocks ? *options.m : 0, options.grid},
                        options.tokens);
  sizes.set("K", visibility.keys(), blocks ? "the blocks of the grid" : "S");
  return visibility;
}

}  // namespace

MaskView Op::mask_view(const Inputs& in, const Options& options) {
  Sizes sizes;
  return {
      visibility_of(in, options, sizes), options.keys == Keys::blocks ? *options.m : 0, {}, {}, {}};
}

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  const std::int64_t k = checked_k(options.k);
  Sizes sizes;
  const Visibility visibility = visibility_of(in, options, sizes);
  check_slots(k, sizes["B"] * sizes["T"]);

  Outputs<T> out;
  out.indices = Array<std::int32_t>({sizes["B"], sizes["T"], k}, -1);
  out.selected = Array<std::uint8_t>(sizes.shape("B T K"));
  for_each_row(run, sizes["B"] * sizes["T"], [&](std::int64_t row) {
    const std::int64_t b = row / sizes["T"], t = row % sizes["T"];
    const std::vector<std::int64_t> keys = visibility.keys(b, t);
    Buffer<T> scores;
    scores.reserve(keys.size());
    for (const std::int64_t key : keys) scores.push_back(score_at<T>(in, options, b, t, key));
    const Selection best = select_best<T>(keys, scores, k, options.tie);
    for (std::size_t i = 0; i < best.order.size(); ++i) {
      out.indices({b, t, static_cast<std::int64_t>(i)}) = static_cast<std::int32_t>(best.order[i]);
    }
    for (const std::int64_t key : best.selected) out.selected({b, t, key}) = 1;
  });
  return out;
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace topk
}  // namespace plumbline
