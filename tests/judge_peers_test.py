#!/usr/bin/env python3
"""judge_peers_test.py PROGRAM PEER_DIRECTORY [--markdown]: other projects' float32 results under certified bounds.

What it is meant to catch: a bound that a correct execution can leave, and a peer that computes something else than
its case says. A layer's results are judged from x to output, so a bound may say nothing there (UNPROVABLE); a result
outside its bound (FAIL) never passes. With --markdown, prints docs/peers-judged.md instead.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PEERS = "plumbline", "tests/peer"

# What every peer here is: float32 on a CPU, probabilities at hand in the backward pass.
CONTRACT = {
    "name": "ieee_f32 of eager frameworks",
    "preset": "ieee_f32",
    "algebra": {"delta": "from_probabilities", "kl": "from_probabilities", "scores": "stored"},
}
# XLA runs a CPU with subnormal numbers flushed to zero; PyTorch does not.
OF_PROJECT = {"maxtext": {"flush_to_zero": True}}
# Outside their bounds, and why. What is listed here must stay outside.
PADDING = ("MaxText gives rows of padding, which see no key, a uniform softmax over all keys: their loss and gradient "
           "are rounding noise, where rows that are not real have exactly 0")
FINDINGS = {
    ("dsa_indexer_loss__maxtext__dense_docs_padding_rows", "out.row_loss"): PADDING,
    ("dsa_indexer_loss__maxtext__dense_docs_padding_rows", "grad.scores"): PADDING,
}
WHOLE = ("mla_layer", "csa_layer", "mla_step", "csa_step")  # judged without stages between


def cases():
    return sorted(name for name in os.listdir(PEERS) if name.endswith(".safetensors"))


def judge_all(names):
    with tempfile.TemporaryDirectory(prefix="plumbline_peers_") as folder:
        def judge(name):
            case = os.path.join(PEERS, name)
            contract = os.path.join(folder, name + ".json")
            with open(contract, "w") as file:
                json.dump({**CONTRACT, **OF_PROJECT.get(name.split("__")[1], {})}, file)
            result = subprocess.run([PROGRAM, "check", case, case, "--contract", "@" + contract, "--json", "--threads",
                                     "1", "--worst", "1", "--no-hints"], capture_output=True, text=True, timeout=600)
            if result.returncode not in (0, 1):
                return name, {"verdict": "no verdict", "tensors": [], "op": name.split("__")[0],
                              "error": result.stderr.strip() or "exit %d" % result.returncode}
            return name, json.loads(result.stdout)

        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
            return list(pool.map(judge, names))


class Peers(unittest.TestCase):
    def test_every_peer_is_within_its_bounds(self):
        wrong = []
        for name, report in judge_all(cases()):
            allowed = ("PASS", "UNPROVABLE") if report["op"] in WHOLE else ("PASS",)
            if "error" in report:
                wrong.append("%s: %s" % (name, report["error"]))
            for tensor in report["tensors"]:
                finding = (name.removesuffix(".safetensors"), tensor["tensor"]) in FINDINGS
                if finding and tensor["verdict"] != "FAIL":
                    wrong.append("%s %s: %s, no longer a finding" % (name, tensor["tensor"], tensor["verdict"]))
                if not finding and tensor["verdict"] not in allowed:
                    wrong.append("%s %s: %s, margin %s, tier 2 %s, worst %s" % (
                        name, tensor["tensor"], tensor["verdict"], tensor["margin"], tensor["margin2"],
                        json.dumps(tensor["worst"][:1])))
        if wrong:
            self.fail("%d results:\n%s" % (len(wrong), "\n".join(wrong)))


# ---- the page ------------------------------------------------------------------------------------

INTRODUCTION = """# Peers judged

What [`plumbline check`](check.md) says of the results that other projects' own code gave for the cases in
`tests/peer`, in float32 on a CPU. The [contract](contracts.md) is `ieee_f32` with `delta` and `kl`
`from_probabilities`, as eager frameworks compute them, and
`flush_to_zero` for MaxText, since XLA runs a CPU that way. A margin is the largest error in units of its bound: in
tier 1, which is proven, and in tier 2, the statistical one. Above 1 in tier 1 is FAIL, in tier 2 SUSPECT.

Margins far below 1 in tier 1 are no slack to be proud of or to remove: a worst case over all orders of
addition is far from what happens. Cases of layers hold no stages between, so they are judged from x to
output, where a bound may exceed the scale of a result: UNPROVABLE. The discrete results are judged as sets.

{count} cases, {tensors} tensors: {verdicts}. Printed by `tests/judge_peers_test.py PROGRAM PEERS --markdown`.
"""


def number(text):
    return "%.2g" % float(text)


def markdown():
    reports = judge_all(cases())
    tensors = [tensor for _, report in reports for tensor in report["tensors"]]
    verdicts = {}
    for tensor in tensors:
        verdicts[tensor["verdict"]] = verdicts.get(tensor["verdict"], 0) + 1
    print(INTRODUCTION.format(count=len(reports), tensors=len(tensors), verdicts=", ".join(
        "%d %s" % (verdicts[name], name) for name in ("PASS", "SUSPECT", "UNPROVABLE", "FAIL") if name in verdicts)),
        end="")
    op = None
    for name, report in reports:
        if report["op"] != op:
            op = report["op"]
            print("\n## %s\n\n| project | case | largest margin | tier 2 | in | verdicts |\n|---|---|---|---|---|---|" % op)
        _, project, case = name.removesuffix(".safetensors").split("__", 2)
        if not report["tensors"]:
            print("| %s | %s | | | | %s |" % (project, case, report.get("error", "no verdict")))
            continue
        worst = max(report["tensors"], key=lambda tensor: float(tensor["margin"]))
        second = max(report["tensors"], key=lambda tensor: float(tensor["margin2"]))
        others = ["%s %s" % (tensor["tensor"], tensor["verdict"]) for tensor in report["tensors"]
                  if tensor["verdict"] != "PASS"]
        print("| %s | `%s` | %s | %s | `%s` | %s |" % (project, case, number(worst["margin"]), number(second["margin2"]),
                                                      worst["tensor"], ", ".join(others) or "PASS"))
    print("\n## Outside their bounds\n\n| case | tensors | why |\n|---|---|---|")
    for case in sorted({case for case, _ in FINDINGS}):
        names = sorted(tensor for name, tensor in FINDINGS if name == case)
        print("| `%s` | %s | %s |" % (case, ", ".join("`%s`" % name for name in names), FINDINGS[case, names[0]]))
    return 0


if __name__ == "__main__":
    if len(sys.argv) >= 3 and not sys.argv[2].startswith("-"):
        PEERS = sys.argv.pop(2)
    if len(sys.argv) >= 2 and not sys.argv[1].startswith("-"):
        PROGRAM = os.path.abspath(sys.argv.pop(1))
    if "--markdown" in sys.argv:
        sys.exit(markdown())
    unittest.main()
