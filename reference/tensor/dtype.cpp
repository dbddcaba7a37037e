#include "reference/tensor/dtype.hpp"

#include <cmath>
#include <iterator>
#include <limits>

namespace plumbline {
namespace {

struct Entry {
  Dtype dtype;
  std::string_view name;
  std::size_t size;
};
constexpr Entry table[] = {
    {Dtype::f64, "F64", 8},         {Dtype::f32, "F32", 4},         {Dtype::f16, "F16", 2},
    {Dtype::bf16, "BF16", 2},       {Dtype::i64, "I64", 8},         {Dtype::i32, "I32", 4},
    {Dtype::u8, "U8", 1},           {Dtype::boolean, "BOOL", 1},    {Dtype::f8_e4m3, "F8_E4M3", 1},
    {Dtype::f8_e5m2, "F8_E5M2", 1}, {Dtype::working, "working", 0},
};

// sign, exponent field and fraction of a small binary format; `specials` says that the last exponent is IEEE's.
double decode(unsigned code, int exponent_bits, int fraction_bits, bool specials) {
  const unsigned fraction = code & ((1u << fraction_bits) - 1);
  const int field = static_cast<int>((code >> fraction_bits) & ((1u << exponent_bits) - 1));
  const bool negative = ((code >> (exponent_bits + fraction_bits)) & 1u) != 0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (specials && field == (1 << exponent_bits) - 1) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (field == 0) {
    value = std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
  } else {
    value = std::ldexp(static_cast<double>(fraction + (1u << fraction_bits)),
                       field - bias - fraction_bits);
  }
  return negative ? -value : value;
}

}  // namespace

std::size_t size_of(Dtype dtype) { return table[static_cast<std::size_t>(dtype)].size; }
std::string_view name_of(Dtype dtype) { return table[static_cast<std::size_t>(dtype)].name; }

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const Entry& entry : table) {
    if (entry.name == name && entry.dtype != Dtype::working) return entry.dtype;
  }
  return std::nullopt;
}

bool is_real(Dtype dtype) {
  switch (dtype) {
    case Dtype::i64:
    case Dtype::i32:
    case Dtype::u8:
    case Dtype::boolean: return false;
    default: return true;
  }
}

double decode_f16(std::uint16_t code) { return decode(code, 5, 10, true); }
double decode_f8_e4m3(std::uint8_t code) {
  if ((code & 0x7fu) == 0x7fu) return std::numeric_limits<double>::quiet_NaN();
  return decode(code, 4, 3, false);
}
double decode_f8_e5m2(std::uint8_t code) { return decode(code, 5, 2, true); }

}  // namespace plumbline
