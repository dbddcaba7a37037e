"""table.py [FILE]: writes losses_table.json (beside this file by default), small fixed cases with 50-digit answers.

A list of {"name", "op", "options", "schedule", "inputs", "given", "cot", "expected"}.  Each of inputs, given,
cot maps a name (without `in.`, `given.`, `cot.`) to {"dtype", "shape", "values"}: F64 values are shortest
decimal strings of binary64 numbers (or "inf", "-inf", "nan"), I32 values ints, BOOL values true or false.
"expected" maps `out.<name>` and `grad.<name>` to {"shape", "values"}: decimal strings with 50 significant
digits, "inf", "-inf", or ints and booleans for indices and flags.  The string "0" is a zero by definition
(hidden key, row that is not real, empty slot, skipped row) and must be met exactly; a computed zero is "0.0".
In every tensor of reals the largest finite magnitude is 0 or at least 1e-4, so digits may be counted from it.
"""
import json
import math
import os
import sys
from fractions import Fraction

import mpmath

import losses
from safetensors_io import Tensor, count

LN2, LN3, LN6 = 0.6931471805599453, 1.0986122886681098, 1.791759469228055
NAN, INF = math.nan, math.inf


def spread(name, shape, width=1.0):
    """Deterministic, irregular multiples of width/64, width a power of two or a small integer."""
    state = sum((i + 1) * ord(c) for i, c in enumerate(name)) % 4093 + 1
    values = []
    for _ in range(count(shape)):
        state = state * 1103 % 4093  # 4093 is prime
        values.append((state % 255 - 127) / 64 * width)
    return f64(shape, values)


def f64(shape, values):
    """Exact elements; NaN, infinities and -0.0 stay Python floats."""
    plain = lambda v: math.isfinite(v) and (v != 0 or math.copysign(1, v) > 0)
    return Tensor("F64", tuple(shape), [Fraction(v) if plain(v) else v for v in map(float, values)])


def i32(shape, values):
    return Tensor("I32", tuple(shape), list(values))


def flags(shape, text):
    """'1' shown, '0' hidden; spaces are for the eye."""
    return Tensor("BOOL", tuple(shape), [c == "1" for c in text if c in "01"])


def replaced(tensor, cells):
    values = list(tensor.values)
    for i, x in cells.items():
        values[i] = Fraction(x) if math.isfinite(x) else x
    return Tensor(tensor.dtype, tensor.shape, values)


CASES = []


def case(name, op, options, tensors, schedule=None):
    CASES.append((name, op, options, schedule or {}, tensors))


def teacher(B, T, H, D, N=None, S=None, Hk=None, width=1.0):
    """query with compressed (N) or key (S, Hk)."""
    out = {"in.query": spread("query", (B, T, H, D), width)}
    if N is not None:
        out["in.compressed"] = spread("compressed", (B, N, D))
    else:
        out["in.key"] = spread("key", (B, S, Hk, D))
    return out


def indexer(B, T, K, A, e):
    return {"in.index_q": spread("index_q", (B, T, A, e)), "in.index_k": spread("index_k", (B, K, e)),
            "in.index_w": spread("index_w", (B, T, A))}


