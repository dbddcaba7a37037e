#include "properties/csa_attention_case.hpp"

#include <algorithm>

namespace plumbline::properties {
namespace {

using Int = std::int64_t;
using support::chance;
using support::Contents;
using support::one_of;
using support::pick;
using support::Stream;

bool either(const std::optional<bool>& wish, int percent) { return wish ? *wish : chance(percent); }
std::size_t at(Int i) { return static_cast<std::size_t>(i); }

template <class F> bool any_real_row(const CsaCase& x, F f) {
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      if (x.is_real(b, t) && f(b, t)) return true;
    }
  }
  return false;
}

// Runs of tokens of one segment. On the physical grid an id may return; positions restart with every run, or increase
// over all tokens where there are no documents.
void draw_tokens(CsaCase& x) {
  Stream stream(x.seed, "tokens");
  x.documents = either(x.wish.documents, 60);
  x.grid_of_documents = x.documents && chance(30);
  x.B = x.grid_of_documents ? 1 : pick(1, 2);
  x.S = chance(10) ? pick(0, 3) : pick(4, 14);
  x.m = pick(1, 4);
  const bool restart = chance(60), returns = !x.grid_of_documents && !restart && chance(40);
  if (x.documents && chance(30)) x.padding = 5;
  Int next = 0;
  for (Int b = 0; b < x.B; ++b) {
    Int document = 0, left = 0, id = 0;
    for (Int s = 0; s < x.S; ++s) {
      if (!x.documents) {
        next = s == 0 ? stream.pick(0, 3) : next + stream.pick(1, restart || !x.wish.gaps ? 1 : 2);
        x.segment.push_back(0), x.position.push_back(next);
        continue;
      }
      if (left == 0) {
        left = stream.pick(1, 7);
        id = returns                                                       ? stream.pick(5, 7)
             : x.padding == 5 && stream.chance(25) && !x.grid_of_documents ? 5
                                                                           : 10 + document;
        if (x.grid_of_documents && x.padding == 5 && document == 1) id = 5;
        ++document, next = 0;
      }
      --left;
      x.segment.push_back(id);
      x.position.push_back(restart ? next++ : s);
    }
  }
  Integers ids(x.segment.begin(), x.segment.end()), places(x.position.begin(), x.position.end());
  if (x.documents) support::put_in(x.problem, "segment_ids", support::i32s({x.B, x.S}, ids));
  support::put_in(x.problem, "positions", support::i32s({x.B, x.S}, places));
  if (x.padding >= 0) x.problem.options["mask"]["padding_segment"] = x.padding;
  for (Int s = 0; s + x.m <= x.S; s += x.grid_of_documents ? 1 : x.m) {
    if (x.grid_of_documents) {  // s begins a block if a multiple of m tokens of its document stand before it
      Int begin = s;
      while (begin > 0 && x.segment[at(begin - 1)] == x.segment[at(s)]) --begin;
      if ((s - begin) % x.m != 0 || x.segment[at(s)] == x.padding ||
          x.segment[at(s + x.m - 1)] != x.segment[at(s)])
        continue;
    }
    x.first.push_back(s);
  }
  x.N = static_cast<Int>(x.first.size());
}

void draw_rows(CsaCase& x) {
  Stream stream(x.seed, "rows");
  x.T = x.wish.whole || x.S == 0 || chance(40) ? x.S : pick(1, x.S);
  x.token = support::range(x.S - x.T, x.S);
  if (!x.wish.whole && chance(35)) {
    x.token = stream.shuffled(x.S);
    x.token.resize(at(x.T));
    support::put_in(x.problem, "row_index",
                    support::i32s({x.T}, Integers(x.token.begin(), x.token.end())));
  }
  const bool masked = x.wish.unreal_rows && chance(40);
  Flags asked;
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      asked.push_back(masked && stream.chance(30) ? 0 : 1);
      const bool padding = x.padding >= 0 && x.segment_of(b, x.token[at(t)]) == x.padding;
      x.real.push_back(padding ? std::uint8_t{0} : asked.back());
    }
  }
  if (masked) support::put_in(x.problem, "row_mask", support::bools({x.B, x.T}, asked));
  x.W = chance(22) ? 0 : chance(20) ? x.S + pick(1, 20) : pick(1, 6);
  x.problem.options["window"] = x.W;
  x.problem.options["m"] = x.m;
  if (x.grid_of_documents) x.problem.options["grid"] = "document";
}

