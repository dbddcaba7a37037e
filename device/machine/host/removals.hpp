// device/machine/host/removals.hpp
//
// Is every synchronisation of a kernel needed, and would its loss be noticed? Each site is left
// out in turn, in the early and in the late schedule. A site whose loss goes unreported is either
// superfluous (then the line goes) or guards against something the machine cannot see.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "device/machine/host/launch.hpp"

namespace plumbline::device::host {

struct Removal {
  Site site;
  int passage = -1;         // -1: left out at every passage
  std::string early, late;  // what was reported; empty: nothing
  bool reported() const { return !early.empty() && !late.empty(); }
};

// Registers buffers, launches, and returns what is wrong: stream.finish(), or a complaint of its
// own about the values.
using Run = std::function<std::string(Stream&)>;

// passages: how many of each site's passages are left out one at a time; 0: all of them at once.
// Throws if the kernel has something to confess with nothing left out.
std::vector<Removal> leave_out_each(const Run& run, Options options = {}, int passages = 0);

// One line per removal: site, verdict, the first words of the report.
std::string table(const std::vector<Removal>& removals);

}  // namespace plumbline::device::host
