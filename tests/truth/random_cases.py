"""random_cases.py DIRECTORY --count N --seed S [--op NAME]: seeded random cases of the four operations.

Every case is valid by the specification and small (at most about 60 rows).  Sizes are pairwise different
where they can be; documents are ragged and positions restart, so blocks straddle; empty rows stand at
the head, in the middle and at the tail; -1 slots stand anywhere; hidden places hold NaN, infinities or
huge numbers in about half of the cases.  The distribution of interesting classes is printed.
"""
import argparse
import collections
import json
import math
import os
import random
from fractions import Fraction

import losses
import safetensors_io as st
from random_inputs import (COMMON_DTYPES, Geometry, floats, poison, put, put_indexer, rows_of,
                           sizes)
from safetensors_io import Tensor

OPS = (("csa_indexer_loss", 42), ("dsa_indexer_loss", 33), ("topk", 16), ("indexer_scores", 9))


# ---------------------------------------------------------------------------------------------------
# One operation each
# ---------------------------------------------------------------------------------------------------

def schedule(rng, keys, H, K):
    out = {}
    if "barrier" in keys and rng.random() < 0.6:
        out["barrier"] = rng.random() < 0.4
    if "head_chunk" in keys and rng.random() < 0.6:
        out["head_chunk"] = rng.randint(0, H + 1)
    if "key_block" in keys and rng.random() < 0.6:
        out["key_block"] = rng.randint(0, K + 1)
    return out


def make_indexer_scores(rng):
    tensors, options = {}, {}
    n = sizes(rng, set(), B=(1, 3), T=(1, 9), K=(1, 12), A=(1, 6), e=(1, 7))
    put_indexer(rng, tensors, ("in.q", "in.k", "in.w"), n["B"], n["T"], n["K"], n["A"], n["e"])
    if rng.random() < 0.7:
        options["score_scale"] = rng.choice(("heads_and_dim", "dim", "none"))
    if rng.random() < 0.3:
        options["relu"] = rng.random() < 0.3
    tensors["cot.scores"] = floats(rng, (n["B"], n["T"], n["K"]), 1.0, rng.choice(("F32", "F64")))
    return options, schedule(rng, ("head_chunk", "key_block"), n["A"], n["K"]), tensors


def make_topk(rng):
    blocks = rng.random() < 0.45
    g = Geometry(rng, blocks)
    tensors, options = dict(g.inputs), dict(g.options)
    if blocks or rng.random() < 0.2:
        options["keys"] = "blocks" if blocks else "tokens"
    options["k"] = rng.randint(0, max(1, g.K - 1)) if rng.random() < 0.8 else g.K + rng.randint(0, 2)
    if rng.random() < 0.7:
        options["tie"] = rng.choice(("lowest_index", "threshold"))
    may_be_nan = rng.random() < 0.5
    if not may_be_nan or rng.random() < 0.5:
        options["nan"] = "last" if may_be_nan else rng.choice(("last", "error"))
    shape = (g.B, g.T, g.K)
    dtype = rng.choice(COMMON_DTYPES)
    if rng.random() < 0.75:
        pool = [Fraction(n, 2) for n in range(-2, 4)] + [-0.0]
        if rng.random() < 0.6:
            pool += [math.inf, -math.inf, -math.inf]
        if may_be_nan:
            pool += [math.nan, math.nan]
        tensors["in.scores"] = Tensor(dtype, shape, [rng.choice(pool) for _ in range(st.count(shape))])
        if dtype == "F64" and rng.random() < 0.5:  # ties that only the second half breaks
            low = [rng.choice((Fraction(0), Fraction(1, 2 ** 70), Fraction(-1, 2 ** 70)))
                   for _ in range(st.count(shape))]
            tensors["in.scores.lo"] = Tensor("F64", shape, low)
    else:
        put(rng, tensors, "in.scores", floats(rng, shape, 2.0, dtype))
    g.need_S(options, not blocks)
    case = losses.Case({"op": "topk", "options": options}, tensors)
    if rng.random() < 0.6:
        rows = losses.Rows(case, g.B, g.T, blocks, [] if blocks else [g.K], g.K)
        keep = {(b * g.T + t) * g.K + s for b in range(g.B) for t in range(g.T)
                if rows.is_real(b, t) for s in rows.visible(b, t)}
        poison(rng, tensors, "in.scores", rows_of(shape, 3, keep))
    return options, {}, tensors


