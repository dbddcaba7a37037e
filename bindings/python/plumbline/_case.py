"""Cases: inputs, options and results in one file."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from . import _plumbline
from ._arrays import Tensor, entries, entry, held
from ._describe import text
from ._error import Error
from ._evaluate import Result, call_of
from ._report import Report, results

PLACES = ("in", "given", "cot", "peer", "out", "grad", "bound", "bound2")


class Case:
    """A case: `op`, `options`, `schedule`, and `tensors` by their full names ("in.query"). Parts of it by plain names:
    `inputs`, `given`, `cot`, and the goldens `outputs` and `gradients`, where a file has them."""

    def __init__(self, op: str, inputs: Optional[Mapping[str, Any]] = None,
                 options: Optional[Mapping[str, Any]] = None, *, given: Optional[Mapping[str, Any]] = None,
                 cot: Optional[Mapping[str, Any]] = None, schedule: Optional[Mapping[str, Any]] = None,
                 requested: Sequence[str] = ()):
        self.tensors: Dict[str, Tensor] = {}
        for name, array, dtype in entries("in", inputs) + entries("given", given) + entries("cot", cot):
            self.tensors[name] = held(name, array, dtype)
        self.metadata: Dict[str, Any] = {
            "schema": 1, "op": op, "options": dict(options or {}), "schedule": dict(schedule or {}),
            "outputs": list(requested)}
        self.foreign: Dict[str, str] = {}  # metadata of others, kept
        self.request: Optional[Dict[str, Any]] = None  # what generate was asked

    @property
    def op(self) -> str:
        return self.metadata["op"]

    @property
    def options(self) -> Dict[str, Any]:
        return self.metadata.get("options", {})

    @property
    def schedule(self) -> Dict[str, Any]:
        return self.metadata.get("schedule", {})

    @property
    def requested(self) -> List[str]:
        """Outputs on request."""
        return self.metadata.get("outputs", [])

    def part(self, place: str) -> Dict[str, Tensor]:
        """Tensors of a place (in, given, cot, peer, out, grad, bound, bound2) without it in their names."""
        return {name[len(place) + 1:]: each for name, each in self.tensors.items() if name.startswith(place + ".")}

    inputs = property(lambda self: self.part("in"), doc="arrays by name")
    given = property(lambda self: self.part("given"), doc="supplied intermediates")
    cot = property(lambda self: self.part("cot"), doc="cotangents")
    outputs = property(lambda self: self.part("out"), doc="golden outputs, with x.lo beside x")
    gradients = property(lambda self: self.part("grad"), doc="golden gradients, with x.lo beside x")

    def evaluate(self, **how: Any) -> Result:
        """As plumbline.evaluate."""
        return self._evaluate(**how)

    def check(self, outputs: Mapping[str, Any], contract: Any = None, **how: Any) -> Report:
        """As plumbline.check. Without a contract, the one the case declares."""
        return self._check(outputs, contract, **how)

    def save(self, path: "os.PathLike[str] | str") -> None:
        """The same case gives the same bytes; the file appears whole or not at all."""
        metadata = {**self.foreign, "plumbline": json.dumps(self.metadata, sort_keys=True, separators=(",", ":"))}
        _plumbline.save(os.fspath(path), [(name, each.raw, each.dtype) for name, each in self.tensors.items()], metadata)

    def __repr__(self) -> str:
        lines = [f"case of {self.op}" + (f" {json.dumps(self.options)}" if self.options else "")]
        return "\n  ".join(lines + [f"{name:<24} {each.dtype:<7} {list(each.shape)}"
                                    for name, each in self.tensors.items() if not name.endswith(".lo")])

    def _problem(self) -> list:
        return [(name, each.raw, each.dtype) for name, each in self.tensors.items()
                if name.startswith(("in.", "given.", "cot."))]

    def _evaluate(self, *, precision: Optional[str] = None, grad: bool = False, schedule: Any = None,
                  outputs: Iterable[str] = (), given: Any = None, cot: Any = None, contract: Any = None,
                  threads: int = 0) -> Result:
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        tensors = self._problem() + entries("given", given) + entries("cot", cot)
        return Result(*_plumbline.evaluate(call_of(
            self.op, tensors, self.options, precision=precision or self.metadata.get("precision", "f192"),
            contract=contract, grad=grad, schedule=self.schedule if schedule is None else schedule,
            outputs=names or self.requested, threads=threads)))

    def _check(self, outputs: Optional[Mapping[str, Any]], contract: Any = None, *, strict: bool = False,
               worst: int = 5, hints: bool = True, threads: int = 0) -> Report:
        if outputs is None:
            raise Error.of("outputs", "nothing", "what the kernel returned")
        declared = contract if contract is not None else self.metadata.get("contract")
        call = call_of(self.op, self._problem() + results(outputs), self.options, contract=declared,
                       schedule=self.schedule, outputs=self.requested, threads=threads)
        return Report(_plumbline.check(call, worst, hints), declared, strict)


def _case_of(tensors: list, metadata: Dict[str, str]) -> Case:
    own = json.loads(metadata.get("plumbline", "{}"))
    case = Case(own.get("op", ""))
    case.metadata = own
    case.tensors = {name: Tensor(array, dtype) for name, dtype, array in tensors}
    case.foreign = {key: value for key, value in metadata.items() if key != "plumbline"}
    return case


def load(path: "os.PathLike[str] | str") -> Case:
    """The case in a safetensors file, its tensors mapped into memory and not copied."""
    return _case_of(*_plumbline.load(os.fspath(path)))


def save(path: "os.PathLike[str] | str", what: Any) -> None:
    """A Case, or arrays by name: a kernel's results for `plumbline check`, plain names meaning out.<name>."""
    if isinstance(what, Case):
        what.save(path)
        return
    tensors = [entry(name if name.partition(".")[0] in PLACES else "out." + name, array)
               for name, array in what.items()]
    _plumbline.save(os.fspath(path), tensors, {})


def generate(op: str, dims: Optional[Mapping[str, int]] = None, family: str = "gaussian", seed: int = 0, *,
             options: Optional[Mapping[str, Any]] = None, dtype: str = "BF16", grad: bool = False,
             schedule: Optional[Mapping[str, Any]] = None, outputs: Sequence[str] = (), precision: str = "f192",
             with_: Sequence[str] = (), without: Sequence[str] = (), threads: int = 0) -> Case:
    """A case with its golden results, the same bytes on every machine.

    dims     sizes by letter, {"B": 2, "T": 24}; what is missing is derived or chosen
    family   what stands in the inputs; families() lists them, and "peaked+documents" combines
    dtype    of real inputs: BF16, F16, F32 or F64
    grad     golden gradients too, with cotangents where there is no scalar loss
    with_    optional inputs to write too; `without`: not to write
    """
    request: Dict[str, Any] = {"op": op, "dims": dict(dims or {}), "family": family, "seed": seed, "dtype": dtype,
                               "grad": grad, "precision": precision}
    optional = {"options": options, "schedule": schedule, "outputs": list(outputs), "with": list(with_),
                "without": list(without)}
    request.update({key: value for key, value in optional.items() if value})
    return generate_case(request, threads)


def generate_case(request: Mapping[str, Any], threads: int = 0) -> Case:
    """From a request with the keys of a suite's fixture."""
    case = _case_of(*_plumbline.generate(text(dict(request)), threads or (os.cpu_count() or 1)))
    case.request = dict(request)
    return case
