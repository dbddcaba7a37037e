#include <algorithm>
#include <limits>

#include "properties/loss_case.hpp"

namespace plumbline::properties {
namespace {

using support::chance;
using support::one_of;
using support::pick;
using support::Stream;
using Int = std::int64_t;

bool either(const std::optional<bool>& wish, int percent) { return wish ? *wish : chance(percent); }

std::size_t at(Int i) { return static_cast<std::size_t>(i); }

void draw_sizes(LossCase& x, const LossWish& wish) {
  std::vector<Int> sizes;  // B, H, D, A, e pairwise different
  const auto size = [&](Int low, Int high) {
    Int value = pick(low, high);
    while (std::find(sizes.begin(), sizes.end(), value) != sizes.end())
      value = value == high + 3 ? low : value + 1;
    sizes.push_back(value);
    return value;
  };
  x.B = wish.batch > 0 ? wish.batch : x.document_grid ? 1 : pick(1, 2);
  sizes.push_back(x.B);
  x.H = size(1, 4);
  x.D = size(1, 4);
  x.A = size(1, 3);
  x.e = size(1, 4);
  if (!x.blocks) {
    std::vector<Int> divisors;
    for (Int n = 1; n <= x.H; ++n) {
      if (x.H % n == 0) divisors.push_back(n);
    }
    x.Hk = one_of(divisors);
  }
  x.m = x.blocks ? one_of<Int>({2, 3, 2, 1, 4}) : 1;
  x.S = pick(wish.least_tokens, wish.most_tokens);
  if (x.S > 1 && x.S < wish.most_tokens) ++x.S;  // few tokens have few keys: less of them
  x.T = wish.placed && chance(60) ? pick(std::min<Int>(1, x.S), x.S) : x.S;
}

// Documents, positions and padding; cu_seqlens stands for both.
void draw_tokens(LossCase& x, const LossWish& wish) {
  Stream stream(x.seed, "tokens");
  x.segment.assign(at(x.B), std::vector<Int>(at(x.S), 0));
  x.position.assign(at(x.B), support::range(0, x.S));
  const bool segments = either(wish.documents, 70);
  const bool lengths = segments && x.B == 1 && chance(35);
  Json& mask = x.problem.options["mask"];
  if (segments && wish.padding && chance(30)) x.padding = lengths ? pick(0, 2) : -1;
  if (x.padding) mask["padding_segment"] = *x.padding;
  x.documents = segments && (wish.documents.has_value() || lengths || !chance(12));
  if (segments && !x.documents) mask["documents"] = false;
  const bool restart = x.documents && chance(60);
  Integers boundaries{0};
  for (Int b = 0; segments && b < x.B; ++b) {
    std::int32_t document = 0;
    for (Int s = 0; s < x.S; ++document) {
      const Int end = std::min(x.S, s + stream.pick(1, 6));
      const bool pads = !lengths && x.padding && stream.chance(30);
      const Int id = lengths           ? document
                     : pads            ? -1
                     : x.document_grid ? 5 + 3 * document
                                       : stream.pick(2, 4);
      for (Int i = s; i < end; ++i) {
        x.segment[at(b)][at(i)] = id;
        if (lengths || restart) x.position[at(b)][at(i)] = i - s;
      }
      s = end;
      if (b == 0) boundaries.push_back(static_cast<std::int32_t>(end));
    }
  }
  const bool gaps = !segments && chance(30);
  for (Int b = 0; gaps && b < x.B; ++b) {
    Int position = 0;
    for (Int s = 0; s < x.S; ++s) x.position[at(b)][at(s)] = (position += stream.pick(1, 3)) - 1;
  }
  const auto flat = [&](const std::vector<std::vector<Int>>& rows) {
    Integers values;
    for (const auto& row : rows) {
      for (const Int value : row) values.push_back(static_cast<std::int32_t>(value));
    }
    return support::i32s({x.B, x.S}, values);
  };
  if (lengths) {
    support::put_in(x.problem, "cu_seqlens",
                    support::i32s({static_cast<Int>(boundaries.size())}, boundaries));
  } else if (segments) {
    support::put_in(x.problem, "segment_ids", flat(x.segment));
  }
  if (gaps || (restart && !lengths)) support::put_in(x.problem, "positions", flat(x.position));
  x.causal = wish.causal_only || !chance(12);
  if (!x.causal) mask["causal"] = false;
}

void cut_blocks(LossCase& x) {
  if (!x.blocks) {
    x.K = x.S;
    return;
  }
  for (Int s = 0; s < x.S;) {
    Int end = x.document_grid ? s : x.S;
    while (end < x.S && x.segment[0][at(end)] == x.segment[0][at(s)]) ++end;
    for (Int first = s;
         first + x.m <= end && x.segment[0][at(s)] != (x.document_grid ? x.padding : std::nullopt);
         first += x.m) {
      x.first.push_back(first);
    }
    s = end;
  }
  x.K = static_cast<Int>(x.first.size());
}

void place_rows(LossCase& x) {
  Stream stream(x.seed, "rows");
  Json& options = x.problem.options;
  x.token = support::range(x.S - x.T, x.S);
  const Int how = x.T == x.S && x.T > 0 ? pick(0, 1) * 2 : pick(0, 2);
  if (how == 1) {
    const Int shift = pick(0, x.S - x.T);
    x.token = support::range(shift, shift + x.T);
    options["mask"]["query_offset"] = shift;
  } else if (how == 2) {
    x.token = stream.shuffled(x.S);
    x.token.resize(at(x.T));
    Integers list;
    for (const Int r : x.token) list.push_back(static_cast<std::int32_t>(r));
    support::put_in(x.problem, "row_index", support::i32s({x.T}, list));
  }
  if (x.T != x.S || chance(20)) options["S"] = x.S;
}

bool structurally_visible(const LossCase& x, Int b, Int t, Int key) {
  const Int r = x.token[at(t)];
  const auto& ids = x.segment[at(b)];
  if (!x.blocks) {
    return (!x.causal || key <= r) && ids[at(key)] != x.padding &&
           (!x.documents || ids[at(key)] == ids[at(r)]);
  }
  const Int first = x.first[at(key)];
  for (Int s = first; s < first + x.m; ++s) {
    if (ids[at(s)] == x.padding || (x.documents && ids[at(s)] != ids[at(r)])) return false;
  }
  return !x.causal || x.position[at(b)][at(first)] + x.m <= x.position[at(b)][at(r)] + 1;
}

void draw_visibility(LossCase& x, const LossWish& wish) {
  Stream stream(x.seed, "cells");
  const bool valid = wish.cell_masks && chance(25), plane = wish.cell_masks && chance(25);
  const bool rows = wish.cell_masks && chance(30);
  Flags shown, asked;
  Numbers levels;
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      const bool ask = !rows || !stream.chance(25);
      asked.push_back(ask ? 1 : 0);
      x.real.push_back(ask && x.segment[at(b)][at(x.token[at(t)])] != x.padding ? 1 : 0);
      for (Int key = 0; key < x.K; ++key) {
        const bool structure = structurally_visible(x, b, t, key);
        const bool show = !valid || !stream.chance(20), zero = !plane || !stream.chance(20);
        shown.push_back(show ? 1 : 0);
        levels.push_back(zero                ? 0
                         : stream.chance(50) ? -9900
                                             : -std::numeric_limits<double>::infinity());
        x.structure.push_back(structure ? 1 : 0);
        x.visible.push_back(structure && show && zero ? 1 : 0);
      }
    }
  }
  if (valid) support::put_in(x.problem, "valid", support::bools({x.B, x.T, x.K}, shown));
  if (plane) support::put_in(x.problem, "mask", support::f64s({x.B, x.T, x.K}, levels));
  if (rows) support::put_in(x.problem, "row_mask", support::bools({x.B, x.T}, asked));
}

