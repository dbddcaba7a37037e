#!/usr/bin/env python3
"""check_test.py PROGRAM PEER_DIRECTORY: plumbline check and contract from outside.

What it is meant to catch: a broken copy of a right result that passes, a cause that is not found though it is there,
an exit code or a report that scripts cannot rely on, a contract that is read loosely.
"""
import html.parser
import json
import os
import struct
import sys
import unittest
import xml.etree.ElementTree as xml

import cli_test
from cli_test import Cli, framed, header_of, read, run

CASE = "csa_indexer_loss__maxtext__dense_docs.safetensors"
ATTENTION = "csa_attention__maxtext__topk_sink.safetensors"
LAYER = "mla_layer__maxtext__dsref_a.safetensors"
TOPK = "csa_indexer__maxtext__causal.safetensors"
F32 = "ieee_f32"


class Tensors:
    """A file's tensors as lists of numbers, to break one of them."""

    FORMS = {"F32": "f", "F64": "d", "I32": "i", "BOOL": "?"}

    def __init__(self, path):
        self.header, self.data = header_of(read(path))

    def get(self, name):
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        form = self.FORMS[entry["dtype"]]
        return list(struct.unpack("<%d%s" % ((end - begin) // struct.calcsize(form), form), self.data[begin:end]))

    def put(self, name, values):
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        packed = struct.pack("<%d%s" % (len(values), self.FORMS[entry["dtype"]]), *values)
        self.data = self.data[:begin] + packed + self.data[end:]

    def shape(self, name):
        return self.header[name]["shape"]

    def bytes(self):
        return framed(self.header, self.data)


class Check(Cli):
    def judged(self, case, actual, *more, code=0, contract=F32):
        result = run("check", case, actual, "--contract", contract, "--json", *more)
        self.assertEqual((result.returncode, result.stderr), (code, ""), [result.args[1:], result.stdout[:300]])
        return json.loads(result.stdout)

    def broken(self, name, change, case=None):
        tensors = Tensors(case or self.case)
        values = tensors.get(name)
        change(values, tensors.shape(name))
        tensors.put(name, values)
        return self.write("broken.safetensors", tensors.bytes())

    def peer(self, name):
        return os.path.join(cli_test.PEERS, name)

    def test_a_right_result_passes(self):
        text = self.fine("check", self.case, self.case, "--contract", F32)
        self.assertRegex(text, r"\nPASS\nagain: plumbline check .*--contract ieee_f32\n\Z")
        report = self.judged(self.case, self.case)
        self.assertEqual(report["verdict"], "PASS")
        for tensor in report["tensors"]:
            self.assertLessEqual(tensor["margin2"], 1)
            self.assertTrue(tensor["actual"].startswith("peer."))

    def test_goldens_pass_and_carry_their_contract(self):
        golden = self.path("golden.safetensors")
        self.fine("eval", self.case, "--grad", "--contract", F32, "-o", golden)
        header, _ = header_of(read(golden))
        self.assertIn("bound.loss", header)
        self.assertIn("bound2.grad.scores", header)
        self.assertEqual(header["bound.loss"]["dtype"], "F64")
        self.assertEqual(self.metadata_of(golden)["contract"]["name"], F32)
        self.fine("check", golden, golden)  # its own contract
        report = self.judged(golden, self.case)
        self.assertEqual(report["verdict"], "PASS")
        tensors = Tensors(golden)
        off = abs(tensors.get("out.loss")[0] - Tensors(self.case).get("peer.out.loss")[0])
        self.assertLessEqual(off, tensors.get("bound.loss")[0] + 2 ** -23 * abs(tensors.get("out.loss")[0]))

    def test_same_report_with_any_threads(self):
        one = run("check", self.case, self.case, "--contract", F32, "--threads", "1").stdout
        self.assertEqual(one, run("check", self.case, self.case, "--contract", F32, "--threads", "3").stdout)

    def test_one_wrong_row(self):
        def change(values, shape):
            width = shape[-1]
            values[3 * width:4 * width] = [2 * x + 1 for x in values[3 * width:4 * width]]
        actual = self.broken("peer.grad.scores", change)
        report = self.judged(self.case, actual, code=1)
        wrong = next(each for each in report["tensors"] if each["tensor"] == "grad.scores")
        self.assertEqual(wrong["verdict"], "FAIL")
        self.assertTrue(any("row 3" in hint for hint in report["hints"]), report["hints"])
        text = run("check", self.case, actual, "--contract", F32).stdout
        self.assertIn("row 3", text)
        self.assertIn("\nFAIL\n", text)

    def test_factor_sign_and_shift(self):
        name = "peer.out.output"
        case = self.peer(ATTENTION)

        def told(change):
            return "\n".join(self.judged(case, self.broken(name, change, case), code=1)["hints"])

        def times(factor):
            def change(values, _):
                values[:] = [factor * x for x in values]
            return change

        def shifted(values, shape):
            step = shape[-1] * shape[-2]
            values[:] = values[step:] + values[:step]
        self.assertIn("times 2", told(times(2)))
        self.assertIn("sign", told(times(-1)))
        self.assertIn("0: never written", told(times(0)))
        if self.judged(case, case)["tensors"][0]["shape"][0] == 1:
            self.assertIn("next one along T", told(shifted))

    def test_another_convention_is_named(self):
        metadata = self.metadata_of(self.case)
        other = self.changed(options={**metadata["options"], "preset": "tilelang"})
        report = self.judged(other, self.case, code=1)
        self.assertTrue(any("preset maxtext_v4" in hint for hint in report["hints"]), report["hints"])
        self.assertEqual(self.judged(other, self.case, "--no-hints", code=1)["hints"], [])

    def variant(self, case, options=None, drop=(), add=None):
        """What a kernel returns that computes the case with other options or inputs, in float32."""
        tensors = Tensors(case)
        metadata = json.loads(tensors.header["__metadata__"]["plumbline"])
        metadata["options"].update(options or {})
        tensors.header["__metadata__"]["plumbline"] = json.dumps(metadata)
        data, header = b"", {"__metadata__": tensors.header.pop("__metadata__")}
        parts = {name: (entry["dtype"], entry["shape"], tensors.data[slice(*entry["data_offsets"])])
                 for name, entry in tensors.header.items() if name not in drop and not name.startswith("peer.")}
        parts.update(add or {})
        for name, (kind, shape, content) in parts.items():
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        golden = self.path("variant.golden")
        self.fine("eval", self.write("variant", framed(header, data)), "--grad", "-o", golden)
        return self.rounded(golden)

    def test_causes_among_options_and_inputs_are_named(self):
        case = self.peer(ATTENTION)
        options = self.metadata_of(case)["options"]

        def told(**changes):
            return self.judged(case, self.variant(case, **changes), code=1)["hints"]
        self.assertIn("what failed fits option window %d" % (options["window"] + 1),
                      told(options={"window": options["window"] + 1}))
        self.assertIn("what failed fits without in.sink", told(drop=("in.sink",)))
        self.assertIn("what failed fits option lse_base 2", told(options={"lse_base": 2}))
        batch, rows, _, _ = Tensors(case).shape("in.query")
        blocks = Tensors(case).shape("in.compressed")[1]
        valid = bytes(1 if i % blocks < blocks - 1 else 0 for i in range(batch * rows * blocks))
        hints = told(add={"in.valid": ("BOOL", [batch, rows, blocks], valid)})
        self.assertIn("what failed fits the last 1 of %d keys left out" % blocks, hints)

    def test_nan_is_wrong(self):
        def change(values, _):
            values[0] = float("nan")
        report = self.judged(self.case, self.broken("peer.out.loss", change), code=1)
        loss = next(each for each in report["tensors"] if each["tensor"] == "out.loss")
        self.assertEqual((loss["verdict"], loss["margin"]), ("FAIL", "inf"))

    def test_selections_are_sets(self):
        case = self.peer(TOPK)
        self.assertEqual(self.judged(case, case)["verdict"], "PASS")

        def turned(values, shape):
            for row in range(0, len(values), shape[-1]):
                values[row:row + shape[-1]] = reversed(values[row:row + shape[-1]])

        def doubled(values, shape):
            values[-1] = values[-2]
        names = [name for name in header_of(read(case))[0] if name == "peer.out.indices"]
        if names and Tensors(case).shape(names[0])[-1] > 1:
            self.assertEqual(self.judged(case, self.broken(names[0], turned, case))["verdict"], "PASS")
            self.judged(case, self.broken(names[0], doubled, case), code=1)

    def rounded(self, path):
        """A golden as a kernel would have written it: reals in float32, nothing else than results."""
        golden, header, data = Tensors(path), {}, b""
        for name, entry in golden.header.items():
            if not name.startswith(("out.", "grad.")) or name.endswith(".lo"):
                continue
            values, kind = golden.get(name), entry["dtype"]
            kind = "F32" if kind == "F64" else kind
            packed = struct.pack("<%d%s" % (len(values), Tensors.FORMS[kind]), *values)
            header[name] = {"dtype": kind, "shape": entry["shape"], "data_offsets": [len(data), len(data) + len(packed)]}
            data += packed
        return self.write("kernel.safetensors", framed(header, data))

    def test_layers_stage_by_stage(self):
        case, golden = self.peer(LAYER), self.path("golden")
        self.fine("eval", case, "--outputs", "all", "--grad", "-o", golden)
        kernel = self.rounded(golden)
        report = self.judged(case, kernel)
        given = {each["tensor"]: each.get("given") for each in report["tensors"]}
        self.assertEqual(given["out.query"], "the kernel's other stages")
        self.assertEqual(given["out.output"], "the kernel's stages")

        def doubled(values, _):
            values[:] = [2 * x for x in values]

        def failed(name, change):
            report = self.judged(case, self.broken(name, change, kernel), code=1)
            return {each["tensor"] for each in report["tensors"] if each["verdict"] == "FAIL"}
        # What follows was computed from the right ones, and is right.
        self.assertEqual(failed("out.query", doubled), {"out.query"})
        self.assertEqual(failed("out.attention_output", doubled), {"out.attention_output"})
        # A selection that cannot be is wrong, and what follows is judged without it.

        def same(values, shape):
            values[-1] = values[-2]
        self.assertEqual(failed("out.indexer_indices", same), {"out.indexer_indices"})

    def test_reports(self):
        def change(values, shape):
            values[0] += 1
        actual = self.broken("peer.grad.scores", change)
        files = [self.path(name) for name in ("r.xml", "r.html", "r.svg")]
        run("check", self.case, actual, "--contract", F32, "--junit", files[0], "--html", files[1], "--svg", files[2])
        suites = xml.parse(files[0]).getroot()
        self.assertEqual(suites.get("failures"), "1")
        self.assertEqual(len(suites.findall(".//testcase")), int(suites.get("tests")))
        xml.parse(files[2])
        page = read(files[1]).decode()
        self.assertNotRegex(page, r"(src|href)=\"(?!#)")
        self.assertNotIn("@import", page)

        class Balanced(html.parser.HTMLParser):
            void = ("meta", "br", "rect", "line")

            def __init__(self):
                super().__init__()
                self.open = []

            def handle_starttag(self, tag, attributes):
                if tag not in self.void:
                    self.open.append(tag)

            def handle_endtag(self, tag):
                if tag not in self.void:
                    assert self.open.pop() == tag, tag
        parser = Balanced()
        parser.feed(page)
        self.assertEqual(parser.open, [])
        for tensor in self.judged(self.case, actual, code=1)["tensors"]:
            self.assertIn('<section id="%s">' % tensor["tensor"], page)

    def test_what_is_missing_or_unknown_is_listed(self):
        header, data = header_of(read(self.case))
        header["out.other"] = dict(header["peer.out.loss"])
        renamed = {"out.loss" if name == "peer.out.loss" else name: entry for name, entry in header.items()
                   if not name.startswith("peer.") or name == "peer.out.loss"}
        renamed.pop("out.other")
        begin, end = renamed["out.loss"]["data_offsets"]
        actual = self.write("actual", framed({"out.loss": {**renamed["out.loss"], "data_offsets": [0, 4]},
                                              "out.other": {**renamed["out.loss"], "data_offsets": [4, 8]}},
                                             data[begin:end] * 2))
        report = self.judged(self.case, actual)
        self.assertEqual(report["not_an_output"], ["out.other"])
        self.assertIn("out.row_loss", report["not_in_actual"])

    def test_wrong_usage(self):
        self.wrong("check", self.case, says="actual is required")
        self.wrong("check", self.case, self.case, says="--contract")
        self.wrong("check", self.case, self.case, "--contract", "cuda", says="one of ieee_f32")
        self.wrong("check", self.case, self.path("none"), "--contract", F32, says="none")
        self.wrong("check", self.case, self.case, "--contract", "@" + self.path("none"), says="none")
        self.wrong("check", self.case, self.case, "--contract", F32, "--worst", "-1", says="--worst")
        self.wrong("check", self.case, self.case, "--contract", F32, "--threads", "-1", says="--threads")
        self.wrong("check", self.case, self.case, "--contract", F32, "--html", self.path("no/where"), says="no/where")
        empty = self.write("empty", framed({}))
        self.wrong("check", self.case, empty, "--contract", F32, says="at least one to judge")
        self.wrong("check", empty, self.case, "--contract", F32, says="metadata plumbline")


class Contracts(Cli):
    def contract(self, text):
        return "@" + self.write("contract.json", text.encode())

    def test_list_and_show(self):
        names = [each["contract"]["name"] for each in json.loads(self.fine("contract", "--json"))]
        self.assertEqual(names[0], F32)
        for name in names:
            shown = json.loads(self.fine("contract", name))
            again = self.contract(json.dumps(shown))
            self.assertEqual(json.loads(self.fine("contract", again)), shown)
            self.assertIn(name, self.fine("contract"))

    def test_reading_is_strict(self):
        def wrong(text, says):
            self.wrong("contract", self.contract(text), says=says)
        wrong('{"inputs":"f32"}', 'contract."inputs"')
        wrong('{"ulp":{"exp":-1}}', "contract.ulp.exp")
        wrong('{"ulp":{"tan":1}}', 'contract.ulp."tan"')
        wrong('{"accumulator":"f32"}', "contract.accumulator")
        wrong('{"accumulator":{"block":16}}', "contract.accumulator.fraction_bits")
        wrong('{"output":"f31"}', "contract.output")
        wrong('{"flush_to_zero":"yes"}', "contract.flush_to_zero")
        wrong('{"selection":{"tie":"first"}}', "contract.selection.tie")
        wrong('{"name":1}', "contract.name")
        wrong('{"preset":"none"}', "one of ieee_f32")
        wrong("[]", "contract")
        wrong('{"ulp":{"exp":1},"ulp":{}}', "contract")
        wrong("{", "contract.json")

    def test_reports_never_overwrite_what_is_read(self):
        contract = self.contract("{}")
        for option in ("--html", "--junit", "--svg"):
            for target in (self.case, contract.lstrip("@")):
                self.wrong("check", self.case, self.case, "--contract", contract, option, target,
                           says="which is read")
        self.wrong("check", self.case, self.case, "--contract", F32, "--html", "z", "--junit", "./z", says="as --junit")

    def test_files_of_text_are_files(self):
        for path in ("/dev/zero", "/tmp", ""):
            self.wrong("contract", "@" + path, says="found")


if __name__ == "__main__":
    if len(sys.argv) >= 3:
        cli_test.PEERS = sys.argv.pop(2)
    if len(sys.argv) >= 2:
        cli_test.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
