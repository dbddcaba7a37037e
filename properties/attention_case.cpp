#include "properties/attention_case.hpp"

#include <algorithm>

namespace plumbline::properties {
namespace {

using Int = std::int64_t;
using support::chance;
using support::one_of;
using support::pick;
using support::Stream;

bool either(const std::optional<bool>& wish, int percent) { return wish ? *wish : chance(percent); }
std::size_t at(Int i) { return static_cast<std::size_t>(i); }

template <class F> bool any_row(const AttentionCase& x, F f) {
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      if (f(b, t)) return true;
    }
  }
  return false;
}

void draw_sizes(AttentionCase& x) {
  std::vector<Int> sizes;  // pairwise different
  const auto size = [&](Int low, Int high) {
    Int value = pick(low, high);
    while (std::find(sizes.begin(), sizes.end(), value) != sizes.end()) ++value;
    sizes.push_back(value);
    return value;
  };
  x.B = pick(1, 2);
  sizes.push_back(x.B);
  x.H = size(1, 4);
  x.rank = size(1, 4);
  x.dn = size(1, 3);
  x.dr = size(1, 3);
  x.Dv = size(1, 4);
  x.D = x.latent ? x.dn + x.dr : x.has_value ? size(1, 5) : x.Dv + pick(0, 2);
  std::vector<Int> divisors;
  for (Int n = 1; n <= x.H; ++n) {
    if (x.H % n == 0) divisors.push_back(n);
  }
  x.Hk = one_of(divisors);
  x.S = pick(0, 9);
  x.T = x.S > 0 && chance(60) ? pick(1, x.S) : x.S;
}

void draw_rows(AttentionCase& x) {
  Stream stream(x.seed, "rows");
  x.token = support::range(x.S - x.T, x.S);
  if (chance(40)) {
    x.token = stream.shuffled(x.S);
    x.token.resize(at(x.T));
    Integers list;
    for (const Int r : x.token) list.push_back(static_cast<std::int32_t>(r));
    support::put_in(x.problem, "row_index", support::i32s({x.T}, list));
  }
  x.segment.assign(at(x.B * x.S), 0);
  x.documents = chance(40);
  if (!x.documents) return;
  Integers ids;
  for (Int& id : x.segment) ids.push_back(static_cast<std::int32_t>(id = stream.pick(2, 3)));
  support::put_in(x.problem, "segment_ids", support::i32s({x.B, x.S}, ids));
}

void draw_visibility(AttentionCase& x, const AttentionWish& wish) {
  Stream stream(x.seed, "cells");
  x.causal = !chance(30);
  if (!x.causal) x.problem.options["mask"] = {{"causal", false}};
  const bool cells = chance(30), rows = wish.unreal_rows && chance(40);
  Flags shown;
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      const Int r = x.token[at(t)];
      x.real.push_back(rows && stream.chance(30) ? 0 : 1);
      for (Int s = 0; s < x.S; ++s) {
        const bool show = !cells || !stream.chance(20);
        const bool same = !x.documents || x.segment[at(b * x.S + s)] == x.segment[at(b * x.S + r)];
        shown.push_back(show ? 1 : 0);
        x.visible.push_back(show && same && (!x.causal || s <= r) ? 1 : 0);
      }
    }
  }
  if (cells) support::put_in(x.problem, "valid", support::bools({x.B, x.T, x.S}, shown));
  if (rows) support::put_in(x.problem, "row_mask", support::bools({x.B, x.T}, x.real));
}

void draw_selection(AttentionCase& x, const AttentionWish& wish) {
  Stream stream(x.seed, "selection");
  x.selects =
      wish.by_index.has_value() || wish.duplicates.value_or(false) || either(wish.selects, 75);
  x.by_index = x.selects && (wish.duplicates.value_or(false) || either(wish.by_index, 60));
  const bool twice = x.by_index && either(wish.duplicates, 60);
  if (twice) x.duplicates = one_of<std::string>({"set", "multiset"});
  x.k = x.by_index ? pick(0, 8) : 0;
  Flags chosen(x.visible.size(), 0);
  x.times.assign(x.visible.size(), 0);
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      const bool none = stream.chance(12);
      const std::vector<Int> order = stream.shuffled(x.S);
      std::size_t next = 0;
      for (Int slot = 0; slot < x.k; ++slot) {
        std::int32_t key = -1;
        if (!none && next < order.size() && !stream.chance(30)) {
          const bool again = twice && next > 0 && stream.chance(60);
          key = static_cast<std::int32_t>(again ? order[next - 1] : order[next++]);
        }
        x.index.push_back(key);
        if (key >= 0) ++x.times[x.cell(b, t, key)];
      }
      for (Int s = 0; s < x.S && !x.by_index; ++s) {
        chosen[x.cell(b, t, s)] = x.selects && (none || !stream.chance(60)) ? 0 : 1;
        x.times[x.cell(b, t, s)] = chosen[x.cell(b, t, s)];
      }
    }
  }
  for (std::size_t i = 0; i < x.times.size(); ++i) {
    const bool counts = x.visible[i] != 0 && x.real[i / at(x.S)] != 0;
    x.times[i] = !counts ? 0 : x.duplicates == "multiset" ? x.times[i] : std::min(x.times[i], 1);
  }
  if (twice) x.problem.options["duplicates"] = x.duplicates;
  if (x.by_index) support::put_in(x.problem, "indices", support::i32s({x.B, x.T, x.k}, x.index));
  if (x.selects && !x.by_index)
    support::put_in(x.problem, "selected", support::bools({x.B, x.T, x.S}, chosen));
}

