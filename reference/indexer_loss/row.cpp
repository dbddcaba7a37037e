#include "reference/indexer_loss/row.hpp"

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::indexer_loss {

template <class T> LossRow<T>::LossRow(const Tensors& tensors, const Options& options,
                                       const Run& run, const Visibility& visibility,
                                       std::span<const T> sink, std::int64_t b, std::int64_t t)
    : tensors_(tensors),
      options_(options),
      run_(run),
      visibility_(visibility),
      sink_(sink),
      b_(b),
      t_(t),
      block_(run.schedule.key_block == 0 && !run.schedule.barrier ? 64 : run.schedule.key_block),
      keys_(tensors, options, visibility, b, t),
      index_{&tensors.index_q, &tensors.index_k, &tensors.index_w, options.score_scale,
             options.relu} {}

template <class T> TeacherRow<T>& LossRow<T>::teacher() {
  if (!teacher_) {
    teacher_ =
        std::make_unique<TeacherRow<T>>(tensors_, options_, run_, visibility_, sink_, b_, t_);
    teacher_->find_log_mass(keys_);
  }
  return *teacher_;
}

template <class T> void LossRow<T>::read_scores(const KeySet::Block& block, std::span<T> z) const {
  if (tensors_.scores.given()) {
    for (std::size_t j = 0; j < z.size(); ++j)
      z[j] = fetch_one<T>(tensors_.scores, {b_, t_, block.places[j]});
  } else {
    ScoreRow<T>(index_, b_, t_, run_.schedule.head_chunk).scores(block.keys, z);
  }
}

template <class T>
void LossRow<T>::read_log_head_sum(const KeySet::Block& block, std::span<T> log_t) {
  const StoredTensor& given = tensors_.given_head_sum;
  if (!given.given()) {
    teacher().log_head_sum(block.keys, log_t);
    return;
  }
  for (std::size_t j = 0; j < log_t.size(); ++j) {
    const T value = fetch_one<T>(given, {b_, t_, block.places[j]});
    if (is_nan(value) || value < T(0)) {
      const std::int64_t place[] = {b_, t_, block.places[j]};
      throw Error(given.name + to_string(Index(place)), is_nan(value) ? "NaN" : "a negative number",
                  "a head sum >= 0");
    }
    log_t[j] = natural_log(value);
  }
}

template <class T>
void LossRow<T>::walk(bool with_teacher, const std::function<void(const Walk&)>& f) {
  const bool keep = run_.schedule.barrier;
  const bool log_t = has_head_sum() && (with_teacher || keep);
  if (kept_) {
    if (!all_.keys.empty()) f(Walk{all_, kept_z_, kept_log_t_});
    return;
  }
  Buffer<T> part_z, part_t;
  KeySet::Block block;
  for (std::int64_t cursor = 0; keys_.next(cursor, block_, block);) {
    const std::size_t n = block.keys.size(), from = keep ? all_.keys.size() : 0;
    Buffer<T>& z = keep ? kept_z_ : part_z;
    Buffer<T>& t = keep ? kept_log_t_ : part_t;
    z.resize(from + n);
    read_scores(block, std::span<T>(z).subspan(from));
    if (log_t) {
      t.resize(from + n);
      read_log_head_sum(block, std::span<T>(t).subspan(from));
    }
    if (keep) {
      all_.keys.insert(all_.keys.end(), block.keys.begin(), block.keys.end());
      all_.places.insert(all_.places.end(), block.places.begin(), block.places.end());
    } else {
      f(Walk{block, z, t});
    }
  }
  if (keep) {
    kept_ = true;
    walk(with_teacher, f);
  }
}

template <class T> void LossRow<T>::find_normalisers(bool with_slopes) {
  if (normalised_) return;
  normalised_ = true;
  bool any = false;
  walk(false, [&](const Walk& part) {
    any = true;
    student_.add_block(part.z);
  });
  skipped_ = !any;
  if (!any) return;
  log_of_student_ = share(Symbol::log_sum_exp, student_.log_of_sum());

  // Σ t g of a given target; else the mean of g under T, which l1 then scales.
  const bool given = tensors_.given_target.given(),
             head_sum_given = tensors_.given_head_sum.given();
  if (!has_head_sum() && !with_slopes) return;
  LogMean<T> slopes;
  T given_slope(0), given_total(0);
  walk(has_head_sum(), [&](const Walk& part) {
    if (has_head_sum()) total_.add_block(part.log_t);
    for (std::size_t j = 0; head_sum_given && j < part.z.size(); ++j) {
      given_total += fetch_one<T>(tensors_.given_head_sum, {b_, t_, part.block.places[j]});
    }
    for (std::size_t j = 0; with_slopes && j < part.z.size(); ++j) {
      const T g = guarded_log_slope(options_.student_log, student_.weight_again(part.z[j]),
                                    log_student(part.z[j]));
      if (given) {
        given_slope += target(part.block.places[j], T(0)).value * g;
      } else {
        slopes.add(part.log_t[j], g);
      }
    }
  });
  if (has_head_sum()) {
    const T log_total = total_.log();
    skipped_ =
        head_sum_given ? sum_vanishes(options_.l1, given_total) : vanishes(options_.l1, log_total);
    if (skipped_) return;
    log_of_total_ = total_.log_of_sum();
    log_ratio_ = log_of_share(options_.l1, log_total);
    log_ratio_ = share(Symbol::target_normaliser, log_ratio_);
    ratio_ = exp(log_ratio_);
  }
  slope_ = share(Symbol::sum_of_u, given ? given_slope : T(ratio_ * slopes.mean()));
}

template <class T>
typename LossRow<T>::Target LossRow<T>::target(std::int64_t place, const T& log_head_sum) const {
  if (tensors_.given_target.given()) {
    const T value = fetch_one<T>(tensors_.given_target, {b_, t_, place});
    if (is_nan(value) || value < T(0)) {
      const std::int64_t index[] = {b_, t_, place};
      throw Error(tensors_.given_target.name + to_string(Index(index)),
                  is_nan(value) ? "NaN" : "a negative number", "a target >= 0");
    }
    return {value, natural_log(value)};
  }
  return {round_at(Point::target, T(ratio_ * total_.weight_again(log_head_sum))),
          total_.log_weight(log_head_sum, log_of_total_) + log_ratio_};
}

template <class T> T LossRow<T>::loss(const TakeKey& take) {
  find_normalisers(false);
  T total(0);
  if (skipped_ && !take) return total;
  walk(true, [&](const Walk& part) {
    for (std::size_t j = 0; j < part.z.size(); ++j) {
      const std::int64_t place = part.block.places[j];
      const T log_head_sum = part.log_head_sum(j);
      if (skipped_) {
        take(place, exp(log_head_sum), T(0), T(0));
        continue;
      }
      const Target t = target(place, log_head_sum);
      const T p = student_.weight_again(part.z[j]);
      if (take) take(place, exp(log_head_sum), t.value, p);
      if (t.value == T(0)) continue;  // 0·ln 0 = 0
      const T log_p = guarded_log(options_.student_log, p, log_student(part.z[j]));
      total += t.value * (guarded_log(options_.target_log, t.value, t.log) - log_p);
    }
  });
  return total;
}

template <class T> T LossRow<T>::surrogate() {
  find_normalisers(false);
  if (skipped_) return T(0);
  T total = student_.log();
  walk(true, [&](const Walk& part) {
    for (std::size_t j = 0; j < part.z.size(); ++j) {
      total -= target(part.block.places[j], part.log_head_sum(j)).value * part.z[j];
    }
  });
  return total;
}

template <class T> void LossRow<T>::gradient(const T& cotangent, const Take& take) {
  const bool of_value = options_.gradient == Gradient::of_value;
  find_normalisers(of_value);
  if (skipped_) return;
  walk(true, [&](const Walk& part) {
    Buffer<T> dz(part.z.size());
    for (std::size_t j = 0; j < part.z.size(); ++j) {
      const T p = student_.weight_again(part.z[j]);
      const T t = target(part.block.places[j], part.log_head_sum(j)).value;
      const T slope =
          of_value ? guarded_log_slope(options_.student_log, p, log_student(part.z[j])) : T(1);
      dz[j] = leave(
          round_at(Point::dscores, T(cotangent * (p * (of_value ? slope_ : T(1)) - t * slope))));
    }
    take(part.block, dz);
  });
}

#define INSTANTIATE(T) template class LossRow<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::indexer_loss
