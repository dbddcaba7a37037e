// reference/registry/option_visitors.hpp
//
// What is made of an options struct's fields(): a reader (JSON into the struct, with errors), a writer (the struct
// as JSON) and a lister (names, types, defaults, texts). Nobody else knows how an option looks in JSON.
#pragma once
#include <array>
#include <concepts>
#include <optional>
#include <type_traits>

#include "reference/error.hpp"
#include "reference/numeric/choice.hpp"
#include "reference/registry/operation.hpp"

namespace plumbline {

std::string json_text(const Json& value);  // short, for messages
std::string joined(const std::vector<std::string>& names);

// A struct's fields() may call prepare(f) between fields: f runs while options are read (a preset that sets the
// fields after it) or listed, and not while they are written.
struct AnyVisitor {
  template <class F> void prepare(F&&) {}
  template <class U> void operator()(std::string_view, U&, std::string_view) {}
};
template <class T>
concept HasFields = requires(T& value, AnyVisitor& v) {
  value.fields(v);
};
template <class T>
concept HasModes = requires(T& value) {
  T::modes[0].parameter;
  value.parameter;
};
template <class T>
concept Choice = std::is_enum_v<T>;

// ---- JSON into a struct -----------------------------------------------------------------------------------------
class OptionReader {
 public:
  OptionReader(const Json& json, std::string where);
  template <class U> void operator()(std::string_view name, U& value, std::string_view) {
    known_.emplace_back(name);
    if (const auto found = json_.find(std::string(name)); found != json_.end()) {
      read(*found, path(name), value);
    }
  }
  template <class F> void prepare(F&& f) { f(); }
  void allow(std::string_view name) { known_.emplace_back(name); }
  void finish() const;  // Error for a key that no field has

 private:
  std::string path(std::string_view name) const { return where_ + std::string(name); }
  static void read(const Json& json, const std::string& where, bool& value);
  static void read(const Json& json, const std::string& where, std::int64_t& value);
  static void read(const Json& json, const std::string& where, double& value);
  static void read(const Json& json, const std::string& where, std::array<std::int64_t, 2>& value);
  template <class U>
  static void read(const Json& json, const std::string& where, std::optional<U>& value) {
    if (json.is_null()) {
      value.reset();
      return;
    }
    U inner = value.value_or(U{});
    read(json, where, inner);
    value = inner;
  }
  template <Choice U> static void read(const Json& json, const std::string& where, U& value) {
    value = static_cast<U>(choose(json, where, names_of(U{})));
  }
  template <HasModes U> static void read(const Json& json, const std::string& where, U& value) {
    const auto [mode, parameter] = read_mode(json, where, U::modes);
    value.kind = static_cast<decltype(value.kind)>(mode);
    value.parameter = parameter;
  }
  template <HasFields U> static void read(const Json& json, const std::string& where, U& value) {
    OptionReader inner(json, where + ".");
    value.fields(inner);
    inner.finish();
  }
  static std::size_t choose(const Json& json, const std::string& where,
                            std::span<const std::string_view> names);
  static std::pair<std::size_t, double> read_mode(const Json& json, const std::string& where,
                                                  std::span<const Mode> modes);

  const Json& json_;
  std::string where_;
  std::vector<std::string> known_;
};

// ---- a struct as JSON -------------------------------------------------------------------------------------------
class OptionWriter {
 public:
  template <class F> void prepare(F&&) {}
  Json json = Json::object();
  template <class U> void operator()(std::string_view name, U& value, std::string_view) {
    json[std::string(name)] = write(value);
  }
  static Json write(bool value) { return value; }
  static Json write(std::int64_t value) { return value; }
  static Json write(double value) { return value; }
  static Json write(const std::array<std::int64_t, 2>& value) { return value; }
  template <class U> static Json write(std::optional<U>& value) {
    return value ? write(*value) : Json(nullptr);
  }
  template <Choice U> static Json write(U value) {
    return std::string(names_of(value)[static_cast<std::size_t>(value)]);
  }
  template <HasModes U> static Json write(const U& value) {
    const Mode& mode = U::modes[static_cast<std::size_t>(value.kind)];
    if (mode.parameter.empty()) return std::string(mode.name);
    return {{"mode", std::string(mode.name)}, {std::string(mode.parameter), value.parameter}};
  }
  template <HasFields U> static Json write(U& value) {
    OptionWriter inner;
    value.fields(inner);
    return inner.json;
  }
};

// ---- what there is to set ---------------------------------------------------------------------------------------
class OptionLister {
 public:
  template <class F> void prepare(F&& f) { f(); }  // what the default preset sets is the default
  std::vector<OptionInfo> list;
  template <class U> void operator()(std::string_view name, U& value, std::string_view doc) {
    OptionInfo info;
    info.name = name;
    info.doc = doc;
    info.fallback = OptionWriter::write(value);
    describe(value, info);
    list.push_back(std::move(info));
  }

 private:
  static void describe(bool&, OptionInfo& info) { info.type = "bool"; }
  static void describe(std::int64_t&, OptionInfo& info) { info.type = "integer"; }
  static void describe(double&, OptionInfo& info) { info.type = "number"; }
  static void describe(std::array<std::int64_t, 2>&, OptionInfo& info) {
    info.type = "[begin, end)";
  }
  template <class U> static void describe(std::optional<U>& value, OptionInfo& info) {
    U inner = value.value_or(U{});
    describe(inner, info);
  }
  template <Choice U> static void describe(U& value, OptionInfo& info) {
    info.type = "choice";
    for (const std::string_view name : names_of(value)) info.choices.emplace_back(name);
  }
  template <HasModes U> static void describe(U&, OptionInfo& info) {
    info.type = "mode";
    for (const Mode& mode : U::modes) {
      info.choices.push_back(std::string(mode.name) +
                             (mode.parameter.empty() ? "" : " " + std::string(mode.parameter)));
    }
  }
  template <HasFields U> static void describe(U& value, OptionInfo& info) {
    info.type = "object";
    OptionLister inner;
    value.fields(inner);
    info.inner = std::move(inner.list);
  }
};

}  // namespace plumbline