def build():
    csa, dsa = "csa_indexer_loss", "dsa_indexer_loss"

    # ---- the first page of the docs: two heads, two blocks, window + sink mass 4 and 12
    first_page = {
        "in.query": f64((1, 8, 2, 3), [0] * 42 + [1, 0, LN2, 0, 1, LN6]),
        "in.compressed": f64((1, 2, 3), [LN3, 0, 0, 0, LN3, 0]),
        "in.kv": f64((1, 8, 3), [0, 0, 1] * 8),
        "in.sink": f64((2,), [LN2, LN6]),
        "in.scores": f64((1, 8, 2), [0.2, -0.1] * 8),
    }
    for which in ("own", "joint", "joint_window"):
        case("first page, teacher " + which, csa,
             {"preset": "exact", "teacher": which, "window": 1, "m": 4, "reduction": "sum", "coefficient": 8}, first_page)

    # ---- csa
    case("dense, raw indexer, rows without a block", csa, {"m": 3, "preset": "maxtext_v4"},
         dict(teacher(2, 7, 3, 4, N=2), **indexer(2, 7, 2, 5, 6)))
    documents = {"in.segment_ids": i32((1, 13), [4] * 5 + [9] * 7 + [2]),
                 "in.positions": i32((1, 13), list(range(5)) + list(range(7)) + [0])}
    case("sparse indices, documents, straddling block, -1 anywhere, ragged head chunk", csa,
         {"m": 2, "preset": "maxtext_v4", "sparse": True, "coefficient": 0.25, "softmax_scale": 0.5},
         dict(teacher(1, 13, 3, 4, N=6), **documents, **{
             "in.scores": spread("scores", (1, 13, 6)),
             "in.indices": i32((1, 13, 3), [-1, 0, -1, 0, -1, -1, 0, -1, 5, 1, -1, 0, -1, 1, -1,
                                            -1, -1, -1, 3, -1, 2, -1, 3, -1, 0, 3, -1, 4, -1, 3,
                                            5, 4, 3, -1, 5, 4, -1, -1, -1])}),
         {"head_chunk": 2, "key_block": 4, "barrier": False})
    case("layout slots, scores by slot, NaN in unused slots", csa,
         {"m": 2, "preset": "exact", "sparse": True, "layout": "slots", "reduction": "mean_all"},
         dict(teacher(1, 7, 2, 5, N=3), **{
             "in.scores": replaced(spread("scores", (1, 7, 4)), {0: NAN, 1: INF, 5: NAN, 10: NAN}),
             "in.indices": i32((1, 7, 4), [-1, 2, -1, -1, 0, -1, -1, -1, -1, 0, 1, -1,
                                           1, -1, 0, -1, -1, -1, -1, -1, 2, 0, 1, -1, 1, -1, 2, 0]),
             "cot.row_loss": spread("cot_row_loss", (1, 7))}))
    case("megatron eager joint teacher, both cotangents", csa,
         {"m": 3, "preset": "megatron_csa_eager", "window": 4, "coefficient": 0.75, "softmax_scale": 0.4472135954999579},
         dict(teacher(1, 11, 4, 5, N=3), **indexer(1, 11, 3, 2, 6), **{
             "in.kv": spread("kv", (1, 11, 5)), "in.sink": spread("sink", (4,)),
             "cot.loss": f64((), [1.5]), "cot.row_loss": spread("cot_row_loss", (1, 11))}))
    case("megatron fused, sparse, student below FLT_MIN", csa,
         {"m": 2, "preset": "megatron_csa_fused", "window": 3, "sparse": True},
         dict(teacher(1, 9, 2, 3, N=4, width=2.0), **{
             "in.scores": spread("scores", (1, 9, 4), 128.0), "in.kv": spread("kv", (1, 9, 3)),
             "in.sink": spread("sink", (2,)),
             "in.selected": flags((1, 9, 4), "1111 1111 0111 1111 1011 1101 1110 1111 0111")}))
    case("primus, restrict after the softmax, target below its eps", csa,
         {"m": 2, "preset": "primus", "window": 2, "sparse": True, "restrict": "after_softmax"},
         dict(teacher(2, 9, 3, 4, N=4, width=8.0), **{
             "in.scores": spread("scores", (2, 9, 4), 4.0), "in.kv": spread("kv", (2, 9, 4)),
             "in.sink": spread("sink", (3,)),
             "in.selected": flags((2, 9, 4), "1111 1111 0111 1111 1011 1101 1110 1101 0111"
                                             "1000 1010 0110 1100 1111 0101 1110 0000 1101")}))
    case("veomni, document grid, padding, row_mask, sinks of all kinds", csa,
         {"m": 3, "grid": "document", "preset": "veomni", "window": 4,
          "mask": {"padding_segment": -1}},
         dict(teacher(1, 19, 4, 2, N=5), **{
             "in.segment_ids": i32((1, 19), [5] * 7 + [-1] * 2 + [3] * 2 + [8] * 7 + [-1]),
             "in.positions": i32((1, 19), list(range(7)) + [0, 0] + [0, 1] + list(range(7)) + [0]),
             "in.row_mask": flags((1, 19), "1111101 11 11 1111111 1"),
             "in.scores": spread("scores", (1, 19, 5)[:2] + (4,)), "in.kv": spread("kv", (1, 19, 2)),
             "in.sink": f64((4,), [INF, -INF, 0.5, -1.25])}))
    CASES[-1][4]["in.compressed"] = spread("compressed", (1, 4, 2))
    case("zero_below drops rows whose blocks weigh little", csa,
         {"m": 2, "preset": "exact", "teacher": "joint", "l1": {"mode": "zero_below", "eps": 0.75}, "window": 2,
          "reduction": "mean_real"},
         dict(teacher(1, 12, 2, 3, N=6), **{"in.scores": spread("scores", (1, 12, 6)),
                                            "in.kv": spread("kv", (1, 12, 3)), "in.sink": f64((2,), [0.25, 1.5])}))
    case("every sink infinite: skipped rows that still count", csa,
         {"m": 2, "preset": "veomni", "window": 0, "reduction": "mean_real"},
         dict(teacher(1, 5, 2, 3, N=2), **{"in.scores": spread("scores", (1, 5, 2)), "in.sink": f64((2,), [INF, INF])}))
    case("window 0 and a sink; joint teacher on an empty set keeps its mass", csa,
         {"m": 3, "preset": "megatron_csa_eager", "window": 0, "sparse": True, "gradient": "of_value"},
         dict(teacher(1, 10, 2, 4, N=3), **{
             "in.scores": spread("scores", (1, 10, 3)), "in.sink": f64((2,), [0.375, -2.0]),
             "in.selected": flags((1, 10, 3), "111 111 111 000 111 111 111 010 101 111")}))
    case("given log_mass", csa, {"m": 2, "preset": "maxtext_v4", "l1": "none"},
         dict(teacher(1, 7, 2, 5, N=3), **{"in.scores": spread("scores", (1, 7, 3)),
                                           "given.log_mass": spread("log_mass", (1, 7, 2))}))
    case("given head_sum with zeros, no query", csa,
         {"m": 2, "preset": "megatron", "target_log": "exact", "S": 9, "mask": {"query_offset": 1}},
         {"in.scores": spread("scores", (1, 7, 4)),
          "given.head_sum": f64((1, 7, 4), [0.5, NAN, NAN, NAN, 1.25, -1, NAN, NAN, 0, 0.75, NAN, NAN, 0, 0, NAN, NAN,
                                            1, 0.5, 2, NAN, 0.125, 0, 3, NAN, 1, 2, 0.5, 0.25])})
    case("given target that does not sum to 1", csa,
         {"m": 2, "preset": "exact", "student_log": {"mode": "add", "eps": 0.01}},
         dict(teacher(1, 6, 2, 4, N=3), **{
             "in.scores": spread("scores", (1, 6, 3)),
             "given.target": f64((1, 6, 3), [NAN] * 3 + [0.5, NAN, NAN] + [0.75, NAN, NAN] + [0, 0.5, NAN] +
                                 [0.25, 0.5, NAN] + [0.375, 0, 0.5])}))
    case("causal false, valid, gaps in positions, rows chosen by row_index", csa,
         {"m": 2, "preset": "exact", "teacher": "joint_window", "window": 3, "mask": {"causal": False}},
         dict(teacher(1, 6, 3, 2, N=5), **{
             "in.positions": i32((1, 11), [0, 1, 3, 4, 5, 8, 9, 10, 12, 13, 14]),
             "in.row_index": i32((6,), [10, 0, 4, 7, 2, 5]), "in.kv": spread("kv", (1, 11, 2)),
             "in.scores": spread("scores", (1, 6, 5)),
             "in.valid": flags((1, 6, 5), "11011 00000 10111 11111 01110 11101")}))
    case("no block at all", csa, {"m": 4, "preset": "maxtext_v4"},
         dict(teacher(2, 3, 2, 5, N=0), **{"in.scores": f64((2, 3, 0), [])}))

    # ---- dsa
    case("dense causal, one key head, hidden NaN", dsa, {"preset": "maxtext_v32"},
         dict(teacher(2, 5, 3, 4, S=5, Hk=1), **{
             "in.scores": replaced(spread("scores", (2, 5, 5)), {1: NAN, 4: -INF, 9: 1e300})}))
    case("sparse, documents, padding in the middle, row_index", dsa,
         {"preset": "megatron", "sparse": True, "softmax_scale": 0.5, "mask": {"padding_segment": 0}},
         dict(teacher(1, 6, 4, 3, S=11, Hk=2), **indexer(1, 6, 11, 2, 5), **{
             "in.segment_ids": i32((1, 11), [1] * 4 + [0] * 2 + [2] * 5),
             "in.row_index": i32((6,), [10, 3, 5, 8, 0, 9]),
             "in.indices": i32((1, 6, 4), [6, 10, 8, 2, -1, 3, 1, 0, 9, 9, 1, -1,
                                           8, 7, -1, 6, -1, -1, -1, -1, 9, -1, 10, 7])}))
    case("tilelang, restrict after the softmax, cu_seqlens", dsa,
         {"preset": "tilelang", "restrict": "after_softmax", "sparse": True, "softmax_scale": 0.5},
         dict(teacher(1, 9, 3, 2, S=9, Hk=1), **indexer(1, 9, 9, 4, 5), **{
             "in.cu_seqlens": i32((4,), [0, 4, 4, 9]),
             "in.selected": flags((1, 9, 9), "100000000 110000000 011000000 101100000 000010000"
                                             "000011000 000001110 000011010 111101111")}))
    hidden = -9900.0
    case("float mask, causal false, query_offset, an empty row", dsa,
         {"preset": "exact", "mask": {"causal": False, "query_offset": 1}},
         dict(teacher(1, 4, 2, 3, S=7, Hk=2), **{
             "in.scores": spread("scores", (1, 4, 7)),
             "in.mask": f64((1, 4, 7), [0, hidden, 0, 0, -INF, 0, 0] + [-1e9] * 7 +
                            [0, 0, 0, 0, 0, 0, -INF] + [hidden, 0, 0, -INF, 0, 0, 0])}))
    case("clipped logarithms, derivative of the value", dsa,
         {"preset": "exact", "target_log": {"mode": "clip", "lo": -1.5}, "student_log": {"mode": "clip", "lo": -2.25}},
         dict(teacher(1, 7, 2, 3, S=7, Hk=1), **{"in.scores": spread("scores", (1, 7, 7), 2.0)}))
    case("clamped logarithms, mean_real, row_mask, coefficient", dsa,
         {"preset": "exact", "l1": {"mode": "clamp", "eps": 4.5}, "target_log": {"mode": "clamp", "eps": 0.125},
          "student_log": {"mode": "clamp", "eps": 0.0625}, "reduction": "mean_real", "coefficient": -1.75},
         dict(teacher(2, 6, 4, 3, S=6, Hk=4), **{
             "in.scores": spread("scores", (2, 6, 6)), "in.row_mask": flags((2, 6), "011110 101111"),
             "cot.loss": f64((), [0.5])}))
    case("no ReLU, no scale, added eps", dsa,
         {"preset": "maxtext_v32", "relu": False, "score_scale": "none", "student_log": {"mode": "add", "eps": 0.03125},
          "target_log": {"mode": "add", "eps": 1e-8}, "l1": {"mode": "add", "eps": 0.5}},
         dict(teacher(1, 6, 2, 3, S=6, Hk=1), **indexer(1, 6, 6, 4, 5)))
    case("layout slots with a raw indexer, hidden keys named", dsa,
         {"preset": "megatron", "sparse": True, "layout": "slots", "score_scale": "dim"},
         dict(teacher(1, 5, 2, 3, S=8, Hk=1), **indexer(1, 5, 8, 4, 6), **{
             "in.indices": i32((1, 5, 4), [7, 0, 3, -1, 4, 1, 2, 0, -1, -1, -1, -1, 6, 5, -1, 7, 2, 7, 6, -1])}))

    # ---- selection and scores
    ties = [1, 2, 2, -0.0, 0, 1, 2,  INF, NAN, 1, NAN, -INF, INF, 1,  0, -0.0, 0, 0, -0.0, 0, 0,
            NAN, NAN, -INF, -INF, NAN, 3, 3,  3, 1, 1, 1, 1, NAN, 0]
    case("top-k of tokens, lowest index among ties", "topk", {"k": 3}, {"in.scores": f64((1, 5, 7), ties)})
    case("top-k of tokens, threshold keeps every tie", "topk",
         {"k": 2, "tie": "threshold", "mask": {"causal": False}}, {"in.scores": f64((1, 5, 7), ties)})
    case("top-k of blocks, documents, more slots than blocks", "topk", {"k": 4, "keys": "blocks", "m": 3},
         {"in.scores": spread("scores", (1, 11, 3)), "in.segment_ids": i32((1, 11), [6] * 4 + [2] * 7),
          "in.positions": i32((1, 11), list(range(4)) + list(range(7)))})
    for scale, relu in (("heads_and_dim", True), ("dim", True), ("none", False)):
        case("scores, score_scale %s, relu %s" % (scale, str(relu).lower()), "indexer_scores",
             {"score_scale": scale, "relu": relu},
             {"in.q": replaced(spread("q", (2, 3, 4, 5)), {i: 0.0 for i in range(5)}),
              "in.k": spread("k", (2, 6, 5)), "in.w": spread("w", (2, 3, 4)),
              "cot.scores": spread("cot_scores", (2, 3, 6))},
             {"head_chunk": 3, "key_block": 4})


