// The bytes are the JSON of options. Every operation refuses them with an Error, or resolves them to options that
// resolve to themselves.
#include "fixtures/strict_json.hpp"
#include "reference/registry/operation.hpp"
#include "tests/fuzz/fuzzing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json options;
  if (!fuzz::answers([&] { options = parse_json(text, "options"); })) return 0;
  for (const Operation* operation : operations()) {
    Json resolved;
    if (!fuzz::answers([&] { resolved = operation->resolve(options); })) continue;
    fuzz::answers([&] { operation->has_surrogate(options); });
    Json again;
    if (!fuzz::answers([&] { again = operation->resolve(resolved); }) || again != resolved)
      fuzz::broken("resolved options resolve to themselves",
                   operation->name + " " + resolved.dump());
  }
  return 0;
}
