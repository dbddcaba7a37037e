#!/usr/bin/env python3
"""mask_cli_test.py PROGRAM PEER_DIRECTORY SOURCE_ROOT: `plumbline mask` from outside, with the standard library alone.

What it is meant to catch: a picture that says something else than the mask the operation uses, one that is no XML,
a picture of the manual that is out of date.
"""
import glob
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM, PEERS, ROOT = sys.argv[1:4] if len(sys.argv) >= 4 else ("plumbline", "tests/peer", ".")
MAKER = os.path.join(ROOT, "docs", "pictures", "make_pictures.py")
spec = importlib.util.spec_from_file_location("make_pictures", MAKER)
pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pictures)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)


class Mask(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="plumbline_mask_")

    def tearDown(self):
        self.folder.cleanup()

    def case(self, made, name="case.safetensors"):
        path = os.path.join(self.folder.name, name)
        pictures.case(path, *made)
        return path

    def fine(self, *arguments):
        result = run("mask", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def wrong(self, says, *arguments):
        result = run("mask", *arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"\Aplumbline: [^\n]+: found [^\n]+, expected [^\n]+\n\Z")
        self.assertIn(says, result.stderr)

    def rows_of(self, text):
        return [line for line in text.splitlines() if " at " in line and line.split()[0].isdigit()]

    def test_text(self):
        lines = self.rows_of(self.fine(self.case(pictures.window_and_blocks())))
        self.assertEqual(len(lines), 16)
        self.assertEqual(lines[0], "       0 at 0    x . . . . . . . . . . . . . . .    . . . .")
        self.assertEqual(lines[8], "       8 at 8            x x x x x . . . . . . .    x x . .")
        self.assertEqual(lines[15], "     15 at 15                          x x x x x    x x x x")

    def test_documents_padding_and_selection_in_text(self):
        text = self.fine(self.case(pictures.documents_and_padding()))
        lines = self.rows_of(text)
        self.assertTrue(lines[9].endswith("x x /|~ ~|-"), lines[9])
        self.assertTrue(lines[19].endswith("~ ~ /|x x|-"), lines[19])
        self.assertTrue(lines[20].endswith(": : :|: :|:"), lines[20])
        for meaning in "straddles documents", "padding", "another document", "not real":
            self.assertIn(meaning, text)
        lines = self.rows_of(self.fine(self.case(pictures.selection())))
        self.assertTrue(lines[11].endswith("x x x x x x x x # !"), lines[11])
        self.assertTrue(lines[4].startswith("      4 at 12"), lines[4])

    def test_what_is_drawn_is_what_is_computed(self):
        """Blocks that topk selects when it may take all are the visible ones."""
        for make in pictures.window_and_blocks, pictures.documents_and_padding, pictures.document_grid:
            _, options, tensors = make()
            shape = [1, tensors["in.query"][1][1], tensors["in.compressed"][1][1]]
            options = {key: options[key] for key in ("m", "grid", "mask") if key in options}
            case = self.case(("topk", {"k": shape[2], "keys": "blocks", "S": shape[1], **options},
                              {"in.scores": ("F64", shape, 0.0),
                               **{name: value for name, value in tensors.items()
                                  if name in ("in.segment_ids", "in.positions")}}))
            out = os.path.join(self.folder.name, "out")
            self.assertEqual(run("eval", case, "--precision", "f64", "-o", out).returncode, 0)
            with open(out, "rb") as file:
                data = file.read()
            length = int.from_bytes(data[:8], "little")
            begin, end = json.loads(data[8:8 + length])["out.selected"]["data_offsets"]
            selected = data[8 + length + begin:8 + length + end]
            lines = self.rows_of(self.fine(case))
            self.assertEqual(len(lines), shape[1])
            for t, line in enumerate(lines):
                cells = line[-2 * shape[2]:][1::2]
                self.assertEqual([c == "x" for c in cells], [s == 1 for s in selected[t * shape[2]:][:shape[2]]], line)

    def test_rows_and_tokens(self):
        case = self.case(pictures.window_and_blocks())
        self.assertEqual(len(self.rows_of(self.fine(case, "--rows", "3,1,15"))), 3)
        self.assertEqual(self.rows_of(self.fine(case, "--row", "7", "--tokens", "4,11"))[0],
                         "       7 at 7    x x x x . . . .    x .")
        self.wrong("--rows: found 16", case, "--rows", "16")
        self.wrong("--rows", case, "--rows", "1,x")
        self.wrong("--rows: found none", case, "--rows", "")
        self.wrong("--batch: found 1, expected a batch below B = 1", case, "--batch", "1")
        self.wrong("--batch", case, "--batch", "-1")
        for tokens in "0,16", "3,2", "-1,3", "4":
            self.wrong("--tokens", case, "--tokens", tokens)

    def test_long_sequences(self):
        long = self.case(pictures.attention(200, {"in.compressed": ("F64", [1, 50, 1], 0.0)}, m=4, window=5))
        self.wrong("--rows 0,5,11", long)
        self.wrong("--tokens 0,95", long, "--rows", "0,199")
        self.assertEqual(len(self.rows_of(self.fine(long, "--rows", "0,199", "--tokens", "150,199"))), 2)

    def test_what_has_no_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "case")
            pictures.case(path, "rms_norm", {}, {"in.x": ("F64", [1, 2], 1.0)})
            self.wrong("csa_attention, csa_indexer, csa_indexer_loss, csa_layer, dsa_indexer, dsa_indexer_loss, "
                       "mla_attention, mla_layer, topk", path)
        case = self.case(pictures.window_and_blocks())
        self.wrong("no/folder", case, "-o", os.path.join(self.folder.name, "no/folder"))
        op, options, tensors = pictures.window_and_blocks()
        self.wrong("option m", self.case((op, {**options, "m": 0}, tensors)))
        self.wrong("in.compressed", self.case((op, {**options, "m": 3}, tensors)))

    def test_every_case_of_peers_is_xml(self):
        drawn = 0
        for path in sorted(glob.glob(os.path.join(PEERS, "*.safetensors"))):
            result = run("mask", path, "--svg")
            if result.returncode == 2 and "one whose rows see keys" in result.stderr:
                continue
            if result.returncode == 2 and "in a picture: choose" in result.stderr:
                continue
            self.assertEqual((result.returncode, result.stderr), (0, ""), path)
            root = xml.etree.ElementTree.fromstring(result.stdout)
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            drawn += 1
        self.assertGreater(drawn, 50)

    def test_text_in_pictures_is_escaped(self):
        case = self.case(pictures.sparse_loss())
        out = os.path.join(self.folder.name, "mask.svg")
        self.assertEqual(self.fine(case, "--svg", "-o", out), "")
        root = xml.etree.ElementTree.parse(out).getroot()
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("csa_indexer_loss", texts)
        self.assertTrue(any("\"preset\":\"megatron_csa_fused\"" in text for text in texts))

    def test_pictures_of_the_manual(self):
        result = subprocess.run([sys.executable, MAKER, PROGRAM, "--check"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(PROGRAM)
    unittest.main(argv=sys.argv[:1])
