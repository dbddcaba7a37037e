"""Sizes, rotations, indexer weights and places that are read, for random_csa_cases.py and random_csa_layers.py."""
import losses
from csa_compress import Compressor
from random_inputs import Geometry, floats, put, sizes
from random_mla_basics import nonzero, rope_options


def block_geometry(rng, limit=9, server=False):
    """Rows of a layer over blocks: T = S, or row_index; mostly with a few blocks."""
    fewest = rng.choice((0, 2, 3, 3))
    while True:
        g = Geometry(rng, True)
        if g.S > limit or g.B > 2 or not g.B or g.K < fewest or not g.T or "query_offset" in g.mask or \
                (g.way not in ("full", "row_index") and g.T != g.S):
            continue
        if server and (g.document_grid or not g.causal or any(
                n in g.inputs for n in ("in.valid", "in.row_mask", "in.mask", "in.row_index")) or sees_ahead(g)):
            continue
        return g


def sees_ahead(g):
    """Positions with gaps show some row a block whose last token comes after it: no server can answer that."""
    rows = g.probe()
    return any(rows.first[j] + g.m > rows.token[t] + 1
               for b in range(g.B) for t in range(g.T) for j in rows.visible(b, t))


def window_size(rng, S):
    return rng.choice((0, 1, 2, 3, 3, 5, S + 3))


def some_rope(rng, width, inverse=False):
    out = rope_options(rng, 2 * rng.randint(1, width // 2), rng.random() < 0.4, inverse)
    if rng.random() < 0.5:  # what the frameworks do
        out.pop("pairing", None)
        out.pop("output", None)
    return out


def put_csa_indexer(rng, tensors, prefix, E, Rq, m, taken):
    n = sizes(rng, set(taken) | {m}, A=(1, 4), e=(2, 6))
    A, e = n["A"], n["e"]
    width = rng.choice((0.5, 1.0))
    for name, shape in (("q_proj", (Rq, A, e)), ("kv_proj", (E, 2 * e)), ("gate_proj", (E, 2 * e)),
                        ("position_bias", (m, 2 * e)), ("kv_norm_weight", (e,)), ("weights_proj", (E, A))):
        tensor = floats(rng, shape, width) if name == "position_bias" else nonzero(rng, shape, width)
        put(rng, tensors, "in." + prefix + name, tensor)
    options = {"rope": some_rope(rng, e), "k": rng.choice((0, 1, 1, 2, 2, 3, 4))}
    if rng.random() < 0.5:
        options["tie"] = rng.choice(("lowest_index", "threshold"))
    if rng.random() < 0.5:
        options["score_scale"] = rng.choice(("heads_and_dim", "dim", "none"))
    if rng.random() < 0.5:
        options["eps"] = rng.choice((1e-6, 1e-3))
    return options, A, e


def indexer_places(g, case, overlap=True, boundary=None):
    """(tokens that real rows stand at, tokens of blocks they see with the lane before, real rows), flat."""
    rows = losses.Rows(case, g.B, g.T, True, [g.S])
    options = {"m": g.m, "grid": case.options.get("grid", "physical"),
               "boundary": boundary or case.options.get("boundary", "positions")}
    compressor = Compressor(rows, options, 1, None, overlap=overlap)
    stand, tokens, real_rows = set(), set(), set()
    for b in range(g.B):
        for t in range(g.T):
            if rows.is_real(b, t):
                real_rows.add(b * g.T + t)
                stand.add(b * g.S + rows.token[t])
                for j in rows.visible(b, t):
                    tokens |= {b * g.S + s for s in compressor.tokens(b, j)}
    return stand, tokens, real_rows