void draw_lse(AttentionCase& x, const AttentionWish& wish) {
  Json& options = x.problem.options;
  if (chance(60)) options["softmax_scale"] = one_of<double>({0.5, 0.4472135954999579});
  if (chance(40)) x.ln_base = 2, options["lse_base"] = 2;
  if (chance(65)) {
    Stream stream(x.seed, "sink");
    x.sink = stream.reals(x.H, Contents::dyadic);
    for (double& s : x.sink) {
      if (wish.infinite_sinks && stream.chance(20)) s = stream.chance(50) ? INFINITY : -INFINITY;
    }
    support::put_in(x.problem, "sink", support::f64s({x.H}, x.sink));
  }
  const bool include = chance(50);
  if (include) options["lse_includes_sink"] = true;
  x.counts_sink = include && !x.sink.empty();
  const Int how = pick(0, 3);
  if (how > 0) x.empty_lse = std::vector<std::string>{"-inf", "+inf", "0"}[at(how - 1)];
  if (!wish.infinite_lse && how == 3) x.empty_lse = "-inf";
  if (x.empty_lse) options["empty_lse"] = *x.empty_lse;
}

void draw_tensors(AttentionCase& x) {
  const Contents contents =
      one_of<Contents>({Contents::dyadic, Contents::bits, Contents::integers});
  const auto put = [&](const std::string& name, const Shape& shape) {
    Stream stream(x.seed, name);
    const Int dtype = stream.pick(0, 2);
    const Numbers values = stream.reals(count_of(shape), contents);
    support::put_in(x.problem, name,
                    dtype == 0 ? support::bf16s(shape, values) : support::f64s(shape, values));
  };
  put("query", {x.B, x.T, x.H, x.D});
  if (x.latent) {
    put("kv_latent", {x.B, x.S, x.rank});
    put("k_pe", {x.B, x.S, x.dr});
    put("wkv_b", {x.rank, x.H, x.dn + x.Dv});
    if (x.bias) put("bkv_b", {x.H, x.dn + x.Dv});
    x.problem.options["nope_dim"] = x.dn;
  } else {
    put("key", {x.B, x.S, x.Hk, x.D});
    if (x.has_value) put("value", {x.B, x.S, x.Hk, x.Dv});
  }
  if (x.latent || !x.has_value) x.problem.options["v_dim"] = x.Dv;
  const Int which = pick(0, 5);  // mostly both cotangents
  Stream stream(x.seed, "cot");
  const auto cot = [&](const std::string& name, const Shape& shape) {
    support::put_cot(x.problem, name,
                     support::f64s(shape, stream.reals(count_of(shape), Contents::dyadic)));
  };
  if (which != 0) cot("output", {x.B, x.T, x.H, x.Dv});
  if (which != 1) cot("lse", {x.B, x.T, x.H});
}

}  // namespace

Int AttentionCase::keys(Int b, Int t) const {
  Int n = 0;
  for (Int s = 0; s < S; ++s) n += times[cell(b, t, s)];
  return n;
}
Int AttentionCase::seen(Int b, Int t) const {
  Int n = 0;
  for (Int s = 0; s < S; ++s) n += visible[cell(b, t, s)];
  return n;
}
bool AttentionCase::attended(Int b, Int s) const {
  for (Int t = 0; t < T; ++t) {
    if (times[cell(b, t, s)] > 0) return true;
  }
  return false;
}
bool AttentionCase::empty_row() const {
  return any_row(*this, [&](Int b, Int t) { return is_real(b, t) && keys(b, t) == 0; });
}
bool AttentionCase::fewer_than_seen() const {
  return any_row(*this, [&](Int b, Int t) {
    return is_real(b, t) && keys(b, t) > 0 && keys(b, t) < seen(b, t);
  });
}
bool AttentionCase::unreal_row() const {
  return std::find(real.begin(), real.end(), std::uint8_t{0}) != real.end();
}
bool AttentionCase::gap() const {
  return any_row(*this, [&](Int b, Int t) {
    bool empty = false;
    for (Int slot = 0; slot < k; ++slot) {
      const bool used = index[at((b * T + t) * k + slot)] >= 0;
      if (used && empty) return true;
      empty = empty || !used;
    }
    return false;
  });
}
bool AttentionCase::named_twice() const {
  return any_row(*this, [&](Int b, Int t) {
    std::vector<std::int32_t> list(index.begin() + (b * T + t) * k,
                                   index.begin() + (b * T + t + 1) * k);
    std::erase_if(list, [&](std::int32_t key) {
      return key < 0 || visible[cell(b, t, key)] == 0 || !is_real(b, t);
    });
    std::sort(list.begin(), list.end());
    return std::adjacent_find(list.begin(), list.end()) != list.end();
  });
}