void draw_visibility(CsaCase& x) {
  Stream stream(x.seed, "cells");
  x.causal = x.wish.causal_only || !chance(20);
  if (!x.causal) x.problem.options["mask"]["causal"] = false;
  const bool cells = chance(25), plane = chance(15);
  Flags shown;
  Numbers floats;
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      const Int r = x.token[at(t)];
      for (const Int first : x.first) {
        shown.push_back(!cells || !stream.chance(20) ? 1 : 0);
        floats.push_back(!plane || !stream.chance(20) ? 0 : stream.chance(50) ? -1e30 : -INFINITY);
        bool sees = shown.back() != 0 && floats.back() == 0;
        for (Int s = first; s < first + x.m; ++s) {
          if (x.documents && x.segment_of(b, s) != x.segment_of(b, r)) sees = false;
          if (x.padding >= 0 && x.segment_of(b, s) == x.padding) sees = false;
        }
        if (x.causal && x.position_of(b, first) + x.m > x.position_of(b, r) + 1) sees = false;
        x.visible.push_back(sees ? 1 : 0);
      }
    }
  }
  if (cells) support::put_in(x.problem, "valid", support::bools({x.B, x.T, x.N}, shown));
  if (plane) support::put_in(x.problem, "mask", support::f64s({x.B, x.T, x.N}, floats));
}

void draw_selection(CsaCase& x) {
  Stream stream(x.seed, "selection");
  x.selects = x.wish.by_index.has_value() || x.wish.duplicates.value_or(false) ||
              either(x.wish.selects, 80);
  x.by_index = x.selects && (x.wish.duplicates.value_or(false) || either(x.wish.by_index, 75));
  const bool twice = x.by_index && either(x.wish.duplicates, 30);
  if (twice) x.duplicates = one_of<std::string>({"set", "multiset"});
  x.k = x.by_index ? pick(0, 5) : 0;
  Flags chosen(x.visible.size(), 0);
  x.times.assign(x.visible.size(), 0);
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      const std::vector<Int> order = stream.shuffled(x.N);
      std::size_t next = 0;
      for (Int slot = 0; slot < x.k; ++slot) {
        std::int32_t key = -1;
        if (next < order.size() && !stream.chance(30)) {
          const bool again = twice && next > 0 && stream.chance(50);
          key = static_cast<std::int32_t>(again ? order[next - 1] : order[next++]);
        }
        x.index.push_back(key);
        if (key >= 0) ++x.times[x.cell(b, t, key)];
      }
      for (Int j = 0; j < x.N && !x.by_index; ++j) {
        chosen[x.cell(b, t, j)] = x.selects && !stream.chance(50) ? 0 : 1;
        x.times[x.cell(b, t, j)] = chosen[x.cell(b, t, j)];
      }
    }
  }
  for (std::size_t i = 0; i < x.times.size(); ++i) {
    const bool counts = x.visible[i] != 0 && x.real[i / at(x.N)] != 0;
    x.times[i] = !counts ? 0 : x.duplicates == "multiset" ? x.times[i] : std::min(x.times[i], 1);
  }
  if (twice) x.problem.options["duplicates"] = x.duplicates;
  if (x.by_index) support::put_in(x.problem, "indices", support::i32s({x.B, x.T, x.k}, x.index));
  if (x.selects && !x.by_index)
    support::put_in(x.problem, "selected", support::bools({x.B, x.T, x.N}, chosen));
}

