"""Verdicts on kernels."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional

from . import _plumbline
from ._arrays import entries, entry
from ._error import Error
from ._evaluate import call_of


_PLACES = ("every element is wrong", "wrong is all of ", "all that is wrong lies in ")


@dataclass(frozen=True)
class Element:
    """One element (one row of a selection) as it was judged."""

    tensor: str
    index: List[int]
    verdict: str
    margin: float   # |actual - expected| / bound
    margin2: float  # the same in the statistical tier
    expected: Any   # as text, to 31 digits
    actual: Any
    ulp: float      # how far it is off, in ulps of the output's dtype
    why: str        # "" where the numbers say it

    def __str__(self) -> str:
        text = f"{self.tensor}{self.index}: {self.verdict}, margin {self.margin:.3g}"
        if self.why:
            return f"{text}: {self.why}"
        if self.expected is None:
            return text
        return f"{text}, expected {self.expected}, actual {self.actual}, off by {self.ulp:.3g} ulp"


class Report:
    """What check found. `ok` says that nothing failed; print it for the whole of it."""

    def __init__(self, report: Any, contract: Any, strict: bool = False):
        self._report = report
        self.contract = contract
        self.strict = strict
        self.json: Dict[str, Any] = json.loads(report.json())
        self.repro = ""  # a command that judges this again, where files hold it

    @property
    def op(self) -> str:
        return self.json["op"]

    @property
    def verdict(self) -> str:
        """PASS, SUSPECT, UNPROVABLE or FAIL: the worst of all tensors."""
        return self.json["verdict"]

    @property
    def ok(self) -> bool:
        return self.verdict == "PASS" or (self.verdict == "SUSPECT" and not self.strict)

    @property
    def tensors(self) -> List[Dict[str, Any]]:
        """Of each tensor judged: verdict, margins, counts, worst elements."""
        return self.json["tensors"]

    @property
    def worst(self) -> Optional[Element]:
        """The element with the largest margin among those with the worst verdict; None where no element is to blame."""
        order = ["PASS", "SUSPECT", "UNPROVABLE", "FAIL"]
        elements = [element(tensor, each) for tensor in self.tensors for each in tensor["worst"]]
        return max(elements, key=lambda e: (order.index(e.verdict), _sortable(e.margin)), default=None)

    @property
    def hints(self) -> List[str]:
        """Everything that explains what failed: where it stands, how it is off, which convention it fits."""
        return self.json["hints"]

    @property
    def cause(self) -> str:
        """The most telling of them, one line; "" where nothing explains all of it."""
        fits = [hint for hint in self.hints if hint.startswith("what failed fits ")]
        presets = [hint for hint in fits if hint.startswith("what failed fits preset ")]
        single = [hint for hint in fits  # one option or one input: less is changed than by a preset
                  if hint not in presets and not hint.startswith("what failed fits contract ")]
        places = [hint for hint in self.hints if any(words in hint for words in _PLACES)]
        patterns = [hint for hint in self.hints if hint not in fits and hint not in places]
        for hints in (single, presets, patterns, fits, places):
            if hints:
                return hints[0]
        return next((f"{tensor['tensor']}: {tensor['reason']}" for tensor in self.tensors if tensor.get("reason")), "")

    def to_html(self, path: Optional[str] = None) -> str:
        """One page with histograms and heat maps; written to the path if there is one."""
        return _written(self._report.html(), path)

    def to_svg(self, path: Optional[str] = None) -> str:
        return _written(self._report.svg(), path)

    def to_junit(self, path: Optional[str] = None) -> str:
        return _written(self._report.junit(self.strict), path)

    def to_json(self, path: Optional[str] = None) -> str:
        return _written(json.dumps(self.json, sort_keys=True, indent=2) + "\n", path)

    def __str__(self) -> str:
        return "\n".join(self.lines(all_hints=True))

    __repr__ = __str__

    def lines(self, all_hints: bool = False) -> List[str]:
        width = max([len(tensor["tensor"]) for tensor in self.tensors] + [6])
        lines = [f"{self.verdict}: {self.op} under {self.json['contract']}"]
        for tensor in self.tensors:
            beyond = sum(count for verdict, count in tensor["counts"].items() if verdict != "PASS")
            line = (f"  {tensor['tensor']:<{width}}  {tensor['verdict']:<10}  {tensor['dtype']} {tensor['shape']}, "
                    f"margin {_short(tensor['margin'])}, tier 2 {_short(tensor['margin2'])}")
            line += f", {beyond} of {tensor['count']} beyond" if beyond else ""
            line += f", given {tensor['given']}" if tensor.get("given") else ""
            line += f": {tensor['reason']}" if tensor.get("reason") else ""
            lines.append(line)
        if self.json["not_in_actual"]:
            lines.append("  not judged, for it is not there: " + ", ".join(self.json["not_in_actual"]))
        if self.json["not_an_output"]:
            lines.append("  no results of the operation: " + ", ".join(self.json["not_an_output"]))
        if self.verdict != "PASS" and self.worst is not None:
            lines.append(f"worst: {self.worst}")
        if self.cause:
            lines.append(f"cause: {self.cause}")
        if all_hints:
            lines += [f"  also: {hint}" for hint in self.hints if hint != self.cause]
        if self.repro:
            lines.append(f"again: {self.repro}")
        return lines

    def _repr_html_(self) -> str:
        # A frame of its own: the page brings its own style, and the notebook keeps its.
        height = min(900, 260 + 260 * len(self.tensors))
        return (f'<iframe srcdoc="{html.escape(self.to_html())}" style="width:100%;height:{height}px;border:0" '
                f'title="{html.escape(self.verdict)}"></iframe>')


def element(tensor: Mapping[str, Any], each: Mapping[str, Any]) -> Element:
    def shown(value: Any) -> Any:
        return value["decimal"] if isinstance(value, dict) else value

    return Element(tensor["tensor"], each["index"], each["verdict"], float(each["margin"]), float(each["margin2"]),
                   shown(each.get("expected")), shown(each.get("actual")), float(each.get("ulp", 0)),
                   each.get("why", ""))


def results(outputs: Mapping[str, Any]) -> list:
    """out.<name> of plain names; "grad.<input>" and full names stay."""
    if not hasattr(outputs, "items"):
        raise Error.of("outputs", type(outputs).__name__, "a mapping of names to arrays")
    return [entry(name if name.startswith(("out.", "grad.")) else "out." + name, array)
            for name, array in outputs.items()]


def check(op: Any, inputs: Optional[Mapping[str, Any]] = None, outputs: Optional[Mapping[str, Any]] = None,
          options: Optional[Mapping[str, Any]] = None, contract: Any = None, *,
          given: Optional[Mapping[str, Any]] = None, cot: Optional[Mapping[str, Any]] = None,
          schedule: Optional[Mapping[str, Any]] = None, strict: bool = False, worst: int = 5, hints: bool = True,
          threads: int = 0) -> Report:
    """Judges a kernel's results by certified bounds of the arithmetic it declares, without a tolerance.

    op        the operation's name; or a Case: check(case, outputs, contract)
    inputs    what the kernel was given, exactly
    outputs   what it returned: outputs by name, gradients as "grad.<input>". Leave out what you do not have.
    contract  the name of a preset (contracts() lists them), or a dictionary of what differs
    strict    SUSPECT is not ok either
    hints     look for causes of what failed, which takes further evaluations

    The other arguments are those of evaluate.
    """
    if hasattr(op, "_check"):
        if inputs is not None and outputs is not None:  # check(case, outputs, contract)
            if contract is not None:
                raise Error.of("inputs", "inputs beside a case", "the case alone: it has them")
            inputs, outputs, contract = None, inputs, outputs
        return op._check(outputs if inputs is None else inputs, contract, strict=strict, worst=worst, hints=hints,
                         threads=threads)
    if outputs is None:
        raise Error.of("outputs", "nothing", "what the kernel returned")
    tensors = (entries("in", inputs) + entries("given", given) + entries("cot", cot) + results(outputs))
    call = call_of(op, tensors, options, contract=contract, schedule=schedule, threads=threads)
    return Report(_plumbline.check(call, worst, hints), contract, strict)


def assert_passes(report: Any, strict: Optional[bool] = None) -> None:
    """AssertionError with the whole story unless the report (of check, or of verify) is ok."""
    __tracebackhide__ = True  # pytest shows the caller's line
    ok = report.ok if strict is None else report.verdict in (("PASS",) if strict else ("PASS", "SUSPECT"))
    if not ok:
        raise AssertionError(str(report))


def _short(value: Any) -> str:
    return f"{float(value):.3g}"


def _sortable(margin: float) -> float:
    return float("inf") if margin != margin else margin


def _written(text: str, path: Optional[str]) -> str:
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text