void draw_selection(LossCase& x, const LossWish& wish) {
  Stream stream(x.seed, "selection");
  x.trained = x.visible;
  for (std::size_t i = 0; i < x.trained.size(); ++i) x.trained[i] &= x.real[i / at(x.K)];
  x.sparse = either(wish.sparse, 70);
  x.problem.options["sparse"] = x.sparse;
  if (!x.sparse) return;
  x.by_index = either(wish.slots, 0) || either(wish.by_index, 65);
  x.slots = x.by_index && either(wish.slots, 40);
  if (x.slots) x.problem.options["layout"] = "slots";
  x.after = either(wish.after_softmax, 25);
  if (x.after) x.problem.options["restrict"] = "after_softmax";
  x.k = x.by_index ? pick(0, std::min<Int>(x.K + 1, 6)) : 0;
  Flags chosen(x.trained.size(), 0);
  for (Int b = 0; b < x.B; ++b) {
    for (Int t = 0; t < x.T; ++t) {
      const bool none = stream.chance(12);
      const std::vector<Int> order = stream.shuffled(x.K);
      std::size_t next = 0;
      for (Int slot = 0; slot < x.k; ++slot) {
        const bool use = !none && next < order.size() && !stream.chance(30);
        x.index.push_back(use ? static_cast<std::int32_t>(order[next]) : -1);
        if (use) chosen[x.cell(b, t, order[next++])] = 1;
      }
      for (Int key = 0; !x.by_index && key < x.K; ++key)
        chosen[x.cell(b, t, key)] = !none && stream.chance(60) ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) x.trained[i] &= chosen[i];
  if (x.by_index) {
    support::put_in(x.problem, "indices", support::i32s({x.B, x.T, x.k}, x.index));
  } else {
    support::put_in(x.problem, "selected", support::bools({x.B, x.T, x.K}, chosen));
  }
}

void draw_options(LossCase& x, const LossWish& wish) {
  Json& options = x.problem.options;
  const bool joint = x.blocks && either(wish.joint, 50);
  std::vector<std::string> presets = {"exact", "maxtext_v32", "maxtext_v4", "megatron", "tilelang"};
  if (joint) presets = {"exact", "megatron_csa_eager", "megatron_csa_fused", "primus", "veomni"};
  options["preset"] = wish.presets ? one_of(presets) : "exact";
  options["teacher"] = joint ? chance(30) ? "joint_window" : "joint" : "own";
  x.joint = joint;
  x.sink_counts = options["teacher"] == "joint";
  if (x.blocks) {
    options["m"] = x.m;
    if (x.document_grid) options["grid"] = "document";
    x.window = pick(0, 4);
    options["window"] = x.window;
  }
  if (!wish.presets) {
    options["reduction"] = "sum";
    return;
  }
  const auto mode = [](const char* name, const char* parameter, double value) {
    return Json{{"mode", name}, {parameter, value}};
  };
  const std::vector<Json> logs = {"exact", mode("add", "eps", 0.01), mode("clamp", "eps", 0.06),
                                  mode("clip", "lo", -1.6)};
  const std::vector<Json> l1 = {"none", mode("add", "eps", 0.03), mode("clamp", "eps", 0.8),
                                mode("zero_below", "eps", 0.3)};
  if (chance(30)) options["l1"] = one_of(l1);
  if (chance(30)) options["target_log"] = one_of(logs);
  if (chance(30)) options["student_log"] = one_of(logs);
  if (chance(30)) options["gradient"] = one_of<std::string>({"of_value", "p_minus_t"});
  if (chance(50))
    options["reduction"] = one_of<std::string>({"sum", "mean_all", "mean_valid", "mean_real"});
  if (chance(40)) options["coefficient"] = one_of<double>({0.25, -1.75, 2});
  if (chance(60)) options["softmax_scale"] = one_of<double>({0.5, 0.4472135954999579});
  if (chance(30)) options["score_scale"] = one_of<std::string>({"heads_and_dim", "dim", "none"});
  if (chance(20)) options["relu"] = false;
}

void draw_tensors(LossCase& x, const LossWish& wish) {
  const Contents contents = one_of(wish.contents);
  const auto fill = [&](const std::string& name, const Shape& shape) {
    Stream stream(x.seed, name);
    const Int dtype = stream.pick(0, 3);
    const Numbers values = stream.reals(count_of(shape), contents);
    return dtype == 0   ? support::bf16s(shape, values)
           : dtype == 1 ? support::f32s(shape, values)
                        : support::f64s(shape, values);
  };
  const auto put = [&](const std::string& name, const Shape& shape) {
    support::put_in(x.problem, name, fill(name, shape));
  };
  x.raw = either(wish.raw, 50);
  if (x.raw) {
    put("index_q", {x.B, x.T, x.A, x.e});
    put("index_k", {x.B, x.K, x.e});
    put("index_w", {x.B, x.T, x.A});
  } else {
    put("scores", {x.B, x.T, x.plane()});
  }
  put("query", {x.B, x.T, x.H, x.D});
  put(x.key_name(), x.blocks ? Shape{x.B, x.K, x.D} : Shape{x.B, x.S, x.Hk, x.D});
  if (x.blocks && (x.joint || chance(30))) put("kv", {x.B, x.S, x.D});
  if (x.blocks && chance(70)) {
    Stream stream(x.seed, "sinks");
    Numbers sink = stream.reals(x.H, contents);
    for (double& s : sink) {
      if (wish.infinite_sinks && stream.chance(15)) s = stream.chance(50) ? INFINITY : -INFINITY;
    }
    support::put_in(x.problem, "sink", support::f64s({x.H}, sink));
  }
  const Int cotangents = pick(0, 3);
  Stream stream(x.seed, "cot");
  if (cotangents % 2 == 1)
    support::put_cot(x.problem, "loss", support::f64s({}, {stream.real(Contents::dyadic)}));
  if (cotangents >= 2) {
    support::put_cot(x.problem, "row_loss",
                     support::f64s({x.B, x.T}, stream.reals(x.B * x.T, Contents::dyadic)));
  }
}

}  // namespace

LossCase draw_loss_case(const LossWish& wish) {
  LossCase x;
  x.blocks = either(wish.blocks, 65);
  x.document_grid = x.blocks && either(wish.document_grid, 25);
  x.seed = static_cast<std::uint64_t>(pick(0, 1 << 20));
  x.problem.options = Json::object();
  x.problem.options["mask"] = Json::object();
  x.problem.outputs = {"all"};
  draw_sizes(x, wish);
  draw_tokens(x, wish);
  cut_blocks(x);
  if (wish.placed) {
    place_rows(x);
  } else {
    x.token = support::range(0, x.T);
  }
  draw_visibility(x, wish);
  draw_selection(x, wish);
  draw_options(x, wish);
  draw_tensors(x, wish);
  RC_LOG() << describe(x) << std::endl;
  return x;
}

}  // namespace plumbline::properties