void draw_tensors(CsaCase& x) {
  Json& options = x.problem.options;
  x.H = pick(1, 4), x.D = pick(1, 5);
  if (chance(50)) options["softmax_scale"] = one_of<double>({0.5, 0.4472135954999579});
  if (chance(40)) x.base_two = true, options["lse_base"] = 2;
  const bool include = chance(50);
  if (include) options["lse_includes_sink"] = true;
  if (either(x.wish.sink, 65)) {
    Stream stream(x.seed, "sink");
    x.sink = stream.reals(x.H, Contents::dyadic);
    for (double& s : x.sink) {
      if (x.wish.infinite_sinks && stream.chance(15)) s = stream.chance(50) ? INFINITY : -INFINITY;
    }
    support::put_in(x.problem, "sink", support::f64s({x.H}, x.sink));
  }
  x.counts_sink = include && !x.sink.empty();
  const Contents contents =
      one_of<Contents>({Contents::dyadic, Contents::bits, Contents::integers});
  const auto values = [&](const std::string& name, const Shape& shape) {
    Stream stream(x.seed, name);
    const bool brief = stream.chance(40);
    const Numbers numbers = stream.reals(count_of(shape), contents);
    return brief ? support::bf16s(shape, numbers) : support::f64s(shape, numbers);
  };
  support::put_in(x.problem, "query", values("query", {x.B, x.T, x.H, x.D}));
  support::put_in(x.problem, "kv", values("kv", {x.B, x.S, x.D}));
  support::put_in(x.problem, "compressed", values("compressed", {x.B, x.N, x.D}));
  const Int which = pick(0, 5);  // mostly both cotangents
  if (which != 0) support::put_cot(x.problem, "output", values("cot.output", {x.B, x.T, x.H, x.D}));
  if (which != 1) support::put_cot(x.problem, "lse", values("cot.lse", {x.B, x.T, x.H}));
}

}  // namespace

bool CsaCase::in_window(Int b, Int t, Int s) const {
  const Int r = token[at(t)];
  if (!is_real(b, t) || s > r || s <= r - W) return false;
  if (padding >= 0 && segment_of(b, s) == padding) return false;
  return !documents || segment_of(b, s) == segment_of(b, r);
}
Int CsaCase::tokens_of(Int b, Int t) const {
  Int n = 0;
  for (Int s = 0; s < S; ++s) n += in_window(b, t, s) ? 1 : 0;
  return n;
}
Int CsaCase::blocks_of(Int b, Int t) const {
  Int n = 0;
  for (Int j = 0; j < N; ++j) n += times[cell(b, t, j)];
  return n;
}
bool CsaCase::token_read(Int b, Int s) const {
  for (Int t = 0; t < T; ++t) {
    if (in_window(b, t, s)) return true;
  }
  return false;
}
bool CsaCase::block_read(Int b, Int j) const {
  for (Int t = 0; t < T; ++t) {
    if (times[cell(b, t, j)] > 0) return true;
  }
  return false;
}
bool CsaCase::empty_row() const {
  return any_real_row(*this, [&](Int b, Int t) { return tokens_of(b, t) + blocks_of(b, t) == 0; });
}
bool CsaCase::unreal_row() const {
  return std::find(real.begin(), real.end(), std::uint8_t{0}) != real.end();
}
bool CsaCase::straddling() const {
  for (Int b = 0; b < B; ++b) {
    for (const Int start : first) {
      if (segment_of(b, start) != segment_of(b, start + m - 1)) return true;
    }
  }
  return false;
}
bool CsaCase::gap() const {
  return any_real_row(*this, [&](Int b, Int t) {
    bool empty = false;
    for (Int slot = 0; slot < k; ++slot) {
      const bool used = index[at((b * T + t) * k + slot)] >= 0;
      if (used && empty) return true;
      empty = empty || !used;
    }
    return false;
  });
}
bool CsaCase::fewer_than_seen() const {
  return any_real_row(*this, [&](Int b, Int t) {
    Int seen = 0, has = 0;
    for (Int j = 0; j < N; ++j) seen += visible[cell(b, t, j)], has += times[cell(b, t, j)] > 0;
    return has > 0 && has < seen;
  });
}
bool CsaCase::cut_window() const {
  return any_real_row(*this, [&](Int b, Int t) {
    const Int r = token[at(t)];
    for (Int s = std::max<Int>(0, r - W + 1); s <= r; ++s) {
      if (segment_of(b, s) != segment_of(b, r)) return true;
    }
    return false;
  });
}

