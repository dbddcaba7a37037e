"""Seeded random cases of the operations of compressed sparse attention.

`make(seed, number, op)` gives (plumbline object, tensors).  Every case is valid by the specification and
small; sizes are pairwise different where they can be; blocks straddle documents, tails are ragged, some
sequences are shorter than a block; hidden places hold NaN, infinities or huge numbers in about half of the cases.
"""
import random

import losses
import mla_attention
from csa_compress import block_starts
from random_attention_cases import lse_options, put_sink
from random_csa_layers import make_csa_layer, make_csa_step
from random_csa_basics import block_geometry, indexer_places, put_csa_indexer, sees_ahead, some_rope, window_size
from random_inputs import Geometry, floats, poison, put, rows_of, sizes
from random_mla_basics import cot, evaluated, give
from safetensors_io import Tensor

OPS = (("csa_layer", 34), ("csa_step", 18), ("csa_attention", 22), ("csa_compress", 18), ("csa_indexer", 12))


# ---------------------------------------------------------------------------------------------------
# csa_compress
# ---------------------------------------------------------------------------------------------------

def make_csa_compress(rng):
    g = Geometry(rng, True)
    B, S, m = max(g.B, 1), g.S, g.m
    tensors = {n: t for n, t in g.inputs.items() if n in ("in.segment_ids", "in.positions", "in.cu_seqlens") and g.B}
    options = {n: x for n, x in g.options.items() if n in ("m", "grid")}
    document = options.get("grid") == "document"
    if document and "padding_segment" in g.mask and ("in.segment_ids" in tensors or "in.cu_seqlens" in tensors):
        options["mask"] = {"padding_segment": g.mask["padding_segment"]}
    if not tensors and rng.random() < 0.1:
        S = rng.choice((0, 0, max(1, m - 1)))
    elif "in.cu_seqlens" not in tensors and rng.random() < 0.25:  # compression takes any positions
        top = rng.choice((9, 300, 2000000))
        tensors["in.positions"] = Tensor("I32", (B, S), [rng.randint(0, top) for _ in range(B * S)])
    overlap = rng.random() < 0.7
    if not overlap or rng.random() < 0.3:
        options["overlap"] = overlap
    D = sizes(rng, {B, S, m}, D=(1, 6))["D"]
    width = 2 * D if overlap else D
    has_segments = "in.segment_ids" in tensors or "in.cu_seqlens" in tensors
    if rng.random() < 0.5:
        options["boundary"] = rng.choice(("positions", "segments") if has_segments else ("positions",))
    normed = rng.random() < 0.85
    if not normed or rng.random() < 0.3:
        options["norm"] = normed
    if rng.random() < 0.6:
        options["eps"] = rng.choice((1e-6, 1e-5, 1e-3, 0.5))
    if rng.random() < 0.75 and D > 1:
        options["rope"] = some_rope(rng, D, True)
    elif rng.random() < 0.3:
        options["rope"] = None
    spread = rng.choice((0.7, 1.0, 1.0, 4.0, 60.0))
    put(rng, tensors, "in.kv", floats(rng, (B, S, width), 1.0))
    put(rng, tensors, "in.gate", floats(rng, (B, S, width), spread))
    if rng.random() < 0.7:
        put(rng, tensors, "in.position_bias", floats(rng, (m, width), 1.0))
    if normed and rng.random() < 0.7:
        put(rng, tensors, "in.norm_weight", floats(rng, (D,), 1.0))
    poisoned = rng.random() < 0.5
    present = [False] * B
    if overlap and not document and rng.random() < 0.45:
        put(rng, tensors, "in.prior_kv", floats(rng, (B, m, width), 1.0))
        put(rng, tensors, "in.prior_gate", floats(rng, (B, m, width), spread))
        present = [True] * B
        if rng.random() < 0.6:
            present = [rng.random() < 0.6 for _ in range(B)]
            tensors["in.prior_present"] = Tensor("BOOL", (B,), present)
        if poisoned:
            for name in ("in.prior_kv", "in.prior_gate"):
                poison(rng, tensors, name, rows_of((B, m, width), 1, {b for b in range(B) if present[b]}))

    rows = losses.Rows(losses.Case({"op": "csa_compress", "options": options}, tensors), B, S, False, [S])
    first = block_starts(rows, options)
    cot(rng, tensors, "compressed", (B, len(first), D))
    if not document:
        names = ["prior_kv", "prior_gate"] if overlap else []
        shapes = {n: (B, m, width) for n in names}
        if not poisoned:
            shapes.update({n: (B, S % m, width) for n in ("leftover_kv", "leftover_gate")})
        for name in sorted(shapes):
            if rng.random() < 0.3:
                cot(rng, tensors, name, shapes[name])
        if len(shapes) > 0 and len([n for n in tensors if n.startswith("cot.")]) > 1 and rng.random() < 0.2:
            del tensors["cot.compressed"]
    if poisoned:
        used = {b * S + j + i for b in range(B) for j in first for i in range(m)}
        for name in ("in.kv", "in.gate"):
            poison(rng, tensors, name, rows_of((B, S, width), 2, used))
    plan = {"step": rng.randint(0, S + 1)} if not document and rng.random() < 0.35 else {}
    return options, plan, tensors


