#include "bindings/c/boundary.hpp"
#include "verdict/check_report.hpp"

using namespace plumbline;
using namespace plumbline::bindings;

struct plumbline_report {
  CheckReport report;
};

namespace {

template <class F> plumbline_status text(const plumbline_report* report, char** to, F f) noexcept {
  return guarded([&] {
    at(to, "text") = nullptr;
    *to = copy_of(f(at(report, "report").report));
  });
}

static_assert(static_cast<int>(Verdict::pass) == PLUMBLINE_PASS &&
              static_cast<int>(Verdict::suspect) == PLUMBLINE_SUSPECT &&
              static_cast<int>(Verdict::unprovable) == PLUMBLINE_UNPROVABLE &&
              static_cast<int>(Verdict::fail) == PLUMBLINE_FAIL);

}  // namespace

extern "C" {

plumbline_status plumbline_check(const plumbline_request* request,
                                 const plumbline_check_settings* settings,
                                 plumbline_report** report) {
  return guarded([&] {
    at(report, "report") = nullptr;
    CheckSettings how;
    if (settings != nullptr) {
      const plumbline_check_settings asked = read(settings, "settings");
      constexpr std::int32_t most = 1'000'000;
      if (asked.worst < 0 || asked.worst > most)
        throw Error("settings.worst", std::to_string(asked.worst), "0 to " + std::to_string(most));
      how.worst = static_cast<std::size_t>(asked.worst);
      how.hints = asked.no_hints == 0;
    }
    *report = new plumbline_report{check(call_of(request), how)};
  });
}

plumbline_verdict plumbline_report_verdict(const plumbline_report* report) {
  return report == nullptr ? PLUMBLINE_UNPROVABLE
                           : static_cast<plumbline_verdict>(report->report.verdict);
}

plumbline_status plumbline_report_json(const plumbline_report* report, char** json) {
  return text(report, json, [](const CheckReport& r) { return text_of(to_json(r)); });
}

plumbline_status plumbline_report_html(const plumbline_report* report, char** html) {
  return text(report, html, [](const CheckReport& r) { return html_of(r); });
}

plumbline_status plumbline_report_svg(const plumbline_report* report, char** svg) {
  return text(report, svg, [](const CheckReport& r) { return svg_of(r); });
}

plumbline_status plumbline_report_junit(const plumbline_report* report, int32_t strict,
                                        char** xml) {
  return text(report, xml, [&](const CheckReport& r) { return junit_of(r, strict != 0); });
}

void plumbline_report_free(plumbline_report* report) { delete report; }

}  // extern "C"
