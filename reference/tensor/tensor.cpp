#include "reference/tensor/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline {

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;  // of the axes that are not empty, so that strides fit too
  bool overflow = false, zero = false;
  for (const std::int64_t size : shape) {
    zero = zero || size == 0;
    if (size != 0) overflow = __builtin_mul_overflow(count, size, &count) || overflow;
  }
  if (overflow || count < 0) {
    throw Error("shape", to_string(shape), "sizes whose product fits 63 bits");
  }
  return zero ? 0 : count;
}

Shape row_major(const Shape& shape) {
  Shape stride(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) stride[axis - 1] = stride[axis] * shape[axis];
  return stride;
}

std::string to_string(Index index) {
  std::string text = "[";
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(index[i]);
  }
  return text + "]";
}
std::string to_string(const Shape& shape) { return to_string(Index(shape)); }

StoredTensor at_first(const StoredTensor& tensor, std::int64_t i) {
  StoredTensor part = tensor;
  const std::size_t bytes =
      tensor.dtype == Dtype::working ? tensor.element_bytes : size_of(tensor.dtype);
  if (tensor.data != nullptr)
    part.data = tensor.data + i * tensor.stride[0] * static_cast<std::int64_t>(bytes);
  part.shape.erase(part.shape.begin());
  part.stride.erase(part.stride.begin());
  part.notes = nullptr;
  if (tensor.low) part.low = std::make_shared<StoredTensor>(at_first(*tensor.low, i));
  if (tensor.scale) {
    part.scale = std::make_shared<StoredTensor>(
        at_first(*tensor.scale, i / (tensor.shape[0] / tensor.scale->shape[0])));
  }
  return part;
}

StoredTensor at_rows(const StoredTensor& tensor, std::int64_t first, std::int64_t count) {
  if (tensor.scale && tensor.scale->shape[0] != tensor.shape[0] && tensor.scale->shape[0] != 1) {
    throw Error(tensor.scale->name, "a scale for several tokens at once",
                "one for each token, or one for all");
  }
  StoredTensor rows = with_axis(tensor, 0);
  const std::size_t bytes =
      tensor.dtype == Dtype::working ? tensor.element_bytes : size_of(tensor.dtype);
  if (tensor.data != nullptr)
    rows.data = tensor.data + first * tensor.stride[0] * static_cast<std::int64_t>(bytes);
  rows.shape[1] = count;
  rows.notes = nullptr;
  if (tensor.low) rows.low = std::make_shared<StoredTensor>(at_rows(*tensor.low, first, count));
  if (tensor.scale) {
    rows.scale = std::make_shared<StoredTensor>(tensor.scale->shape[0] == 1
                                                    ? with_axis(*tensor.scale, 0)
                                                    : at_rows(*tensor.scale, first, count));
  }
  return rows;
}

