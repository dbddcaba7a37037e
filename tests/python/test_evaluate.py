"""Values through Python: the numbers of the docs, the same bits as the command line, errors in the library's words."""
import json
import signal
import subprocess
import sys
import textwrap
import threading
import time

import mpmath
import numpy as np
import pytest
from conftest import ROOT, two_teachers

import plumbline as pl


@pytest.mark.parametrize("preset, gradient", [("exact", 0.0744425168116589871520712652347),
                                              ("veomni", -0.00889081652167434618126206809868)])
def test_two_teachers(preset, gradient):
    inputs, options = two_teachers(preset)
    result = pl.evaluate("csa_indexer_loss", inputs, options, grad=True, outputs=["target"], precision="mp50")
    high, low = result["grad.scores"]
    assert high.shape == (1, 1, 2) and abs(low).max() < 1e-16
    assert abs(high[0, 0, 0] - gradient) < 1e-15
    assert abs(result.target.high.sum() - 1) < 1e-15
    assert result.row_valid.dtype == bool and result.row_valid.all()
    assert set(result.grad) == {"scores"} and "grad.scores" in result and "loss" in result


def test_the_files_of_the_docs_to_thirty_digits():
    case = pl.load(ROOT / "docs/cases/discriminating_joint.safetensors")
    mpmath.mp.dps = 40
    for precision in ("f192", "mp50", "mp100"):
        first = case.evaluate(grad=True, precision=precision)["grad.scores"].mpmath()[0, 0, 0]
        assert abs(first - mpmath.mpf("-0.00889081652167434618126206809868")) < mpmath.mpf("1e-31")


def test_mp100_gives_a_hundred_digits():
    mpmath.mp.dps = 100
    low = 2 - float(np.sqrt(2)) ** 2
    exact = pl.evaluate("rms_norm", {"x": np.array([[1.0, 2.0]])}, {"eps": 0.0}, precision="mp100")["y"].mpmath()
    assert abs(exact[0, 0] - mpmath.sqrt(mpmath.mpf(2) / 5)) < mpmath.mpf("1e-97") and low != 0
    mpmath.mp.dps = 15


def test_same_bits_as_the_program(program, tmp_path):
    golden = tmp_path / "golden.safetensors"
    for case in sorted((ROOT / "tests/peer").glob("*maxtext*.safetensors"))[::7]:
        subprocess.run([program, "eval", case, "--grad", "-o", golden], check=True, capture_output=True)
        mine, theirs = pl.load(case).evaluate(grad=True), pl.load(golden)
        for name, value in mine.items():
            full = name if name.startswith("grad.") else "out." + name
            if isinstance(value, pl.Real):
                assert np.array_equal(value.high, theirs.tensors[full].raw, equal_nan=True), (case.name, name)
                assert np.array_equal(value.low, theirs.tensors[full + ".lo"].raw, equal_nan=True)
            else:
                assert np.array_equal(value, theirs.tensors[full].raw)


def test_threads_and_schedules_change_nothing():
    case = pl.generate("csa_attention", {"B": 2, "T": 9}, "documents", 3, grad=True)
    one = case.evaluate(grad=True, threads=1)
    for threads in (0, 2, 5):
        more = case.evaluate(grad=True, threads=threads)
        assert all(np.array_equal(np.asarray(one[name]), np.asarray(more[name])) for name in one)
    streamed = case.evaluate(schedule={"key_block": 2})
    assert np.allclose(streamed.output.high, one.output.high, rtol=1e-15)


def test_bounds_come_with_a_contract():
    case = pl.generate("rms_norm", seed=1)
    plain, bounded = case.evaluate().y, case.evaluate(contract="bf16_f32acc").y
    assert plain.bound is None
    assert np.array_equal(plain.high, bounded.high)
    assert (bounded.bound >= bounded.bound2).all() and (bounded.gauge > 0).any()
    tighter = case.evaluate(contract={"name": "mine", "preset": "ieee_f64"}).y
    assert (tighter.bound <= bounded.bound).all()


def test_given_cotangents_and_companions():
    x, w = np.array([[1.0, 2.0]]), np.array([[[3.0]], [[4.0]]])
    y = pl.evaluate("linear", {"x": x, "weight": w, "weight.lo": np.full((2, 1, 1), 2.0 ** -60)})["y"]
    assert float(y.high[0, 0, 0]) == 11 and float(y.low[0, 0, 0]) == 3 * 2.0 ** -60
    result = pl.evaluate("linear", {"x": x, "weight": w}, grad=True, cot={"y": np.array([[[2.0]]])})
    assert result["grad.x"].high.tolist() == [[6.0, 8.0]]
    inputs, options = two_teachers("exact")
    target = np.array([[[0.25, 0.75]]])
    given = pl.evaluate("csa_indexer_loss", inputs, options, given={"target": target}, outputs="all")
    assert given.target.high.tolist() == target.tolist()


