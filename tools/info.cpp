// plumbline info: what is in a file.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>

#include "fixtures/safetensors.hpp"
#include "fixtures/strict_json.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "tools/commands.hpp"
#include "tools/text_table.hpp"
#include "verdict/elements.hpp"

namespace plumbline {
namespace {

using Json = nlohmann::json;

struct Arguments {
  std::string path;
  bool json = false;
};

struct Range {  // over finite elements
  std::int64_t count = 0, finite = 0, nan = 0, inf = 0;
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  std::int64_t smallest_integer = std::numeric_limits<std::int64_t>::max();
  std::int64_t largest_integer = std::numeric_limits<std::int64_t>::min();
};

Range range_of(const StoredTensor& tensor) {
  Range range;
  range.count = count_of(tensor.shape);
  for (std::int64_t i = 0; i < range.count; ++i) {
    if (!is_real(tensor.dtype)) {
      const std::int64_t value = integer_element(tensor, i);
      range.smallest_integer = std::min(range.smallest_integer, value);
      range.largest_integer = std::max(range.largest_integer, value);
      ++range.finite;
      continue;
    }
    const double value = real_element(tensor, i);
    if (std::isnan(value)) {
      ++range.nan;
    } else if (std::isinf(value)) {
      ++range.inf;
    } else {
      ++range.finite;
      range.smallest = std::min(range.smallest, value);
      range.largest = std::max(range.largest, value);
    }
  }
  return range;
}

// Text of metadata as JSON where it is JSON, else as the string it is.
Json metadata_value(const std::string& text) {
  try {
    return parse_json(text, "metadata");
  } catch (const Error&) {
    return text;
  }
}

void print_json_of(const SafetensorsFile& file) {
  Json json = {{"file", file.path()},
               {"bytes", file.file_bytes()},
               {"header_bytes", file.header_bytes()},
               {"metadata", Json::object()},
               {"tensors", Json::array()}};
  for (const auto& [key, value] : file.metadata()) json["metadata"][key] = metadata_value(value);
  for (const FileTensor& each : file.tensors()) {
    Json tensor = {{"name", each.name},
                   {"dtype", name_of(each.dtype)},
                   {"shape", each.shape},
                   {"bytes", each.bytes()}};
    const Range range = range_of(file.stored(each));
    tensor["nan"] = range.nan;
    tensor["inf"] = range.inf;
    if (range.finite > 0) {
      tensor["min"] = is_real(each.dtype) ? Json(range.smallest) : Json(range.smallest_integer);
      tensor["max"] = is_real(each.dtype) ? Json(range.largest) : Json(range.largest_integer);
    }
    json["tensors"].push_back(std::move(tensor));
  }
  print_json(json);
}

void print_text(const SafetensorsFile& file) {
  print(fmt::format("{}: {} tensors, {} bytes\n", file.path(), file.tensors().size(),
                    file.file_bytes()));
  for (const auto& [key, value] : file.metadata()) {
    const Json json = metadata_value(value);
    const std::string text = json.is_string()
                                 ? printable(json.get<std::string>(), 2000)
                                 : json.dump(2, ' ', false, Json::error_handler_t::replace);
    print(fmt::format("\nmetadata {}: {}\n", printable(key), text));
  }
  TextTable table{{"tensor", "dtype", "shape", "bytes", "min", "max", "NaN", "inf"}, {}};
  for (const FileTensor& each : file.tensors()) {
    const Range range = range_of(file.stored(each));
    std::string smallest, largest;
    if (range.finite > 0 && is_real(each.dtype)) {
      smallest = fmt::format("{:.6g}", range.smallest);
      largest = fmt::format("{:.6g}", range.largest);
    } else if (range.finite > 0) {
      smallest = std::to_string(range.smallest_integer);
      largest = std::to_string(range.largest_integer);
    }
    const auto amount = [](std::int64_t count) {
      return count == 0 ? std::string() : std::to_string(count);
    };
    table.rows.push_back({printable(each.name), std::string(name_of(each.dtype)),
                          to_string(each.shape), std::to_string(each.bytes()), smallest, largest,
                          amount(range.nan), amount(range.inf)});
  }
  if (!table.rows.empty()) print("\n" + as_text(table));
}

}  // namespace

void add_info(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command = app.add_subcommand("info", "Show the tensors and metadata of a file");
  command->add_option("file", arguments->path, "any safetensors file")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "the same as JSON");
  command->footer(
      "Examples:\n"
      "  plumbline info case.safetensors\n"
      "  plumbline info golden.safetensors --json");
  command->callback([arguments] {
    const SafetensorsFile file = SafetensorsFile::open(arguments->path);
    arguments->json ? print_json_of(file) : print_text(file);
  });
}

}  // namespace plumbline
