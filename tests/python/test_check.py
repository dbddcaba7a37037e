"""Verdicts from Python: mistakes are told apart, each with its cause in one line; cases and files."""
import html.parser
import json
import subprocess

import numpy as np
import pytest
from conftest import ROOT, attention, two_teachers

import plumbline as pl


def attention_case(seed=1):
    case = pl.generate("mla_attention", {"B": 1, "T": 12, "H": 4, "Hk": 2, "D": 16, "Dv": 8}, seed=seed, dtype="F32",
                       with_=["sink"])
    return case, {name: each.numpy() for name, each in case.inputs.items()}


def test_right_attention_passes():
    case, inputs = attention_case()
    report = pl.check("mla_attention", inputs, {"output": attention(**inputs)}, contract="ieee_f32")
    assert report.ok and report.verdict == "PASS" and report.cause == ""
    assert report.worst.margin < 1 and report.worst.tensor == "out.output"
    pl.assert_passes(report)
    assert pl.check(case, {"output": attention(**inputs)}, "ieee_f32").ok


def test_missing_sink():
    case, inputs = attention_case()
    without = {name: each for name, each in inputs.items() if name != "sink"}
    report = case.check({"output": attention(**without)}, "ieee_f32")
    assert report.verdict == "FAIL" and report.cause == "what failed fits without in.sink"


def test_probabilities_rounded_to_bf16():
    case, inputs = attention_case()
    rounded = attention(**inputs, stored="BF16")
    report = case.check({"output": rounded}, "ieee_f32")
    assert report.verdict == "FAIL" and report.cause == "what failed fits contract bf16_f32acc"
    declared = {"name": "mine", "rounding_points": {"probabilities": "bf16"}}
    assert case.check({"output": rounded}, declared).ok
    assert case.check({"output": rounded}, "bf16_f32acc").ok


def test_wrong_teacher():
    inputs, options = two_teachers("veomni")
    own = pl.evaluate("csa_indexer_loss", inputs, {**options, "preset": "exact"}, grad=True)
    outputs = {"loss": own.loss.high.astype(np.float32), "grad.scores": own["grad.scores"].high.astype(np.float32)}
    report = pl.check("csa_indexer_loss", inputs, outputs, options, "ieee_f32")
    assert report.verdict == "FAIL" and report.cause == "what failed fits option teacher own"
    assert {each["verdict"] for each in report.tensors} == {"FAIL"}


def test_three_mistakes_have_three_causes():
    case, inputs = attention_case(2)
    causes = {case.check({"output": attention(**{**inputs, **change})}, "ieee_f32").cause
              for change in ({"sink": None}, {"stored": "BF16"}, {"value": inputs["value"] * 2})}
    assert len(causes) == 3 and all("\n" not in cause and cause for cause in causes)


def test_a_report_reads_well():
    case, inputs = attention_case()
    output = attention(**inputs)
    output[0, 3, 1, :] = 7
    report = case.check({"output": output, "other": output}, "ieee_f32")
    text = repr(report)
    assert text.startswith("FAIL: mla_attention under ieee_f32\n") and "8 of 384 beyond" in text
    assert "out.lse" in text and "out.other" in text and "row 3, head 1" in report.cause
    assert report.worst.index[:3] == [0, 3, 1] and report.worst.actual == "7" and "7" in str(report.worst)
    with pytest.raises(AssertionError) as caught:
        pl.assert_passes(report)
    assert str(caught.value) == text
    parser = html.parser.HTMLParser()
    parser.feed(report._repr_html_())
    assert "iframe" in report._repr_html_() and "<svg" in report.to_html() and "<svg" in report.to_svg()
    assert json.loads(report.to_json()) == report.json and 'failures="1"' in report.to_junit()


def test_reports_are_written(tmp_path):
    case, inputs = attention_case()
    report = case.check({"output": attention(**inputs)}, "ieee_f32")
    assert report.to_html(tmp_path / "report.html") == (tmp_path / "report.html").read_text()


