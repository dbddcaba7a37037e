#include "reference/attention/attention.hpp"
#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::attention {

template <class T>
std::vector<T> read_sink(const StoredTensor& sink, const Visibility& visibility) {
  std::vector<T> values;
  if (!sink.given()) return values;
  bool any_real = false;
  for (std::int64_t row = 0; row < visibility.batch() * visibility.rows() && !any_real; ++row) {
    any_real = visibility.real(row / visibility.rows(), row % visibility.rows());
  }
  for (std::int64_t h = 0; h < sink.size(0); ++h) {
    const T value = element<T>(sink, {h});
    values.push_back(any_real && is_nan(value) ? fetch_one<T>(sink, {h})
                                               : value);  // ±inf is a value, NaN an error
  }
  return values;
}

template <class T> GivenLse<T> read_lse(const StoredTensor& given, Place place,
                                        const LseRule<T>& rule, bool has_sink, const T& sink) {
  // Infinite it may only be where a +inf sink is counted: every other row that has keys has a
  // finite lse.
  const bool infinite = has_sink && sink == infinity<T>() && rule.counts_sink();
  T value = element<T>(given, place);
  if (!(infinite && value == infinity<T>())) value = fetch_one<T>(given, place);
  GivenLse<T> lse;
  lse.keys = lse.all = rule.natural(value);
  if (has_sink && !rule.counts_sink()) {
    LogSum<T> both;
    both.add(lse.keys);
    both.add(sink);
    lse.all = both.log();
  }
  return lse;
}

#define INSTANTIATE(T)                                                          \
  template std::vector<T> read_sink<T>(const StoredTensor&, const Visibility&); \
  template GivenLse<T> read_lse<T>(const StoredTensor&, Place, const LseRule<T>&, bool, const T&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::attention
