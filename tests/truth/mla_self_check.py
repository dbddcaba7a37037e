"""mla_self_check.py [COUNT]: the tape's gradients against central differences of the same forward.

For random cases of every operation with gradients, each differentiable input is moved along a random
direction by 1e-30 (120 digits): the change of sum cot.output must be the gradient's, to 25 digits.  Losses
with a gradient that is defined, not derived (p_minus_t), given stages and selections that move are left out.
"""
import random
import sys
from fractions import Fraction

import mpmath

import operations
import random_mla_cases
from case import Case
from safetensors_io import Tensor

STEP = Fraction(1, 10 ** 30)


def objective(case, result):
    total = mpmath.mpf(0)
    for name in case.tensors:
        if name.startswith("cot.") and not name.endswith(".lo"):
            for g, x in zip(case.value(name), result["out." + name[4:]][1]):
                if x is not None and abs(x) != mpmath.inf and not (isinstance(x, int) and x == 0):
                    total += operations.real(g) * x
    return total


def moved(case, name, direction, sign):
    tensors = {n: t for n, t in case.tensors.items() if n != name + ".lo"}
    old = case.tensors[name]
    values = [x + sign * STEP * d if isinstance(x, Fraction) else x for x, d in zip(case.value(name), direction)]
    tensors[name] = Tensor(old.dtype, old.shape, values)
    tensors.pop(name + ".scale", None)
    return Case(case.plumbline, tensors)


def check(plumbline, tensors, rng):
    """Worst relative error over the inputs, or None where the case does not serve."""
    loss = plumbline["options"].get("loss")
    if any(n.startswith("given.") for n in tensors) or loss and "cot.loss" in tensors:
        return None  # a layer's loss reaches the indexer only, and may be defined by its gradient
    case, worst = Case(plumbline, tensors), mpmath.mpf(0)
    result = operations.evaluate(case, 120)
    for name in sorted(n for n in result if n.startswith("grad.")):
        source = "in." + name[5:]
        direction = [rng.randint(-2, 2) for _ in result[name][1]]
        with mpmath.workdps(120):
            want = mpmath.fsum(d * g for d, g in zip(direction, result[name][1]))
            up, down = (objective(case, operations.evaluate(moved(case, source, direction, s), 120)) for s in (1, -1))
            got = (up - down) / (2 * operations.real(STEP))
            worst = max(worst, abs(got - want) / max(1, abs(want)))
    return worst


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    failed = 0
    for op in sorted(random_mla_cases.MAKERS):
        done, number, worst = 0, 0, mpmath.mpf(0)
        while done < count and number < 10 * count:
            plumbline, tensors = random_mla_cases.make(99, number, op)
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
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
