#!/usr/bin/env python3
"""cli_test.py PROGRAM PEER_DIRECTORY: the program from outside, with the standard library alone.

What it is meant to catch: an exit code or a message that scripts cannot rely on, a result that depends on the
run, on threads or on who wrote the file. With Python's safetensors package, its files are read and ours by it.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PEERS = "plumbline", "tests/peer"
CASE = "csa_indexer_loss__maxtext__dense_docs.safetensors"
ONE_LINE = re.compile(r"\Aplumbline: [^\n]+: found [^\n]+, expected [^\n]+\n\Z")


def run(*arguments, **keywords):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, **keywords)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def header_of(data):
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + length]), data[8 + length:]


def framed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Cli(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="plumbline_cli_")
        self.case = os.path.join(PEERS, CASE)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def fine(self, *arguments):
        result = run(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def wrong(self, *arguments, says=""):
        result = run(*arguments)
        self.assertEqual(result.returncode, 2, (arguments, result.stderr))
        self.assertRegex(result.stderr, ONE_LINE)
        self.assertNotRegex(result.stderr[:-1], r"[\x00-\x1f\x7f]")
        self.assertIn(says, result.stderr)
        return result.stderr

    def changed(self, **changes):
        """The case with other values in its plumbline metadata; None removes the key."""
        header, data = header_of(read(self.case))
        metadata = json.loads(header["__metadata__"]["plumbline"])
        metadata.update(changes)
        metadata = {key: value for key, value in metadata.items() if value is not None}
        header["__metadata__"]["plumbline"] = json.dumps(metadata)
        return self.write("changed.safetensors", framed(header, data))

    def metadata_of(self, path):
        return json.loads(header_of(read(path))[0]["__metadata__"]["plumbline"])


class Help(Cli):
    def test_version(self):
        self.assertRegex(self.fine("--version"), r"\Aplumbline \d+\.\d+\.\d+\n\Z")

    def test_help_has_examples(self):
        self.assertIn("Examples:", self.fine("--help"))
        for command in "ops", "eval", "compare", "gradcheck", "info", "mask":
            text = self.fine(command, "--help")
            self.assertIn("plumbline " + command, text)
            self.assertTrue(text.endswith("\n"))

    def test_usage(self):
        self.wrong(says="no command")
        self.wrong("evaluate", says="\"evaluate\"")
        self.wrong("--nonsense", says="\"--nonsense\"")
        self.wrong("eval", says="case is required")
        self.wrong("eval", self.case, says="--output is required")
        self.wrong("eval", self.case, "-o", self.path("r"), "--preccision", "f64", says="--preccision")
        self.wrong("eval", self.case, "-o", self.path("r"), "more", says="more")
        self.wrong("eval", self.case, "-o", self.path("r"), "a\nb", says="a\\nb")
        self.wrong("compare", self.case, says="actual is required")
        self.wrong("ops", "--json", "--names", says="--names")

    def test_output_that_cannot_be_written(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "ops"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, ONE_LINE)


class Ops(Cli):
    def test_list(self):
        names = self.fine("ops", "--names").split()
        self.assertIn("csa_indexer_loss", names)
        self.assertEqual(names, sorted(names))
        listed = json.loads(self.fine("ops", "--json"))
        self.assertEqual([each["name"] for each in listed], names)
        self.assertTrue(all(each["summary"] for each in listed))
        text = self.fine("ops")
        self.assertTrue(all(name in text for name in names))

    def test_every_page(self):
        for name in self.fine("ops", "--names").split():
            page = json.loads(self.fine("ops", name, "--json"))
            self.assertEqual(page["name"], name)
            self.assertEqual(bool(page["inputs"]), name != "stage_routing")  # the one without tensors
            for key in "summary", "formula", "outputs":
                self.assertTrue(page[key], (name, key))
            text, markdown = self.fine("ops", name), self.fine("ops", name, "--markdown")
            for part in page["inputs"] + page["outputs"] + page["options"] + page["presets"]:
                self.assertIn(part["name"], text)
                self.assertIn(part["name"], markdown)

    def test_unknown(self):
        self.wrong("ops", "nonsense", says="nonsense")
        self.wrong("ops", "a\x1b[31m\nb")


class Eval(Cli):
    def test_default_precision_and_what_is_kept(self):
        out = self.fine("eval", self.case, "-o", self.path("r"))
        self.assertRegex(out, r"out\.loss +\[\] = 0\.")
        self.assertIn("(f192)", out)
        before, before_data = header_of(read(self.case))
        after, after_data = header_of(read(self.path("r")))
        for name, entry in before.items():
            if name == "__metadata__":
                continue
            begin, end = after[name]["data_offsets"]
            old_begin, old_end = entry["data_offsets"]
            self.assertEqual(after_data[begin:end], before_data[old_begin:old_end], name)
        self.assertEqual(after["out.loss"]["dtype"], "F64")
        self.assertIn("out.loss.lo", after)
        self.assertNotIn("grad.scores", after)
        metadata = after["__metadata__"]["plumbline"]
        self.assertEqual(metadata, json.dumps(json.loads(metadata), sort_keys=True, separators=(",", ":"),
                                              ensure_ascii=False))
        self.assertEqual(json.loads(metadata)["peer"], self.metadata_of(self.case)["peer"])

    def test_same_bytes(self):
        for threads in "1", "1", "2", "3", "0":
            self.fine("eval", self.case, "--grad", "--threads", threads, "-o", self.path("r" + threads))
            self.assertEqual(read(self.path("r" + threads)), read(self.path("r1")), threads)
        # A file with results is a case again, and may be overwritten by its own evaluation.
        self.fine("eval", self.path("r1"), "--grad", "-o", self.path("r1"))
        self.assertEqual(read(self.path("r1")), read(self.path("r2")))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["r0", "r1", "r2", "r3"])

    def test_precision(self):
        self.fine("eval", self.changed(precision="f64"), "-o", self.path("r"))
        self.assertEqual(self.metadata_of(self.path("r"))["precision"], "f64")
        self.fine("eval", self.changed(precision="f64"), "--precision", "f32", "-o", self.path("r"))
        self.assertEqual(self.metadata_of(self.path("r"))["precision"], "f32")

    def test_schedule_and_outputs(self):
        self.fine("eval", self.case, "--schedule", '{"barrier":false}', "--outputs", "target", "-o", self.path("r"))
        self.assertEqual(self.metadata_of(self.path("r"))["schedule"], {"barrier": False})
        self.assertEqual(self.metadata_of(self.path("r"))["outputs"], ["target"])
        header, _ = header_of(read(self.path("r")))
        self.assertIn("out.target", header)
        self.assertNotIn("out.student", header)
        self.fine("eval", self.case, "--outputs", "all", "-o", self.path("r"))
        self.assertIn("out.head_sum", header_of(read(self.path("r")))[0])
        self.fine("eval", self.case, "--outputs", "", "-o", self.path("r"))
        self.assertNotIn("out.target", header_of(read(self.path("r")))[0])

    def test_wrong_arguments(self):
        def wrong(*more, says):
            self.wrong("eval", self.case, "-o", self.path("r"), *more, says=says)
        wrong("--precision", "fp64", says="--precision: found \"fp64\", expected one of f32")
        wrong("--precision", "", says="--precision")
        wrong("--threads", "-1", says="--threads")
        wrong("--threads", "1000000", says="--threads")
        wrong("--threads", "x", says="--threads")
        wrong("--schedule", "", says="--schedule")
        wrong("--schedule", "[]", says="--schedule: found [], expected a JSON object")
        wrong("--schedule", '{"barrier":NaN}', says="--schedule")
        wrong("--schedule", '{"barrier":true,"barrier":true}', says="twice")
        wrong("--schedule", '{"nonsense":1}', says="nonsense")
        wrong("--schedule", '{"head_chunk":-1}', says="schedule.head_chunk")
        wrong("--schedule", "[" * 100000, says="deeper")
        wrong("--outputs", "nonsense", says="nonsense")
        wrong("--outputs", "target,", says="--outputs")
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_places_that_cannot_be_written(self):
        self.wrong("eval", self.case, "-o", self.path("no/folder"), says="no/folder")
        self.wrong("eval", self.case, "-o", self.folder.name, says="a folder")
        self.wrong("eval", self.case, "-o", "/dev/null", says="/dev/null")
        self.wrong("eval", self.case, "-o", "", says="output")

    def test_wrong_metadata(self):
        def wrong(says, **changes):
            self.wrong("eval", self.changed(**changes), "-o", self.path("r"), says=says)
        wrong("plumbline.op: found nothing", op=None)
        wrong("op: found", op="nonsense")
        wrong("plumbline.op: found 1", op=1)
        wrong("plumbline.schema: found 2, expected 1", schema=2)
        wrong("plumbline.options: found [], expected an object", options=[])
        wrong("plumbline.schedule", schedule=3)
        wrong("plumbline.outputs", outputs="all")
        wrong("plumbline.precision", precision="double")
        wrong("nonsense", options={"m": 4, "nonsense": 1})
        wrong("preset", options={"m": 4, "preset": "nonsense"})
        wrong("m", options={"m": "4"})
        wrong("a\\nb", options={"m": 4, "a\nb\x1b": 1})
        self.assertFalse(os.path.exists(self.path("r")))

    def test_wrong_files(self):
        def wrong(data, says):
            self.wrong("eval", self.write("bad", data), "-o", self.path("r"), says=says)
            self.wrong("info", self.path("bad"), says=says)
            self.wrong("compare", self.path("bad"), self.case, says=says)
            self.wrong("compare", self.case, self.path("bad"), says=says)
        good = read(self.case)
        wrong(b"", "0 bytes")
        wrong(b"1234567", "7 bytes")
        wrong(b"\xff" * 20, "header")
        wrong(good[:100], "header")
        wrong(good[:-1], "data_offsets")
        wrong(good + b"\0", "1 bytes after the last tensor")
        wrong(framed(b'{"a\\nb":{}}'), "a\\nb")
        wrong(framed(b"[" * 1000000), "header")
        wrong(framed(b'{"a":' * 1000000), "tensor a")
        wrong(framed({"in.x": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 4]}}, b"1234"), "in.x")
        for place in self.path("missing"), self.folder.name, "/dev/null":
            self.wrong("eval", place, "-o", self.path("r"), says=place)
            self.wrong("info", place, says=place)

    def test_wrong_tensors(self):
        def wrong(says, drop=None, **tensors):
            header, data = header_of(read(self.case))
            for name, (dtype, shape, raw) in tensors.items():
                header[name.replace("__", ".")] = {"dtype": dtype, "shape": shape,
                                                   "data_offsets": [len(data), len(data) + len(raw)]}
                data += raw
            if drop:  # renamed, since its data must belong to something
                header["peer." + drop] = header.pop(drop)
            self.wrong("eval", self.write("bad", framed(header, data)), "-o", self.path("r"), says=says)
        wrong("nonsense", nonsense=("F32", [1], b"1234"))
        wrong("in.nonsense", in__nonsense=("F32", [1], b"1234"))
        wrong("given.nonsense", given__nonsense=("F32", [1], b"1234"))
        wrong("in.kv.lo", in__kv__lo=("F64", [1], b"12345678"))
        wrong("in.scores.lo", in__scores__lo=("F64", [1], b"12345678"))
        wrong("in.scores.scale", in__scores__scale=("F32", [1, 1, 1], b"1234"))
        wrong("in.positions.lo", in__positions__lo=("F64", [1], b"12345678"))
        wrong("in.scores.a", in__scores__a=("F32", [1], b"1234"))
        wrong("query", drop="in.query")


class Info(Cli):
    def test_json(self):
        info = json.loads(self.fine("info", self.case, "--json"))
        self.assertEqual(info["metadata"]["plumbline"]["op"], "csa_indexer_loss")
        self.assertEqual(info["bytes"], os.path.getsize(self.case))
        header, _ = header_of(read(self.case))
        tensors = {each["name"]: each for each in info["tensors"]}
        self.assertEqual(set(tensors), set(header) - {"__metadata__"})
        self.assertEqual(tensors["in.scores"]["shape"], header["in.scores"]["shape"])

    def test_any_file(self):
        data = struct.pack("<4f", 1, float("nan"), float("inf"), -2) + struct.pack("<2i", -3, 4)
        path = self.write("any", framed({
            "__metadata__": {"format": "pt", "text": "a\nb", "list": "[1]"},
            "w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
            "n": {"dtype": "I32", "shape": [2], "data_offsets": [16, 24]},
            "none\n": {"dtype": "F64", "shape": [0], "data_offsets": [24, 24]}}, data))
        info = json.loads(self.fine("info", path, "--json"))
        self.assertEqual(info["metadata"], {"format": "pt", "text": "a\nb", "list": [1]})
        w, n, none = info["tensors"]
        self.assertEqual((w["min"], w["max"], w["nan"], w["inf"]), (-2, 1, 1, 1))
        self.assertEqual((n["min"], n["max"]), (-3, 4))
        self.assertNotIn("min", none)
        self.assertIn("none\\n", self.fine("info", path))


class Compare(Cli):
    def setUp(self):
        super().setUp()
        self.golden = self.path("golden")
        self.fine("eval", self.case, "--grad", "-o", self.golden)

    def test_peer_agrees(self):
        text = self.fine("compare", self.golden, self.case)
        self.assertTrue(text.endswith("agree\n"))
        report = json.loads(self.fine("compare", self.golden, self.case, "--json"))
        self.assertTrue(report["agree"])
        loss = next(each for each in report["tensors"] if each["tensor"] == "out.loss")
        self.assertEqual((loss["actual"], loss["dtype"], loss["verdict"]), ("peer.out.loss", "F32", "agree"))
        self.assertGreater(loss["max_abs"], 0)
        self.assertAlmostEqual(float.fromhex(loss["worst"]["actual"]["hex"]), float(loss["worst"]["actual"]["decimal"]))

    def test_itself(self):
        report = json.loads(self.fine("compare", self.golden, self.golden, "--json"))
        self.assertTrue(all(each["unequal"] == 0 for each in report["tensors"]))

    def test_disagreement(self):
        header, data = header_of(read(self.case))
        begin, _ = header["peer.out.loss"]["data_offsets"]
        (loss,) = struct.unpack("<f", data[begin:begin + 4])
        for value in loss * 1.01, float("nan"), float("inf"):
            changed = data[:begin] + struct.pack("<f", value) + data[begin + 4:]
            actual = self.write("actual", framed(header, changed))
            result = run("compare", self.golden, actual)
            self.assertEqual((result.returncode, result.stderr), (1, ""))
            self.assertTrue(result.stdout.endswith("disagree\n"))
            result = run("compare", self.golden, actual, "--json")
            self.assertEqual((result.returncode, result.stderr), (1, ""))
            self.assertFalse(json.loads(result.stdout)["agree"])

    def test_nothing_in_common(self):
        self.wrong("compare", self.case, self.golden, says="at least one to compare")


class OtherWriters(Cli):
    def test_python_package(self):
        try:
            import numpy
            import safetensors.numpy
        except ImportError:
            self.skipTest("no safetensors package")
        header, data = header_of(read(self.case))
        kinds = {"F32": numpy.float32, "I32": numpy.int32}
        tensors = {}
        for name, entry in header.items():
            if name.startswith("in."):
                begin, end = entry["data_offsets"]
                tensors[name] = numpy.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
        case = self.path("python.safetensors")
        safetensors.numpy.save_file(tensors, case, metadata=header["__metadata__"])
        self.fine("eval", case, "--grad", "-o", self.path("a"))
        self.fine("eval", self.case, "--grad", "-o", self.path("b"))
        ours, same = safetensors.numpy.load_file(self.path("a")), safetensors.numpy.load_file(self.path("b"))
        self.assertIn("grad.scores.lo", ours)
        for name, values in ours.items():
            self.assertEqual(values.tobytes(), same[name].tobytes(), name)
        # Written again by the package from what it read of ours, the data stays where it was.
        safetensors.numpy.save_file(ours, self.path("c"), metadata={})
        theirs, mine = header_of(read(self.path("c"))), header_of(read(self.path("a")))
        self.assertEqual(theirs[1], mine[1])


if __name__ == "__main__":
    if len(sys.argv) >= 3:
        PEERS = sys.argv.pop(2)
    if len(sys.argv) >= 2:
        PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
