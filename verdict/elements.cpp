#include "verdict/elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/error.hpp"

namespace plumbline {
namespace {

template <class U> U load(const StoredTensor& tensor, std::int64_t position) {
  U value;
  std::memcpy(&value, tensor.data + position * static_cast<std::int64_t>(sizeof(U)), sizeof(U));
  return value;
}

struct Format {
  int fraction_bits, smallest_exponent, largest_exponent;  // of normal numbers
};
Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return {23, -126, 127};
    case Dtype::f16: return {10, -14, 15};
    case Dtype::bf16: return {7, -126, 127};
    case Dtype::f8_e4m3: return {3, -6, 8};
    case Dtype::f8_e5m2: return {2, -14, 15};
    default: return {52, -1022, 1023};
  }
}

}  // namespace

double real_element(const StoredTensor& tensor, std::int64_t position) {
  switch (tensor.dtype) {
    case Dtype::f64: return load<double>(tensor, position);
    case Dtype::f32: return static_cast<double>(load<float>(tensor, position));
    case Dtype::f16: return decode_f16(load<std::uint16_t>(tensor, position));
    case Dtype::bf16: return decode_bf16(load<std::uint16_t>(tensor, position));
    case Dtype::f8_e4m3: return decode_f8_e4m3(load<std::uint8_t>(tensor, position));
    case Dtype::f8_e5m2: return decode_f8_e5m2(load<std::uint8_t>(tensor, position));
    default:
      throw Error(tensor.name, "dtype " + std::string(name_of(tensor.dtype)), "real numbers");
  }
}

Pair pair_element(const StoredTensor& tensor, std::int64_t position) {
  return {real_element(tensor, position), tensor.low ? real_element(*tensor.low, position) : 0};
}

std::int64_t integer_element(const StoredTensor& tensor, std::int64_t position) {
  switch (tensor.dtype) {
    case Dtype::i64: return load<std::int64_t>(tensor, position);
    case Dtype::i32: return load<std::int32_t>(tensor, position);
    case Dtype::u8:
    case Dtype::boolean: return load<std::uint8_t>(tensor, position);
    default: throw Error(tensor.name, "dtype " + std::string(name_of(tensor.dtype)), "integers");
  }
}

long double difference(Pair a, Pair b) {
  // Knuth's exact sum: high − high is sum + error, whatever the magnitudes.
  const long double x = a.high, y = -static_cast<long double>(b.high);
  const long double sum = x + y, part = sum - x;
  const long double error = (x - (sum - part)) + (y - part);
  return std::fabs(sum +
                   (error + (static_cast<long double>(a.low) - static_cast<long double>(b.low))));
}

long double ulp_at(Dtype dtype, double x) {
  const Format format = format_of(dtype);
  const int exponent = x == 0 || !std::isfinite(x) ? format.smallest_exponent : std::ilogb(x);
  return std::ldexp(1.0L, std::clamp(exponent, format.smallest_exponent, format.largest_exponent) -
                              format.fraction_bits);
}

Shape index_of(const Shape& shape, std::int64_t position) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return index;
}

}  // namespace plumbline
