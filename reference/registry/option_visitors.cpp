#include "reference/registry/option_visitors.hpp"

#include <algorithm>
#include <cmath>

namespace plumbline {

std::string json_text(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

OptionReader::OptionReader(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object()) {
    throw Error(where_.substr(0, where_.find_last_not_of(". ") + 1), json_text(json), "an object");
  }
}

void OptionReader::finish() const {
  for (const auto& [name, value] : json_.items()) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
      throw Error(where_ + json_text(Json(name)), "an unknown name", "one of " + joined(known_));
    }
  }
}

void OptionReader::read(const Json& json, const std::string& where, bool& value) {
  if (!json.is_boolean()) throw Error(where, json_text(json), "true or false");
  value = json.get<bool>();
}

void OptionReader::read(const Json& json, const std::string& where, std::int64_t& value) {
  const bool fits =
      json.is_number_unsigned() ? json.get<std::uint64_t>() <= INT64_MAX : json.is_number_integer();
  if (!fits) throw Error(where, json_text(json), "an integer");
  value = json.get<std::int64_t>();
}

void OptionReader::read(const Json& json, const std::string& where, double& value) {
  if (!json.is_number() || !std::isfinite(json.get<double>()))
    throw Error(where, json_text(json), "a finite number");
  value = json.get<double>();
}

void OptionReader::read(const Json& json, const std::string& where,
                        std::array<std::int64_t, 2>& value) {
  if (!json.is_array() || json.size() != 2)
    throw Error(where, json_text(json), "[begin, end], two integers");
  read(json[0], where + "[0]", value[0]);
  read(json[1], where + "[1]", value[1]);
}

std::size_t OptionReader::choose(const Json& json, const std::string& where,
                                 std::span<const std::string_view> names) {
  // A choice may be a number (lse_base 2): its text is compared.
  const std::string text = json.is_string()   ? json.get<std::string>()
                           : json.is_number() ? json.dump()
                                              : "";
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw Error(where, json_text(json), "one of " + joined({names.begin(), names.end()}));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::pair<std::size_t, double> OptionReader::read_mode(const Json& json, const std::string& where,
                                                       std::span<const Mode> modes) {
  const Json word = json.is_object() && json.contains("mode") ? json["mode"] : json;
  std::vector<std::string> names;
  for (const Mode& mode : modes) names.emplace_back(mode.name);
  for (std::size_t i = 0; i < modes.size(); ++i) {
    if (!word.is_string() || word.get<std::string>() != modes[i].name) continue;
    const std::string parameter(modes[i].parameter);
    if (json.is_object()) {
      for (const auto& [key, value] : json.items()) {
        if (key != "mode" && key != parameter) {
          throw Error(where + "." + json_text(Json(key)), "an unknown name",
                      parameter.empty() ? "mode alone" : "mode and " + parameter);
        }
      }
    }
    if (parameter.empty()) return {i, 0};
    if (!json.is_object() || !json.contains(parameter)) {
      throw Error(where, json_text(json),
                  "{\"mode\": \"" + names[i] + "\", \"" + parameter + "\": number}");
    }
    double value = 0;
    read(json[parameter], where + "." + parameter, value);
    if (parameter == "eps" && value < 0)
      throw Error(where + ".eps", json_text(json[parameter]), "eps >= 0");
    return {i, value};
  }
  throw Error(where, json_text(json), "one of " + joined(names));
}

}  // namespace plumbline
