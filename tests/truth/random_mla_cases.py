"""Seeded random cases of linear, the norms, rope and the operations of multi-head latent attention.

`make(seed, number, op)` gives (plumbline object, tensors).  Every case is valid by the specification and
small; sizes are pairwise different where they can be; hidden places hold NaN, infinities or huge numbers in
about half of the cases.
"""
import math
import random

import losses
import mla_attention
import safetensors_io as st
from random_attention_cases import OPEN_QUESTIONS, lse_options, make_merge_attention, make_mla_attention, put_sink, small_geometry  # noqa: F401
from random_csa_attention import make_csa_attention
from random_inputs import Geometry, floats, poison, put, rows_of, sizes
from random_mla_basics import (cot, evaluated, give, make_linear, make_mla_projection, make_norm, make_rope,
                               make_stage_routing, nonzero, put_projection, rope_options)
from safetensors_io import Tensor

OPS = (("mla_layer", 30), ("mla_attention", 30), ("csa_attention", 20), ("dsa_indexer", 12), ("mla_projection", 10),
       ("merge_attention", 8), ("mla_step", 12), ("rope", 6), ("linear", 4), ("rms_norm", 3), ("layer_norm", 3),
       ("stage_routing", 2))





# ---------------------------------------------------------------------------------------------------
# the indexer and the layer
# ---------------------------------------------------------------------------------------------------

def layer_geometry(rng, limit=9, server=False):
    """Rows of a layer: T = S, or row_index."""
    while True:
        g = Geometry(rng, False)
        if g.S > limit or g.B > 2 or (g.way not in ("full", "row_index") and g.T != g.S) or not g.T \
                or "query_offset" in g.mask:
            continue
        if server and ("in.valid" in g.inputs or "in.row_mask" in g.inputs or "in.mask" in g.inputs
                       or not g.causal or "in.row_index" in g.inputs):
            continue
        return g


