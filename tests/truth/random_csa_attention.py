"""Seeded random cases of csa_attention."""
import csa_attention
import losses
from random_attention_cases import lse_options, put_sink
from random_inputs import Geometry, floats, poison, put, rows_of, sizes
from random_mla_basics import cot, evaluated, give
from safetensors_io import Tensor


def geometry(rng):
    while True:
        g = Geometry(rng, True)
        if g.S <= 14 and g.B <= 2:
            return g


def put_selection(rng, tensors, options, rows, k):
    B, T, N = rows.B, rows.T, rows.K
    how = rng.choice(("all", "selected", "indices", "indices", "indices"))
    if how == "selected":
        tensors["in.selected"] = Tensor("BOOL", (B, T, N), [
            rng.random() < d for d in [rng.choice((0.0, 0.4, 0.7, 1.0)) for _ in range(B * T)] for _ in range(N)])
    if how != "indices":
        return
    if rng.random() < 0.5:
        options["duplicates"] = rng.choice(("error", "set", "multiset", "multiset"))
    strict = rng.random() < 0.2
    if strict or rng.random() < 0.1:
        options["strict_selection"] = strict
    out = []
    for b in range(B):
        for t in range(T):
            real_row = rows.is_real(b, t)
            seen = rows.visible(b, t) if real_row else []
            pool = seen if real_row and (strict or rng.random() < 0.4) else list(range(N))
            if not real_row:
                row = [rng.randrange(-3, N + 5) for _ in range(k)]  # never read
            elif options.get("duplicates", "error") == "error":
                row = rng.sample(pool, min(len(pool), rng.randint(0, k)))
            else:
                row = [rng.choice(pool) for _ in range(rng.randint(0, k))] if pool else []
            row += [-1] * (k - len(row))
            rng.shuffle(row)
            out += row
    tensors["in.indices"] = Tensor("I32", (B, T, k), out)


def give_results(rng, options, tensors, poisoned, real_rows):
    forward = evaluated("csa_attention", options, tensors)
    names = rng.choice((("lse", "output"), ("output",)))
    if "lse" in names:  # a given lse is a constant
        tensors.pop("cot.lse", None)
        if "cot.output" not in tensors:
            cot(rng, tensors, "output", tensors["in.query"].shape)
    for name in names:
        give(rng, tensors, name, forward)
        if poisoned:
            poison(rng, tensors, "given." + name, rows_of(tensors["given." + name].shape, 2, real_rows))


def make_csa_attention(rng):
    g = geometry(rng)
    tensors, options = dict(g.inputs), dict(g.options)
    B, T, S, N = g.B, g.T, g.S, g.K
    n = sizes(rng, {B, T, S, N}, H=(1, 5), D=(1, 6), k=(0, 5))
    H, D, k = n["H"], n["D"], n["k"]
    options["window"] = rng.choice((0, 0, 1, 2, 3, 5, S, S + rng.randint(1, 9)))
    spread = rng.choice((0.7, 1.0, 1.0, 3.0, 12.0))
    put(rng, tensors, "in.query", floats(rng, (B, T, H, D), spread))
    put(rng, tensors, "in.kv", floats(rng, (B, S, D), spread))
    put(rng, tensors, "in.compressed", floats(rng, (B, N, D), spread))
    if rng.random() < 0.6:
        options["softmax_scale"] = rng.choice((0.5, 0.4472135954999579, 1, 2.0, 0.1))
    lse_options(rng, options)
    if rng.random() < 0.6:
        put_sink(rng, tensors, H)
    case = losses.Case({"op": "csa_attention", "options": options}, tensors)
    put_selection(rng, tensors, options, csa_attention.rows_of_case(case), k)
    cot(rng, tensors, "output", (B, T, H, D))
    if rng.random() < 0.6:
        cot(rng, tensors, "lse", (B, T, H))
        if rng.random() < 0.2:
            del tensors["cot.output"]

    case = losses.Case({"op": "csa_attention", "options": options}, tensors)
    rows = csa_attention.rows_of_case(case)
    count, read, real_rows = {"kv": S, "compressed": N}, {"kv": set(), "compressed": set()}, set()
    for b in range(B):
        for t in range(T):
            if rows.is_real(b, t):
                real_rows.add(b * T + t)
                for name, key in csa_attention.row_keys(case, rows, b, t):
                    read[name].add(b * count[name] + key)
    poisoned = rng.random() < 0.6
    if poisoned:
        for name, keep in (("in.query", real_rows), ("in.kv", read["kv"]), ("in.compressed", read["compressed"]),
                           ("cot.output", real_rows), ("cot.lse", real_rows)):
            if name in tensors:
                poison(rng, tensors, name, rows_of(tensors[name].shape, 2, keep))
    if rng.random() < 0.2:
        give_results(rng, options, tensors, poisoned, real_rows)
    plan = {}
    if rng.random() < 0.5:
        plan["head_chunk"] = rng.randint(0, H + 1)
    if rng.random() < 0.5:
        plan["key_block"] = rng.randint(0, 6)
    return options, plan, tensors
