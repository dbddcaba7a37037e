"""Functions on cases made to catch mistakes; a failure is small, and can be had again."""
import shlex
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, attention
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import plumbline as pl
from plumbline import strategies


def judged(fn, **how):
    return pl.verify(fn, "mla_attention", contract="ieee_f32", dtype="F32", with_=["sink"], quiet=True, **how)


def right(query, key, value, sink, valid=None, row_mask=None, segment_ids=None, positions=None):
    return attention(query, key, value, sink, valid, row_mask, segment_ids, positions)


def sink_forgotten_in_long_rows(query, key, value, sink):
    return {"output": attention(query, key, value, sink if key.shape[1] < 7 else None)}


def test_a_right_function_passes_the_default_suite():
    found = judged(right)
    pl.assert_passes(found)
    assert found.ok and found.verdict == "PASS" and not found.skipped and found.report is None
    assert {each.request["family"] for each in found.cases} == set(pl.families())


def test_a_failing_shape_is_shrunk(capsys, program, tmp_path):
    found = pl.verify(sink_forgotten_in_long_rows, "mla_attention", contract="ieee_f32", dtype="F32", with_=["sink"],
                      folder=str(tmp_path))
    assert not found.ok and found.case.inputs["query"].shape == (1, 7, 1, 1)
    assert found.report.cause == "what failed fits without in.sink"
    printed = capsys.readouterr().out
    assert printed.rstrip("\n") == str(found) and "left out   documents" in printed
    with pytest.raises(AssertionError, match="without in.sink"):
        pl.assert_passes(found)
    # Both commands do what they say.
    words = shlex.split(found.report.repro)
    assert words[0] == "plumbline"
    again = subprocess.run([program, *words[1:]], capture_output=True, text=True)
    assert again.returncode == 1 and "without in.sink" in again.stdout, again.stderr
    made = next(line for line in printed.splitlines() if line.startswith("made by: "))
    subprocess.run([program, *shlex.split(made[len("made by: plumbline "):])], check=True, cwd=tmp_path / "..",
                   capture_output=True)
    assert (tmp_path / "../case.safetensors").read_bytes() == (tmp_path / "case.safetensors").read_bytes()


def test_functions_that_raise_fail_and_shrink():
    def raises(query, key, value, sink):
        if query.shape[1] > 3:
            raise RuntimeError("no such tile")
        return attention(query, key, value, sink)

    found = judged(raises)
    assert not found.ok and "no such tile" in str(found) and found.case.inputs["query"].shape[1] == 4


def test_gradients_options_and_other_contracts():
    def norm(x, options, cotangents):
        x, cot = x.astype(np.float64), cotangents["y"].astype(np.float64)
        scale = 1 / np.sqrt((x ** 2).mean(-1, keepdims=True) + options["eps"])
        inner = (x * cot).mean(-1, keepdims=True)
        return {"y": (x * scale).astype(np.float32), "grad.x": (cot * scale - x * scale ** 3 * inner).astype(np.float32)}

    contract = {"name": "mine", "preset": "ieee_f32", "storage": "f32"}
    found = pl.verify(norm, "rms_norm", contract=contract, options={"eps": 0.01}, quiet=True)
    pl.assert_passes(found)
    assert any(each["tensor"] == "grad.x" for each in found.cases[0].report.tensors)
    wrong = pl.verify(lambda x, options, cotangents: {**norm(x, options, cotangents), "y": x}, "rms_norm",
                      contract=contract, options={"eps": 0.01}, suite="quick", quiet=True)
    assert "--contract @" in wrong.report.repro


def test_suites():
    assert len(judged(right, suite="quick").cases) == 3
    assert [each.request["family"] for each in judged(right, suite=["peaked+documents", "ties"]).cases] == [
        "peaked+documents", "ties"]
    one = judged(right, suite=[{"family": "gaussian", "dims": {"T": 3}, "seed": 9}]).cases[0]
    assert one.request["dims"] == {"T": 3} and one.request["seed"] == 9

    def anything(**inputs):
        return dict(pl.evaluate("topk", inputs, {"k": 2}).outputs)

    found = pl.verify(anything, "topk", contract="ieee_f32", options={"k": 2}, quiet=True)
    pl.assert_passes(found)
    file = pl.verify(lambda x: x, "rms_norm", str(ROOT / "fixtures/suites/rms_norm.json"), contract="ieee_f32",
                     quiet=True)
    assert len(file.cases) + len(file.skipped) > 1 and not file.ok


def test_functions_that_cannot_be_called_are_told_so():
    with pytest.raises(pl.Error, match="no parameter query"):
        judged(lambda key, value: value)
    with pytest.raises(pl.Error, match="parameter temperature"):
        judged(lambda query, key, value, temperature: value)
    with pytest.raises(pl.Error):
        judged(right, suite=["no_such_family"])


def test_from_the_command_line(tmp_path):
    (tmp_path / "kernels.py").write_text("def same(x):\n    return x\n")
    result = subprocess.run([sys.executable, "-m", "plumbline", "kernels:same", "rms_norm", "--contract", "ieee_f32",
                             "--suite", "quick", "--folder", "found"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1 and "again: plumbline check found/case.safetensors" in result.stdout, result.stderr
    result = subprocess.run([sys.executable, "-m", "plumbline", "kernels:none", "rms_norm", "--contract", "ieee_f32"],
                            cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2 and "none" in result.stderr


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.cases("mla_attention", with_=["sink"], dtypes=["F32"], dims={"T": (1, 6)}))
def test_strategies_make_cases_that_hold(case):
    inputs = {name: each.numpy() for name, each in case.inputs.items()}
    assert case.check({"output": right(**inputs)}, "ieee_f32", hints=False).ok


def test_strategies_shrink():
    case = find(strategies.cases("mla_attention", families=["gaussian"], dtypes=["F32"]),
                lambda case: case.inputs["query"].shape[1] >= 5, settings=settings(deadline=None))
    assert case.inputs["query"].shape[:3] == (1, 5, 1)
    assert isinstance(strategies.cases("rope"), st.SearchStrategy)
