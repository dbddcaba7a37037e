"""Values of operations."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import _plumbline
from ._arrays import entries
from ._describe import contract_text, text
from ._error import Error


class Real:
    """Real numbers as pairs: high + low is good to 1e-31 relative. `high, low = real` unpacks them.

    With a contract, `bound` and `bound2` are how far a correct execution may be off, proven and statistically, and
    `gauge` is the size of the terms an element is made of.
    """

    __slots__ = ("high", "low", "bound", "bound2", "gauge", "_digits")

    def __init__(self, high: Any, low: Any, bound: Any, bound2: Any, gauge: Any, digits: Any):
        self.high, self.low, self.bound, self.bound2, self.gauge, self._digits = high, low, bound, bound2, gauge, digits

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.high, self.low))

    @property
    def shape(self) -> tuple:
        return self.high.shape

    def mpmath(self) -> Any:
        """Numbers of mpmath, one or an array of objects: every digit of an evaluation in mp100, else high + low. Set
        mpmath.mp.dps as you need it."""
        import mpmath

        flat = np.empty(self.high.size, object)
        with mpmath.workdps(max(mpmath.mp.dps, 105 if self._digits else 40)):
            if self._digits:
                flat[:] = [mpmath.mpf(digits) for digits in self._digits]
            else:
                flat[:] = [mpmath.mpf(float(h)) + mpmath.mpf(float(l))
                           for h, l in zip(self.high.flat, self.low.flat)]
        return flat.reshape(self.shape) if self.shape else flat[0]

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return self.high if dtype is None else self.high.astype(dtype)

    def __float__(self) -> float:
        return float(self.high)

    def __repr__(self) -> str:
        if self.shape:
            return f"Real({list(self.shape)}, {np.array2string(self.high, threshold=8, precision=6)})"
        return f"Real({float(self.high)!r} + {float(self.low)!r})"


class Result(Mapping[str, Union[Real, np.ndarray]]):
    """Outputs by name, and gradients as "grad.<input>": real ones as pairs, indices and flags as numpy arrays. Outputs are
    attributes too, gradients stand in `grad`."""

    def __init__(self, outputs: Dict[str, tuple], gradients: Dict[str, tuple]):
        def value(parts: tuple) -> Union[Real, np.ndarray]:
            return Real(*parts) if len(parts) > 1 else parts[0]

        self.outputs = {name: value(parts) for name, parts in outputs.items()}
        self.grad = {name: value(parts) for name, parts in gradients.items()}

    def __getitem__(self, name: str) -> Union[Real, np.ndarray]:
        return self.grad[name[5:]] if name.startswith("grad.") else self.outputs[name]

    def __getattr__(self, name: str) -> Union[Real, np.ndarray]:
        try:
            return self.__dict__["outputs"][name]
        except KeyError:
            raise AttributeError(f"no output {name}; there are {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        yield from self.outputs
        yield from ("grad." + name for name in self.grad)

    def __len__(self) -> int:
        return len(self.outputs) + len(self.grad)

    def __repr__(self) -> str:
        return "Result(" + ",\n       ".join(f"{name}: {self[name]!r}" for name in self) + ")"


def call_of(op: str, tensors: list, options: Any, *, precision: str = "f192", contract: Any = None, grad: bool = False,
            schedule: Any = None, outputs: Sequence[str] = (), threads: int = 0) -> Any:
    if not isinstance(op, str):
        raise Error.of("op", type(op).__name__, "the name of an operation")
    names = [outputs] if isinstance(outputs, str) else list(outputs)
    return _plumbline.Call(op, text(options), text(schedule), precision, contract_text(contract), names, tensors,
                           bool(grad), threads)


def evaluate(op: Any, inputs: Optional[Mapping[str, Any]] = None, options: Optional[Mapping[str, Any]] = None, *,
             precision: str = "f192", grad: bool = False, schedule: Optional[Mapping[str, Any]] = None,
             outputs: Sequence[str] = (), given: Optional[Mapping[str, Any]] = None,
             cot: Optional[Mapping[str, Any]] = None, contract: Any = None, threads: int = 0) -> Result:
    """What an operation gives for these inputs, exactly as they are stored.

    op         its name, or a Case, which has the rest
    inputs     arrays by name: numpy, PyTorch, JAX, anything with __dlpack__ or a buffer; "x.lo" is a remainder of x,
               "x.scale" the scale of fp8 codes
    options    of the operation; print(ops()[op]) lists them
    precision  f32, f64, f192, mp50 or mp100
    grad       gradients of every differentiable input too; `cot` holds cotangents of outputs
    schedule   another order of work, which never changes the result beyond rounding
    outputs    those on request, by name, or "all"
    given      intermediates that replace what would be computed, as constants
    contract   a kernel's arithmetic: then real values carry bound, bound2 and gauge
    threads    0: one for each core. No bit depends on it.

    Ctrl-C ends it between rows. Errors are plumbline.Error and name the tensor or option.
    """
    if hasattr(op, "_evaluate"):
        if inputs is not None or options is not None:
            raise Error.of("inputs", "inputs or options beside a case", "the case alone: it has them")
        return op._evaluate(precision=precision, grad=grad, schedule=schedule, outputs=outputs, given=given, cot=cot,
                            contract=contract, threads=threads)
    tensors = entries("in", inputs) + entries("given", given) + entries("cot", cot)
    return Result(*_plumbline.evaluate(call_of(
        op, tensors, options, precision=precision, contract=contract, grad=grad, schedule=schedule, outputs=outputs,
        threads=threads)))
