#!/usr/bin/env python3
"""python_bench.py F192_BENCH: ns per operation of f192 beside mpmath and, where python-flint is installed, Arb.

The numbers of f192 come from the C++ benchmark given, run first, so that all stand in one run. mpmath and Arb are
called from Python at 192 bits; a loop over a list, less the empty loop, is timed, the best of several rounds.
"""
import subprocess
import sys
import time

NAMES = ("multiply", "add", "sqrt", "exp", "log", "sin")


def best(work, count, rounds=7):
    least = float("inf")
    for _ in range(rounds):
        start = time.perf_counter_ns()
        work()
        least = min(least, time.perf_counter_ns() - start)
    return least / count


def measure(numbers, operations):
    pairs = list(zip(numbers, numbers[1:] + numbers[:1]))
    empty = best(lambda: [None for _ in pairs], len(pairs))
    table = {}
    for name in NAMES:
        f = operations[name]
        table[name] = best(lambda f=f: [f(a, b) for a, b in pairs], len(pairs)) - empty
    return table


def with_mpmath():
    import mpmath
    mpmath.mp.prec = 192
    numbers = [mpmath.mpf(k) / 7 + mpmath.mpf(1) / 3 for k in range(1, 400)]
    return measure(numbers, {
        "multiply": lambda a, b: a * b, "add": lambda a, b: a + b, "sqrt": lambda a, b: mpmath.sqrt(a),
        "exp": lambda a, b: mpmath.exp(a), "log": lambda a, b: mpmath.log(a), "sin": lambda a, b: mpmath.sin(a)})


def with_arb():
    import flint
    flint.ctx.prec = 192
    numbers = [flint.arb(k) / 7 + flint.arb(1) / 3 for k in range(1, 400)]
    return measure(numbers, {
        "multiply": lambda a, b: a * b, "add": lambda a, b: a + b, "sqrt": lambda a, b: a.sqrt(),
        "exp": lambda a, b: a.exp(), "log": lambda a, b: a.log(), "sin": lambda a, b: a.sin()})


def main():
    own = {}
    for line in subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()[1:]:
        words = line.split()
        own[words[0]] = float(words[1])
    columns = {"f192": own}
    for name, run in (("mpmath", with_mpmath), ("Arb", with_arb)):
        try:
            columns[name] = run()
        except ImportError:
            print(f"{name}: not installed, left out")
    others = [name for name in columns if name != "f192"]
    print(f"{'ns':<10}" + "".join(f"{name:>10}" for name in columns) + "".join(f"{name + '/f192':>14}" for name in others))
    for each in NAMES:
        print(f"{each:<10}" + "".join(f"{columns[name][each]:10.1f}" for name in columns)
              + "".join(f"{columns[name][each] / own[each]:14.1f}" for name in others))


if __name__ == "__main__":
    main()
