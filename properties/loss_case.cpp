#include "properties/loss_case.hpp"

#include <algorithm>

namespace plumbline::properties {

std::int64_t LossCase::count(const Flags& cells, std::int64_t b, std::int64_t t) const {
  std::int64_t n = 0;
  for (std::int64_t key = 0; key < K; ++key) n += cells[cell(b, t, key)];
  return n;
}
std::int64_t LossCase::key_at(std::int64_t b, std::int64_t t, std::int64_t place) const {
  if (!slots) return trains(b, t, place) ? place : -1;
  const std::int64_t key = index[static_cast<std::size_t>((b * T + t) * k + place)];
  return key >= 0 && trains(b, t, key) ? key : -1;
}
bool LossCase::in_window(std::int64_t b, std::int64_t t, std::int64_t s) const {
  const std::int64_t r = token[static_cast<std::size_t>(t)];
  const auto& ids = segment[static_cast<std::size_t>(b)];
  const std::int64_t id = ids[static_cast<std::size_t>(s)];
  return s > r - window && s <= r && id != padding &&
         (!documents || id == ids[static_cast<std::size_t>(r)]);
}

namespace {

template <class F> bool any_row(const LossCase& loss, F f) {
  for (std::int64_t b = 0; b < loss.B; ++b) {
    for (std::int64_t t = 0; t < loss.T; ++t) {
      if (f(b, t)) return true;
    }
  }
  return false;
}

}  // namespace

bool LossCase::empty_row() const {
  return any_row(*this, [&](std::int64_t b, std::int64_t t) {
    return is_real(b, t) && count(trained, b, t) == 0;
  });
}
bool LossCase::straddles() const {
  for (const auto& ids : segment) {
    for (const std::int64_t start : first) {
      for (std::int64_t s = start + 1; blocks && s < start + m; ++s) {
        if (ids[static_cast<std::size_t>(s)] != ids[static_cast<std::size_t>(start)]) return true;
      }
    }
  }
  return false;
}
bool LossCase::fewer_than_seen() const {
  return any_row(*this, [&](std::int64_t b, std::int64_t t) {
    return is_real(b, t) && count(trained, b, t) > 0 && count(trained, b, t) < count(visible, b, t);
  });
}
bool LossCase::gap() const {
  return any_row(*this, [&](std::int64_t b, std::int64_t t) {
    bool empty = false;
    for (std::int64_t slot = 0; by_index && slot < k; ++slot) {
      const bool used = index[static_cast<std::size_t>((b * T + t) * k + slot)] >= 0;
      if (used && empty) return true;
      empty = empty || !used;
    }
    return false;
  });
}
bool LossCase::unreal_row() const {
  return std::find(real.begin(), real.end(), std::uint8_t{0}) != real.end();
}

Json draw_schedule(const LossCase& loss) {
  Json schedule = {{"barrier", support::chance(50)}};
  if (support::chance(70)) schedule["head_chunk"] = support::pick(1, loss.H + 1);
  if (support::chance(70)) schedule["key_block"] = support::pick(1, 4);
  return schedule;
}

bool ragged(const LossCase& loss, const Json& schedule) {
  const std::int64_t chunk = schedule.value("head_chunk", std::int64_t{0});
  const std::int64_t block = schedule.value("key_block", std::int64_t{0});
  if (chunk > 1 && chunk < loss.H && loss.H % chunk != 0) return true;
  return any_row(loss, [&](std::int64_t b, std::int64_t t) {
    const std::int64_t n = loss.count(loss.trained, b, t);
    return block > 1 && n > block && n % block != 0;
  });
}

namespace {

// Element by element: f(b, t, rest of the row) says whether the place is hidden.
template <class F> void poison_rows(Problem& problem, const std::string& name,
                                    std::int64_t rows_in_b, double poison, bool cotangent,
                                    F hidden) {
  Tensors& tensors = cotangent ? problem.cot : problem.in;
  const auto found = tensors.find(name);
  if (found == tensors.end()) return;
  const StoredTensor tensor = found->second;
  Numbers values = support::numbers_of(tensor);
  const std::int64_t rows = tensor.shape[0] * rows_in_b;
  const std::int64_t width = rows == 0 ? 0 : static_cast<std::int64_t>(values.size()) / rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < width; ++i) {
      if (hidden(row / rows_in_b, row % rows_in_b, i))
        values[static_cast<std::size_t>(row * width + i)] = poison;
    }
  }
  support::put(tensors, cotangent ? "cot." : "in.", name, support::f64s(tensor.shape, values));
}

}  // namespace

