"""mla_self_check.py [COUNT]: the tape's gradients against central differences of the same forward.

For random cases of every operation with gradients, each differentiable input is moved along a random
direction by 1e-30 (120 digits): the change of sum cot.output must be the gradient's, to 25 digits.  In a
layer the loss counts for the indexer's weights alone and the output for all others alone.  Losses with a
gradient that is defined, not derived (p_minus_t), given stages and selections that move are left out.
"""
import random
import sys
from fractions import Fraction

import mpmath

import losses
import operations
import random_mla_cases
from case import Case
from safetensors_io import Tensor

STEP = Fraction(1, 10 ** 30)


def objective(case, result, counts):
    total = mpmath.mpf(0)
    for name in case.tensors:
        if name.startswith("cot.") and not name.endswith(".lo") and counts(name[4:]):
            for g, x in zip(case.value(name), result["out." + name[4:]][1]):
                if x is not None and abs(x) != mpmath.inf and not (isinstance(x, int) and x == 0):
                    total += operations.real(g) * x
    return total


def derived(plumbline):
    """Whether the layer's loss has the gradient of its value."""
    loss = plumbline["options"].get("loss") or {}
    preset = "maxtext_v4" if plumbline["op"].startswith("csa") else "maxtext_v32"
    return loss.get("gradient", losses.PRESETS[loss.get("preset", preset)]["gradient"]) == "of_value"


def moved(case, name, direction, sign):
    tensors = {n: t for n, t in case.tensors.items() if n != name + ".lo"}
    old = case.tensors[name]
    values = [x + sign * STEP * d if isinstance(x, Fraction) else x for x, d in zip(case.value(name), direction)]
    tensors[name] = Tensor(old.dtype, old.shape, values)
    tensors.pop(name + ".scale", None)
    return Case(case.plumbline, tensors)


def check(plumbline, tensors, rng):
    """Worst relative error over the inputs, or None where the case does not serve."""
    if any(n.startswith("given.") for n in tensors):
        return None
    case, worst, layer = Case(plumbline, tensors), mpmath.mpf(0), plumbline["op"].endswith("_layer")
    result = operations.evaluate(case, 120)
    for name in sorted(n for n in result if n.startswith("grad.")):
        source = "in." + name[5:]
        ours = name.startswith("grad.indexer_")
        if layer and ours and not derived(plumbline):
            continue
        direction = [rng.randint(-2, 2) for _ in result[name][1]]

        def counts(output):
            return not layer or (output == "loss") == ours
        with mpmath.workdps(120):
            want = mpmath.fsum(d * g for d, g in zip(direction, result[name][1]))
            up, down = (objective(case, operations.evaluate(moved(case, source, direction, s), 120), counts)
                        for s in (1, -1))
            got = (up - down) / (2 * operations.real(STEP))
            worst = max(worst, abs(got - want) / max(1, abs(want)))
    return worst


def run(maker, count):
    """Number of failures over `count` cases of each operation of the maker."""
    failed = 0
    for op in sorted(maker.MAKERS):
        done, number, worst = 0, 0, mpmath.mpf(0)
        while done < count and number < 10 * count:
            plumbline, tensors = maker.make(99, number, op)
            number += 1
            if not operations.has_gradient(plumbline):
                continue
            error = check(plumbline, tensors, random.Random(number))
            if error is None:
                continue
            done += 1
            worst = max(worst, error)
            if error > mpmath.mpf("1e-25"):
                failed += 1
                print("FAIL %s case %d: %s" % (op, number - 1, mpmath.nstr(error, 3)))
        if done:
            print("%-16s %3d cases, worst %s" % (op, done, mpmath.nstr(worst, 3)))
    return failed


def main():
    sys.exit(1 if run(random_mla_cases, int(sys.argv[1]) if len(sys.argv) > 1 else 8) else 0)


if __name__ == "__main__":
    main()
