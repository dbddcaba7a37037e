#include "reference/attention/attention.hpp"
#include "reference/error.hpp"

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

template std::vector<f32> read_sink<f32>(const StoredTensor&, const Visibility&);
template std::vector<f64> read_sink<f64>(const StoredTensor&, const Visibility&);
template std::vector<f192> read_sink<f192>(const StoredTensor&, const Visibility&);
template std::vector<mp50> read_sink<mp50>(const StoredTensor&, const Visibility&);
template std::vector<mp100> read_sink<mp100>(const StoredTensor&, const Visibility&);
template GivenLse<f32> read_lse<f32>(const StoredTensor&, Place, const LseRule<f32>&, bool,
                                     const f32&);
template GivenLse<f64> read_lse<f64>(const StoredTensor&, Place, const LseRule<f64>&, bool,
                                     const f64&);
template GivenLse<f192> read_lse<f192>(const StoredTensor&, Place, const LseRule<f192>&, bool,
                                       const f192&);
template GivenLse<mp50> read_lse<mp50>(const StoredTensor&, Place, const LseRule<mp50>&, bool,
                                       const mp50&);
template GivenLse<mp100> read_lse<mp100>(const StoredTensor&, Place, const LseRule<mp100>&, bool,
                                         const mp100&);

}  // namespace plumbline::attention
