"""What the registry says of operations, for people: every word here is its own."""

from __future__ import annotations

import functools
import json
import textwrap
from typing import Any, Dict, Iterator, List, Mapping, Optional

from . import _plumbline


class Operation:
    """An operation of the registry: `inputs`, `given`, `cotangents`, `outputs`, `options`, `presets` as lists of
    dictionaries, `schedule` the keys it honours. print(operation) is its page; calling it evaluates it."""

    def __init__(self, description: Dict[str, Any]):
        self.__dict__.update(description)
        self._description = description
        self.__doc__ = page(description)

    name: str
    summary: str
    formula: str
    inputs: List[Dict[str, Any]]
    given: List[Dict[str, Any]]
    cotangents: List[Dict[str, Any]]
    outputs: List[Dict[str, Any]]
    options: List[Dict[str, Any]]
    presets: List[Dict[str, Any]]
    schedule: List[str]

    def __call__(self, **arguments: Any) -> Any:
        from . import functions

        return getattr(functions, self.name)(**arguments)

    def resolve(self, options: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """The options after preset and defaults; an Error if they are not valid."""
        return json.loads(_plumbline.resolve(self.name, text(options)))

    def __str__(self) -> str:
        return self.__doc__ or ""

    def __repr__(self) -> str:
        return f"<operation {self.name}: {self.summary}>"


class Operations(Mapping[str, Operation]):
    """Every operation by its name."""

    def __init__(self, summaries: Dict[str, str]):
        self._summaries = summaries

    def __getitem__(self, name: str) -> Operation:
        return operation(name)

    def __contains__(self, name: object) -> bool:
        return name in self._summaries

    def __iter__(self) -> Iterator[str]:
        return iter(self._summaries)

    def __len__(self) -> int:
        return len(self._summaries)

    def __repr__(self) -> str:
        width = max(map(len, self._summaries))
        return "\n".join(f"{name:<{width}}  {summary}" for name, summary in self._summaries.items())


@functools.lru_cache(maxsize=None)
def ops() -> Operations:
    """The operations: a mapping of names, which prints as a table. print(ops()["csa_attention"]) is a page."""
    return Operations({each["name"]: each["summary"] for each in json.loads(_plumbline.operations())})


@functools.lru_cache(maxsize=None)
def operation(name: str) -> Operation:
    """The operation of this name, or an Error that lists them."""
    return Operation(json.loads(_plumbline.describe(name)))


def contracts() -> Dict[str, str]:
    """The arithmetics a kernel may declare, by name; contract(name) has every field."""
    return {each["name"]: each["doc"] for each in json.loads(_plumbline.contract(""))}


def contract(declared: Any) -> Dict[str, Any]:
    """A contract in full, from the name of a preset or a dictionary of what differs."""
    return json.loads(_plumbline.contract(contract_text(declared)))


def families() -> Dict[str, str]:
    """The input families of generate, and what stands in them."""
    return {each["name"]: each["doc"] for each in json.loads(_plumbline.families())}


def text(json_object: Optional[Mapping[str, Any]]) -> str:
    return "" if not json_object else json.dumps(json_object)


def contract_text(declared: Any) -> str:
    return declared if isinstance(declared, str) else text(declared)


def shape_of(letters: str) -> str:
    return f"[{letters}]" if letters else "scalar"


def page(description: Dict[str, Any]) -> str:
    """The docstring of an operation."""
    lines = [description["summary"], "", textwrap.indent(description["formula"], "    ")]

    def section(title: str, rows: List[str]) -> None:
        if rows:
            lines.extend(["", title, *rows])

    def tensors(infos: List[Dict[str, Any]]) -> List[str]:
        rows = []
        for info in infos:
            notes = [info["kind"]] + ["required"] * bool(info.get("required"))
            notes += ["differentiable"] * bool(info.get("differentiable"))
            notes += ["on request"] * bool(info.get("on_request"))
            rows.append(wrapped(f"{info['name']} {shape_of(info['shape'])}, {', '.join(notes)}: {info['doc']}"))
        return rows

    section("inputs", tensors(description["inputs"]))
    section("given (constants in place of what would be computed)", tensors(description["given"]))
    section("cotangents", tensors(description["cotangents"]))
    section("outputs", tensors(description["outputs"]))
    section("options", list(option_lines(description["options"])))
    section("presets", [wrapped(f"{each['name']}: {each['doc']}") for each in description["presets"]])
    section("schedule", [wrapped(", ".join(description["schedule"]))] if description["schedule"] else [])
    return "\n".join(lines) + "\n"


def option_lines(options: List[Dict[str, Any]], prefix: str = "") -> Iterator[str]:
    for option in options:
        kind = " | ".join(option["choices"]) if option.get("choices") else option["type"]
        fallback = "" if option["default"] is None or option.get("options") else f" = {json.dumps(option['default'])}"
        yield wrapped(f"{prefix}{option['name']}: {kind}{fallback}. {option['doc']}")
        yield from option_lines(option.get("options", []), f"{prefix}{option['name']}.")


def wrapped(line: str) -> str:
    return textwrap.fill(line, 110, initial_indent="    ", subsequent_indent="        ")
