#!/usr/bin/env python3
"""bad_input_test.py PROGRAM [--markdown]: every fault is refused in one line that names what is wrong.

What it is meant to catch: a fault that is clamped, cut off or passed over; a crash; a message that names something
else or runs over lines; and the reverse, a fault in a hidden place that is taken for one.
With --markdown, prints docs/bad-input.md instead: every fault of the table beside what the program says.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import bad_input_csa
import bad_input_csa_layers
import bad_input_files
import bad_input_hidden
import bad_input_masks
import bad_input_operations
from bad_input_cases import BASES, NAN, base
from bad_input_registry import registry_rows

PROGRAM = "plumbline"
LINE = re.compile(r"\Aplumbline: (?P<where>[^\n]+?): found (?P<found>[^\n]+), expected (?P<expected>[^\n]+)\n\Z")
NAME = "case.safetensors"
NOBODY = ("plumbline itself", "memory", "shape")  # blamed, they tell the caller nothing
MEMORY = 2 << 30  # bytes of address space that a refusal may take; a few megabytes would do


def limited():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def evaluate(case):
    """(exit code, stderr), run where the case has a name without a folder."""
    with tempfile.TemporaryDirectory(prefix="plumbline_bad_") as folder:
        with open(os.path.join(folder, NAME), "wb") as file:
            file.write(case.to_bytes())
        preexec = None if os.environ.get("ASAN_OPTIONS") else limited
        try:
            result = subprocess.run([PROGRAM, "eval", NAME, "-o", "result", *case.arguments], cwd=folder,
                                    capture_output=True, timeout=60, preexec_fn=preexec)
        except subprocess.TimeoutExpired:
            return "no exit within 60 s", ""
        left = sorted(os.listdir(folder))
        if result.returncode != 0 and left != [NAME]:
            return "exit %d, files left: %s" % (result.returncode, left), ""
        return result.returncode, result.stderr.decode("utf-8", "replace")


def pages():
    names = subprocess.run([PROGRAM, "ops", "--names"], capture_output=True, text=True, check=True).stdout.split()
    return {name: json.loads(subprocess.run([PROGRAM, "ops", name, "--json"], capture_output=True, text=True,
                                            check=True).stdout) for name in names}


def mutated(row):
    _, _, of, _, *changes = row
    case = base(of)
    for change in changes:
        change(case)
    return case


def complaint(row, answer):
    """What is wrong with the answer to a row; None if nothing is."""
    code, said = answer
    if code != 2:
        return "exit %s, expected 2; stderr: %s" % (code, said.strip()[:300] or "nothing")
    match = LINE.match(said)
    if not match:
        return "expected one line `plumbline: <where>: found <...>, expected <...>`: %r" % said[:300]
    where = row[3]
    named = where(match) if callable(where) else where in match["where"]
    if not named or match["where"] in NOBODY:
        return "blames %r%s: %s" % (match["where"], "" if callable(where) else ", expected %r" % where,
                                    said.strip()[:300])
    if re.search(r"[\x00-\x1f\x7f]", said[:-1]) or len(said) > 2100:
        return "not one short line of text: %r" % said[:300]
    return None


def table(registered):
    rows = (bad_input_operations.ROWS + bad_input_csa.ROWS + bad_input_csa_layers.ROWS + bad_input_masks.ROWS
            + bad_input_files.ROWS + registry_rows(registered))
    return [row for row in rows if base(row[2]).op in registered]


def answers(cases):
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2)) as pool:
        return list(pool.map(evaluate, cases))


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.registered = pages()
        cls.rows = table(cls.registered)

    def check(self, rows, complaints):
        wrong = ["  %s | %s | %s" % (row[2], row[1], text) for row, text in zip(rows, complaints) if text]
        if wrong:
            self.fail("%d of %d rows:\n%s" % (len(wrong), len(rows), "\n".join(wrong)))

    def test_every_operation_has_a_base_case(self):
        self.assertEqual(sorted(set(self.registered) - {base(name).op for name in BASES}), [])

    def test_base_cases_are_fine(self):
        names = [name for name in BASES if base(name).op in self.registered]
        for name, (code, said) in zip(names, answers([base(name) for name in names])):
            self.assertEqual((code, said), (0, ""), name)

    def test_the_table_is_long_and_says_nothing_twice(self):
        self.assertGreaterEqual(len(self.rows), 200)
        keys = [(row[2], row[1]) for row in self.rows]
        self.assertEqual(sorted({key for key in keys if keys.count(key) > 1}), [])

    def test_every_fault_is_refused(self):
        found = answers([mutated(row) for row in self.rows])
        self.check(self.rows, [complaint(row, answer) for row, answer in zip(self.rows, found)])

    def test_faults_in_hidden_places_are_none(self):
        rows = [row for row in bad_input_hidden.ROWS if base(row[2]).op in self.registered]
        found = answers([mutated(row) for row in rows])
        self.check(rows, [None if answer == (0, "") else "exit %s: %s" % answer for answer in found])

    def test_nor_for_the_gradients(self):
        rows = [row for row in bad_input_hidden.ROWS
                if base(row[2]).op in self.registered and base(row[2]).op not in bad_input_hidden.FORWARD]
        cases = [bad_input_hidden.with_cotangent(row[2], mutated(row)) for row in rows]
        for case in cases:
            case.arguments.append("--grad")
        self.check(rows, [None if answer == (0, "") else "exit %s: %s" % answer for answer in answers(cases)])

    def test_nonfinite_allow_takes_what_error_refuses(self):
        names, cases = [], []
        for name in BASES:
            for tensor, (kind, _, values) in base(name).tensors.items():
                if kind != "F32" or base(name).op not in self.registered:
                    continue
                case = base(name)
                case.metadata["options"]["nonfinite"] = "allow"
                case.tensors[tensor][2] = [NAN] + list(values[1:])
                names.append((name, tensor))
                cases.append(case)
        for name, answer in zip(names, answers(cases)):
            with self.subTest(name):
                self.assertEqual(answer, (0, ""))


# ---- the page ------------------------------------------------------------------------------------

TITLES = {
    "files": "Headers that lie",
    "metadata": "Metadata and names",
    "command line": "The command line",
    "operations": "What the operations refuse",
    "masks": "Mask inputs and mask options",
    "registry": "What every operation refuses, here dsa_indexer_loss",
}
CASES_SHOWN = ("operations", "masks", "command line")  # sections whose rows are of more than one case
SHOWN = {"masks": ("mla_attention", "csa_indexer_loss"), "registry": ("dsa_indexer_loss",)}
INTRODUCTION = """# Bad input

