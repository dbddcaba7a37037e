"""Seeded random cases of csa_compress and csa_indexer; make() as in random_mla_cases.py.

Documents that return, straddling blocks, positions in any order (compression takes any), priors that are there or
not, both grids, one lane, NaN in tokens of no block and in whatever no row reads.
"""
import random

import csa
from case import Case
from random_inputs import Geometry, floats, poison, put, rows_of, sizes
from random_mla_basics import cot, nonzero, rope_options
from safetensors_io import Tensor

OPS = (("csa_compress", 60), ("csa_indexer", 40))


def lengths(rng, S):
    out = []
    while sum(out) < S:
        out.append(min(S - sum(out), rng.choice((1, 2, 3, 4, 5, 7, 9))))
    return out


def put_documents(rng, tensors, options, B, S, document):
    """Segments and positions of tokens, with as few rules as compression has."""
    kind = rng.choice(("none", "ids", "ids", "cu")) if B == 1 else rng.choice(("none", "ids", "ids"))
    padding = None
    if kind == "cu":
        parts = lengths(rng, S)
        if rng.random() < 0.3:
            parts.insert(rng.randrange(len(parts) + 1), 0)
        ends = [sum(parts[:i]) for i in range(len(parts) + 1)]
        tensors["in.cu_seqlens"] = Tensor("I32", (len(ends),), ends)
        if rng.random() < 0.3 and parts:
            padding = rng.randrange(len(parts))
    if kind == "ids":
        flat, places = [], []
        padding = 7 if rng.random() < 0.4 else None
        for _ in range(B):
            for d, n in enumerate(lengths(rng, S)):
                id_ = padding if padding is not None and rng.random() < 0.3 else 10 + d
                if not document and rng.random() < 0.2:
                    id_ = rng.choice((10, 11))  # may return
                flat += [id_] * n
                start = rng.choice((0, 0, 0, 5))
                places += range(start, start + n)
        tensors["in.segment_ids"] = Tensor("I32", (B, S), flat)
        if rng.random() < 0.6:
            tensors["in.positions"] = Tensor("I32", (B, S), places)
    if kind != "cu" and "in.positions" not in tensors and rng.random() < 0.3:
        places = [rng.choice((s, s, s, s + 3, 0)) for _ in range(B) for s in range(S)]
        tensors["in.positions"] = Tensor("I32", (B, S), places)
    if padding is not None:
        options["mask"] = {"padding_segment": padding}
    return kind != "none"


