// The page is built once, as sections with a table each; terminals and markdown differ only in how they print them.
#include "tools/operation_page.hpp"

#include <algorithm>

#include "reference/registry/description.hpp"
#include "tools/text_table.hpp"

namespace plumbline {
namespace {

struct Section {
  std::string title, note;
  TextTable table;
};

std::string shape_of(const std::string& letters) {
  return letters.empty() ? "scalar" : "[" + letters + "]";
}

// As a reader says it: a mode with its parameter is "add 1e-08", and 2^-126 has its name of C.
std::string value_text(const Json& value) {
  if (value.is_null()) return "—";
  if (value == 0x1p-126) return "FLT_MIN";
  if (!value.is_object() || !value.contains("mode") || value.size() != 2) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  std::string text = value["mode"].get<std::string>();
  for (const auto& [key, parameter] : value.items()) {
    if (key != "mode") text += " " + value_text(parameter);
  }
  return text;
}

Section tensors(const std::string& title, const std::string& note,
                const std::vector<TensorInfo>& infos) {
  Section section{title, note, {{"name", "shape", "kind", "needed", "gradient", "meaning"}, {}}};
  for (const TensorInfo& info : infos) {
    section.table.rows.push_back({info.name, shape_of(info.letters),
                                  std::string(name_of(info.kind)), info.required ? "required" : "",
                                  info.differentiable ? "yes" : "", info.doc});
  }
  return section;
}

Section outputs(const std::vector<OutputInfo>& infos) {
  Section section{"outputs",
                  "° only on request: named in `outputs` of the case or by --outputs",
                  {{"name", "shape", "kind", "meaning"}, {}}};
  for (const OutputInfo& info : infos) {
    section.table.rows.push_back({info.name + (info.on_request ? "°" : ""), shape_of(info.letters),
                                  std::string(name_of(info.kind)), info.doc});
  }
  return section;
}

void add_options(TextTable& table, const std::vector<OptionInfo>& infos,
                 const std::string& prefix) {
  for (const OptionInfo& info : infos) {
    std::string choices;
    for (const std::string& choice : info.choices)
      choices += (choices.empty() ? "" : " | ") + choice;
    const bool object = !info.inner.empty();
    table.rows.push_back({prefix + info.name, choices.empty() ? info.type : choices,
                          object && !info.fallback.is_null() ? "" : value_text(info.fallback),
                          info.doc});
    add_options(table, info.inner, prefix + info.name + ".");
  }
}

Section options(const Operation& operation) {
  const std::string note =
      operation.presets.empty()
          ? ""
          : "`preset` sets them all; the defaults are those of " + operation.presets[0].name;
  Section section{"options", note, {{"name", "value", "default", "meaning"}, {}}};
  add_options(section.table, operation.options, "");
  return section;
}

// One row a preset, one column an option; options that are the same everywhere are said once, in the note.
Section presets(const std::vector<PresetInfo>& infos) {
  Section section{"presets", "", {{"preset"}, {}}};
  for (const PresetInfo& info : infos) section.table.rows.push_back({info.name});
  if (infos.empty()) return section;
  const auto value_in = [](const PresetInfo& info, const std::string& key) {
    return info.options.contains(key) ? info.options[key] : Json(nullptr);
  };
  for (const auto& [key, value] : infos.front().options.items()) {
    const bool same = std::all_of(infos.begin(), infos.end(),
                                  [&key = key, &value = value, &value_in](const auto& info) {
                                    return value_in(info, key) == value;
                                  });
    if (same) {
      section.note += (section.note.empty() ? "the same in every preset: " : ", ") + key + " " +
                      value_text(value);
      continue;
    }
    section.table.header.push_back(key);
    for (std::size_t i = 0; i < infos.size(); ++i) {
      section.table.rows[i].push_back(value_text(value_in(infos[i], key)));
    }
  }
  return section;
}

Section preset_texts(const std::vector<PresetInfo>& infos) {
  Section section{"whose presets they are", "", {{"preset", "source"}, {}}};
  for (const PresetInfo& info : infos) section.table.rows.push_back({info.name, info.doc});
  return section;
}

std::vector<Section> sections_of(const Operation& operation) {
  std::vector<Section> all;
  all.push_back(tensors(
      "inputs", "in.<name> in the file, with in.<name>.lo beside it where double is not enough",
      operation.inputs));
  all.push_back(tensors("given", "given.<name> replaces what would be computed, as a constant",
                        operation.given));
  all.push_back(tensors("cotangents",
                        "cot.<name>; a missing one is 0, with none a scalar loss gets 1",
                        operation.cotangents));
  all.push_back(outputs(operation.outputs));
  all.push_back(options(operation));
  all.push_back(presets(operation.presets));
  all.push_back(preset_texts(operation.presets));
  std::string keys;
  for (const std::string& key : operation.honours) keys += (keys.empty() ? "" : ", ") + key;
  all.push_back({"schedule", keys.empty() ? "none" : keys, {}});
  std::erase_if(all, [](const Section& s) { return s.table.rows.empty() && s.note.empty(); });
  std::erase_if(all, [](const Section& s) { return s.table.rows.empty() && s.title == "given"; });
  std::erase_if(all,
                [](const Section& s) { return s.table.rows.empty() && s.title == "cotangents"; });
  return all;
}

// The last column is prose; it is wrapped beside the others so that no line is longer than the page.
std::string with_wrapped_prose(const TextTable& table) {
  TextTable narrow = table;
  for (auto& row : narrow.rows) row.back().clear();
  narrow.header.back().clear();
  std::size_t indent = 0;
  for (std::size_t i = 0; i + 1 < table.header.size(); ++i) {
    std::size_t width = 0;
    for (const auto& row : table.rows) width = std::max(width, width_of(row[i]));
    if (width > 0) indent += std::max(width, width_of(table.header[i])) + 2;
  }
  const std::string columns = as_text(narrow);
  std::string text;
  std::size_t at = 0;
  for (std::size_t line = 0; line <= table.rows.size(); ++line) {
    const std::size_t end = columns.find('\n', at);
    const std::string left = columns.substr(at, end - at);
    at = end + 1;
    const std::string& prose = line == 0 ? table.header.back() : table.rows[line - 1].back();
    std::string right = wrapped(prose, indent, std::max<std::size_t>(100, indent + 40));
    if (right.empty()) right = "\n";
    // The first line of the prose stands beside the columns.
    const std::size_t blanks = std::min(right.find_first_not_of(' '), right.size());
    text += left + (right[blanks] == '\n' ? "" : std::string(indent - width_of(left), ' ')) +
            right.substr(blanks);
  }
  return text;
}

}  // namespace

std::string page_text(const Operation& operation) {
  std::string page =
      operation.name + "\n" + wrapped(operation.summary, 2) + "\n" + wrapped(operation.formula, 4);
  for (const Section& section : sections_of(operation)) {
    page += "\n" + section.title + "\n";
    page += wrapped(section.note, 2);
    if (section.table.rows.empty()) continue;
    const bool prose = section.title != "presets";
    const std::string table = prose ? with_wrapped_prose(section.table) : as_text(section.table);
    for (std::size_t at = 0; at < table.size();) {
      const std::size_t end = table.find('\n', at);
      page += "  " + table.substr(at, end - at) + "\n";
      at = end + 1;
    }
  }
  return page;
}

std::string page_markdown(const Operation& operation) {
  std::string page = "# " + operation.name + "\n\n" + operation.summary + "\n\n```\n" +
                     operation.formula + "\n```\n";
  for (const Section& section : sections_of(operation)) {
    page += "\n## " + section.title + "\n\n";
    if (!section.note.empty()) page += section.note + "\n";
    if (!section.note.empty() && !section.table.rows.empty()) page += "\n";
    if (!section.table.rows.empty()) page += as_markdown(section.table);
  }
  return page;
}

}  // namespace plumbline