def random_log(rng):
    return rng.choice(("exact", {"mode": "exact"},
                       {"mode": "add", "eps": rng.choice((1e-8, 1e-10, 1e-3, 0.1))},
                       {"mode": "clamp", "eps": rng.choice((1e-10, losses.FLT_MIN, 1e-3, 0.2))},
                       {"mode": "clip", "lo": rng.choice((-100, -100.0, -4.5, -1.25))}))


def loss_option_set(rng, csa):
    options = {}
    presets = [p for p in losses.PRESETS if csa or p not in losses.CSA_ONLY]
    if rng.random() < 0.75:
        options["preset"] = rng.choice(presets)
    some = 0.3 if "preset" in options else 0.6
    if csa and rng.random() < some:
        options["teacher"] = rng.choice(("own", "joint", "joint", "joint_window"))
    if rng.random() < some:
        options["l1"] = rng.choice(("none", {"mode": "none"},
                                    {"mode": "add", "eps": rng.choice((1e-8, 1e-3, 0.5))},
                                    {"mode": "clamp", "eps": rng.choice((1e-10, losses.FLT_MIN, 0.3, 3.5))},
                                    {"mode": "zero_below", "eps": rng.choice((losses.FLT_MIN, 0.05, 0.4))}))
    for name in ("target_log", "student_log"):
        if rng.random() < some:
            options[name] = random_log(rng)
    if rng.random() < some:
        options["gradient"] = rng.choice(("of_value", "p_minus_t"))
    if rng.random() < some:
        options["reduction"] = rng.choice(("sum", "mean_all", "mean_valid", "mean_real"))
    if rng.random() < 0.4:
        options["coefficient"] = rng.choice((0.25, 0.7, 1, 2.5, 1e-3, 0, -1.5))
    if rng.random() < 0.6:
        options["softmax_scale"] = rng.choice((0.5, 0.4472135954999579, 1.7, 1, 0.1))
    if rng.random() < 0.4:
        options["restrict"] = rng.choice(("before_softmax", "after_softmax", "after_softmax"))
    if rng.random() < 0.4:
        options["score_scale"] = rng.choice(("heads_and_dim", "dim", "none"))
    if rng.random() < 0.25:
        options["relu"] = rng.random() < 0.4
    if rng.random() < 0.04:
        options["nonfinite"] = "allow"
    return options


def put_selection(rng, tensors, options, g, k):
    """Random sets: visible keys mostly, hidden ones too, -1 anywhere, some rows without a key."""
    B, T, K = g.B, g.T, g.K
    probe = losses.Case({"op": "topk", "options": dict(options, S=g.S)}, tensors)
    rows = losses.Rows(probe, B, T, g.blocks, [], K)
    if rng.random() < 0.4:
        flags = []
        for b in range(B):
            for t in range(T):
                density = rng.choice((0.0, 0.3, 0.6, 0.6, 1.0))
                flags += [rng.random() < density for _ in range(K)]
        tensors["in.selected"] = Tensor("BOOL", (B, T, K), flags)
        return
    out = []
    for b in range(B):
        for t in range(T):
            if not rows.is_real(b, t) and K and rng.random() < 0.5:
                out += [rng.randrange(-1, K) for _ in range(k)]  # whatever, with duplicates
                continue
            seen = rows.visible(b, t) if rng.random() < 0.8 else list(range(K))
            n = min(k, len(seen)) if rng.random() < 0.6 else rng.randint(0, min(k, len(seen)))
            row = rng.sample(seen, n) + [-1] * (k - n)
            if rng.random() < 0.3:
                row.sort(reverse=True)
            else:
                rng.shuffle(row)
            out += row
    tensors["in.indices"] = Tensor("I32", (B, T, k), out)


