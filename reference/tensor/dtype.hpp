// reference/tensor/dtype.hpp
//
// The element types of files, by the names safetensors gives them. `working` is an intermediate of the library:
// an Array<T> of the precision in use, so that a layer can hand one operation's output to the next.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plumbline {

// g++ calls an enumerator a shadow of the type with its name, although a scoped one hides nothing.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Dtype { f64, f32, f16, bf16, i64, i32, u8, boolean, f8_e4m3, f8_e5m2, working };
#pragma GCC diagnostic pop

std::size_t size_of(Dtype dtype);
std::string_view name_of(Dtype dtype);                    // "F64", "BF16", "F8_E4M3" …
std::optional<Dtype> dtype_named(std::string_view name);  // nothing for an unknown name
bool is_real(Dtype dtype);                                // holds real numbers
inline bool is_integer(Dtype dtype) { return dtype == Dtype::i64 || dtype == Dtype::i32; }

// The number a code stands for; every one is exact in double.
double decode_f16(std::uint16_t code);
inline double decode_bf16(std::uint16_t code) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16));
}
double decode_f8_e4m3(std::uint8_t code);  // no infinities, 0x7f and 0xff are NaN
double decode_f8_e5m2(std::uint8_t code);  // as IEEE

}  // namespace plumbline
