#!/usr/bin/env python3
"""make_stubs.py [--check] FILE: functions.pyi from the registry's own words, for type checkers and editors."""
import keyword
import sys

import plumbline

HEAD = '''# Made by scripts/make_stubs.py from the registry; a test compares.
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, TypedDict, Union

from ._evaluate import Result

Array = Any  # numpy, PyTorch, JAX, anything with __dlpack__ or a buffer
'''


def type_of(option):
    if option["type"] == "choice":
        return "Literal[" + ", ".join(choice if choice.isdigit() else repr(choice) for choice in option["choices"]) + "]"
    return {"bool": "bool", "integer": "int", "number": "float", "mode": "Union[str, Dict[str, Any]]",
            "[begin, end)": "Sequence[int]"}.get(option["type"], "Optional[Dict[str, Any]]")


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def stub(op):
    lines = []
    if op.options:
        keys = "".join(f"    {each['name']!r}: {type_of(each)},\n" for each in op.options)
        if op.presets:
            keys += "    'preset': Literal[" + ", ".join(repr(each["name"]) for each in op.presets) + "],\n"
        lines.append(f"\n{camel(op.name)}Options = TypedDict({camel(op.name)!r} 'Options', {{\n{keys}}}, total=False)\n")
    required = [each["name"].replace(".", "_") for each in op.inputs if each["required"]]
    optional = [each["name"].replace(".", "_") for each in op.inputs if not each["required"]]
    assert not any(map(keyword.iskeyword, required + optional))
    options = f"Optional[{camel(op.name)}Options]" if op.options else "None"
    arguments = [f"{name}: Array" for name in required] + [f"{name}: Optional[Array] = ..." for name in optional] + ["*"]
    arguments += [f"options: {options} = ...", "precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...",
                  "grad: bool = ...", "schedule: Optional[Mapping[str, Any]] = ...", "requested: Sequence[str] = ...",
                  "given: Optional[Mapping[str, Array]] = ...", "cot: Optional[Mapping[str, Array]] = ...",
                  "contract: Union[None, str, Mapping[str, Any]] = ...", "threads: int = ...",
                  "more: Optional[Mapping[str, Array]] = ..."]
    doc = (op.__doc__ or "").replace("\\", "\\\\").replace('"""', "'''")
    body = "".join(f"    {line}\n" if line else "\n" for line in doc.rstrip().split("\n"))
    lines.append(f"\ndef {op.name}(\n    " + ",\n    ".join(arguments) + f",\n) -> Result:\n    \"\"\"{body.lstrip()}    \"\"\"\n")
    return "".join(lines).replace("' 'Options'", "Options'")


def main():
    path = sys.argv[-1]
    text = HEAD + "".join(stub(op) for op in plumbline.ops().values())
    if sys.argv[1:2] == ["--check"]:
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                print(f"{path} is not what the registry says; run scripts/make_stubs.py {path}")
                return 1
        return 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