def test_gradients_selections_and_bf16_results():
    case = pl.generate("topk", {"T": 7, "k": 3}, "near_equal", 4, dtype="F32")
    golden = case.outputs["indices"].raw
    assert case.check({"indices": golden[..., ::-1]}, "ieee_f32").ok  # a set
    wrong = golden.copy()
    wrong[..., 0] = wrong[..., 1]
    assert not case.check({"indices": wrong}, "ieee_f32").ok
    norm = pl.generate("rms_norm", seed=2, grad=True)
    results = {"y": pl.tensor(norm.outputs["y"].numpy(), "BF16"),
               "grad.x": pl.tensor(norm.gradients["x"].numpy(), "BF16")}
    report = norm.check(results, "bf16_f32acc")
    assert report.ok and [each["dtype"] for each in report.tensors] == ["BF16", "BF16"]


def test_results_of_any_layout():
    case, inputs = attention_case()
    output = attention(**inputs)
    assert case.check({"output": np.asfortranarray(output)}, "ieee_f32").ok
    strided = {name: np.repeat(each, 2, 0)[::2] for name, each in inputs.items()}
    assert pl.check("mla_attention", strided, {"output": np.repeat(output, 2, -1)[..., ::2]}, contract="ieee_f32").ok


def test_errors():
    case, inputs = attention_case()
    for arguments in ({"outputs": None, "contract": "ieee_f32"}, {"outputs": {}, "contract": "ieee_f32"},
                      {"outputs": {"output": attention(**inputs)}, "contract": None}):
        with pytest.raises(pl.Error):
            pl.check("mla_attention", inputs, **arguments)
    with pytest.raises(pl.Error, match="contract"):
        case.check({"output": attention(**inputs)}, {"name": "mine", "no_such_key": 1})


def test_cases_travel(tmp_path, program):
    case = pl.generate("csa_indexer_loss", {"T": 8, "m": 4}, "documents", 3, grad=True)
    case.save(tmp_path / "mine.safetensors")
    subprocess.run([program, "generate", "csa_indexer_loss", "--dims", "T=8,m=4", "--family", "documents", "--seed",
                    "3", "--grad", "-o", tmp_path / "theirs.safetensors"], check=True, capture_output=True)
    assert (tmp_path / "mine.safetensors").read_bytes() == (tmp_path / "theirs.safetensors").read_bytes()
    again = pl.load(tmp_path / "mine.safetensors")
    assert again.op == case.op and again.options == case.options
    assert all(np.array_equal(again.tensors[name].raw.view(np.uint8), each.raw.view(np.uint8))
               for name, each in case.tensors.items() if each.raw.ndim)
    results = again.evaluate(grad=True)
    pl.save(tmp_path / "kernel.safetensors", {name: np.asarray(results[name], np.float32)
                                              for name in ("loss", "grad.scores")})
    judged = subprocess.run([program, "check", tmp_path / "mine.safetensors", tmp_path / "kernel.safetensors",
                             "--contract", "ieee_f32"], capture_output=True, text=True)
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_a_case_of_ones_own(tmp_path):
    case = pl.Case("rms_norm", {"x": pl.tensor([[1.0, 2.0]], "BF16")}, {"eps": 0.5})
    case.metadata["contract"] = "ieee_f32"
    case.save(tmp_path / "own.safetensors")
    again = pl.load(tmp_path / "own.safetensors")
    assert again.inputs["x"].dtype == "BF16" and again.options == {"eps": 0.5} and "rms_norm" in repr(again)
    y = again.evaluate().y.high.astype(np.float32)
    assert again.check({"y": y}).ok  # the contract it declares
    peer = pl.load(ROOT / "tests/peer/topk__maxtext__ties_lowest_index.safetensors")
    peer.save(tmp_path / "peer.safetensors")
    assert pl.load(tmp_path / "peer.safetensors").metadata == peer.metadata
