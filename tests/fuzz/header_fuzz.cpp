// The bytes are a safetensors file. It is refused with an Error, or what it says of itself holds.
#include "fixtures/case.hpp"
#include "fixtures/text.hpp"
#include "tests/fuzz/fuzzing.hpp"

namespace plumbline {
namespace {

// Tensors fill what follows the header, each with the bytes that its shape and dtype ask for.
void check_tensors(const SafetensorsFile& file) {
  std::uint64_t filled = 0;
  for (const FileTensor& tensor : file.tensors()) {
    if (tensor.begin != filled || tensor.end < tensor.begin)
      fuzz::broken("tensors lie back to back", printable(tensor.name));
    filled = tensor.end;
    const auto bytes = static_cast<std::uint64_t>(count_of(tensor.shape)) * size_of(tensor.dtype);
    if (tensor.bytes() != bytes || file.data(tensor).size() != bytes)
      fuzz::broken("a tensor has the bytes of its shape", printable(tensor.name));
    if (file.find(tensor.name) != &tensor)
      fuzz::broken("a tensor is found by its name", printable(tensor.name));
    const StoredTensor stored = file.stored(tensor);
    if (!stored.given() || stored.shape != tensor.shape)
      fuzz::broken("a tensor is as its header says", printable(tensor.name));
  }
  if (8 + file.header_bytes() + filled != file.file_bytes())
    fuzz::broken("the file ends with its tensors", std::to_string(filled));
}

void check_text(std::string_view text) {
  if (!is_utf8(text)) fuzz::broken("names and metadata are UTF-8", printable(text));
}

}  // namespace
}  // namespace plumbline

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  fuzz::answers([&] {
    const SafetensorsFile file = SafetensorsFile::from_memory(fuzz::bytes_of(data, size), "f");
    check_tensors(file);
    for (const auto& [key, value] : file.metadata()) check_text(key), check_text(value);
    for (const FileTensor& tensor : file.tensors()) {
      check_text(tensor.name);
      fuzz::answers([&] { split_tensor_name(tensor.name); });
    }
    read_case_metadata(file);
  });
  return 0;
}
