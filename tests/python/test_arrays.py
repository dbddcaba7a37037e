"""Arrays of anybody's, read where they lie."""
import array

import ml_dtypes
import numpy as np
import pytest

import plumbline as pl


def norm(x, **more):
    return pl.evaluate("rms_norm", {"x": x, **more}, {"eps": 0.0})["y"].high


X = np.arange(1, 25, dtype=np.float64).reshape(4, 6)


@pytest.mark.parametrize("view", [
    X, np.asfortranarray(X), X[::-1], X[:, ::-1], np.ascontiguousarray(X.T).T, np.repeat(X, 2, 0)[::2],
    np.lib.stride_tricks.as_strided(X, (4, 6), (48, 8)), X.astype(np.float32), X.astype(np.float16),
    X.astype(ml_dtypes.bfloat16), X.astype(ml_dtypes.bfloat16)[::-1],
])
def test_layouts_and_dtypes(view):
    plain = np.array(np.asarray(view, np.float64))  # whole numbers below 25: exact in every dtype
    assert np.array_equal(norm(view), norm(plain))


def test_broadcast_has_stride_zero():
    row = np.broadcast_to(X[0], (4, 6))
    assert np.array_equal(norm(row), norm(np.array(row)))


def test_nothing_is_copied_and_nothing_is_written():
    x = X.copy()
    x.flags.writeable = False
    assert np.array_equal(norm(x), norm(X))
    case = pl.Case("rms_norm", {"x": X})
    assert np.shares_memory(case.inputs["x"].raw, X)


def test_buffers_lists_and_dlpack():
    flat = array.array("d", X.ravel())
    assert np.array_equal(norm(memoryview(flat).cast("B").cast("d", (4, 6))), norm(X))
    assert np.array_equal(norm(X.tolist()), norm(X))

    class Foreign:  # knows DLPack and nothing else
        def __dlpack__(self, **how):
            return X.__dlpack__(**how)

        def __dlpack_device__(self):
            return X.__dlpack_device__()

    assert np.array_equal(norm(Foreign()), norm(X))


def test_fp8_codes_with_their_scale():
    codes = np.array([[1.0, 2.0, 3.0]]).astype(ml_dtypes.float8_e4m3fn)
    y = pl.evaluate("linear", {"x": np.ones((1, 3)), "weight": codes.reshape(3, 1, 1),
                               "weight.scale": np.full((1, 1, 1), 0.5, np.float32)})["y"]
    assert y.high.item() == 3.0


@pytest.mark.parametrize("dtype, kind", [("BF16", ml_dtypes.bfloat16), ("F8_E4M3", ml_dtypes.float8_e4m3fn),
                                         ("F8_E5M2", ml_dtypes.float8_e5m2)])
def test_every_code_is_read_as_ml_dtypes_reads_it(dtype, kind):
    bits = np.arange(2 ** (16 if dtype == "BF16" else 8)).astype(np.uint16 if dtype == "BF16" else np.uint8)
    ours, theirs = pl.Tensor(bits, dtype), bits.view(kind).astype(np.float32)
    assert np.array_equal(ours.numpy(), theirs, equal_nan=True)
    assert np.array_equal(ours.ml_dtypes().view(bits.dtype), bits)


def test_rounding_to_bf16_is_one_rounding():
    rng = np.random.default_rng(1)
    every = (np.arange(0x7F80, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)  # finite, ascending
    ties = (every[:-1] + every[1:]) / 2
    doubles = np.ldexp(rng.uniform(0.5, 1, 20000), rng.integers(-140, 128, 20000))
    for near in (ties, np.nextafter(ties, np.inf), np.nextafter(ties, 0), doubles):
        above = np.searchsorted(every, near).clip(1, len(every) - 1)
        low, high = near - every[above - 1], every[above] - near
        nearest = np.where((low < high) | ((low == high) & (above % 2 == 1)), above - 1, above)
        for sign in (1, -1):
            assert np.array_equal(pl.tensor(sign * near, "BF16").numpy(), sign * every[nearest])
    assert np.isnan(pl.tensor([np.nan], "BF16").numpy()).all()
    assert np.isinf(pl.tensor([np.inf, 1e300], "BF16").numpy()).all()
    assert pl.tensor([1.00390625], "BF16").numpy() == [1.0]  # a tie, to even


def test_tensors_go_out_again():
    tensor = pl.tensor([[1.0, 2.5]], "BF16")
    assert tensor.shape == (1, 2) and repr(tensor) == "Tensor(BF16 [1, 2])"
    assert np.array_equal(np.asarray(tensor), [[1.0, 2.5]])
    assert pl.tensor(np.float32([1])).dtype == "F32"
    with pytest.raises(pl.Error):
        pl.tensor([1.0], "F4")
    assert np.array_equal(np.from_dlpack(pl.tensor([1.0, 2.0], "F32")), [1, 2])


def test_foreign_memory_is_refused():
    class Elsewhere:
        def __dlpack__(self, **how):
            raise BufferError("not on this device")

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(pl.Error, match="in.x"):
        norm(Elsewhere())
    with pytest.raises(pl.Error, match="byte order"):
        norm(X.astype(">f8"))
