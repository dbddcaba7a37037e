// properties/attention_check.hpp
//
// Evaluations of an AttentionCase with types, and its classes.
#pragma once
#include "properties/agreement_check.hpp"
#include "properties/attention_case.hpp"

namespace plumbline::properties {

template <class T> Typed<T> attend(const Problem& problem, bool backward = true) {
  Evaluation how;
  how.backward = backward;
  return support::evaluate<mla_attention::Op, T>(problem, how);
}
inline Result attend_f64(const Problem& problem, int threads = 1) {
  Evaluation how;
  how.precision = Precision::f64;
  how.backward = true;
  how.threads = threads;
  return operation("mla_attention").evaluate(problem, how);
}

inline void count(Distribution& d, const AttentionCase& x) {
  d.needs("empty rows", x.empty_row());
  d.needs("fewer keys than seen", x.fewer_than_seen());
  d.notes("rows not real", x.unreal_row());
  d.notes("sink", !x.sink.empty());
  d.notes("no row", x.T == 0);
}

}  // namespace plumbline::properties