def make_csa_compress(rng):
    tensors, options = {}, {"m": rng.choice((1, 2, 2, 3, 4, 5))}
    m, document = options["m"], rng.random() < 0.3
    B = 1 if document else rng.choice((1, 1, 2, 3))
    S = rng.choice((0, 1, m - 1, m, 3 * m, rng.randint(2, 22), rng.randint(2, 22), rng.randint(2, 22)))
    D = rng.choice((1, 2, 3, 5))
    overlap = rng.random() < 0.75
    if not overlap or rng.random() < 0.2:
        options["overlap"] = overlap
    if document:
        options["grid"] = "document"
    if put_documents(rng, tensors, options, B, S, document) and rng.random() < 0.5:
        options["boundary"] = rng.choice(("segments", "positions"))
    if rng.random() < 0.25:
        options["norm"] = False
    if rng.random() < 0.5:
        options["eps"] = rng.choice((1e-6, 1e-3, 0.5))
    if D > 1 and rng.random() < 0.6:
        options["rope"] = rope_options(rng, 2 * rng.randint(1, D // 2))
    W = 2 * D if overlap else D
    put(rng, tensors, "in.kv", floats(rng, (B, S, W), 1.0))
    put(rng, tensors, "in.gate", floats(rng, (B, S, W), rng.choice((0.5, 1.0, 4.0, 40.0))))
    if rng.random() < 0.7:
        put(rng, tensors, "in.position_bias", floats(rng, (m, W), 1.0))
    if options.get("norm", True) and rng.random() < 0.7:
        put(rng, tensors, "in.norm_weight", floats(rng, (D,), 1.0))
    hide = rng.random() < 0.5
    if overlap and not document and rng.random() < 0.5:
        flags = [rng.random() < 0.6 for _ in range(B)]
        for name in ("in.prior_kv", "in.prior_gate"):
            put(rng, tensors, name, floats(rng, (B, m, W), 1.0))
        if rng.random() < 0.7:
            tensors["in.prior_present"] = Tensor("BOOL", (B,), flags)
            if hide:
                for name in ("in.prior_kv", "in.prior_gate"):
                    poison(rng, tensors, name, rows_of((B, m, W), 1, {b for b in range(B) if flags[b]}))
    grid = csa.Grid(Case({"op": "csa_compress", "options": options}, tensors), options, B, S)
    if hide:
        read = {b * S + s for b in range(B) for first in grid.first for s in range(first, first + m)}
        for name in ("in.kv", "in.gate"):
            poison(rng, tensors, name, rows_of((B, S, W), 2, read))
    N = len(grid.first)
    shapes = {"compressed": (B, N, D)}
    if not document:
        shapes.update(leftover_kv=(B, S - N * m, W), leftover_gate=(B, S - N * m, W))
        if overlap:
            shapes.update(prior_kv=(B, m, W), prior_gate=(B, m, W))
    # A cotangent of a copied NaN would reach it all the same; the tape has no such path.
    copies = [] if hide else [n for n in sorted(shapes) if n != "compressed"]
    others = [n for n in copies if rng.random() < 0.3]
    for name in ["compressed"] * (rng.random() < 0.9 or not others) + others:
        cot(rng, tensors, name, shapes[name])
    return options, ({"step": rng.randint(0, S + 2)} if rng.random() < 0.4 else {}), tensors


def geometry(rng):
    while True:
        g = Geometry(rng, True)
        if g.S <= 13 and g.B <= 2 and g.T and (g.way == "row_index" or g.T == g.S) and "query_offset" not in g.mask:
            return g


def read_tokens(g, options, tensors):
    """(tokens that something real reads, real rows): rows, visible blocks and what stands in their lane A."""
    case = Case({"op": "csa_indexer", "options": options}, tensors)
    rows, grid = csa.rows_of_tokens(case), csa.Grid(case, options, g.B, g.S)
    read, real_rows = set(), set()
    for b in range(g.B):
        for t in range(g.T):
            if not rows.is_real(b, t):
                continue
            real_rows.add(b * g.T + t)
            read.add(b * g.S + rows.token[t])
            for j in rows.visible(b, t):
                for k in [j] + ([j - 1] if j and grid.follows(b, j) else []):
                    read |= {b * g.S + s for s in range(grid.first[k], grid.first[k] + g.m)}
    return read, real_rows


def make_csa_indexer(rng):
    g = geometry(rng)
    tensors, options = dict(g.inputs), dict(g.options)
    B, T, S, m, N = g.B, g.T, g.S, g.m, g.K
    n = sizes(rng, {B, T, S}, E=(1, 6), Rq=(1, 6), A=(1, 4), e=(2, 5))
    E, Rq, A, e = n["E"], n["Rq"], n["A"], n["e"]
    options.update(k=rng.randint(0, 5), rope=rope_options(rng, 2 * rng.randint(1, e // 2)))
    for name, values in (("tie", ("lowest_index", "threshold")), ("eps", (1e-6, 1e-3)),
                         ("score_scale", ("heads_and_dim", "dim", "none"))):
        if rng.random() < 0.5:
            options[name] = rng.choice(values)
    if ("in.segment_ids" in tensors or "in.cu_seqlens" in tensors) and rng.random() < 0.5:
        options["boundary"] = rng.choice(("segments", "positions"))
    width = rng.choice((0.5, 1.0))
    for name, shape in (("q_proj", (Rq, A, e)), ("gate_proj", (E, 2 * e)), ("position_bias", (m, 2 * e)),
                        ("kv_norm_weight", (e,)), ("weights_proj", (E, A)), ("q_latent", (B, S, Rq))):
        put(rng, tensors, "in." + name, floats(rng, shape, width))
    put(rng, tensors, "in.kv_proj", nonzero(rng, (E, 2 * e), width))
    put(rng, tensors, "in.x", floats(rng, (B, S, E), 1.0, family="normal"))
    cot(rng, tensors, "scores", (B, T, N))
    read, real_rows = read_tokens(g, options, tensors)
    if rng.random() < 0.5:
        for name in ("in.x", "in.q_latent"):
            poison(rng, tensors, name, rows_of(tensors[name].shape, 2, read))
        poison(rng, tensors, "cot.scores", rows_of((B, T, N), 2, real_rows))
    else:
        for name, shape in (("index_q", (B, S, A, e)), ("index_k", (B, N, e)), ("index_w", (B, S, A))):
            if rng.random() < 0.3:
                cot(rng, tensors, name, shape)
    plan = {}
    if rng.random() < 0.4:
        plan["head_chunk"] = rng.randint(0, A + 1)
    if rng.random() < 0.4:
        plan["step"] = rng.randint(0, S + 1)
    return options, plan, tensors


MAKERS = {"csa_compress": make_csa_compress, "csa_indexer": make_csa_indexer}


def make(seed, number, op=None):
    """Case `number` of a seed: (plumbline object, tensors)."""
    rng = random.Random("plumbline csa %d %d" % (seed, number))
    if op is None:
        op = rng.choices([o for o, _ in OPS], [w for _, w in OPS])[0]
    options, plan, tensors = MAKERS[op](rng)
    plumbline = {"schema": 1, "op": op, "options": options, "outputs": [], "seed": seed,
                 "generator": "tests/truth/random_csa_cases.py"}
    if plan:
        plumbline["schedule"] = plan
    return plumbline, tensors