def make_loss(rng, op):
    csa = op == "csa_indexer_loss"
    g = Geometry(rng, csa)
    options = loss_option_set(rng, csa)
    options.update(g.options)
    tensors = dict(g.inputs)
    B, T, S, K = g.B, g.T, g.S, g.K
    n = sizes(rng, {B, T, S, K}, H=(1, 5), D=(1, 6), A=(1, 5), e=(1, 6), k=(1, max(2, K - 1)))
    H, D, A, e, k = (n[x] for x in ("H", "D", "A", "e", "k"))
    if rng.random() < 0.3:
        H = rng.choice((2, 3, 4))
    if rng.random() < 0.05:
        k = K + 2
    sparse = rng.random() < 0.6
    if sparse or rng.random() < 0.3:
        options["sparse"] = sparse
    if sparse:
        put_selection(rng, tensors, options, g, k)
        if "in.indices" in tensors and rng.random() < 0.55:
            options["layout"] = "slots"
    elif rng.random() < 0.1:
        options["layout"] = "dense"
    slots = options.get("layout") == "slots"
    width = k if slots else K

    # student
    raw = rng.random() < 0.4
    if raw:
        put_indexer(rng, tensors, ("in.index_q", "in.index_k", "in.index_w"), B, T, K, A, e)
    else:
        put(rng, tensors, "in.scores", floats(rng, (B, T, width), rng.choice((0.3, 1.0, 1.0, 5.0, 40.0, 300.0))))

    # teacher
    spread = rng.choice((0.7, 1.0, 1.0, 2.0, 6.0))
    put(rng, tensors, "in.query", floats(rng, (B, T, H, D), spread))
    if csa:
        put(rng, tensors, "in.compressed", floats(rng, (B, K, D), spread))
    else:
        Hk = rng.choice([d for d in range(1, H + 1) if H % d == 0])
        put(rng, tensors, "in.key", floats(rng, (B, S, Hk, D), spread))
    teacher = losses.loss_options(losses.Case({"op": op, "options": options}, tensors))["teacher"]
    unread_kv = False
    if csa and teacher != "own":
        options["window"] = rng.choice((0, 1, 2, 3, 5, S + 2))
        if options["window"] > 0 or rng.random() < 0.3:
            put(rng, tensors, "in.kv", floats(rng, (B, S, D), spread))
            unread_kv = options["window"] == 0
        if rng.random() < 0.75:
            sink = floats(rng, (H,), rng.choice((1.0, 4.0)), rng.choice(("F32", "F64", "BF16")))
            values = list(sink.values)
            if rng.random() < 0.3:
                for h in range(H):
                    if rng.random() < 0.5:
                        values[h] = rng.choice((math.inf, -math.inf))
            if rng.random() < 0.06:
                values = [math.inf] * H
            put(rng, tensors, "in.sink", Tensor(sink.dtype, sink.shape, values)) \
                if all(isinstance(v, Fraction) for v in values) else \
                tensors.__setitem__("in.sink", Tensor(sink.dtype, sink.shape, values))
    elif csa and rng.random() < 0.15:  # what an own teacher never reads
        options["window"] = rng.choice((0, 4))
        tensors["in.kv"] = floats(rng, (B, S, D), 1.0)
        tensors["in.sink"] = Tensor("F32", (H,), [math.nan] * H)
        unread_kv = True

    # cotangents
    cot = rng.choice(("none", "none", "loss", "row_loss", "both"))
    if cot in ("loss", "both"):
        tensors["cot.loss"] = Tensor("F64", (), [st.round_to("F64", rng.gauss(0, 2))])
    if cot in ("row_loss", "both"):
        tensors["cot.row_loss"] = floats(rng, (B, T), 1.0, rng.choice(("F32", "F64")))
    g.need_S(options, "in.key" in tensors or "in.kv" in tensors)

    # what is read, and poison elsewhere
    loss = losses.Loss(losses.Case({"op": op, "options": options}, tensors))
    o = loss.o
    real_rows, student_cells, student_keys, teacher_keys, window_tokens = set(), set(), set(), set(), set()
    for b in range(B):
        for t in range(T):
            if not loss.rows.is_real(b, t):
                continue
            here = b * T + t
            real_rows.add(here)
            seen = loss.rows.visible(b, t)
            chosen = loss.chosen(b, t, seen)
            student_cells |= {here * width + column for column in chosen.values()}
            student_keys |= {b * K + s for s in chosen}
            teacher_keys |= {b * K + s for s in (chosen if o["restrict"] == "before_softmax" else seen)}
            if teacher != "own":
                window_tokens |= {b * S + s for s in loss.rows.window(b, t, o["window"])}
    poisoned = rng.random() < 0.6
    if poisoned:
        for name, leading, keep in (("in.query", 2, real_rows), ("in.index_q", 2, real_rows),
                                    ("in.index_w", 2, real_rows), ("in.scores", 3, student_cells),
                                    ("in.index_k", 2, student_keys), ("in.compressed", 2, teacher_keys),
                                    ("in.key", 2, teacher_keys), ("cot.row_loss", 2, real_rows),
                                    ("in.kv", 2, set() if unread_kv else window_tokens)):
            if name in tensors:
                poison(rng, tensors, name, rows_of(tensors[name].shape, leading, keep))

    # given intermediates: the forward's own, rounded, or made up
    fate = rng.random()
    dtype = rng.choice(("F32", "F64"))
    forward = None
    if fate < 0.22:
        forward = losses.evaluate(losses.Case({"op": op, "options": options}, tensors), 30)
    if fate < 0.1:
        shape, values = forward["out.log_mass"]
        values = [st.round_to(dtype, float(x)) for x in values]
        tensors["given.log_mass"] = Tensor(dtype, shape, values)
        if poisoned:
            poison(rng, tensors, "given.log_mass", rows_of(shape, 2, real_rows))
    elif fate < 0.22:
        shape, values = forward["out.head_sum"]
        if rng.random() < 0.3:  # made up, with zeros and a row of zeros
            zero_row = rng.randrange(max(1, B * T))
            values = [0 if i // max(width, 1) == zero_row or rng.random() < 0.2 else abs(rng.gauss(0, 1))
                      for i in range(len(values))]
        values = [st.round_to(dtype, max(float(x), 0.0)) for x in values]
        tensors["given.head_sum"] = Tensor(dtype, shape, values)
        if poisoned:
            poison(rng, tensors, "given.head_sum", rows_of(shape, 3, student_cells))
        if rng.random() < 0.6:
            for name in list(tensors):
                if name.split(".")[1] in ("query", "key", "compressed", "kv", "sink"):
                    del tensors[name]
            options.pop("S", None)
            g.need_S(options, False)
    # a given target leaves open what a skipped row does, so only where no row with keys is skipped
    if rng.random() < 0.08 and o["l1"]["mode"] != "zero_below" and "given.head_sum" not in tensors:
        forward = losses.evaluate(losses.Case({"op": op, "options": options}, tensors), 30)
        sums = forward["out.head_sum"][1]
        if all(sums[i] != 0 for i in student_cells):
            values = [st.round_to(dtype, abs(rng.gauss(0, 0.4)) + 1e-3) for _ in sums]
            for i in range(len(values)):  # zeros, but never a whole row
                if rng.random() < 0.2 and i - 1 in student_cells and values[i - 1] != 0 and i % width:
                    values[i] = Fraction(0)
            tensors["given.target"] = Tensor(dtype, (B, T, width), values)
            if poisoned:
                poison(rng, tensors, "given.target", rows_of((B, T, width), 3, student_cells))
    return options, schedule(rng, ("barrier", "head_chunk", "key_block"), H, K), tensors