StoredTensor with_axis(const StoredTensor& tensor, std::size_t axis) {
  StoredTensor wider = tensor;
  wider.shape.insert(wider.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  wider.stride.insert(wider.stride.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  if (tensor.low) wider.low = std::make_shared<StoredTensor>(with_axis(*tensor.low, axis));
  if (tensor.scale) wider.scale = std::make_shared<StoredTensor>(with_axis(*tensor.scale, axis));
  return wider;
}

namespace {

std::int64_t offset_of(const StoredTensor& tensor, Index index) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis)
    offset += index[axis] * tensor.stride[axis];
  return offset;
}

template <class U> U load(const StoredTensor& tensor, std::int64_t offset) {
  U value;
  std::memcpy(&value, tensor.data + offset * static_cast<std::int64_t>(sizeof(U)), sizeof(U));
  return value;
}

double load_double(const StoredTensor& tensor, std::int64_t offset) {
  switch (tensor.dtype) {
    case Dtype::f64: return load<double>(tensor, offset);
    case Dtype::f32: return static_cast<double>(load<float>(tensor, offset));
    case Dtype::f16: return decode_f16(load<std::uint16_t>(tensor, offset));
    case Dtype::bf16: return decode_bf16(load<std::uint16_t>(tensor, offset));
    case Dtype::f8_e4m3: return decode_f8_e4m3(load<std::uint8_t>(tensor, offset));
    case Dtype::f8_e5m2: return decode_f8_e5m2(load<std::uint8_t>(tensor, offset));
    default:
      throw Error(tensor.name, "dtype " + std::string(name_of(tensor.dtype)), "real numbers");
  }
}

// The index into a scale whose every axis divides that of the codes or is 1.
std::vector<std::int64_t> scale_index(const StoredTensor& tensor, Index index) {
  std::vector<std::int64_t> scaled(index.begin(), index.end());
  for (std::size_t axis = 0; axis < scaled.size(); ++axis) {
    scaled[axis] /= tensor.shape[axis] / tensor.scale->shape[axis];
  }
  return scaled;
}

template <class T> T load_value(const StoredTensor& tensor, std::int64_t offset, Index index) {
  if (tensor.dtype == Dtype::working) {
    if (tensor.precision != precision_of<T>()) {
      throw Error(tensor.name, "another working precision", "that of the operation");
    }
    return reinterpret_cast<const T*>(tensor.data)[offset];
  }
  T value = from_double<T>(load_double(tensor, offset));
  if (tensor.scale) {
    value *= from_double<T>(
        load_double(*tensor.scale, offset_of(*tensor.scale, scale_index(tensor, index))));
  }
  if (tensor.low) value += from_double<T>(load_double(*tensor.low, offset_of(*tensor.low, index)));
  return value;
}

template <class T> void check(const StoredTensor& tensor, Index index, const T& value) {
  if (tensor.nonfinite == NonFinite::allow || is_finite(value) ||
      tensor.note(index) != RowNote::as_stored)
    return;
  const std::string found = is_nan(value) ? "NaN" : value > T(0) ? "inf" : "-inf";
  throw Error(tensor.name + to_string(index), found, "a finite number (or nonfinite \"allow\")");
}

// The common row: no scale, no remainder. The dtype is looked at once, not once an element.
template <class T, class U, class Decode>
void convert(const StoredTensor& tensor, std::int64_t offset, std::span<T> row, Decode decode) {
  const std::int64_t stride = tensor.stride.empty() ? 1 : tensor.stride.back();
  const std::byte* from = tensor.data + offset * static_cast<std::int64_t>(sizeof(U));
  for (T& value : row) {
    U code;
    std::memcpy(&code, from, sizeof code);
    value = from_double<T>(decode(code));
    from += stride * static_cast<std::int64_t>(sizeof(U));
  }
}
// bf16 to double, the row of most weights: eight codes at a time, each the upper half of a binary32.
[[gnu::always_inline]] inline void widen_bf16_row(const std::byte* from, std::span<double> row) {
  constexpr std::size_t lanes = 8;
  using Codes = std::uint16_t __attribute__((vector_size(16)));
  using Words = std::uint32_t __attribute__((vector_size(32)));
  using Floats = float __attribute__((vector_size(32)));
  using Doubles = double __attribute__((vector_size(64)));
  std::size_t i = 0;
  for (; i + lanes <= row.size(); i += lanes) {
    Codes codes;
    std::memcpy(&codes, from + i * sizeof(std::uint16_t), sizeof codes);
    const Words words = __builtin_convertvector(codes, Words) << 16;
    Floats floats;
    std::memcpy(&floats, &words, sizeof floats);
    const Doubles doubles = __builtin_convertvector(floats, Doubles);
    std::memcpy(row.data() + i, &doubles, sizeof doubles);
  }
  for (; i < row.size(); ++i) {
    std::uint16_t code;
    std::memcpy(&code, from + i * sizeof code, sizeof code);
    row[i] = decode_bf16(code);
  }
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void widen_bf16_avx2(const std::byte* from, std::span<double> row) {
  widen_bf16_row(from, row);
}
#endif
void widen_bf16(const std::byte* from, std::span<double> row) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (wide) {
    widen_bf16_avx2(from, row);
    return;
  }
#endif
  widen_bf16_row(from, row);
}

template <class T>
bool convert_plain(const StoredTensor& tensor, std::int64_t offset, std::span<T> row) {
  if (tensor.scale || tensor.low) return false;
  const std::int64_t stride = tensor.stride.empty() ? 1 : tensor.stride.back();
  switch (tensor.dtype) {
    case Dtype::working:
      if (tensor.precision != precision_of<T>() || stride != 1) return false;
      std::copy_n(reinterpret_cast<const T*>(tensor.data) + offset, row.size(), row.begin());
      return true;
    case Dtype::f64:
      if constexpr (std::is_same_v<T, double>) {
        if (stride == 1) {
          std::memcpy(row.data(), tensor.data + offset * static_cast<std::int64_t>(sizeof(double)),
                      row.size_bytes());
          return true;
        }
      }
      convert<T, double>(tensor, offset, row, [](double x) { return x; });
      return true;
    case Dtype::f32:
      convert<T, float>(tensor, offset, row, [](float x) { return static_cast<double>(x); });
      return true;
    case Dtype::bf16:
      if constexpr (std::is_same_v<T, double>) {
        if (stride == 1) {
          widen_bf16(tensor.data + offset * static_cast<std::int64_t>(sizeof(std::uint16_t)), row);
          return true;
        }
      }
      convert<T, std::uint16_t>(tensor, offset, row, decode_bf16);
      return true;
    case Dtype::f16: convert<T, std::uint16_t>(tensor, offset, row, decode_f16); return true;
    default: return false;
  }
}

template <class T> bool all_finite(std::span<const T> row) {
  return std::all_of(row.begin(), row.end(), [](const T& x) { return is_finite(x); });
}
// Without a branch an element: x − x is 0, or NaN for what is not finite, and NaN stays.
template <> bool all_finite(std::span<const double> row) {
  double nothing[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= row.size(); i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) nothing[lane] += row[i + lane] - row[i + lane];
  }
  for (; i < row.size(); ++i) nothing[0] += row[i] - row[i];
  return nothing[0] + nothing[1] + nothing[2] + nothing[3] == 0;
}

}  // namespace