def stored(tensor):
    values = [repr(float(v)) for v in tensor.values] if tensor.dtype == "F64" else list(tensor.values)
    return {"dtype": tensor.dtype, "shape": list(tensor.shape), "values": values}


def decimal(x):
    if isinstance(x, int):
        return "0"
    if abs(x) == mpmath.inf:
        return "inf" if x > 0 else "-inf"
    return mpmath.nstr(x, 50)


def answer(name, shape, values):
    if name in ("out.indices", "out.selected", "out.row_valid"):
        return {"shape": list(shape), "values": list(values)}
    largest = max((abs(x) for x in values if abs(x) < mpmath.inf), default=0)
    if largest and largest < 1e-4:
        raise SystemExit("%s: largest value %s; choose another case" % (name, mpmath.nstr(largest, 5)))
    return {"shape": list(shape), "values": [decimal(x) for x in values]}


def main():
    build()
    rows = []
    for name, op, options, schedule, tensors in CASES:
        try:
            result = losses.evaluate(losses.Case({"op": op, "options": options}, tensors), 90)
            row = {"name": name, "op": op, "options": options, "schedule": schedule}
            for kind, prefix in (("inputs", "in."), ("given", "given."), ("cot", "cot.")):
                row[kind] = {n[len(prefix):]: stored(t) for n, t in sorted(tensors.items()) if n.startswith(prefix)}
            row["expected"] = {n: answer(n, *result[n]) for n in sorted(result)}
        except (losses.BadCase, SystemExit) as error:
            raise SystemExit("%s: %s" % (name, error))
        rows.append(row)
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                              "losses_table.json")
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(row, sort_keys=False) for row in rows) + "\n]\n")
    print("%d cases written" % len(rows))


if __name__ == "__main__":
    main()