AttentionCase draw_attention_case(const AttentionWish& wish) {
  AttentionCase x;
  x.seed = static_cast<std::uint64_t>(pick(0, 1 << 20));
  x.problem.options = Json::object();
  x.problem.outputs = {"all"};
  x.latent = either(wish.latent, 45);
  x.bias = x.latent && chance(60);
  x.has_value = !chance(30);
  draw_sizes(x);
  draw_rows(x);
  draw_visibility(x, wish);
  draw_selection(x, wish);
  draw_lse(x, wish);
  draw_tensors(x);
  RC_LOG() << "B " << x.B << " T " << x.T << " S " << x.S << " H " << x.H << " Hk " << x.Hk << " D "
           << x.D << " Dv " << x.Dv << " Rkv " << x.rank << (x.latent ? " latent" : " keys")
           << (x.bias ? " bias" : "") << " seed " << x.seed << " options "
           << x.problem.options.dump() << std::endl;
  return x;
}

Json draw_attention_schedule(const AttentionCase& x) {
  Json schedule = Json::object();
  if (chance(70)) schedule["head_chunk"] = pick(1, x.H + 1);
  if (chance(70)) schedule["key_block"] = pick(1, 4);
  if (x.latent && chance(60)) schedule["absorbed"] = true;
  return schedule;
}

bool ragged(const AttentionCase& x, const Json& schedule) {
  const Int chunk = schedule.value("head_chunk", Int{0}),
            block = schedule.value("key_block", Int{0});
  if (chunk > 1 && chunk < x.H && x.H % chunk != 0) return true;
  return any_row(x, [&](Int b, Int t) {
    return block > 1 && x.keys(b, t) > block && x.keys(b, t) % block != 0;
  });
}

Problem poisoned(const AttentionCase& x, double poison) {
  Problem dirty = x.problem;
  Stream stream(x.seed, "rubbish");
  // f(b, n) over the rows [B, n] of a tensor: true where nothing may read it.
  const auto dirt = [&](Tensors& tensors, const std::string& prefix, const std::string& name,
                        auto hidden) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return;
    const StoredTensor tensor = found->second;
    Numbers values = support::numbers_of(tensor);
    const Int rows = tensor.shape[0] * tensor.shape[1],
              width = rows == 0 ? 0 : static_cast<Int>(values.size()) / rows;
    for (Int row = 0; row < rows; ++row) {
      for (Int i = 0; i < width && hidden(row / tensor.shape[1], row % tensor.shape[1]); ++i)
        values[at(row * width + i)] = poison;
    }
    support::put(tensors, prefix, name, support::f64s(tensor.shape, values));
  };
  const auto unread_key = [&](Int b, Int s) { return !x.attended(b, s); };
  const auto unread_row = [&](Int b, Int t) { return !x.is_real(b, t); };
  for (const char* name : {"key", "value", "kv_latent", "k_pe"})
    dirt(dirty.in, "in.", name, unread_key);
  dirt(dirty.in, "in.", "query", unread_row);
  dirt(dirty.cot, "cot.", "output", unread_row);
  dirt(dirty.cot, "cot.", "lse", unread_row);
  if (x.by_index) {
    Integers index = x.index;
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (x.real[i / at(x.k)] == 0) index[i] = static_cast<std::int32_t>(stream.pick(-9, 99));
    }
    support::put_in(dirty, "indices", support::i32s({x.B, x.T, x.k}, index));
  } else if (x.selects) {
    Flags selected = support::flags_of(dirty.in.find("selected")->second);
    for (std::size_t i = 0; i < selected.size(); ++i) {
      if (x.visible[i] == 0 || x.real[i / at(x.S)] == 0) selected[i] ^= 1;
    }
    support::put_in(dirty, "selected", support::bools({x.B, x.T, x.S}, selected));
  }
  return dirty;
}

std::vector<std::string> differentiable(const AttentionCase& x) {
  std::vector<std::string> names;
  for (const char* name :
       {"query", "key", "value", "kv_latent", "k_pe", "wkv_b", "bkv_b", "sink"}) {
    if (x.problem.in.find(name) != x.problem.in.end()) names.emplace_back(name);
  }
  return names;
}

}  // namespace plumbline::properties