Nothing that is wrong is clamped, cut off or passed over: the program exits with 2 and says in one line which tensor
or option is wrong, what it found there and what it expected. The library throws the same line as an `Error`, with its
three parts apart. What a refusal takes of memory is bounded by the file, whatever its header claims; no result is
written.

What nobody reads is not wrong: NaN in a hidden key, indices of a row that is not real, a key outside every row's set.
`nonfinite` `allow` lets NaN and infinities through as the formulas have them; see [masks](masks.md).

The tables are printed by `tests/bad_input_test.py PROGRAM --markdown`, from the rows that the test holds the program
to. {rows} rows; where many operations share a rule, the page shows it for one.
"""


def cell(text):
    text = text if len(text) <= 160 else text[:100] + " … " + text[-50:]
    return text.replace("|", "\\|")


def code(text):
    return "`` %s ``" % cell(text) if "`" in text else "`%s`" % cell(text)


def markdown():
    rows, unfit = table(pages()), 0
    print(INTRODUCTION.format(rows=len(rows)), end="")
    for section, title in TITLES.items():
        here = [row for row in rows if row[0] == section and row[2] in SHOWN.get(section, (row[2],))]
        of = section in CASES_SHOWN
        print("\n## %s\n\n%s| fault | message |\n%s|---|---|" % (title, "| case " * of, "|---" * of))
        for row, answer in zip(here, answers([mutated(row) for row in here])):
            match = LINE.match(answer[1])
            unfit += 0 if match else 1
            said = "%s: found %s, expected %s" % match.groups() if match else "exit %s %s" % answer
            print("%s| %s | %s |" % ("| %s " % row[2] if of else "", cell(row[1]), code(said.strip())))
    if unfit:
        print("%d rows have no message: the page says what the program does, not what it should" % unfit,
              file=sys.stderr)
    return 1 if unfit else 0


if __name__ == "__main__":
    if len(sys.argv) >= 2 and not sys.argv[1].startswith("-"):
        PROGRAM = os.path.abspath(sys.argv.pop(1))
    if "--markdown" in sys.argv:
        sys.exit(markdown())
    else:
        unittest.main()
