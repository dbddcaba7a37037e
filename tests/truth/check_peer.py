"""check_peer.py DIRECTORY: evaluate() against the peers' float32 numbers.

For every *.safetensors file there whose op is known here: each `peer.out.*` and `peer.grad.*` must agree
within 2^-15 of the tensor's largest finite value; integers, flags and infinities exactly.
"""
import glob
import os
import sys

import operations
import safetensors_io as st


def disagreement(want, got):
    """(worst |want-got| / largest finite value, or inf where kinds differ)."""
    numbers = [abs(float(x)) for x in list(want) + list(got) if abs(float(x)) < float("inf")]
    largest, worst = max(numbers, default=0.0), 0.0
    for x, y in zip(want, got):
        x, y = float(x), float(y)
        if x == y:
            continue
        if not (abs(x) < float("inf") and abs(y) < float("inf")):
            return float("inf")
        worst = max(worst, abs(x - y) / largest)
    return worst


def main():
    paths = sorted(glob.glob(os.path.join(sys.argv[1], "*.safetensors")))
    seen = failed = 0
    overall = 0.0
    for path in paths:
        if os.path.basename(path).split("__")[0] not in operations.OPERATIONS:
            continue
        case = operations.load(path)
        result = operations.evaluate(case)
        seen += 1
        worst, notes = 0.0, []
        for name in sorted(n for n in case.tensors if n.startswith("peer.")):
            peer = case.tensors[name]
            key = name[len("peer."):]
            if key not in result:
                notes.append("%s: nothing computed" % key)
                continue
            shape, values = result[key]
            if tuple(shape) != peer.shape:
                notes.append("%s: shape %s, peer %s" % (key, shape, peer.shape))
                continue
            if peer.dtype in st.FLOATS:
                error = disagreement(values, peer.values)
                worst = max(worst, error)
                if not error <= 2.0 ** -15:
                    notes.append("%s: off by %.3g of its scale" % (key, error))
            elif list(values) != list(peer.values):
                notes.append("%s: differs" % key)
        overall = max(overall, worst)
        failed += bool(notes)
        print("%-4s %-70s %.2e" % ("FAIL" if notes else "ok", os.path.basename(path), worst))
        for note in notes:
            print("       " + note)
    print("%d cases, %d failed, worst %.3g (allowed %.3g)" % (seen, failed, overall, 2.0 ** -15))
    sys.exit(1 if failed or not seen else 0)


if __name__ == "__main__":
    main()
