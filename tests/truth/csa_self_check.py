"""csa_self_check.py [COUNT]: the truth of compressed sparse attention against itself.

 - gradients against central differences, as mla_self_check.py does;
 - a layer's rows against csa_step, from an empty state through random pieces;
 - csa_compress against itself in two calls, with prior and leftover handed on.
"""
import random
import sys

import mpmath

import mla_self_check
import operations
import random_csa_cases
import safetensors_io as st
from case import Case, Rows
from safetensors_io import Tensor


def worst_difference(want, got):
    """Largest difference over the largest number; infinite where kinds differ or exact zeros are not."""
    largest = max([abs(x) for x in want if x is not None and abs(x) < mpmath.inf] + [mpmath.mpf(1)])
    worst = mpmath.mpf(0)
    for x, y in zip(want, got):
        if x is None or y is None or x == y:
            continue
        if abs(x) == mpmath.inf or abs(y) == mpmath.inf:
            return mpmath.inf
        worst = max(worst, abs(x - y) / largest)
    return worst


def cut(tensor, axis, begin, end):
    """tensor[..., begin:end, ...] along an axis."""
    inner, outer, size = st.count(tensor.shape[axis + 1:]), st.count(tensor.shape[:axis]), tensor.shape[axis]
    values = []
    for i in range(outer):
        values += tensor.values[(i * size + begin) * inner:(i * size + end) * inner]
    return Tensor(tensor.dtype, tensor.shape[:axis] + (end - begin,) + tensor.shape[axis + 1:], values)


# ---------------------------------------------------------------------------------------------------
# a layer through csa_step
# ---------------------------------------------------------------------------------------------------

def exact(case, name):
    old = case.tensors[name]
    return Tensor(old.dtype, old.shape, case.value(name))


