"""Functions judged on cases made to catch mistakes."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

from ._arrays import Tensor
from ._case import Case, generate_case, save
from ._describe import families, operation
from ._error import Error
from ._report import Report
from ._shrink import shrunk

# The default suite: every family in the generator's own sizes, and plain numbers where sizes are 1 or do not divide.
QUICK = ("gaussian", "integers", "documents")
SHAPES: List[Dict[str, int]] = [{"T": 1}, {"B": 1, "T": 17, "H": 3}, {"B": 2, "T": 5, "H": 1}]


class Judged(NamedTuple):
    request: Dict[str, Any]
    report: Optional[Report]  # None: the function raised
    raised: str = ""

    @property
    def verdict(self) -> str:
        return "FAIL" if self.report is None else self.report.verdict

    def fails(self, strict: bool) -> bool:
        return self.verdict == "FAIL" or (strict and self.verdict != "PASS")


class Verification:
    """What verify found: `cases` in order, `ok`, and of the first failure, shrunk, `report`, `case` and `repro`."""

    def __init__(self, op: str, contract: Any):
        self.op, self.contract = op, contract
        self.cases: List[Judged] = []
        self.skipped: Dict[str, str] = {}
        self.failure: Optional[Judged] = None  # after shrinking
        self.case: Optional[Case] = None
        self.repro: List[str] = []

    @property
    def ok(self) -> bool:
        """Nothing failed, and something was proven: cases that are UNPROVABLE say nothing of the function."""
        return self.failure is None and any(each.verdict in ("PASS", "SUSPECT") for each in self.cases)

    @property
    def report(self) -> Optional[Report]:
        return self.failure.report if self.failure else None

    @property
    def verdict(self) -> str:
        """The worst of the cases; UNPROVABLE only where nothing else was said."""
        order = ["UNPROVABLE", "PASS", "SUSPECT", "FAIL"]
        return max((each.verdict for each in self.cases), key=order.index, default="UNPROVABLE")

    def __str__(self) -> str:
        counts = {verdict: sum(each.verdict == verdict for each in self.cases)
                  for verdict in ("PASS", "SUSPECT", "UNPROVABLE", "FAIL")}
        lines = [f"{self.verdict}: {self.op}, {len(self.cases)} cases: "
                 + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)]
        for each in self.cases:
            worst = "" if each.report is None else f"margin {max(float(t['margin']) for t in each.report.tensors):.3g}"
            sizes = ",".join(f"{letter}={size}" for letter, size in each.request.get("dims", {}).items())
            lines.append(f"  {each.verdict:<10} {each.request.get('family', 'gaussian'):<13} {sizes:<24} "
                         f"{worst}{each.raised}")
        lines += [f"  left out   {family}: {why}" for family, why in self.skipped.items()]
        if self.failure is not None:
            lines += ["", "the smallest case found that fails:"]
            lines += self.failure.report.lines() if self.failure.report else [f"  {self.failure.raised}"]
            lines += self.repro
        return "\n".join(lines)

    __repr__ = __str__


def requests_of(op: str, suite: Union[str, Sequence[Any]], base: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """A suite's cases: "default", "quick", a suite's JSON file, a list of families, or a list of requests."""
    own_dims = dict(base.get("dims", {}))

    def request(family: str, seed: int, dims: Mapping[str, int] = {}) -> Dict[str, Any]:
        return {**base, "family": family, "seed": seed, "dims": {**dims, **own_dims}}

    if suite == "quick":
        return [request(family, seed) for seed, family in enumerate(QUICK)]
    if suite == "default":
        made = [request(family, seed) for seed, family in enumerate(families())]
        letters = {letter for info in operation(op).inputs for letter in info["shape"].split()}
        for seed, shape in enumerate(SHAPES, len(made)):
            fitting = {letter: size for letter, size in shape.items() if letter in letters}
            if fitting:
                made.append(request("gaussian", seed, fitting))
        return made
    if isinstance(suite, str):
        with open(suite, encoding="utf-8") as file:
            described = json.load(file)
        return [{**described.get("defaults", {}), **{k: v for k, v in each.items() if k != "id"}}
                for each in described["fixtures"] if each.get("op", described.get("defaults", {}).get("op")) == op]
    return [request(each, seed) if isinstance(each, str) else {**base, **each} for seed, each in enumerate(suite)]


class Candidate:
    """A user's function, called with what its parameters name."""

    def __init__(self, fn: Callable[..., Any], op: str, arrays: str):
        self.fn, self.op, self.arrays = fn, op, arrays
        parameters = inspect.signature(fn).parameters.values()
        self.takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        self.names = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
        described = operation(op)
        self.inputs = {each["name"]: each for each in described.inputs}
        self.results = [each["name"] for each in described.outputs]
        missing = [name for name, each in self.inputs.items() if each["required"] and not self.takes(name)]
        if missing:
            raise Error.of("fn", f"no parameter {missing[0]}", f"one for each required input of {op}: "
                           + ", ".join(name for name, each in self.inputs.items() if each["required"]))
        known = {name.replace(".", "_") for name in self.inputs} | {"options", "cotangents"}
        for each in parameters:
            if each.name not in known and each.default is each.empty and each.kind is not each.VAR_KEYWORD:
                raise Error.of("fn", f"the parameter {each.name}", "inputs of " + op + ", options or cotangents")

    def takes(self, name: str) -> bool:
        return self.takes_all or name.replace(".", "_") in self.names

    def without(self) -> List[str]:
        return [name for name, each in self.inputs.items() if not each["required"] and not self.takes(name)]

    def __call__(self, case: Case) -> Dict[str, Any]:
        arguments: Dict[str, Any] = {
            name.replace(".", "_"): self.converted(each) for name, each in case.inputs.items()
            if "." not in name or name in self.inputs}
        if "options" in self.names:
            arguments["options"] = operation(self.op).resolve(case.options)
        if "cotangents" in self.names:
            arguments["cotangents"] = {name: self.converted(each) for name, each in case.cot.items()}
        returned = self.fn(**arguments)
        if hasattr(returned, "items"):
            return dict(returned)
        values = returned if isinstance(returned, (tuple, list)) else [returned]
        return dict(zip(self.results, values))

    def drop_cotangents(self, case: Case, returned: Mapping[str, Any]) -> bool:
        """Cotangents of outputs that fn does not return are 0: nobody could have given it any."""
        names = {name[4:] if name.startswith("out.") else name for name in returned}
        absent = [name for name in case.cot if name not in names]
        if not absent or len(absent) == len(case.cot):
            return False
        for name in [*("cot." + name for name in absent), *("grad." + name for name in case.gradients)]:
            del case.tensors[name]  # goldens of gradients were made with them
        return True

    def converted(self, tensor: Tensor) -> Any:
        if self.arrays == "numpy":
            return tensor.numpy()
        return getattr(tensor, self.arrays)()


