#include "bindings/core/digits.hpp"

#include "reference/numeric/scalar.hpp"

namespace plumbline::bindings {

std::vector<std::string> digits_of(const Value& value) {
  std::vector<std::string> texts;
  if (!value.exact) return texts;
  constexpr int digits = 105;  // what lies past the hundredth is noise, but the same noise
  for (const mp100& each : *static_cast<const std::vector<mp100>*>(value.exact.get()))
    texts.push_back(each.str(digits, std::ios_base::scientific));
  return texts;
}

}  // namespace plumbline::bindings
