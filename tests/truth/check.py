"""check.py CASE RESULT [--digits D] [--outputs a,b|all] [--no-grad]: compare a result with the truth.

RESULT holds `out.x`, `out.x.lo`, `grad.x`, `grad.x.lo` (F64 pairs), I32 indices and BOOL flags.  Every
output that is not on request, the requested ones (by default those named in the case's metadata) and every
gradient must be there and agree to D digits relative to the tensor's largest magnitude.  Exact, without a
tolerance: shapes, integers, flags, infinities, and zeros that are zero by definition (hidden keys, rows
that are not real, empty slots).  Tensors whose largest magnitude is below 1e-18 (pure cancellation, such as
the loss of rows with one key) are compared with 10^-D * 1e-18 absolutely.
Exit status 1 on disagreement.
"""
import argparse
import math
import sys

import mpmath

import losses
import operations
import safetensors_io as st

FLOOR = mpmath.mpf("1e-18")
CAP = 99.0


def wanted_names(case, result, outputs, gradients):
    on_request = ["out." + n for n in operations.ON_REQUEST[case.op]]
    if outputs is None:
        outputs = case.plumbline.get("outputs", [])
    names = []
    for name in result:
        if name.startswith("grad."):
            if gradients:
                names.append(name)
        elif name not in on_request or outputs == "all" or name[len("out."):] in outputs:
            names.append(name)
    return names


def compare(name, shape, want, tensors):
    """(worst digits, list of complaints)."""
    if name not in tensors:
        return 0.0, ["missing"]
    got = tensors[name]
    if got.shape != tuple(shape):
        return 0.0, ["shape %s, expected %s" % (list(got.shape), list(shape))]

    short = name[len("out."):] if name.startswith("out.") else ""
    if short in operations.INTEGERS or short in operations.FLAGS:
        dtype = "I32" if short in operations.INTEGERS else "BOOL"
        if got.dtype != dtype:
            return 0.0, ["dtype %s, expected %s" % (got.dtype, dtype)]
        bad = [i for i, (x, y) in enumerate(zip(want, got.values)) if x != y]
        return (0.0 if bad else CAP), ["element %s is %s, expected %s" % (place(i, shape), got.values[i], want[i])
                                       for i in bad[:3]]

    if got.dtype != "F64" or name + ".lo" not in tensors or tensors[name + ".lo"].dtype != "F64":
        return 0.0, ["not an F64 pair"]
    low = tensors[name + ".lo"]
    if low.shape != got.shape:
        return 0.0, ["shape of .lo"]
    finite = [abs(x) for x in want if x is not None and abs(x) < mpmath.inf]
    scale = max([FLOOR] + finite)
    worst, complaints, digits = mpmath.mpf(0), [], CAP
    for i, (x, high, lo) in enumerate(zip(want, got.values, low.values)):
        if x is None:
            continue  # restates something hidden that is not finite
        if not losses._finite(high) or not losses._finite(lo) or abs(x) == mpmath.inf:
            right = isinstance(high, float) and math.isinf(high) and high == x and lo == 0
            if not right:
                digits = 0.0
                complaints.append("element %s is %s + %s, expected %s" % (place(i, shape), high, lo, mpmath.nstr(x, 20)))
            continue
        y = losses.real(high + lo)
        if isinstance(x, int) and x == 0:
            if y != 0:
                digits = 0.0
                complaints.append("element %s is %s, expected exactly 0" % (place(i, shape), mpmath.nstr(y, 20)))
            continue
        error = abs(y - x) / scale
        if error > worst:
            worst, where, pair = error, i, (y, x)
    if worst > 0:
        digits = min(digits, float(-mpmath.log10(worst)))
        complaints.append("element %s is %s, expected %s"
                          % (place(where, shape), mpmath.nstr(pair[0], 36), mpmath.nstr(pair[1], 36)))
    return digits, complaints


def place(flat, shape):
    out = []
    for size in reversed(shape):
        out.append(flat % size)
        flat //= size
    return list(reversed(out))


def check(case, result_path, digits=28.0, outputs=None, gradients=True, say=lambda line: None):
    """List of disagreements, empty when the result file is right; each compared tensor is told to `say`."""
    result = operations.evaluate(case)
    _, tensors = st.read(result_path)
    failures = []
    names = wanted_names(case, result, outputs, gradients)
    with mpmath.workdps(60):
        for name in names:
            shape, want = result[name]
            if shape is None:
                continue  # what this output holds is left open
            worst, complaints = compare(name, shape, want, tensors)
            ok = worst >= digits
            say("%-4s %-18s %5.1f digits%s" % ("ok" if ok else "FAIL", name, worst,
                                              "" if ok else "  " + complaints[0] if complaints else ""))
            if not ok:
                failures.append("%s: %.1f digits; %s" % (name, worst, "; ".join(complaints[:3])))
    for name in sorted(tensors):
        base = name[:-3] if name.endswith(".lo") else name
        if base.startswith(("out.", "grad.")) and base not in result:
            failures.append("%s: not an output of this case" % name)
            say("FAIL %-18s not an output of this case" % name)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("result")
    parser.add_argument("--digits", type=float, default=28.0)
    parser.add_argument("--outputs", help="names, or all; default: the case's own")
    parser.add_argument("--no-grad", action="store_true")
    arguments = parser.parse_args()
    outputs = arguments.outputs
    if outputs is not None and outputs != "all":
        outputs = outputs.split(",")
    failures = check(operations.load(arguments.case), arguments.result, arguments.digits, outputs,
                     not arguments.no_grad, print)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
