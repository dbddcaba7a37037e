// reference/attention/lse.hpp
//
// What is reported as lse, and back: base, sink, empty rows. Inside the library a log-sum-exp is
// always natural.
#pragma once
#include "reference/attention/options.hpp"
#include "reference/numeric/primitives.hpp"

namespace plumbline::attention {

template <class T> class LseRule {
 public:
  LseRule(const LseOptions& options, bool has_sink)
      : empty_(options.empty),
        counts_sink_(options.includes_sink && has_sink),
        scaled_(options.base == LseBase::two),
        log_of_base_(scaled_ ? natural_log(T(2)) : T(1)) {}

  bool counts_sink() const { return counts_sink_; }
  T reported(const T& natural) const { return scaled_ ? T(natural / log_of_base_) : natural; }
  T natural(const T& reported) const { return scaled_ ? T(reported * log_of_base_) : reported; }
  // d lse / d (natural lse) times a cotangent.
  T pull_back(const T& cotangent) const { return reported(cotangent); }

  // lse of a row without keys; a value named by the option is not divided by ln(base).
  T empty(const T& sink) const {
    if (!empty_) return counts_sink_ ? reported(sink) : T(-infinity<T>());
    switch (*empty_) {
      case EmptyLse::minus_infinity: return -infinity<T>();
      case EmptyLse::plus_infinity: return infinity<T>();
      case EmptyLse::zero: return T(0);
    }
    return T(0);
  }
  // It is the sink's logit, and has a derivative.
  bool empty_is_sink(const T& sink) const {
    return !empty_ && counts_sink_ && !(sink == infinity<T>() || sink == -infinity<T>());
  }

 private:
  std::optional<EmptyLse> empty_;
  bool counts_sink_, scaled_;
  T log_of_base_;
};

}  // namespace plumbline::attention