def make(seed, number, op=None):
    """Case `number` of a seed: (plumbline object, tensors)."""
    rng = random.Random("plumbline %d %d" % (seed, number))
    if op is None:
        op = rng.choices([o for o, _ in OPS], [w for _, w in OPS])[0]
    if op == "topk":
        options, plan, tensors = make_topk(rng)
    elif op == "indexer_scores":
        options, plan, tensors = make_indexer_scores(rng)
    else:
        options, plan, tensors = make_loss(rng, op)
    outputs = ["scores"] if op == "indexer_scores" else ["indices", "selected"] if op == "topk" else \
        sorted(rng.sample(losses.ON_REQUEST[op], rng.randint(0, 3)))
    plumbline = {"schema": 1, "op": op, "options": options, "outputs": outputs, "seed": seed,
                 "generator": "tests/truth/random_cases.py"}
    if plan:
        plumbline["schedule"] = plan
    return plumbline, tensors


def save(path, plumbline, tensors):
    st.write(path, {"plumbline": json.dumps(plumbline, sort_keys=True)}, tensors)


def classes(plumbline, tensors, result):
    """Names of the interesting classes a case falls into."""
    out = [plumbline["op"]]
    options = plumbline["options"]
    case = losses.Case(plumbline, tensors)
    for name in ("sparse", "layout", "grid", "preset", "teacher", "reduction", "gradient", "restrict"):
        if name in options:
            out.append("%s=%s" % (name, options[name]))
    for name in tensors:
        if name.startswith("given.") or name.split(".")[1] in (
                "row_index", "segment_ids", "cu_seqlens", "positions", "valid", "mask", "row_mask",
                "selected", "indices", "index_q", "sink"):
            out.append(name)
        if name.endswith(".lo"):
            out.append("some .lo")
        if any(isinstance(v, float) and v != v for v in tensors[name].values):
            out.append("NaN poison or score")
    if plumbline["op"].endswith("_loss"):
        loss = losses.Loss(case)
        rows = loss.rows
        real = [(b, t) for b in range(loss.B) for t in range(loss.T) if rows.is_real(b, t)]
        seen = {r: rows.visible(*r) for r in real}
        chosen = {r: loss.chosen(r[0], r[1], seen[r]) for r in real}
        if any(not v for v in seen.values()):
            out.append("empty row")
        if any(seen[r] and not chosen[r] for r in real):
            out.append("visible but none selected")
        if any(len(chosen[r]) < len(seen[r]) for r in real):
            out.append("k below visible")
        if len(real) < loss.B * loss.T:
            out.append("row not real")
        if any(len(c) > 1 for c in chosen.values()):
            out.append("a row with two keys")
        if any(x not in (0,) for x in result["out.row_loss"][1]):
            out.append("nonzero loss")
        if loss.csa and rows.documents and any(
                len(set(rows.segment[b][f:f + rows.m])) > 1 for b in range(rows.B) for f in rows.first):
            out.append("straddling block")
        chunk = plumbline.get("schedule", {}).get("head_chunk", 0)
        if chunk > 0 and "in.query" in tensors and loss.H % chunk:
            out.append("ragged head_chunk")
    return sorted(set(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", choices=sorted(losses.OPERATIONS))
    parser.add_argument("--distribution", action="store_true", help="evaluate every case and print the classes")
    arguments = parser.parse_args()
    os.makedirs(arguments.directory, exist_ok=True)
    tally = collections.Counter()
    for number in range(arguments.count):
        plumbline, tensors = make(arguments.seed, number, arguments.op)
        name = "%s__%d_%05d.safetensors" % (plumbline["op"], arguments.seed, number)
        path = os.path.join(arguments.directory, name)
        save(path, plumbline, tensors)
        if arguments.distribution:
            result = losses.evaluate(losses.load(path), 30)
            tally.update(classes(plumbline, tensors, result))
    for name, times in sorted(tally.items()):
        print("%5.1f %%  %s" % (100.0 * times / arguments.count, name))


if __name__ == "__main__":
    main()