def empty_state(case, S, spare):
    B, _, _ = case.shape("in.x")
    D, m, P = case.shape("in.wq_b")[2], case.options.get("m", 1), S + spare
    kind, nan = case.options.get("kind", "csa"), float("nan")
    shapes = {"kv": (B, P, D)}
    lanes = [] if kind == "window" else [("", "compressed", D)]
    if case.options.get("indexer"):
        lanes.append(("indexer_", "indexer_index_k", case.shape("in.indexer_q_proj")[2]))
    for prefix, name, width in lanes:
        shapes[name] = (B, P // m, width)
        for part in ("kv", "gate"):
            shapes[prefix + "partial_" + part] = (B, m, 2 * width if kind == "csa" else width)
            if kind == "csa":
                shapes[prefix + "prior_" + part] = (B, m, 2 * width)
    state = {n: Tensor("F64", x, [nan] * st.count(x)) for n, x in shapes.items()}
    for name in ("segment_ids", "positions"):
        state[name] = Tensor("I32", (B, P), [-77] * (B * P))
    state["length"] = Tensor("I32", (B,), [0] * B)
    if kind == "csa":
        state["prior_present"] = Tensor("BOOL", (B,), [False] * B)
    return state


def through_steps(plumbline, tensors, rng):
    """Worst difference between a layer's rows and the same rows from csa_step."""
    case = Case(dict(plumbline, schedule={}), tensors)
    whole = operations.evaluate(case)
    B, S, E = case.shape("in.x")
    state = empty_state(case, S, rng.randint(0, 3))
    weights = {n: t for n, t in tensors.items() if n.startswith("in.") and n.split(".")[1] not in (
        "x", "segment_ids", "positions", "cu_seqlens", "row_mask")}
    x, worst, done = exact(case, "in.x"), mpmath.mpf(0), 0
    places = {n: tensors["in." + n] for n in ("segment_ids", "positions") if "in." + n in tensors}
    if "in.cu_seqlens" in tensors:
        rows = Rows(case, 1, S, False, [S])
        places = {"segment_ids": Tensor("I32", (1, S), rows.segment[0]),
                  "positions": Tensor("I32", (1, S), rows.position[0])}
    while done < S:
        L = rng.randint(1, min(4, S - done))
        now = dict(weights)
        now["in.x"] = cut(x, 1, done, done + L)
        now.update({"in." + n: cut(t, 1, done, done + L) for n, t in places.items()})
        now.update({"in.state." + n: t for n, t in state.items()})
        options = {n: o for n, o in plumbline["options"].items() if n != "grid"}
        part = operations.evaluate(Case({"op": "csa_step", "options": options}, now))
        with mpmath.workdps(60):
            for name in ("output", "attention_lse", "attention_output", "attention_max_logit"):
                shape, values = whole["out." + name]
                want = cut(Tensor("F64", shape, values), 1, done, done + L).values
                worst = max(worst, worst_difference(want, part["out." + name][1]))
        for name, old in state.items():
            shape, values = part["out.state." + name]
            state[name] = Tensor(old.dtype, tuple(shape), [float("nan") if v is None else v for v in values])
        done += L
    with mpmath.workdps(60):
        for cache, name in (("kv", "kv"), ("compressed", "compressed"), ("indexer_index_k", "indexer_index_k")):
            if cache in state:
                shape, values = whole["out." + name]
                got = cut(state[cache], 1, 0, shape[1]).values
                worst = max(worst, worst_difference(values, got))
    return worst


# ---------------------------------------------------------------------------------------------------
# csa_compress in two calls
# ---------------------------------------------------------------------------------------------------

def in_two(plumbline, tensors, rng):
    options = plumbline["options"]
    case = Case(plumbline, tensors)
    B, S, _ = case.shape("in.kv")
    m, overlap = options["m"], options.get("overlap", True)
    if options.get("grid") == "document" or "in.cu_seqlens" in tensors or S < 2:
        return None
    whole = operations.evaluate(case)
    middle = rng.randint(1, S - 1)
    first = {n: t for n, t in tensors.items() if n.startswith("in.")}
    for name in ("in.kv", "in.gate"):
        first[name] = exact(case, name)
        first.pop(name + ".lo", None)
    second = {n: t for n, t in first.items() if not n.startswith("in.prior_")}
    for name in ("in.kv", "in.gate", "in.segment_ids", "in.positions"):
        if name in tensors:
            second[name] = cut(first[name], 1, middle - middle % m, S)
            first[name] = cut(first[name], 1, 0, middle)
    if "in.positions" not in tensors:
        second["in.positions"] = Tensor("I32", (B, S - middle + middle % m), list(range(middle - middle % m, S)) * B)
    one = operations.evaluate(Case({"op": "csa_compress", "options": options}, first))
    for part in ("kv", "gate"):  # the leftover is put in front of the new tokens
        left = one["out.leftover_" + part]
        want = cut(second["in." + part], 1, 0, middle % m)
        with mpmath.workdps(60):
            if left[0] != want.shape or any(x is not None and x != operations.real(y)
                                            for x, y in zip(left[1], want.values)):
                return mpmath.inf
    if overlap:
        for part in ("kv", "gate"):
            shape, values = one["out.prior_" + part]
            second["in.prior_" + part] = Tensor("F64", shape, [float("nan") if v is None else v for v in values])
        present = list(one["out.prior_present"][1])
        n = middle // m
        if n and S // m > n:  # the caller clears it at a document start
            for b in range(B):
                place = case.value("in.positions")[b * S:] if "in.positions" in tensors else range(S)
                go_on = place[n * m] == place[n * m - m] + m
                if options.get("boundary") == "segments":
                    ids = case.value("in.segment_ids")[b * S:]
                    go_on = ids[n * m] == ids[n * m - m]
                present[b] = present[b] and go_on
        second["in.prior_present"] = Tensor("BOOL", (B,), present)
    two = operations.evaluate(Case({"op": "csa_compress", "options": options}, second))
    shape, values = whole["out.compressed"]
    N1 = one["out.compressed"][0][1]
    with mpmath.workdps(60):
        halves = (cut(Tensor("F64", shape, values), 1, 0, N1), cut(Tensor("F64", shape, values), 1, N1, shape[1]))
        worst = max(worst_difference(h.values, part["out.compressed"][1]) for h, part in zip(halves, (one, two)))
        for name in ("prior_kv", "prior_gate", "leftover_kv", "leftover_gate"):
            if "out." + name in whole and (not name.startswith("prior") or S // m):
                worst = max(worst, worst_difference(whole["out." + name][1], two["out." + name][1]))
    return worst


def repeated(what, op, test, count):
    failed, done, number, worst = 0, 0, 0, mpmath.mpf(0)
    while done < count:
        plumbline, tensors = random_csa_cases.make(98, number, op)
        number += 1
        schedule = plumbline.get("schedule", {})
        if op == "csa_layer" and not schedule.get("prefill") and not schedule.get("step"):
            continue
        error = test(plumbline, tensors, random.Random(number))
        if error is None:
            continue
        done += 1
        worst = max(worst, error)
        if error > mpmath.mpf("1e-40"):
            failed += 1
            print("FAIL %s case %d: %s" % (what, number - 1, mpmath.nstr(error, 3)))
    print("%-28s %3d cases, worst %s" % (what, done, mpmath.nstr(worst, 3)))
    return failed


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    failed = repeated("csa_layer through csa_step", "csa_layer", through_steps, 4 * count)
    failed += repeated("csa_compress in two calls", "csa_compress", in_two, 4 * count)
    failed += mla_self_check.run(random_csa_cases, count)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
