"""sweep.py --plumbline BINARY --count N --seed S: random cases through the program, checked by the truth.

Each case is written to a temporary directory, evaluated with
    BINARY eval CASE --precision mp50 --grad --outputs all -o OUT      (no --grad where there is none)
and compared by check.py.  Failing case and result files are kept and their paths printed with the reasons.
"""
import argparse
import collections
import os
import shutil
import subprocess
import sys
import tempfile

import check
import operations
import random_cases
import random_csa_cases
import random_mla_cases


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plumbline", required=True, help="the program")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--op", choices=sorted(operations.OPERATIONS))
    parser.add_argument("--mla", action="store_true", help="the operations of random_mla_cases")
    parser.add_argument("--csa", action="store_true", help="the operations of random_csa_cases")
    parser.add_argument("--precision", default="mp50")
    parser.add_argument("--digits", type=float, default=28.0)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per case")
    parser.add_argument("--keep", help="directory for failing files (default: a temporary one)")
    arguments = parser.parse_args()

    maker = random_csa_cases if arguments.csa or arguments.op in random_csa_cases.MAKERS else \
        random_mla_cases if arguments.mla or arguments.op in random_mla_cases.MAKERS else random_cases
    work = tempfile.mkdtemp(prefix="plumbline_sweep_")
    keep = arguments.keep or work
    os.makedirs(keep, exist_ok=True)
    failed, done = 0, collections.Counter()
    for number in range(arguments.first, arguments.first + arguments.count):
        plumbline, tensors = maker.make(arguments.seed, number, arguments.op)
        op = plumbline["op"]
        stem = "%s__%d_%05d" % (op, arguments.seed, number)
        path = os.path.join(work, stem + ".safetensors")
        out = os.path.join(work, stem + ".out.safetensors")
        random_cases.save(path, plumbline, tensors)
        gradients = operations.has_gradient(plumbline)
        command = [arguments.plumbline, "eval", path, "--precision", arguments.precision,
                   "--outputs", "all", "-o", out] + (["--grad"] if gradients else [])
        reasons = []
        try:
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 universal_newlines=True, errors="replace", timeout=arguments.timeout)
            if run.returncode != 0:
                reasons = ["exit status %d: %s" % (run.returncode, run.stdout.strip()[-500:])]
            else:
                reasons = check.check(operations.load(path), out, arguments.digits, "all", gradients)
        except subprocess.TimeoutExpired:
            reasons = ["no answer within %g s" % arguments.timeout]
        except (OSError, ValueError, KeyError) as error:
            reasons = ["%s: %s" % (type(error).__name__, error)]
        done[op] += 1
        if reasons:
            failed += 1
            for file in (path, out):
                if keep != work and os.path.exists(file):
                    shutil.copy(file, keep)
            print("FAIL %s" % os.path.join(keep, stem + ".safetensors"))
            for reason in reasons[:6]:
                print("     " + reason)
            sys.stdout.flush()
        else:
            os.remove(path)
            os.remove(out)
    if keep != work or not failed:
        shutil.rmtree(work)
    print("%d cases (%s), %d failed" % (sum(done.values()),
                                        ", ".join("%s %d" % x for x in sorted(done.items())), failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