# ---------------------------------------------------------------------------------------------------
# csa_indexer
# ---------------------------------------------------------------------------------------------------

def make_csa_indexer(rng):
    g = block_geometry(rng, 14)
    tensors, options = dict(g.inputs), dict(g.options)
    B, T, S, N = g.B, g.T, g.S, g.K
    n = sizes(rng, {B, T, S, N}, E=(1, 6), Rq=(1, 6))
    E, Rq = n["E"], n["Rq"]
    more, A, e = put_csa_indexer(rng, tensors, "", E, Rq, g.m, {B, T, S, N, E, Rq})
    options.update(more)
    if rng.random() < 0.4:
        options["boundary"] = "segments" if "in.segment_ids" in tensors and rng.random() < 0.6 else "positions"
    put(rng, tensors, "in.x", floats(rng, (B, S, E), 1.0, family="normal"))
    put(rng, tensors, "in.q_latent", floats(rng, (B, S, Rq), 1.0, family="normal"))
    cot(rng, tensors, "scores", (B, T, N))
    shapes = {"index_q": (B, S, A, e), "index_k": (B, N, e), "index_w": (B, S, A)}
    if rng.random() < 0.5:
        stand, blocks, real_rows = indexer_places(g, losses.Case({"op": "csa_indexer", "options": options}, tensors))
        poison(rng, tensors, "in.x", rows_of(tensors["in.x"].shape, 2, stand | blocks))
        poison(rng, tensors, "in.q_latent", rows_of(tensors["in.q_latent"].shape, 2, stand))
        poison(rng, tensors, "cot.scores", rows_of((B, T, N), 2, real_rows))
    else:
        for name in sorted(shapes):
            if rng.random() < 0.3:
                cot(rng, tensors, name, shapes[name])
    if rng.random() < 0.2:
        forward = evaluated("csa_indexer", options, tensors)
        for name in sorted(shapes):
            if rng.random() < 0.5:
                give(rng, tensors, name, forward)
    plan = {"head_chunk": rng.randint(0, A + 1)} if rng.random() < 0.5 else {}
    if rng.random() < 0.3 and not g.document_grid and g.causal and not sees_ahead(g) and \
            not any(n.startswith("given.") for n in tensors):
        plan["step"] = rng.randint(0, S + 1)
    return options, plan, tensors


# ---------------------------------------------------------------------------------------------------
# csa_attention
# ---------------------------------------------------------------------------------------------------

def put_choice(rng, tensors, options, rows, B, T, N, k):
    """selected, indices or nothing; -1 anywhere, hidden blocks, duplicates where they are allowed."""
    how = rng.choice(("all", "selected", "indices", "indices", "indices"))
    if how == "selected":
        densities = [rng.choice((0.0, 0.4, 0.7, 1.0)) for _ in range(B * T)]
        tensors["in.selected"] = Tensor("BOOL", (B, T, N), [rng.random() < d for d in densities for _ in range(N)])
    if how != "indices":
        return
    if rng.random() < 0.6:
        options["duplicates"] = rng.choice(("error", "set", "multiset", "multiset"))
    if rng.random() < 0.25:
        options["strict_selection"] = rng.random() < 0.7
    out = []
    for b in range(B):
        for t in range(T):
            if not rows.is_real(b, t):
                out += [rng.randrange(-1, N) if N else -1 for _ in range(k)]
                continue
            seen = rows.visible(b, t)
            pool = seen if options.get("strict_selection") or rng.random() < 0.5 else list(range(N))
            if options.get("duplicates", "error") == "error":
                row = rng.sample(pool, min(len(pool), rng.randint(0, k)))
                hidden = [s for s in range(N) if s not in seen]
                if hidden and not options.get("strict_selection") and len(row) + 2 <= k and rng.random() < 0.5:
                    row += [rng.choice(hidden)] * 2  # dropped before duplicates count
            else:
                row = [rng.choice(pool) for _ in range(rng.randint(0, k))] if pool else []
            row += [-1] * (k - len(row))
            rng.shuffle(row)
            out += row
    tensors["in.indices"] = Tensor("I32", (B, T, k), out)


