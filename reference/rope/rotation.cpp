#include "reference/rope/rotation.hpp"

#include <cmath>

#include "reference/error.hpp"
#include "reference/numeric/constants.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline {
namespace {

template <class Number> std::string text_of(const Number& value) {
  if constexpr (std::is_same_v<Number, double>)
    return decimal(value);
  else
    return std::to_string(value);
}

template <class Number>
Number positive(const std::optional<Number>& value, const std::string& where) {
  if (!value) throw Error(where, "nothing", "a number > 0");
  if (!(*value > 0)) throw Error(where, text_of(*value), "a number > 0");
  return *value;
}

std::int64_t rotated_channels(const RopeOptions& options, std::int64_t width,
                              const std::string& where) {
  if (!options.dim)
    throw Error(where + ".dim", "nothing", "an even number, the channels to rotate");
  const std::int64_t dim = *options.dim;
  if (dim < 2 || dim % 2 != 0)
    throw Error(where + ".dim", std::to_string(dim), "an even number >= 2");
  if (dim > width) {
    throw Error(where + ".dim", std::to_string(dim),
                "at most " + std::to_string(width) + ", the channels of a row");
  }
  return dim;
}

// Where a frequency begins and ceases to be slowed: in units of pairs, the pair that turns beta
// times over the training length, i(beta) = dim · ln(length / (2π beta)) / (2 ln theta), from
// length · theta^(−2i/dim) = 2π beta.
template <class Angle> struct Ramp {
  Angle low, high;

  Ramp(const Yarn& yarn, double theta, std::int64_t dim, const std::string& where) {
    using std::ceil;
    using std::floor;
    if (theta == 1)
      throw Error(where, "yarn beside theta = 1", "another theta: the ramp is divided by ln theta");
    const std::string inside = where + ".yarn";
    const auto length = static_cast<double>(
        positive(yarn.original_max_position, inside + ".original_max_position"));
    const auto pair = [&](double beta) {
      const Angle turns =
          constant<Angle>(length) / (Angle(2) * pi<Angle>() * constant<Angle>(beta));
      return Angle(Angle(dim) * natural_log(turns) /
                   (Angle(2) * natural_log(constant<Angle>(theta))));
    };
    low = pair(positive(yarn.beta_fast, inside + ".beta_fast"));
    high = pair(positive(yarn.beta_slow, inside + ".beta_slow"));
    if (yarn.truncate) {
      low = floor(low);
      high = ceil(high);
    }
    if (low < Angle(0)) low = Angle(0);
    if (high > Angle(dim - 1)) high = Angle(dim - 1);
    if (low == high) high += Angle(1) / Angle(1000);
  }
  // 1 where the frequency is kept, 0 where it is divided by the factor. high < low is possible and
  // meant: the ramp then runs backwards.
  Angle kept(std::size_t i) const {
    const Angle along = (Angle(static_cast<std::int64_t>(i)) - low) / (high - low);
    return Angle(1) - (along < Angle(0) ? Angle(0) : along > Angle(1) ? Angle(1) : along);
  }
};

template <class Angle>
std::vector<Angle> frequencies(const RopeOptions& options, const std::string& where) {
  const double theta = positive(options.theta, where + ".theta");
  const std::int64_t dim = *options.dim;
  const Angle log_theta = natural_log(constant<Angle>(theta));
  std::vector<Angle> list;
  for (std::int64_t i = 0; i < dim / 2; ++i) {
    list.push_back(exp(Angle(Angle(-2 * i) * log_theta / Angle(dim))));
  }
  if (!options.yarn) return list;
  const Angle factor = constant<Angle>(positive(options.yarn->factor, where + ".yarn.factor"));
  const Ramp<Angle> ramp(*options.yarn, theta, dim, where);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Angle kept = ramp.kept(i);
    list[i] = list[i] / factor * (Angle(1) - kept) + list[i] * kept;
  }
  return list;
}

}  // namespace

template <class T>
Rotation<T>::Rotation(const RopeOptions& options, std::int64_t width, const std::string& where)
    : dim_(static_cast<std::size_t>(rotated_channels(options, width, where))),
      start_(options.placement == Placement::leading ? 0 : static_cast<std::size_t>(width) - dim_),
      inverse_(options.inverse),
      factor_(constant<Angle>(options.attention_factor)),
      frequency_(frequencies<Angle>(options, where)) {
  const std::size_t half = dim_ / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const Pair apart{i, i + half}, together{2 * i, 2 * i + 1};
    const Pair natural = options.pairing == Pairing::half ? apart : together;
    const Pair named = options.output == RopeOutput::half ? apart : natural;
    source_.push_back(options.inverse ? named : natural);
    result_.push_back(options.inverse ? natural : named);
  }
}

template <class T> typename Rotation<T>::Turn Rotation<T>::at(std::int64_t position) const {
  Turn turn{Buffer<T>(frequency_.size()), Buffer<T>(frequency_.size())};
  const Angle steps = static_cast<Angle>(inverse_ ? -position : position);
  for (std::size_t i = 0; i < frequency_.size(); ++i) {
    const Angle angle = steps * frequency_[i];
    turn.cosine[i] = static_cast<T>(Angle(factor_ * cos(angle)));
    turn.sine[i] = static_cast<T>(Angle(factor_ * sin(angle)));
  }
  return turn;
}

template <class T> void Rotation<T>::apply(const Turn& turn, std::span<T> row) const {
  const std::span<T> part = row.subspan(start_, dim_);
  const Buffer<T> x(part.begin(), part.end());
  for (std::size_t i = 0; i < frequency_.size(); ++i) {
    const T &a = x[source_[i].first], &b = x[source_[i].second];
    part[result_[i].first] = round_at(Point::rope_out, T(a * turn.cosine[i] - b * turn.sine[i]));
    part[result_[i].second] = round_at(Point::rope_out, T(a * turn.sine[i] + b * turn.cosine[i]));
  }
}

template <class T> void Rotation<T>::pull_back(const Turn& turn, std::span<T> row) const {
  const std::span<T> part = row.subspan(start_, dim_);
  const Buffer<T> y(part.begin(), part.end());
  for (std::size_t i = 0; i < frequency_.size(); ++i) {
    const T &a = y[result_[i].first], &b = y[result_[i].second];
    part[source_[i].first] = a * turn.cosine[i] + b * turn.sine[i];
    part[source_[i].second] = b * turn.cosine[i] - a * turn.sine[i];
  }
}

#define INSTANTIATE(T) template class Rotation<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline
