// The page of a check: verdicts first, then causes, then tensor by tensor.
#include <cstdio>

#include "verdict/check_report.hpp"
#include "verdict/compare.hpp"

namespace plumbline {
namespace {

constexpr const char* style = R"css(
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #1c1c1c; background: #fff }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem; display: block; overflow-x: auto }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #ddd; white-space: nowrap }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
code { font: .85rem ui-monospace, monospace; overflow-wrap: anywhere }
.verdict { font-weight: 700; padding: .05rem .45rem; border-radius: .3rem; color: #fff }
.PASS { background: #2e7d4f } .SUSPECT { background: #a86a00 } .UNPROVABLE { background: #5b5f97 } .FAIL { background: #b3202a }
td:last-child { white-space: normal; min-width: 9rem }
figure { margin: .5rem 0; overflow-x: auto } .quiet { color: #555 }
)css";

std::string cell(const std::string& text, bool is_number = false) {
  return std::string(is_number ? "<td class=\"number\">" : "<td>") + text + "</td>";
}
std::string code(const std::string& text) { return "<code>" + escaped_xml(text) + "</code>"; }
std::string badge(Verdict verdict) {
  const std::string name(name_of(verdict));
  return "<span class=\"verdict " + name + "\">" + name + "</span>";
}
std::string list(const std::vector<std::string>& lines) {
  std::string text = "<ul>\n";
  for (const std::string& line : lines) text += "<li>" + escaped_xml(line) + "</li>\n";
  return text + "</ul>\n";
}

std::string overview(const CheckReport& report) {
  std::string text =
      "<table>\n<thead><tr><th>tensor</th><th>shape</th><th>dtype</th><th>verdict</th>"
      "<th class=\"number\">margin</th><th class=\"number\">margin, tier 2</th>"
      "<th class=\"number\">elements beyond</th></tr></thead>\n<tbody>\n";
  for (const TensorVerdict& tensor : report.tensors) {
    const std::int64_t beyond = tensor.counts[1] + tensor.counts[2] + tensor.counts[3];
    text += "<tr>" +
            cell("<a href=\"#" + escaped_xml(tensor.name) + "\">" + code(tensor.name) + "</a>") +
            cell(to_string(tensor.shape)) + cell(std::string(name_of(tensor.dtype))) +
            cell(badge(tensor.verdict)) + cell(short_number(tensor.margin), true) +
            cell(short_number(tensor.margin2), true) +
            cell(std::to_string(beyond) + " of " + std::to_string(tensor.count), true) + "</tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

std::string worst_of(const TensorVerdict& tensor) {
  const bool real = tensor.kind == Kind::real;
  Shape shape = tensor.shape;
  if (tensor.selection && !shape.empty()) shape.pop_back();
  std::string text =
      "<table>\n<thead><tr><th>index</th><th>verdict</th><th class=\"number\">margin</th>";
  text += real ? "<th>expected</th><th>actual</th><th class=\"number\">ulp</th><th>larger part of "
                 "the bound</th>"
          : tensor.selection ? ""
                             : "<th>expected</th><th>actual</th>";
  text += "<th></th></tr></thead>\n<tbody>\n";
  for (const JudgedElement& e : tensor.worst) {
    text += "<tr>" + cell(code(to_string(index_of(shape, e.position)))) + cell(badge(e.verdict)) +
            cell(short_number(e.margin), true);
    if (real) {
      text += cell(code(decimal(e.wanted)) + "<br>" + code(hexadecimal(e.wanted))) +
              cell(code(decimal(e.actual)) + "<br>" + code(hexadecimal(e.actual))) +
              cell(e.ulp > 0 ? short_number(e.off / e.ulp) : "", true) +
              cell(e.dominating);
    } else if (!tensor.selection) {
      text += cell(std::to_string(e.wanted_integer)) + cell(std::to_string(e.actual_integer));
    }
    text += cell(escaped_xml(e.why)) + "</tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

std::string section(const TensorVerdict& tensor) {
  char head[192];
  std::snprintf(head, sizeof head,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n",
                picture_width, picture_height(tensor));
  std::string text = "<section id=\"" + escaped_xml(tensor.name) + "\">\n<h2>" + code(tensor.name) +
                     " " + badge(tensor.verdict) + "</h2>\n";
  if (!tensor.basis.empty())
    text += "<p class=\"quiet\">Judged given " + escaped_xml(tensor.basis) + ".</p>\n";
  if (!tensor.reason.empty()) text += "<p>" + escaped_xml(tensor.reason) + "</p>\n";
  if (!tensor.margins.empty())
    text += "<figure>" + std::string(head) + picture_of(tensor, 0, 0) + "</svg></figure>\n";
  if (!tensor.worst.empty()) text += worst_of(tensor);
  return text + "</section>\n";
}

}  // namespace

std::string html_of(const CheckReport& report) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escaped_xml(report.op + " under " + report.contract) + "</title>\n<style>" + style +
      "</style>\n</head>\n<body>\n<h1>" + escaped_xml(report.op) + " under " +
      escaped_xml(report.contract) + " " + badge(report.verdict) + "</h1>\n<p class=\"quiet\">" +
      code(report.actual) + " against " + code(report.golden) + "</p>\n";
  text += overview(report);
  if (!report.hints.empty()) text += "<h2>Likely causes</h2>\n" + list(report.hints);
  const auto named = [&](const char* title, const std::vector<std::string>& names) {
    if (!names.empty()) text += "<h2>" + std::string(title) + "</h2>\n" + list(names);
  };
  named("Not in the actual file", report.not_in_actual);
  named("No outputs of the operation", report.not_an_output);
  named("Inputs that differ between the files", report.inputs_differ);
  for (const TensorVerdict& tensor : report.tensors) text += section(tensor);
  text += "<h2>Again</h2>\n<p>" + code(report.repro) +
          "</p>\n<p class=\"quiet\">Options: " + code(report.options.dump()) +
          "</p>\n</body>\n</html>\n";
  return text;
}

}  // namespace plumbline