def verify(fn: Callable[..., Any], op: str, suite: Union[str, Sequence[Any]] = "default", *, contract: Any,
           options: Optional[Mapping[str, Any]] = None, dims: Optional[Mapping[str, int]] = None, dtype: str = "BF16",
           grad: Optional[bool] = None, arrays: str = "numpy", with_: Sequence[str] = (), outputs: Sequence[str] = (),
           strict: bool = False, folder: Optional[str] = None, quiet: bool = False, threads: int = 0) -> Verification:
    """Runs a function on the cases of a suite and judges what it returns; a failure is shrunk to a small case.

    fn        called with arrays by the names of the operation's inputs that it has parameters for; optional inputs it has
              none for are left out of the cases. `options` and `cotangents` are passed to parameters of these names;
              cotangents of outputs that it does not return are 0.
              It returns a dictionary (outputs by name, "grad.<input>"), or the outputs in the operation's order.
    suite     "default", "quick", families by name, requests as for generate, or the path of a suite
    contract  the arithmetic it declares
    options   of the operation, the same in every case
    dims      sizes that fn insists on, by letter
    dtype     of the inputs
    grad      cases with cotangents; by default if fn has a parameter `cotangents`
    arrays    what fn gets: "numpy" (bf16 as float32, exactly), "torch", "jax", "ml_dtypes"
    outputs   on request, where fn returns such
    folder    where a failing case and fn's results are put; a fresh one in the temporary folder by default

    strict    anything but PASS fails; else FAIL alone does. UNPROVABLE says nothing of fn: bounds too wide for such numbers.

    Prints a failure, with commands that show it again, unless quiet. assert_passes(verify(...)) is a test.
    """
    candidate = Candidate(fn, op, arrays)
    base: Dict[str, Any] = {"op": op, "dtype": dtype, "dims": dict(dims or {}),
                            "grad": "cotangents" in candidate.names if grad is None else grad}
    optional = {"options": dict(options or {}), "with": list(with_), "outputs": list(outputs),
                "without": [name for name in candidate.without() if name not in with_]}
    base.update({key: value for key, value in optional.items() if value})
    found = Verification(op, contract)

    def judged(case: Case, hints: bool) -> Judged:
        try:
            returned = candidate(case)
            if candidate.drop_cotangents(case, returned):
                returned = candidate(case)
        except Exception as error:  # a kernel that raises is a kernel that fails
            return Judged(case.request or {}, None, f"raised {type(error).__name__}: {error}")
        return Judged(case.request or {}, case.check(returned, contract, strict=strict, hints=hints, threads=threads))

    first: Optional[Case] = None
    refusal: Optional[Error] = None
    for request in requests_of(op, suite, base):
        try:
            case = generate_case(request, threads)
        except Error as error:
            if refusal is None:
                refusal = error
            found.skipped[_label(request)] = str(error)
            continue
        foreign = [name for name in case.inputs if "." not in name and not candidate.takes(name)]
        if foreign:
            found.skipped[_label(request)] = "fn has no parameter " + ", ".join(foreign)
            continue
        found.cases.append(judged(case, hints=False))
        if first is None and found.cases[-1].fails(strict):
            first = case
    if not found.cases:
        raise refusal or Error.of("suite", "no case that fn can be given", "at least one")
    if first is not None:
        raises = judged(first, False).report is None

        def fails(case: Case) -> bool:
            again = judged(case, False)
            return again.fails(strict) and (again.report is None) == raises
        found.case = shrunk(first, fails, fixed=dims or ())
        found.failure = judged(found.case, hints=True)
        found.repro = _repro(found, candidate, folder)
        if not quiet:
            print(found)
    return found


