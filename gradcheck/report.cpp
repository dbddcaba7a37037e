// The report as JSON, as the cells of a table and as lines of text.
#include <cstdio>

#include "gradcheck/gradcheck.hpp"

namespace plumbline {
namespace {

std::string formatted(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

Json to_json(const GradcheckElement& element) {
  Json json{{"index", element.index},
            {"gradient", element.gradient},
            {"difference", element.difference},
            {"digits", element.digits}};
  if (!element.why.empty()) json["why"] = element.why;
  return json;
}

Json to_json(const GradcheckKink& kink) {
  Json json{{"what", kink.what}, {"row", {kink.b, kink.t}}};
  if (kink.direction >= 0) {
    json["direction"] = kink.direction;
  } else {
    json["index"] = kink.index;
  }
  return json;
}

Json to_json(const GradcheckInput& input) {
  Json json{{"name", input.name},
            {"shape", input.shape},
            {"pass", input.pass()},
            {"coordinates", input.coordinates},
            {"checked", input.checked},
            {"share", input.share()},
            {"not_finite", input.not_finite},
            {"at_resolution", input.at_resolution},
            {"directions", input.directions},
            {"step", input.step},
            {"digits", input.digits},
            {"wrong_elements", input.wrong_elements},
            {"wrong", Json::array()},
            {"kinks", input.kinks},
            {"first_kinks", Json::array()}};
  if (input.worst) json["worst"] = to_json(*input.worst);
  for (const GradcheckElement& wrong : input.wrong) json["wrong"].push_back(to_json(wrong));
  for (const GradcheckKink& kink : input.first_kinks) json["first_kinks"].push_back(to_json(kink));
  if (input.surrogate_distance) json["surrogate_distance"] = *input.surrogate_distance;
  if (!input.failure.empty()) json["failure"] = input.failure;
  return json;
}

std::string values(const GradcheckElement& element) {
  return "gradient " + element.gradient + ", difference " + element.difference + " (" +
         formatted("%.1f", element.digits) + " digits)";
}

std::string notes_of(const GradcheckInput& input) {
  const std::string name = "in." + input.name;
  std::string text;
  const auto line = [&](const std::string& what) { text += name + what + "\n"; };
  if (!input.failure.empty()) line(": " + input.failure);
  if (input.worst && input.wrong.empty()) {
    const bool direction = input.directions > 0 && input.worst->index.size() != input.shape.size();
    line((direction ? " worst direction: " : " worst " + to_string(input.worst->index) + ": ") +
         values(*input.worst));
  }
  for (const GradcheckElement& wrong : input.wrong) {
    line(to_string(wrong.index) + ": " + wrong.why + ": " + values(wrong));
  }
  const std::int64_t unnamed = input.wrong_elements - static_cast<std::int64_t>(input.wrong.size());
  if (unnamed > 0) line(": " + std::to_string(unnamed) + " more wrong elements");
  for (const GradcheckKink& kink : input.first_kinks) {
    const std::string where = kink.direction >= 0
                                  ? " along direction " + std::to_string(kink.direction)
                                  : to_string(kink.index);
    line(where + ": kink: " + kink.what + ", row (" + std::to_string(kink.b) + ", " +
         std::to_string(kink.t) + ")");
  }
  const std::int64_t more = input.kinks - static_cast<std::int64_t>(input.first_kinks.size());
  if (more > 0) line(": " + std::to_string(more) + " more kinks");
  if (input.at_resolution > 0) {
    line(": " + std::to_string(input.at_resolution) +
         " coordinates agree only as far as differences tell: the values hardly move");
  }
  if (input.surrogate_distance) {
    line(": the gradient belongs to the surrogate; it is " +
         formatted("%.3g", *input.surrogate_distance) +
         " of the largest away from the derivative of the value");
  }
  return text;
}

}  // namespace

Json to_json(const GradcheckReport& report) {
  Json json{{"op", report.op},
            {"pass", report.pass()},
            {"cotangents", report.cotangents},
            {"surrogate", report.surrogate},
            {"seed", report.seed},
            {"expected", {{"digits", gradcheck_digits}, {"share", gradcheck_share}}},
            {"unexpected", report.unexpected},
            {"inputs", Json::array()}};
  for (const GradcheckInput& input : report.inputs) json["inputs"].push_back(to_json(input));
  return json;
}

std::vector<std::vector<std::string>> table_of(const GradcheckReport& report) {
  std::vector<std::vector<std::string>> rows{
      {"input", "shape", "coordinates", "checked", "along", "step", "digits", "kinks", "verdict"}};
  for (const GradcheckInput& input : report.inputs) {
    rows.push_back(
        {"in." + input.name, to_string(input.shape), std::to_string(input.coordinates),
         formatted("%.4g %%", input.share()),
         input.directions > 0 ? std::to_string(input.directions) + " directions" : "each",
         "2^" + std::to_string(input.step), formatted("%.1f", input.digits),
         std::to_string(input.kinks), input.pass() ? "agrees" : "DISAGREES"});
  }
  return rows;
}

std::string notes_of(const GradcheckReport& report) {
  std::string text;
  for (const GradcheckInput& input : report.inputs) text += notes_of(input);
  for (const std::string& name : report.unexpected)
    text += "grad." + name + ": no differentiable input has that name\n";
  return text;
}

}  // namespace plumbline