def make_csa_attention(rng):
    while True:
        g = Geometry(rng, True)
        if g.S <= 14 and g.B <= 2:
            break
    tensors, options = dict(g.inputs), dict(g.options)
    B, T, S, N = g.B, g.T, g.S, g.K
    n = sizes(rng, {B, T, S, N}, H=(1, 5), D=(1, 6), k=(1, 6))
    H, D, k = n["H"], n["D"], n["k"]
    options["window"] = W = window_size(rng, S)
    spread = rng.choice((0.7, 1.0, 1.0, 3.0, 20.0))
    put(rng, tensors, "in.query", floats(rng, (B, T, H, D), spread))
    put(rng, tensors, "in.kv", floats(rng, (B, S, D), spread))
    put(rng, tensors, "in.compressed", floats(rng, (B, N, D), spread))
    if rng.random() < 0.6:
        options["softmax_scale"] = rng.choice((0.5, 0.4472135954999579, 1, 2.0, 0.1))
    lse_options(rng, options)
    if rng.random() < 0.65:
        put_sink(rng, tensors, H)
    rows = losses.Rows(losses.Case({"op": "csa_attention", "options": options}, tensors), B, T, True, [S], N)
    put_choice(rng, tensors, options, rows, B, T, N, k)
    cot(rng, tensors, "output", (B, T, H, D))
    if rng.random() < 0.5:
        cot(rng, tensors, "lse", (B, T, H))
        if rng.random() < 0.2:
            del tensors["cot.output"]

    case = losses.Case({"op": "csa_attention", "options": options}, tensors)
    real_rows, window, blocks = set(), set(), set()
    for b in range(B):
        for t in range(T):
            if rows.is_real(b, t):
                real_rows.add(b * T + t)
                window |= {b * S + s for s in rows.window(b, t, W)}
                blocks |= {b * N + j for j in mla_attention.chosen_keys(case, rows, b, t)}
    poisoned = rng.random() < 0.6
    if poisoned:
        for name, keep in (("in.query", real_rows), ("in.kv", window), ("in.compressed", blocks),
                           ("cot.output", real_rows), ("cot.lse", real_rows)):
            if name in tensors:
                poison(rng, tensors, name, rows_of(tensors[name].shape, 2, keep))
    if rng.random() < 0.2:
        forward = evaluated("csa_attention", options, tensors)
        names = ("lse", "output") if rng.random() < 0.6 else ("output",)
        if "lse" in names:
            tensors.pop("cot.lse", None)
            if "cot.output" not in tensors:
                cot(rng, tensors, "output", (B, T, H, D))
        for name in names:
            give(rng, tensors, name, forward)
            if poisoned:
                poison(rng, tensors, "given." + name, rows_of(tensors["given." + name].shape, 2, real_rows))
    plan = {}
    if rng.random() < 0.5:
        plan["head_chunk"] = rng.randint(0, H + 1)
    if rng.random() < 0.5:
        plan["key_block"] = rng.randint(0, S + 1)
    return options, plan, tensors


MAKERS = {"csa_compress": make_csa_compress, "csa_indexer": make_csa_indexer, "csa_attention": make_csa_attention,
          "csa_layer": make_csa_layer, "csa_step": make_csa_step}


def make(seed, number, op=None):
    """Case `number` of a seed: (plumbline object, tensors)."""
    rng = random.Random("plumbline csa %d %d" % (seed, number))
    if op is None:
        op = rng.choices([o for o, _ in OPS], [w for _, w in OPS])[0]
    options, plan, tensors = MAKERS[op](rng)
    if rng.random() < 0.06:
        options["nonfinite"] = rng.choice(("allow", "allow", "error"))
    plumbline = {"schema": 1, "op": op, "options": options, "outputs": [], "seed": seed,
                 "generator": "tests/truth/random_csa_cases.py"}
    if plan:
        plumbline["schedule"] = plan
    return plumbline, tensors