Problem poisoned(const LossCase& loss, double poison) {
  using Int = std::int64_t;
  Problem problem = loss.problem;
  support::Stream stream(loss.seed, "poison");
  const auto unread = [&](const Flags& cells) {
    return [&](Int b, Int key, Int) {
      for (Int t = 0; t < loss.T; ++t) {
        if (loss.is_real(b, t) && cells[loss.cell(b, t, key)] != 0) return false;
      }
      return true;
    };
  };
  const auto unreal = [&](Int b, Int t, Int) { return !loss.is_real(b, t); };
  poison_rows(problem, "scores", loss.T, poison, false,
              [&](Int b, Int t, Int place) { return loss.key_at(b, t, place) < 0; });
  for (const char* name : {"query", "index_q", "index_w"})
    poison_rows(problem, name, loss.T, poison, false, unreal);
  poison_rows(problem, "row_loss", loss.T, poison, true, unreal);
  poison_rows(problem, "mask", loss.T, std::nan(""), false, unreal);
  poison_rows(problem, loss.key_name(), loss.K, poison, false,
              unread(loss.after ? loss.visible : loss.trained));
  poison_rows(problem, "index_k", loss.K, poison, false, unread(loss.trained));
  poison_rows(problem, "kv", loss.S, poison, false, [&](Int b, Int s, Int) {
    for (Int t = 0; t < loss.T; ++t) {
      if (loss.joint && loss.is_real(b, t) && loss.in_window(b, t, s)) return false;
    }
    return true;
  });
  if (!loss.sink_counts && problem.in.contains("sink")) {
    support::put_in(problem, "sink",
                    support::f64s({loss.H}, Numbers(static_cast<std::size_t>(loss.H), poison)));
  }
  const auto flip = [&](const char* name, auto hidden) {
    if (!problem.in.contains(name)) return;
    Flags flags = support::flags_of(problem.in.find(name)->second);
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (hidden(i)) flags[i] = stream.chance(50) ? 1 : 0;
    }
    support::put_in(problem, name, support::bools({loss.B, loss.T, loss.K}, flags));
  };
  const auto row_unreal = [&](std::size_t i) {
    return loss.real[i / static_cast<std::size_t>(loss.K)] == 0;
  };
  flip("selected", [&](std::size_t i) { return row_unreal(i) || loss.visible[i] == 0; });
  flip("valid", [&](std::size_t i) { return row_unreal(i) || loss.structure[i] == 0; });
  if (loss.by_index) {
    Integers index = loss.index;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const bool hidden = loss.real[i / static_cast<std::size_t>(loss.k)] == 0;
      if (hidden)
        index[i] = static_cast<std::int32_t>(stream.pick(0, 3) == 0 ? 1000000 : stream.pick(-7, 1));
    }
    support::put_in(problem, "indices", support::i32s({loss.B, loss.T, loss.k}, index));
  }
  return problem;
}

std::string describe(const LossCase& loss) {
  std::string text = loss.op() + " options " + loss.problem.options.dump() + "; tensors";
  const auto list = [&](const char* prefix, const Tensors& tensors) {
    for (const auto& [name, tensor] : tensors)
      text += " " + (prefix + name) + " " + to_string(tensor.shape);
  };
  list("in.", loss.problem.in), list("given.", loss.problem.given), list("cot.", loss.problem.cot);
  return text + "; contents " + std::to_string(loss.seed);
}

}  // namespace plumbline::properties
