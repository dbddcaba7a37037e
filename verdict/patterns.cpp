// Patterns that explain a whole tensor. Each is an exact question: is there one factor, one summand, one shift under
// which every element lies within its bound?
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "verdict/hints.hpp"

namespace plumbline {
namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();

class Patterns {
 public:
  Patterns(const Value& value, const StoredTensor& actual, const TensorVerdict& tensor,
           const Storage& storage)
      : value_(value), tensor_(tensor), count_(value.high.size()) {
    for (std::size_t i = 0; i < count_; ++i) {
      actual_.push_back(pair_element(actual, static_cast<std::int64_t>(i)));
      bound_.push_back(stored_bound(value, i, storage).tier1);
    }
  }

  std::vector<std::string> all() {
    unwritten();
    if (!(finite() && factor("all of it is the value", false))) {
      factor("all that is wrong is the value", true);
    }
    if (finite()) summand();
    moved();
    reordered();
    return std::move(hints_);
  }

 private:
  Pair wanted(std::size_t i) const {
    return {value_.high[i], i < value_.low.size() ? value_.low[i] : 0};
  }
  bool finite() const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (std::isfinite(value_.high[i]) != std::isfinite(actual_[i].high)) return false;
    }
    return true;
  }
  bool fits(std::size_t at,
            std::size_t from) const {  // the actual at one place, the value of another
    const Pair got = actual_[at], want = wanted(from);
    if (!std::isfinite(want.high))
      return got.high == want.high || (std::isnan(got.high) && std::isnan(want.high));
    return std::isfinite(got.high) && difference(got, want) <= bound_[from];
  }

  void unwritten() {
    std::size_t bad = 0, zeros = 0, nans = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (fits(i, i)) continue;
      ++bad;
      zeros += actual_[i].high == 0 ? 1 : 0;
      nans += std::isnan(actual_[i].high) ? 1 : 0;
    }
    if (bad > 0 && zeros == bad) hints_.push_back("every wrong element is 0: never written?");
    if (bad > 0 && nans == bad) hints_.push_back("every wrong element is NaN");
  }

  // One factor f with |actual − f·value| <= max(1, |f|)·bound everywhere, by intervals; or only where the actual is
  // wrong, as when one row was not rescaled.
  bool factor(const std::string& what, bool where_wrong) {
    long double products = 0, squares = 0;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < count_; ++i) {
      if (std::isfinite(value_.high[i]) && !(where_wrong && fits(i, i))) places.push_back(i);
    }
    for (const std::size_t i : places) {
      if (!std::isfinite(actual_[i].high)) return false;
      const long double v = value_.high[i];
      products += v * static_cast<long double>(actual_[i].high);
      squares += v * v;
    }
    if (!(squares > 0)) return false;
    const long double guess = products / squares,
                      widen = std::max<long double>(1, std::fabs(guess));
    long double low = -infinity, high = infinity;
    std::size_t telling = 0;
    for (const std::size_t i : places) {
      const long double v = value_.high[i], a = actual_[i].high, b = bound_[i] * widen;
      if (v == 0) {
        if (std::fabs(a) > b) return false;
        continue;
      }
      low = std::max(low, std::min((a - b) / v, (a + b) / v));
      high = std::min(high, std::max((a - b) / v, (a + b) / v));
      telling += std::fabs(v) > 2 * b ? 1 : 0;
    }
    if (low > high || telling < 2 || (low <= 1 && 1 <= high) || (low <= 0 && 0 <= high)) {
      return false;
    }
    hints_.push_back(low <= -1 && -1 <= high ? what + " with the other sign"
                                             : what + " times " + known(low, high));
    return true;
  }
  // The factor by a name that lies in the interval, else its digits.
  std::string known(long double low, long double high) const {
    struct Name {
      long double number;
      std::string text;
    };
    std::vector<Name> names = {
        {2, "2"},
        {0.5L, "1/2"},
        {std::log(2.0L), "ln 2 (a base-2 and a natural logarithm mixed up?)"},
        {1 / std::log(2.0L), "1/ln 2 (a base-2 and a natural logarithm mixed up?)"}};
    for (std::size_t axis = 0; axis < value_.shape.size(); ++axis) {
      const auto n = static_cast<long double>(value_.shape[axis]);
      const std::string letter = axis < tensor_.axes.size() ? tensor_.axes[axis] : "n";
      const std::string of = " (" + letter + " = " + std::to_string(value_.shape[axis]) + ")";
      names.push_back({n, letter + of});
      names.push_back({1 / n, "1/" + letter + of});
      names.push_back({std::sqrt(n), "sqrt(" + letter + ")" + of});
      names.push_back({1 / std::sqrt(n), "1/sqrt(" + letter + ")" + of});
    }
    for (const Name& name : names) {
      if (low <= name.number && name.number <= high) return name.text;
      if (low <= -name.number && -name.number <= high) return "-" + name.text;
    }
    return digits((low + high) / 2);
  }
  static std::string digits(long double x) {
    char text[48];
    std::snprintf(text, sizeof text, "%.6Lg", x);
    return text;
  }

  void summand() {
    long double low = -infinity, high = infinity;
    std::size_t finite_ones = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (!std::isfinite(value_.high[i])) continue;
      ++finite_ones;
      const long double off = static_cast<long double>(actual_[i].high) - value_.high[i];
      low = std::max(low, off - bound_[i]);
      high = std::min(high, off + bound_[i]);
    }
    if (finite_ones < 2 || low > high || (low <= 0 && 0 <= high)) return;
    const long double two = std::log(2.0L);
    hints_.push_back("all of it is the value plus " +
                     (low <= two && two <= high ? "ln 2" : digits((low + high) / 2)));
  }

  // Shifts by one along an axis; the elements at its end have no partner.
  void moved() {
    for (std::size_t axis = 0; axis < value_.shape.size(); ++axis) {
      if (value_.shape[axis] < 3) continue;
      std::int64_t stride = 1;
      for (std::size_t a = axis + 1; a < value_.shape.size(); ++a) stride *= value_.shape[a];
      for (const int step : {1, -1}) {
        bool all = true;
        for (std::size_t i = 0; all && i < count_; ++i) {
          const std::int64_t place = static_cast<std::int64_t>(i) / stride % value_.shape[axis];
          if (place + step < 0 || place + step >= value_.shape[axis]) continue;
          all = fits(i, static_cast<std::size_t>(static_cast<std::int64_t>(i) + step * stride));
        }
        const std::string letter = axis < tensor_.axes.size() ? tensor_.axes[axis] : "an axis";
        if (all)
          hints_.push_back("at each place stands the value of the " +
                           std::string(step > 0 ? "next" : "previous") + " one along " + letter +
                           ": off by one");
      }
    }
  }

  // The numbers of two axes, written in the other order.
  void reordered() {
    const Shape& shape = value_.shape;
    for (std::size_t a = 0; a < shape.size(); ++a) {
      for (std::size_t b = a + 1; b < shape.size(); ++b) {
        if (shape[a] < 2 || shape[b] < 2) continue;
        Shape written = shape;
        std::swap(written[a], written[b]);
        bool all = true;
        for (std::size_t i = 0; all && i < count_; ++i) {
          Shape index = index_of(written, static_cast<std::int64_t>(i));
          std::swap(index[a], index[b]);
          std::int64_t from = 0;
          for (std::size_t axis = 0; axis < shape.size(); ++axis)
            from = from * shape[axis] + index[axis];
          all = fits(i, static_cast<std::size_t>(from));
        }
        if (all && b < tensor_.axes.size())
          hints_.push_back("axes " + tensor_.axes[a] + " and " + tensor_.axes[b] +
                           " are transposed");
      }
    }
  }

  const Value& value_;
  const TensorVerdict& tensor_;
  std::size_t count_;
  std::vector<Pair> actual_;
  std::vector<long double> bound_;
  std::vector<std::string> hints_;
};

}  // namespace

std::vector<std::string> patterns_of(const Value& value, const StoredTensor& actual,
                                     const TensorVerdict& tensor, const Storage& storage) {
  return Patterns(value, actual, tensor, storage).all();
}

}  // namespace plumbline
