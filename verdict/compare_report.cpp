#include <cmath>
#include <cstdio>

#include "verdict/compare.hpp"

namespace plumbline {
namespace {

using Json = nlohmann::json;

// JSON has no infinities; they are spelled out.
Json number(long double value) {
  const auto rounded = static_cast<double>(value);
  if (std::isfinite(rounded)) return rounded;
  return std::isnan(rounded) ? "nan" : rounded > 0 ? "inf" : "-inf";
}

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
std::string both(const char* format, const char* separator, Pair value) {
  std::string text = formatted(format, value.high);
  if (value.low != 0) text += separator + formatted(format, value.low);
  return text;
}

Json to_json(const TensorComparison& tensor) {
  Json json = {
      {"tensor", tensor.golden}, {"verdict", name_of(tensor.agreement)}, {"shape", tensor.shape}};
  if (tensor.agreement == Agreement::not_in_actual) return json;
  json["actual"] = tensor.actual;
  json["dtype"] = name_of(tensor.dtype);
  json["count"] = tensor.count;
  json["unequal"] = tensor.unequal;
  if (!tensor.reason.empty()) json["reason"] = tensor.reason;
  if (tensor.real) {
    json["max_abs"] = number(tensor.max_absolute);
    json["max_rel"] = number(tensor.max_relative);
    json["max_scaled"] = number(tensor.max_scaled);
    json["max_ulp"] = number(tensor.max_ulp);
    json["largest"] = number(tensor.largest);
    json["limit"] = number(tensor.limit);
    json["nan_or_inf_mismatches"] = tensor.nan_or_inf;
  }
  if (!tensor.has_worst) return json;
  json["worst"]["index"] = tensor.worst;
  if (tensor.real) {
    const auto value = [](Pair pair) {
      return Json{{"decimal", decimal(pair)}, {"hex", hexadecimal(pair)}};
    };
    json["worst"]["golden"] = value(tensor.worst_golden);
    json["worst"]["actual"] = value(tensor.worst_actual);
  } else {
    json["worst"]["golden"] = tensor.worst_golden_integer;
    json["worst"]["actual"] = tensor.worst_actual_integer;
  }
  return json;
}

}  // namespace

std::string_view name_of(Agreement agreement) {
  switch (agreement) {
    case Agreement::agree: return "agree";
    case Agreement::disagree: return "disagree";
    case Agreement::not_in_actual: return "not in ACTUAL";
  }
  return {};
}

std::string decimal(Pair value) { return both("%.17g", " + ", value); }
std::string hexadecimal(Pair value) { return both("%a", " + ", value); }

Json to_json(const Comparison& comparison) {
  Json json = {{"golden", comparison.golden},
               {"actual", comparison.actual},
               {"agree", comparison.agree},
               {"not_in_golden", comparison.not_in_golden},
               {"inputs_differ", comparison.inputs_differ},
               {"tensors", Json::array()}};
  for (const TensorComparison& tensor : comparison.tensors)
    json["tensors"].push_back(to_json(tensor));
  return json;
}

}  // namespace plumbline
