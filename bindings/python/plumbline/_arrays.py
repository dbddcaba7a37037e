"""Arrays of anybody's: numpy, PyTorch, JAX, whatever has __dlpack__ or a buffer. Nothing is copied that can be read
where it lies."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np

from . import _plumbline
from ._error import Error

# Names of dtypes in files, and how numpy holds them: BF16 and fp8 as codes.
CODES = {"BF16": np.uint16, "F8_E4M3": np.uint8, "F8_E5M2": np.uint8}
EXTENSION_TYPES = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
PLAIN_TYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "U8": np.uint8,
    "BOOL": np.bool_,
}


class Tensor:
    """A tensor of a case: `dtype` as files name it, `raw` its elements in numpy, as codes where numpy has no such type.

    numpy() is exact in any dtype; torch() and jax() keep the dtype; so does __dlpack__.
    """

    __slots__ = ("raw", "dtype")

    def __init__(self, raw: np.ndarray, dtype: str):
        self.raw, self.dtype = raw, dtype

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.raw.shape

    def numpy(self) -> np.ndarray:
        """The numbers; float32 where numpy has no such dtype, which holds every bf16 and fp8 number."""
        if self.dtype == "BF16":
            return (self.raw.astype(np.uint32) << 16).view(np.float32)
        if self.dtype in CODES:
            return _fp8_table(self.dtype)[self.raw]
        return self.raw

    def torch(self) -> Any:
        import torch

        if self.dtype not in CODES:
            return torch.from_numpy(_writable(self.raw))
        kinds = {"BF16": torch.bfloat16, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}
        signed = np.int16 if self.dtype == "BF16" else np.uint8
        return torch.from_numpy(_writable(self.raw.view(signed))).view(kinds[self.dtype])

    def jax(self) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(self.ml_dtypes())

    def ml_dtypes(self) -> np.ndarray:
        """numpy with the dtypes of the package ml_dtypes, without a copy."""
        if self.dtype not in CODES:
            return self.raw
        import ml_dtypes

        name = next(name for name, dtype in EXTENSION_TYPES.items() if dtype == self.dtype)
        return self.raw.view(getattr(ml_dtypes, name))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **how: Any) -> Any:
        return _plumbline.with_dtype(self.raw, self.dtype).__dlpack__(**how)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)

    def __repr__(self) -> str:
        return f"Tensor({self.dtype} {list(self.shape)})"


def tensor(values: Any, dtype: Optional[str] = None) -> Tensor:
    """Values as a Tensor; with a dtype ("BF16", "F32", ...) rounded to it, to nearest, ties to even."""
    if dtype is None:
        return held(*entry("values", values))
    numbers = np.asarray(values.numpy() if isinstance(values, Tensor) else _as_numpy(values))
    if dtype in PLAIN_TYPES:
        return Tensor(numbers.astype(PLAIN_TYPES[dtype]), dtype)
    if dtype == "BF16":
        return Tensor(_to_bf16(numbers), dtype)
    if dtype not in CODES:
        raise Error.of("dtype", f'"{dtype}"', "one of " + ", ".join([*PLAIN_TYPES, *CODES]))
    try:
        import ml_dtypes
    except ImportError:
        raise Error.of("dtype", f"{dtype} without the package ml_dtypes", "ml_dtypes, which rounds to fp8") from None
    name = next(name for name, each in EXTENSION_TYPES.items() if each == dtype)
    return Tensor(numbers.astype(getattr(ml_dtypes, name)).view(np.uint8), dtype)


def entry(name: str, value: Any) -> Tuple[str, Any, Optional[str]]:
    """(name, array, dtype or None) for the library."""
    if isinstance(value, Tensor):
        return name, value.raw, value.dtype
    if isinstance(value, np.ndarray):
        code = EXTENSION_TYPES.get(value.dtype.name)
        if code is not None:
            return name, value.view(CODES[code]), code
        if not value.dtype.isnative or value.dtype.hasobject:
            raise Error.of(name, f"dtype {value.dtype}", "numbers in the machine's own byte order")
        return name, value, None
    module = type(value).__module__.partition(".")[0]
    if module == "torch":
        return _torch_entry(name, value)
    if module in ("jax", "jaxlib"):
        return entry(name, np.asarray(value))
    if module == "cupy":
        return entry(name, value.get())
    if value is None:
        raise Error.of(name, "None", "an array")
    if isinstance(value, (bool, int, float, list, tuple, np.generic)):
        try:
            return entry(name, np.asarray(value))
        except ValueError as ragged:
            raise Error.of(name, str(ragged), "rows of equal length") from None
    return name, value, None


def entries(place: str, arrays: Optional[Mapping[str, Any]]) -> list:
    """Every array of a mapping under its full name; names may have the place already."""
    if arrays is None:
        return []
    if not hasattr(arrays, "items"):
        raise Error.of(place, type(arrays).__name__, "a mapping of names to arrays")
    prefix = place + "."
    return [entry(name if name.startswith(prefix) else prefix + name, array) for name, array in arrays.items()]


def held(name: str, array: Any, dtype: Optional[str]) -> Tensor:
    """An entry as a Tensor that keeps the array, where it lies if numpy can see it there."""
    if not isinstance(array, np.ndarray):
        array = np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(array)
    if dtype is not None:
        return Tensor(array.view(CODES[dtype]) if dtype in CODES else array, dtype)
    for known, kind in PLAIN_TYPES.items():
        if array.dtype == kind:
            return Tensor(array, known)
    raise Error.of(name, f"dtype {array.dtype}", "one of " + ", ".join([*PLAIN_TYPES, *CODES]))


def _torch_entry(name: str, value: Any) -> Tuple[str, Any, Optional[str]]:
    import torch

    value = value.detach()
    if value.device.type != "cpu":
        value = value.cpu()
    if value.is_sparse or value.is_conj() or value.is_neg():
        value = (value.to_dense() if value.is_sparse else value).resolve_conj().resolve_neg()
    code = EXTENSION_TYPES.get(str(value.dtype).partition(".")[2])
    if code is None:
        return name, value, None
    return name, value.view(torch.int16 if code == "BF16" else torch.uint8), code


def _as_numpy(value: Any) -> np.ndarray:
    name, array, code = entry("values", value)
    return np.asarray(array) if code is None else held(name, array, code).numpy()


def _to_bf16(numbers: np.ndarray) -> np.ndarray:
    """Rounded once, from float64: by way of float32 it would be twice."""
    wide = np.ascontiguousarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
    bits = single.view(np.uint32).copy()
    # To odd in float32 first: then rounding again cannot meet a tie that was none.
    inexact = np.isfinite(single) & (single.astype(np.float64) != wide)
    too_large = inexact & (np.abs(single.astype(np.float64)) > np.abs(wide))
    bits = np.where(too_large, bits - 1, bits)
    overflowed = np.isinf(single) & np.isfinite(wide)
    bits = np.where(overflowed, (bits & 0x80000000) | 0x7F7FFFFF, bits)
    bits = np.where(inexact | overflowed, bits | 1, bits).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where(np.isnan(wide), quiet, rounded).astype(np.uint16)


def _writable(array: np.ndarray) -> np.ndarray:
    return array if array.flags.writeable else array.copy()  # torch warns of arrays it may not write to


_tables: Dict[str, np.ndarray] = {}


def _fp8_table(dtype: str) -> np.ndarray:
    if dtype not in _tables:
        exponent_bits, fraction_bits, bias = (4, 3, 7) if dtype == "F8_E4M3" else (5, 2, 15)
        numbers = []
        for code in range(256):
            sign, fraction = -1.0 if code & 0x80 else 1.0, code & ((1 << fraction_bits) - 1)
            exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
            number = 2.0 ** (1 - bias - fraction_bits) * fraction
            if exponent:
                number = 2.0 ** (exponent - bias - fraction_bits) * ((1 << fraction_bits) + fraction)
            if dtype == "F8_E4M3" and code & 0x7F == 0x7F:
                number = float("nan")
            if dtype == "F8_E5M2" and exponent == 31:
                number = float("nan") if fraction else float("inf")
            numbers.append(sign * number)
        _tables[dtype] = np.array(numbers, np.float32)
    return _tables[dtype]
