"""suite_test.py BINARY SOURCE_ROOT [unittest arguments]: suites of goldens, from outside.

The text in docs/families.md makes the same bits as the program; the same bytes come from any number of threads;
the goldens in the tree come out again; an interrupted suite goes on; what is not as it was is found and named.
"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY, ROOT = "plumbline", "."
WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I32": 4, "BOOL": 1}


def run(*arguments, expect=0):
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != expect:
        raise AssertionError("exit code %d, not %d: plumbline %s\n%s%s" % (
            done.returncode, expect, " ".join(arguments), done.stdout, done.stderr))
    return done


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tensor(path, name):
    """dtype, shape and payload of a tensor."""
    data = read(path)
    header = 8 + int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:header])[name]
    begin, end = entry["data_offsets"]
    return entry["dtype"], entry["shape"], data[header + begin:header + end]


def folder(path):
    return {name: read(os.path.join(path, name)) for name in sorted(os.listdir(path))}


class SuiteTest(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="plumbline-suite-")
        self.addCleanup(shutil.rmtree, self.place)

    def path(self, *parts):
        return os.path.join(self.place, *parts)

    def suite(self, fixtures, **more):
        path = self.path("suite.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "fixtures": fixtures, **more}, file)
        return path

    def small(self):
        return self.suite([{"id": "a", "family": "ties"}, {"id": "b", "seed": 3}, {"id": "c", "dtype": "F32"}],
                          defaults={"op": "topk", "dims": {"B": 1, "T": 5, "k": 2}})

    # ---- reproduction ---------------------------------------------------------------------------

    def test_the_page_makes_the_same_bits(self):
        text = read(os.path.join(ROOT, "docs", "families.md")).decode()
        page = {}
        exec(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), page)  # pylint: disable=exec-used
        self.assertEqual(page["philox"](0, 0, (0, 0)), (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8))
        for dtype in ("BF16", "F16", "F32", "F64"):
            path = self.path(dtype)
            run("generate", "indexer_scores", "--dims", "B=2,T=3,K=5,A=2,e=7", "--seed", "18446744073709551615",
                "--dtype", dtype, "-o", path)
            for name in ("in.q", "in.k", "in.w"):
                _, _, payload = tensor(path, name)
                width = WIDTH[dtype]
                for i in range(len(payload) // width):
                    code = int.from_bytes(payload[width * i:width * (i + 1)], "little")
                    made = page["encode"](page["gaussian"](2**64 - 1, name, i), -49, dtype)
                    self.assertEqual(code, made, "%s of %s, element %d" % (name, dtype, i))

    def test_every_number_of_threads_gives_the_same_bytes(self):
        suite = os.path.join(ROOT, "fixtures", "suites", "csa_indexer_loss.json")
        made = []
        for threads in ("1", "2", "8"):
            run("generate", "--suite", suite, "-o", self.path(threads), "--threads", threads)
            made.append(folder(self.path(threads)))
        self.assertGreater(len(made[0]), 10)
        self.assertEqual(made[0], made[1])
        self.assertEqual(made[0], made[2])

    def test_goldens_in_the_tree(self):
        suites = sorted(glob.glob(os.path.join(ROOT, "fixtures", "suites", "*.json")))
        self.assertTrue(suites)
        total = 0
        for suite in suites:
            goldens = os.path.join(ROOT, "fixtures", "goldens", os.path.basename(suite)[:-len(".json")])
            with self.subTest(goldens=goldens):
                run("fixtures", "verify", goldens)
                run("fixtures", "regen", "--check", goldens)
                with open(suite, encoding="utf-8") as file:
                    described = json.load(file)
                manifest = json.loads(read(os.path.join(goldens, "MANIFEST.json")))
                self.assertEqual(sorted(f["id"] for f in described["fixtures"]), sorted(manifest["fixtures"]))
                for fixture in described["fixtures"]:
                    entry = manifest["fixtures"][fixture["id"]]["entry"]
                    for key, value in {**described.get("defaults", {}), **fixture}.items():
                        if key not in ("id", "doc"):
                            self.assertEqual(entry[key], value, fixture["id"])
            total += sum(len(data) for data in folder(goldens).values())
        self.assertLess(total, 75_000 * len(suites))

    def test_a_case_is_what_eval_says(self):
        path, again = self.path("case"), self.path("again")
        run("generate", "dsa_indexer_loss", "--family", "poison", "--dims", "k=3", "--options", '{"sparse":true}',
            "--grad", "--outputs", "all", "-o", path)
        run("eval", path, "--grad", "-o", again)
        self.assertEqual(read(path), read(again))

    # ---- suites ---------------------------------------------------------------------------------

    def test_an_interrupted_suite_goes_on(self):
        suite, whole, part = self.small(), self.path("whole"), self.path("part")
        run("generate", "--suite", suite, "-o", whole)
        # The third fixture fails, so the first two are there, and a journal.
        broken = json.loads(read(suite))
        broken["fixtures"][2]["dims"] = {"T": 5, "S": 4}
        with open(self.path("broken.json"), "w", encoding="utf-8") as file:
            json.dump(broken, file)
        failed = run("generate", "--suite", self.path("broken.json"), "-o", part, expect=2)
        self.assertIn("fixture c: --dims T", failed.stderr)
        self.assertEqual(sorted(os.listdir(part)), ["MANIFEST.partial.json", "a.safetensors", "b.safetensors"])
        with open(os.path.join(part, "b.safetensors"), "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\x7f")  # no longer what the journal says
        done = run("generate", "--suite", suite, "-o", part)
        self.assertEqual([line.split()[:2] for line in done.stdout.splitlines()[:3]],
                         [["kept", "a"], ["wrote", "b"], ["wrote", "c"]])
        self.assertEqual(folder(part), folder(whole))
        done = run("generate", "--suite", suite, "-o", part)  # a finished folder is made anew
        self.assertNotIn("kept", done.stdout)
        self.assertEqual(folder(part), folder(whole))

    def test_the_manifest_says_what_is_there(self):
        place = self.path("made")
        run("generate", "--suite", self.small(), "-o", place)
        text = read(os.path.join(place, "MANIFEST.json")).decode()
        manifest = json.loads(text)
        self.assertEqual(text, json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        self.assertEqual(sorted(manifest), ["digest", "fixtures", "generator", "schema", "tool"])
        fold = hashlib.sha256()
        for name, fixture in sorted(manifest["fixtures"].items()):
            path = os.path.join(place, name + ".safetensors")
            data = read(path)
            self.assertEqual(fixture["bytes"], len(data))
            self.assertEqual(fixture["sha256"], hashlib.sha256(data).hexdigest())
            content = hashlib.sha256()
            for each in sorted(fixture["tensors"]):
                dtype, shape, payload = tensor(path, each)
                self.assertEqual(fixture["tensors"][each],
                                 "%s %s %s" % (dtype, shape, hashlib.sha256(payload).hexdigest()))
                sizes = "".join("%d " % size for size in shape)
                content.update(("%s\n%s\n%s\n" % (each, dtype, sizes)).encode() + payload)
            self.assertEqual(fixture["digest"], content.hexdigest())
            fold.update(("%s %s\n" % (name, fixture["digest"])).encode())
        self.assertEqual(manifest["digest"], fold.hexdigest())

    def test_what_is_not_as_it_was_is_found(self):
        place = self.path("made")
        run("generate", "--suite", self.small(), "-o", place)
        run("fixtures", "verify", place)
        run("fixtures", "regen", "--check", place)
        path = os.path.join(place, "b.safetensors")
        before = read(path)
        data = bytearray(before)
        begin = data.find(tensor(path, "in.scores")[2])
        data[begin] ^= 1
        with open(path, "wb") as file:
            file.write(data)
        self.assertIn("in.scores is another", run("fixtures", "verify", place, expect=1).stdout)
        self.assertIn("b.safetensors comes out differently",
                      run("fixtures", "regen", "--check", place, expect=1).stdout)
        run("fixtures", "regen", place)
        self.assertEqual(read(path), before)
        shutil.copy(path, os.path.join(place, "d.safetensors"))
        os.remove(os.path.join(place, "a.safetensors"))
        found = run("fixtures", "verify", place, expect=1).stdout
        self.assertIn("a.safetensors is missing", found)
        self.assertIn("d.safetensors is not in MANIFEST.json", found)
        with open(os.path.join(place, "c.safetensors"), "wb") as file:
            file.write(b"short")
        self.assertIn("c.safetensors", run("fixtures", "verify", place, expect=1).stdout)

    def test_diff_counts_in_ulp(self):
        old, new = self.path("old"), self.path("new")
        for place in (old, new):
            run("generate", "--suite", self.small(), "-o", place)
        self.assertEqual(run("fixtures", "diff", old, new).stdout, "nothing moved\n")
        path = os.path.join(new, "c.safetensors")
        data = bytearray(read(path))
        begin = data.find(tensor(path, "in.scores")[2])
        data[begin] ^= 4  # a step of 4 in the last digits of an F32
        with open(path, "wb") as file:
            file.write(data)
        os.remove(os.path.join(new, "a.safetensors"))
        moved = json.loads(run("fixtures", "diff", "--json", old, new, expect=1).stdout)
        self.assertEqual([(m["file"], m["tensor"], m["what"]) for m in moved],
                         [("a.safetensors", "", "removed"), ("c.safetensors", "in.scores", "moved")])
        self.assertEqual((moved[1]["moved"], moved[1]["element"], moved[1]["ulp"]), (1, 0, "4"))
        self.assertIn("in.scores", run("fixtures", "diff", os.path.join(old, "c.safetensors"), path, expect=1).stdout)

    # ---- mistakes -------------------------------------------------------------------------------

    def test_mistakes_are_one_line(self):
        suites = {
            "no json": "{",
            "no object": "[]",
            "unknown key": '{"schema":1,"fixtures":[],"colour":1}',
            "no schema": '{"fixtures":[]}',
            "no list": '{"schema":1,"fixtures":{}}',
            "no id": '{"schema":1,"fixtures":[{"op":"topk"}]}',
            "path as id": '{"schema":1,"fixtures":[{"id":"../x","op":"topk"}]}',
            "id twice": '{"schema":1,"fixtures":[{"id":"x","op":"topk"},{"id":"x","op":"topk"}]}',
            "no op": '{"schema":1,"fixtures":[{"id":"x"}]}',
        }
        calls = [("generate",), ("generate", "topk"), ("generate", "topk", "--suite", "x", "-o", "y"),
                 ("generate", "topk", "--dims", "T", "-o", self.path("x")),
                 ("generate", "topk", "--dims", "T=1,T=2", "-o", self.path("x")),
                 ("generate", "topk", "--dims", "T=x", "-o", self.path("x")),
                 ("generate", "topk", "--dims", "Q=1", "-o", self.path("x")),
                 ("generate", "topk", "--options", "{", "-o", self.path("x")),
                 ("generate", "topk", "--options", "@" + self.path("none"), "-o", self.path("x")),
                 ("generate", "topk", "--seed", "-1", "-o", self.path("x")),
                 ("generate", "topk", "--threads", "-1", "-o", self.path("x")),
                 ("generate", "topk", "-o", self.path("none", "x")),
                 ("generate", "--suite", self.path("none"), "-o", self.path("x")),
                 ("fixtures",), ("fixtures", "verify"), ("fixtures", "verify", self.path("none")),
                 ("fixtures", "diff", self.place, self.path("none"))]
        for name, text in suites.items():
            path = self.path(name + ".json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            calls.append(("generate", "--suite", path, "-o", self.path("made")))
        for call in calls:
            with self.subTest(call=call):
                done = run(*call, expect=2)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn("expected", done.stderr)
        self.assertFalse(os.path.exists(self.path("x")))


if __name__ == "__main__":
    BINARY, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
