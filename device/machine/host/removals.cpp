#include "device/machine/host/removals.hpp"

namespace plumbline::device::host {
namespace {

std::string run_once(const Run& run, Options options, bool late,
                     std::vector<Site>* sites = nullptr) {
  options.late = late;
  Stream stream(options);
  const std::string wrong = run(stream);
  if (sites) *sites = stream.sites();
  return wrong;
}

}  // namespace

std::vector<Removal> leave_out_each(const Run& run, Options options, int passages) {
  std::vector<Site> sites;
  for (const bool late : {false, true}) {
    const std::string wrong = run_once(run, options, late, &sites);
    if (!wrong.empty()) throw std::runtime_error("with nothing left out: " + wrong);
  }
  std::vector<Removal> out;
  const auto leave_out = [&](const Site& site, int passage) {
    options.without = site;
    options.passage = passage;
    out.push_back({site, passage, run_once(run, options, false), run_once(run, options, true)});
  };
  for (const Site& site : sites) {
    if (passages == 0) leave_out(site, -1);
    for (int k = 0; k < std::min(passages, site.passages); ++k) leave_out(site, k);
  }
  return out;
}

std::string table(const std::vector<Removal>& removals) {
  std::string out;
  for (const Removal& removal : removals) {
    std::string line = removal.reported() ? "reported  " : "UNNOTICED ";
    line += text(removal.site.at) + " " + removal.site.kind;
    if (removal.passage >= 0) line += ", passage " + std::to_string(removal.passage);
    line.resize(std::max<std::size_t>(line.size() + 2, 48), ' ');
    out += line + (removal.late.empty() ? "late: nothing" : removal.late.substr(0, 100)) + "\n";
  }
  return out;
}

}  // namespace plumbline::device::host