template <class T> T Fetch<T>::element(const StoredTensor& tensor, Index index) {
  if (tensor.note(index) == RowNote::blank) return T(0);
  return load_value<T>(tensor, offset_of(tensor, index), index);
}

template <class T>
void Fetch<T>::row(const StoredTensor& tensor, Index lead, std::int64_t first, std::span<T> row) {
  std::int64_t few[8];  // an index on the stack: rows may be short, and fetched by the million
  std::vector<std::int64_t> many(lead.size() < std::size(few) ? 0 : lead.size() + 1);
  std::int64_t* const places = many.empty() ? few : many.data();
  std::int64_t& place = *std::copy(lead.begin(), lead.end(), places);
  const Index index(places, lead.size() + 1);
  place = first;
  if (tensor.note(index) == RowNote::blank) {
    for (T& value : row) value = T(0);
    return;
  }
  if (!row.empty() && convert_plain<T>(tensor, offset_of(tensor, index), row)) {
    if (all_finite<T>(row)) return;
    for (std::size_t i = 0; i < row.size(); ++i) {
      place = first + static_cast<std::int64_t>(i);
      check(tensor, index, row[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    place = first + static_cast<std::int64_t>(i);
    row[i] = load_value<T>(tensor, offset_of(tensor, index), index);
    check(tensor, index, row[i]);
  }
}

template <class T> T Fetch<T>::one(const StoredTensor& tensor, Index index) {
  const T value = element(tensor, index);
  check(tensor, index, value);
  return value;
}

std::int64_t integer_at(const StoredTensor& tensor, Index index) {
  const std::int64_t offset = offset_of(tensor, index);
  if (tensor.dtype == Dtype::i32) return load<std::int32_t>(tensor, offset);
  if (tensor.dtype == Dtype::i64) return load<std::int64_t>(tensor, offset);
  throw Error(tensor.name, "dtype " + std::string(name_of(tensor.dtype)), "I32");
}

bool boolean_at(const StoredTensor& tensor, Index index) {
  const std::uint8_t code = load<std::uint8_t>(tensor, offset_of(tensor, index));
  if (code > 1)
    throw Error(tensor.name + to_string(index), std::to_string(code), "a BOOL of 0 or 1");
  return code == 1;
}

#define INSTANTIATE(T) template struct Fetch<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline
