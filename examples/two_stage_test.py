#!/usr/bin/env python3
"""two_stage_test.py EXAMPLE PROGRAM: what docs/two-stage-training.md says of the example.

The KL falls in both stages, nothing but the indexer moves in warm-up, and the gradients of the first and of the last
step are right.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

EXAMPLE, PROGRAM = sys.argv[1:3] if len(sys.argv) >= 3 else ("two_stage_training", "plumbline")
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "two-stage-training.md")
LINE = re.compile(r"^ *(\d+)  (warm-up|sparse) +(\d+\.\d+)  (\d+\.\d+)$", re.MULTILINE)


class TwoStages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="plumbline_stages_")
        cls.text = subprocess.run([EXAMPLE, cls.folder.name], check=True, capture_output=True, text=True,
                                  timeout=200).stdout
        cls.lines = [(int(step), stage, float(kl), float(model)) for step, stage, kl, model in LINE.findall(cls.text)]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def of(self, stage):
        return [line for line in self.lines if line[1] == stage]

    def test_kl_falls(self):
        for stage, share in ("warm-up", 0.5), ("sparse", 0.9):
            kl = [line[2] for line in self.of(stage)]
            self.assertEqual(len(kl), 6, self.text)
            self.assertEqual(kl, sorted(kl, reverse=True), stage)
            self.assertLess(kl[-1], share * kl[0], stage)

    def test_warm_up_moves_the_indexer_alone(self):
        self.assertIn("after warm-up: weights outside the indexer as they were, bit for bit", self.text)
        self.assertIn("after sparse: weights outside the indexer have moved", self.text)
        self.assertEqual(len({line[3] for line in self.of("warm-up")}), 1, "the output does not move")
        model = [line[3] for line in self.of("sparse")]
        self.assertLess(model[-1], 0.9 * model[0])

    def test_page_states_these_numbers(self):
        with open(PAGE, encoding="utf-8") as page:
            stated = [(int(step), stage, float(kl), float(model)) for step, stage, kl, model in
                      LINE.findall(re.sub(r"^    ", "", page.read(), flags=re.MULTILINE))]
        self.assertEqual(len(stated), len(self.lines))
        for (*place, kl, model), (*ours, our_kl, our_model) in zip(stated, self.lines):
            self.assertEqual(place, ours)
            self.assertAlmostEqual(kl, our_kl, delta=1e-6)
            self.assertAlmostEqual(model, our_model, delta=1e-6)

    def test_gradients_at_both_ends(self):
        for end in "start", "end":
            case = os.path.join(self.folder.name, end + ".safetensors")
            result = subprocess.run([PROGRAM, "gradcheck", case, "--max-coordinates", "0"],
                                    capture_output=True, text=True, timeout=250)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("agree", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