@pytest.mark.parametrize("change, where", [
    (dict(op="no_such_op"), "op"),
    (dict(options={"eps": -1}), "option eps"),
    (dict(options={"nothing": 1}), 'option "nothing"'),
    (dict(inputs={}), "in.x"),
    (dict(inputs={"x": np.ones((2, 2)), "y": np.ones(2)}), "in.y"),
    (dict(inputs={"x": np.array([[1.0, np.nan]])}), "in.x"),
    (dict(inputs={"x": np.array(["a"])}), "in.x"),
    (dict(inputs={"x": np.ones((2, 2), np.int16)}), "in.x"),
    (dict(inputs={"x": None}), "in.x"),
    (dict(inputs={"x": object()}), "in.x"),
    (dict(inputs=3), "in"),
    (dict(precision="f16"), "precision"),
    (dict(contract="nobodys"), "contract"),
    (dict(schedule={"step": 1}), "schedule.step"),
    (dict(outputs=["z"]), "outputs"),
    (dict(threads=-1), "threads"),
])
def test_errors_name_the_place(change, where):
    asked = dict(op="rms_norm", inputs={"x": np.ones((2, 3))})
    asked.update(change)
    with pytest.raises(pl.Error) as caught:
        pl.evaluate(**asked)
    error = caught.value
    assert error.where.startswith(where), str(error)
    assert str(error) == f"{error.where}: found {error.found}, expected {error.expected}"
    assert isinstance(error, ValueError)


def test_the_gil_is_released():
    done, ticks = threading.Event(), 0

    def work():
        pl.evaluate("mla_attention", {name: np.ones((1, 60, 4, 16)) for name in ("query", "key", "value")},
                    precision="mp100", threads=1)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 5  # with the GIL held this loop could not turn


def test_ctrl_c_ends_an_evaluation():
    code = textwrap.dedent("""
        import numpy as np, plumbline as pl, sys
        big = {name: np.ones((1, 3000, 8, 64)) for name in ("query", "key", "value")}
        print("begun", flush=True)
        try:
            pl.evaluate("mla_attention", big, precision="mp100")
        except KeyboardInterrupt:
            print("interrupted", pl.evaluate("rms_norm", {"x": np.ones((1, 2))}).y.high.shape)
    """)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=120)[0] == "interrupted (1, 2)\n"


def test_words_are_the_registrys(program):
    assert list(pl.ops()) == subprocess.run([program, "ops", "--names"], capture_output=True, text=True).stdout.split()
    for name in pl.ops():
        told = json.loads(subprocess.run([program, "ops", name, "--json"], capture_output=True, text=True).stdout)
        assert pl.operation(name)._description == told
    page = str(pl.ops()["csa_indexer_loss"])
    assert "veomni" in page and "query [B T H D]" in page
    assert "csa_indexer_loss" in repr(pl.ops())
    assert pl.ops()["rms_norm"].resolve({})["eps"] == 1e-6
    assert "ieee_f32" in pl.contracts() and pl.contract("ieee_f32")["output"] == "f32"
    assert "poison" in pl.families()


def test_functions_have_the_registrys_signatures():
    import inspect

    from plumbline import functions

    signature = inspect.signature(functions.csa_attention)
    assert list(signature.parameters)[:3] == ["query", "kv", "compressed"]
    assert signature.parameters["sink"].default is None
    assert "compressed [B N D], real, required, differentiable: " in functions.csa_attention.__doc__
    assert functions.rms_norm(np.ones((1, 2)), options={"eps": 0.0}).y.high.tolist() == [[1, 1]]
    assert pl.ops()["rms_norm"](x=np.ones((1, 2)), options={"eps": 0.0}).y.high.tolist() == [[1, 1]]
    with pytest.raises(TypeError):
        functions.rms_norm()
    with pytest.raises(AttributeError):
        functions.nothing
    assert "rms_norm" in dir(functions)


def test_stubs_are_made_of_the_registry():
    subprocess.run([sys.executable, ROOT / "scripts/make_stubs.py", "--check",
                    ROOT / "bindings/python/plumbline/functions.pyi"], check=True)
    compile((ROOT / "bindings/python/plumbline/functions.pyi").read_text(), "functions.pyi", "exec")