CsaCase draw_csa_case(const CsaWish& wish) {
  CsaCase x;
  x.wish = wish;
  x.seed = static_cast<std::uint64_t>(pick(0, 1 << 20));
  x.problem.options = Json::object();
  x.problem.outputs = {"all"};
  draw_tokens(x);
  draw_rows(x);
  draw_visibility(x);
  draw_selection(x);
  draw_tensors(x);
  RC_LOG() << "B " << x.B << " T " << x.T << " S " << x.S << " N " << x.N << " H " << x.H << " D "
           << x.D << (x.documents ? " documents" : "") << (x.by_index ? " indices" : "") << " seed "
           << x.seed << " options " << x.problem.options.dump() << std::endl;
  return x;
}

Json draw_csa_schedule(const CsaCase& x) {
  Json schedule = Json::object();
  if (chance(70)) schedule["head_chunk"] = pick(1, x.H + 1);
  if (chance(70)) schedule["key_block"] = pick(1, 4);
  return schedule;
}

bool ragged(const CsaCase& x, const Json& schedule) {
  const Int chunk = schedule.value("head_chunk", Int{0}),
            block = schedule.value("key_block", Int{0});
  if (chunk > 1 && chunk < x.H && x.H % chunk != 0) return true;
  return any_real_row(x, [&](Int b, Int t) {
    const Int keys = x.tokens_of(b, t) + x.blocks_of(b, t);
    return block > 1 && keys > block && keys % block != 0;
  });
}

Problem poisoned(const CsaCase& x, double poison) {
  Problem dirty = x.problem;
  Stream stream(x.seed, "rubbish");
  // hidden(b, n) over the rows [B, n] of a tensor: nothing may read it.
  const auto dirt = [&](Tensors& tensors, const std::string& prefix, const std::string& name,
                        auto hidden) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return;
    const StoredTensor tensor = found->second;
    Numbers values = support::numbers_of(tensor);
    const Int rows = tensor.shape[0] * tensor.shape[1],
              width = rows == 0 ? 0 : static_cast<Int>(values.size()) / rows;
    for (Int row = 0; row < rows; ++row) {
      if (!hidden(row / tensor.shape[1], row % tensor.shape[1])) continue;
      for (Int i = 0; i < width; ++i) values[at(row * width + i)] = poison;
    }
    support::put(tensors, prefix, name, support::f64s(tensor.shape, values));
  };
  const auto unread_row = [&](Int b, Int t) { return !x.is_real(b, t); };
  dirt(dirty.in, "in.", "kv", [&](Int b, Int s) { return !x.token_read(b, s); });
  dirt(dirty.in, "in.", "compressed", [&](Int b, Int j) { return !x.block_read(b, j); });
  dirt(dirty.in, "in.", "query", unread_row);
  dirt(dirty.cot, "cot.", "output", unread_row);
  dirt(dirty.cot, "cot.", "lse", unread_row);
  dirt(dirty.in, "in.", "mask", unread_row);
  if (x.by_index) {
    Integers index = x.index;
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (x.real[i / at(x.k)] == 0) index[i] = static_cast<std::int32_t>(stream.pick(-9, 99));
    }
    support::put_in(dirty, "indices", support::i32s({x.B, x.T, x.k}, index));
  } else if (x.selects) {
    Flags selected = support::flags_of(dirty.in.find("selected")->second);
    for (std::size_t i = 0; i < selected.size(); ++i) {
      if (x.visible[i] == 0 || x.real[i / at(x.N)] == 0) selected[i] ^= 1;
    }
    support::put_in(dirty, "selected", support::bools({x.B, x.T, x.N}, selected));
  }
  return dirty;
}

void count(support::Distribution& d, const CsaCase& x) {
  const CsaWish& wish = x.wish;
  d.needs("empty rows", x.empty_row());
  d.needs("a window longer than the sequence", x.S > 0 && x.W > x.S);
  if (wish.documents.value_or(true)) {
    d.needs("straddling blocks", x.straddling());
    d.needs("a document boundary inside a window", x.cut_window());
  }
  if (wish.selects.value_or(true) && wish.by_index.value_or(true))
    d.needs("-1 before a used slot", x.gap());
  if (wish.selects.value_or(true)) d.needs("fewer blocks than seen", x.fewer_than_seen());
  d.notes("rows not real", x.unreal_row());
  d.notes("sink", !x.sink.empty());
  d.notes("document grid", x.grid_of_documents);
  d.notes("no row", x.T == 0);
}

}  // namespace plumbline::properties