def _label(request: Mapping[str, Any]) -> str:
    dims = ",".join(f"{letter}={size}" for letter, size in request.get("dims", {}).items())
    return " ".join(filter(None, [request.get("family", "gaussian"), dims]))


def _repro(found: Verification, candidate: Candidate, folder: Optional[str]) -> List[str]:
    """Commands: the case can be made again from nothing, and lies in a file with fn's results beside it."""
    assert found.case is not None
    lines = ["made by: " + generate_command(found.case)]
    if found.failure is None or found.failure.report is None:
        return lines
    where = folder or tempfile.mkdtemp(prefix="plumbline-")
    os.makedirs(where, exist_ok=True)
    case_path, actual_path = os.path.join(where, "case.safetensors"), os.path.join(where, "kernel.safetensors")
    found.case.save(case_path)
    save(actual_path, candidate(found.case))
    contract = found.contract
    if not isinstance(contract, str):
        contract = "@" + os.path.join(where, "contract.json")
        with open(contract[1:], "w", encoding="utf-8") as file:
            json.dump(found.contract, file)
    found.failure.report.repro = shlex.join(["plumbline", "check", case_path, actual_path, "--contract", contract])
    return lines


def _left_out(case: Case) -> List[str]:
    """Of the inputs that fn does not take, those that would be there otherwise."""
    request = case.request or {}
    unwanted = request.get("without", [])
    try:
        plain = generate_case({key: value for key, value in request.items() if key != "without"})
        needed = [name for name in unwanted if name in plain.inputs]
        shorter = generate_case({**request, "without": needed})
    except Error:
        return list(unwanted)
    return needed if set(shorter.inputs) == set(case.inputs) else list(unwanted)


def generate_command(case: Case) -> str:
    """The command line that makes a generated case again, byte by byte."""
    request = case.request or {}
    words = ["plumbline", "generate", case.op]

    def listed(option: str, values: Iterable[str]) -> None:
        if values:
            words.extend([option, ",".join(values)])

    listed("--dims", [f"{letter}={size}" for letter, size in request.get("dims", {}).items()])
    words += ["--family", request.get("family", "gaussian"), "--seed", str(request.get("seed", 0))]
    words += ["--dtype", request.get("dtype", "BF16")]
    for key in ("options", "schedule"):
        if request.get(key):
            words += ["--" + key, json.dumps(request[key])]
    for key in ("outputs", "with"):
        listed("--" + key, request.get(key, []))
    listed("--without", _left_out(case))
    if request.get("grad"):
        words.append("--grad")
    return shlex.join([*words, "-o", "case.safetensors"])