def put_indexer_weights(rng, tensors, prefix, E, Rq, taken):
    n = sizes(rng, set(taken), A=(1, 4), e=(2, 6))
    A, e = n["A"], n["e"]
    width = rng.choice((0.5, 1.0))
    for name, shape in (("wq_b", (Rq, A, e)), ("wk", (E, e)), ("k_norm_weight", (e,)), ("k_norm_bias", (e,)),
                        ("weights_proj", (E, A))):
        tensor = nonzero(rng, shape, width) if name in ("wk", "k_norm_weight") else floats(rng, shape, width)
        put(rng, tensors, "in." + prefix + name, tensor)
    options = {"rope": rope_options(rng, 2 * rng.randint(1, e // 2)), "k": rng.randint(0, 5)}
    if rng.random() < 0.5:
        options["tie"] = rng.choice(("lowest_index", "threshold"))
    if rng.random() < 0.5:
        options["score_scale"] = rng.choice(("heads_and_dim", "dim", "none"))
    if rng.random() < 0.5:
        options["eps"] = rng.choice((1e-6, 1e-3))
    return options, A, e


def read_tokens(g, case):
    """(tokens some real row stands at or sees, real rows)."""
    rows = losses.Rows(case, g.B, g.T, False, [g.S], g.S)
    read, real_rows = set(), set()
    for b in range(g.B):
        for t in range(g.T):
            if rows.is_real(b, t):
                real_rows.add(b * g.T + t)
                read |= {b * g.S + s for s in rows.visible(b, t) + [rows.token[t]]}
    return read, real_rows


def twin_tokens(rng, tensors, names, B, S):
    """Some tokens repeat earlier ones, position included: exact ties of their keys."""
    old = tensors["in.positions"].values if "in.positions" in tensors else list(range(S)) * B
    source = [b * S + (rng.randrange(s + 1) if rng.random() < 0.5 else s) for b in range(B) for s in range(S)]
    tensors["in.positions"] = Tensor("I32", (B, S), [old[i] for i in source])
    for name in names:
        for part in (name, name + ".lo"):
            if part in tensors:
                tensor = tensors[part]
                inner = st.count(tensor.shape[2:])
                tensors[part] = Tensor(tensor.dtype, tensor.shape, [
                    x for i in source for x in tensor.values[i * inner:(i + 1) * inner]])


def make_dsa_indexer(rng):
    g = layer_geometry(rng, 12)
    tensors, options = dict(g.inputs), dict(g.options)
    B, T, S = g.B, g.T, g.S
    n = sizes(rng, {B, T, S}, E=(1, 6), Rq=(1, 6))
    E, Rq = n["E"], n["Rq"]
    more, A, e = put_indexer_weights(rng, tensors, "", E, Rq, {B, T, S, E, Rq})
    options.update(more)
    put(rng, tensors, "in.x", floats(rng, (B, S, E), 1.0, family="normal"))
    put(rng, tensors, "in.q_latent", floats(rng, (B, S, Rq), 1.0))
    if rng.random() < 0.3 and "in.cu_seqlens" not in tensors:
        twin_tokens(rng, tensors, ("in.x", "in.q_latent"), B, S)
    cot(rng, tensors, "scores", (B, T, S))
    read, real_rows = read_tokens(g, losses.Case({"op": "dsa_indexer", "options": options}, tensors))
    if rng.random() < 0.5:
        for name in ("in.x", "in.q_latent"):
            poison(rng, tensors, name, rows_of(tensors[name].shape, 2, read))
        poison(rng, tensors, "cot.scores", rows_of((B, T, S), 2, real_rows))
        if rng.random() < 0.2 and "in.positions" not in tensors:
            forward = evaluated("dsa_indexer", options, tensors)
            for name in ("index_q", "index_k", "index_w"):
                if rng.random() < 0.5:
                    give(rng, tensors, name, forward)
    else:
        for name, shape in (("index_q", (B, S, A, e)), ("index_k", (B, S, e)), ("index_w", (B, S, A))):
            if rng.random() < 0.3:
                cot(rng, tensors, name, shape)
        if rng.random() < 0.2:
            forward = evaluated("dsa_indexer", options, tensors)
            for name in ("index_q", "index_k", "index_w"):
                if rng.random() < 0.5:
                    give(rng, tensors, name, forward)
    return options, ({"head_chunk": rng.randint(0, A + 1)} if rng.random() < 0.5 else {}), tensors


def layer_loss(rng):
    loss = {}
    presets = [p for p in losses.PRESETS if p not in losses.CSA_ONLY]
    if rng.random() < 0.75:
        loss["preset"] = rng.choice(presets)
    if rng.random() < 0.3:
        loss["gradient"] = rng.choice(("of_value", "p_minus_t"))
    if rng.random() < 0.3:
        loss["reduction"] = rng.choice(("sum", "mean_all", "mean_valid", "mean_real"))
    if rng.random() < 0.4:
        loss["coefficient"] = rng.choice((0.25, 0.7, 1, 2.5, 1e-3, 0))
    if rng.random() < 0.3:
        loss["restrict"] = rng.choice(("before_softmax", "after_softmax"))
    if rng.random() < 0.2:
        loss["softmax_scale"] = rng.choice((0.5, 2.0))
    if rng.random() < 0.2:
        loss["relu"] = rng.random() < 0.4
    return loss


def make_mla_layer(rng):
    server = rng.random() < 0.2
    g = layer_geometry(rng, server=server)
    tensors, options = dict(g.inputs), dict(g.options)
    B, T, S = g.B, g.T, g.S
    has_indexer = rng.random() < 0.75
    n = put_projection(rng, tensors, options, B, S, {T}, False if has_indexer else None)
    put(rng, tensors, "in.wo", floats(rng, (n["H"], n["dv"], n["E"]), 1.0))
    tensors["in.x"] = nonzero(rng, (B, S, n["E"]), rng.choice((1.0, 2.0)))
    tensors.pop("in.x.lo", None)
    if rng.random() < 0.2 and "in.cu_seqlens" not in tensors:
        twin_tokens(rng, tensors, ("in.x",), B, S)
    options["loss"] = options["indexer"] = None
    if has_indexer:
        options["indexer"], A, _ = put_indexer_weights(rng, tensors, "indexer_", n["E"], n["Rq"], {B, T, S, n["E"]})
        if not server and rng.random() < 0.75:
            options["loss"] = loss = layer_loss(rng)
            if rng.random() < 0.6:
                loss["sparse"] = rng.random() < 0.7
            if loss.get("sparse") and options["indexer"]["k"] >= S:
                loss["allow_full_selection"] = True
            preset = losses.PRESETS[loss.get("preset", "maxtext_v32")]
            scale = preset.get("score_scale", "heads_and_dim")  # both say the same
            options["indexer"].pop("score_scale", None)
            if scale != "heads_and_dim" or rng.random() < 0.3:
                loss["score_scale"] = options["indexer"]["score_scale"] = scale
    if rng.random() < 0.3 and options["loss"] is None:
        del options["loss"]
    if not server:
        cot(rng, tensors, "output", (B, T, n["E"]))
        if rng.random() < 0.7:
            tensors["cot.loss"] = Tensor("F64", (), [st.round_to("F64", rng.gauss(0, 2))])
    read, real_rows = read_tokens(g, losses.Case({"op": "mla_layer", "options": options}, tensors))
    if rng.random() < 0.5:
        poison(rng, tensors, "in.x", rows_of(tensors["in.x"].shape, 2, read))
        if not server:
            poison(rng, tensors, "cot.output", rows_of((B, T, n["E"]), 2, real_rows))
    if not server and rng.random() < 0.3:
        give_stages(rng, tensors, options, g)
    plan = {}
    for name in ("sliced", "absorbed", "barrier"):
        if rng.random() < 0.4:
            plan[name] = rng.random() < 0.6
    if rng.random() < 0.4:
        plan["head_chunk"] = rng.randint(0, n["H"] + 1)
    if rng.random() < 0.4:
        plan["key_block"] = rng.randint(0, S + 1)
    if server:
        plan["prefill"] = rng.randint(0, S)
        plan["step"] = rng.randint(0 if plan["prefill"] else 1, 3)
    return options, plan, tensors


def give_stages(rng, tensors, options, g):
    forward = evaluated("mla_layer", options, tensors)
    names = ["q_latent", "kv_latent", "k_pe", "query", "key", "value", "attention_lse", "attention_output"]
    if options["indexer"] is not None:
        names += ["indexer_index_q", "indexer_index_k", "indexer_index_w", "indexer_indices", "indexer_selected"] * 2
        if options.get("loss") is None:
            names.append("indexer_scores")
    if "out.log_mass" in forward and g.B * g.T:
        names += ["log_mass", "head_sum"]
        sums = forward["out.head_sum"][1]
        if options["loss"].get("sparse") is not True and any(x != 0 for x in sums):
            names += ["target"]
    chosen = set(rng.sample(names, rng.randint(1, 2)))
    if "attention_lse" in chosen and not OPEN_QUESTIONS:
        chosen.add("attention_output")
    if "indexer_selected" in chosen:
        chosen.discard("indexer_indices")
    if "target" in chosen:
        chosen = {"target"}
    if "log_mass" in chosen:
        chosen.discard("head_sum")
    for name in sorted(chosen):
        if "out." + name not in forward:
            continue
        if name == "indexer_selected":
            shape, values = forward["out.indexer_selected"]
            tensors["given.indexer_selected"] = Tensor("BOOL", shape, [x ^ (rng.random() < 0.2) for x in values])
        elif name == "indexer_indices":
            k = options["indexer"]["k"]
            rows = [rng.sample(range(g.S), min(k, g.S)) for _ in range(g.B * g.T)]
            flat = [x if rng.random() < 0.8 else -1 for row in rows for x in row + [-1] * (k - len(row))]
            tensors["given.indexer_indices"] = Tensor("I32", (g.B, g.T, k), flat)
        else:
            give(rng, tensors, name, forward)


def make_mla_step(rng):
    tensors, options = {}, {}
    B, L = rng.choice((1, 2, 3)), rng.choice((1, 1, 2, 3, 4))
    lengths = [rng.choice((0, 1, 2, 4, 5)) for _ in range(B)]
    P = max(lengths) + L + rng.choice((0, 0, 1, 3))
    has_indexer = rng.random() < 0.7
    n = put_projection(rng, tensors, options, B, L, {P}, False if has_indexer else None)
    put(rng, tensors, "in.wo", floats(rng, (n["H"], n["dv"], n["E"]), 1.0))
    tensors["in.x"] = nonzero(rng, (B, L, n["E"]), 1.5)
    tensors.pop("in.x.lo", None)
    options["indexer"] = None
    put(rng, tensors, "in.state.kv_latent", floats(rng, (B, P, n["Rkv"]), 1.0))
    put(rng, tensors, "in.state.k_pe", floats(rng, (B, P, n["dr"]), 1.0))
    if has_indexer:
        options["indexer"], _, e = put_indexer_weights(rng, tensors, "indexer_", n["E"], n["Rq"], {B, P, L, n["E"]})
        put(rng, tensors, "in.state.indexer_index_k", floats(rng, (B, P, e), 1.0))
    if rng.random() < 0.3:
        options["loss"] = None
    mask = {}
    segments, padding = [], None
    if rng.random() < 0.6:
        padding = rng.choice((None, None, 7))
        if padding is not None:
            mask["padding_segment"] = padding
        if rng.random() < 0.3:
            mask["documents"] = rng.random() < 0.5
        for b in range(B):
            ids = []
            while len(ids) < P:
                ids += [rng.choice((0, 3, 4) if padding is None else (0, 3, padding))] * rng.randint(1, 4)
            segments.append(ids[:P])
        tensors["in.segment_ids"] = Tensor("I32", (B, L), [
            segments[b][lengths[b] + i] for b in range(B) for i in range(L)])
    elif rng.random() < 0.3:
        mask["causal"] = True
    if mask:
        options["mask"] = mask
    junk = rng.choice((0, 9, -5))
    tensors["in.state.segment_ids"] = Tensor("I32", (B, P), [
        junk if s >= lengths[b] else segments[b][s] if segments else 0 for b in range(B) for s in range(P)])
    tensors["in.state.positions"] = Tensor("I32", (B, P), [
        -junk if s >= lengths[b] else s for b in range(B) for s in range(P)])
    if rng.random() < 0.5:
        tensors["in.positions"] = Tensor("I32", (B, L), [rng.randint(0, 20) for _ in range(B * L)])
    tensors["in.state.length"] = Tensor("I32", (B,), lengths)
    if rng.random() < 0.6:
        kept = {b * P + s for b in range(B) for s in range(lengths[b])}
        for name in ("kv_latent", "k_pe", "indexer_index_k"):
            if "in.state." + name in tensors:
                poison(rng, tensors, "in.state." + name, rows_of(tensors["in.state." + name].shape, 2, kept))
        if padding is not None:
            poison(rng, tensors, "in.x", rows_of(tensors["in.x"].shape, 2, {
                i for i, x in enumerate(tensors["in.segment_ids"].values) if x != padding}))
    plan = {}
    for name in ("sliced", "absorbed"):
        if rng.random() < 0.4:
            plan[name] = rng.random() < 0.6
    if rng.random() < 0.4:
        plan["head_chunk"] = rng.randint(0, n["H"] + 1)
    if rng.random() < 0.4:
        plan["key_block"] = rng.randint(0, P + 1)
    return options, plan, tensors


MAKERS = {"linear": make_linear, "rms_norm": lambda rng: make_norm(rng, False),
          "layer_norm": lambda rng: make_norm(rng, True), "rope": make_rope, "stage_routing": make_stage_routing,
          "mla_projection": make_mla_projection, "mla_attention": make_mla_attention, "csa_attention": make_csa_attention,
          "merge_attention": make_merge_attention, "dsa_indexer": make_dsa_indexer, "mla_layer": make_mla_layer, "mla_step": make_mla_step}


def make(seed, number, op=None):
    """Case `number` of a seed: (plumbline object, tensors)."""
    rng = random.Random("plumbline mla %d %d" % (seed, number))
    if op is None:
        op = rng.choices([o for o, _ in OPS], [w for _, w in OPS])[0]
    options, plan, tensors = MAKERS[op](rng)
    if rng.random() < 0.06:
        options["nonfinite"] = rng.choice(("allow", "allow", "error"))
    plumbline = {"schema": 1, "op": op, "options": options, "outputs": [], "seed": seed,
                 "generator": "tests/truth/random_mla_cases.py"}
    if plan:
        plumbline["schedule"] = plan
    return plumbline, tensors
