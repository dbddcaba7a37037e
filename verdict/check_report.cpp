#include "verdict/check_report.hpp"

#include <cmath>
#include <cstdio>

#include "verdict/compare.hpp"

namespace plumbline {
namespace {

// JSON has no infinities; they are spelled out.
Json number(long double value) {
  const auto rounded = static_cast<double>(value);
  if (std::isfinite(rounded)) return rounded;
  return std::isnan(rounded) ? "nan" : rounded > 0 ? "inf" : "-inf";
}

Shape element_shape(const TensorVerdict& tensor) {
  Shape shape = tensor.shape;
  if (tensor.selection && !shape.empty()) shape.pop_back();
  return shape;
}

Json to_json(const TensorVerdict& tensor, const JudgedElement& e) {
  Json json = {{"index", index_of(element_shape(tensor), e.position)},
               {"margin", number(e.margin)},
               {"margin2", number(e.margin2)},
               {"verdict", name_of(e.verdict)}};
  if (!e.why.empty()) json["why"] = e.why;
  if (tensor.kind == Kind::real) {
    const auto value = [](Pair pair) {
      return Json{{"decimal", decimal(pair)}, {"hex", hexadecimal(pair)}};
    };
    json["actual"] = value(e.actual);
    json["expected"] = value(e.wanted);
    json["off"] = number(e.off);
    json["ulp"] = number(e.ulp > 0 ? e.off / e.ulp : 0);
    json["bound"] = number(e.bound);
    json["bound2"] = number(e.bound2);
    json["dominating"] = e.dominating;
  } else if (!tensor.selection) {
    json["actual"] = e.actual_integer;
    json["expected"] = e.wanted_integer;
  }
  return json;
}

Json to_json(const TensorVerdict& tensor) {
  Json json = {{"tensor", tensor.name},
               {"actual", tensor.actual},
               {"verdict", name_of(tensor.verdict)},
               {"shape", tensor.shape},
               {"dtype", name_of(tensor.dtype)},
               {"count", tensor.count},
               {"margin", number(tensor.margin)},
               {"margin2", number(tensor.margin2)},
               {"counts", Json::object()},
               {"worst", Json::array()}};
  for (std::size_t i = 0; i < 4; ++i)
    json["counts"][std::string(names_of(Verdict{})[i])] = tensor.counts[i];
  if (tensor.selection) json["judged_as"] = "set";
  if (!tensor.reason.empty()) json["reason"] = tensor.reason;
  if (!tensor.basis.empty()) json["given"] = tensor.basis;
  for (const JudgedElement& e : tensor.worst) json["worst"].push_back(to_json(tensor, e));
  return json;
}

}  // namespace

Json to_json(const CheckReport& report) {
  Json json = {{"op", report.op},
               {"contract", report.contract},
               {"golden", report.golden},
               {"actual", report.actual},
               {"options", report.options},
               {"verdict", name_of(report.verdict)},
               {"not_in_actual", report.not_in_actual},
               {"not_an_output", report.not_an_output},
               {"inputs_differ", report.inputs_differ},
               {"hints", report.hints},
               {"repro", report.repro},
               {"tensors", Json::array()}};
  for (const TensorVerdict& tensor : report.tensors) json["tensors"].push_back(to_json(tensor));
  return json;
}

std::string escaped_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return escaped;
}

std::string short_number(long double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3Lg", value);
  return text;
}

std::string junit_of(const CheckReport& report, bool strict) {
  std::string cases;
  int failures = 0;
  for (const TensorVerdict& tensor : report.tensors) {
    const bool failed =
        tensor.verdict >= Verdict::unprovable || (strict && tensor.verdict == Verdict::suspect);
    cases += "    <testcase classname=\"" + escaped_xml("plumbline." + report.op) + "\" name=\"" +
             escaped_xml(tensor.name) + "\"";
    if (!failed) {
      cases += "/>\n";
      continue;
    }
    ++failures;
    std::string text;
    for (const JudgedElement& e : tensor.worst) {
      if (e.verdict == Verdict::pass) continue;
      text += to_string(index_of(element_shape(tensor), e.position)) + " margin " +
              short_number(e.margin) + (e.why.empty() ? "" : ": " + e.why) + "\n";
    }
    for (const std::string& hint : report.hints) text += hint + "\n";
    cases += ">\n      <failure type=\"" + std::string(name_of(tensor.verdict)) + "\" message=\"" +
             escaped_xml(tensor.reason.empty() ? "margin " + short_number(tensor.margin)
                                               : tensor.reason) +
             "\">" + escaped_xml(text) + "</failure>\n    </testcase>\n";
  }
  const std::string counts = "tests=\"" + std::to_string(report.tensors.size()) + "\" failures=\"" +
                             std::to_string(failures) + "\"";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites " + counts +
         ">\n  <testsuite name=\"" + escaped_xml(report.actual) + " under " +
         escaped_xml(report.contract) + "\" " + counts + ">\n" + cases +
         "  </testsuite>\n</testsuites>\n";
}

}  // namespace plumbline
