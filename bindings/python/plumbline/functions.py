"""Every operation as a function: from plumbline.functions import csa_attention.

Signatures and docstrings are made of the registry's words; functions.pyi beside this file says the same to type
checkers. Dots in names of inputs are underscores here: state.length is state_length.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, List, Mapping, Optional, Sequence

from ._describe import operation, ops
from ._evaluate import Result, evaluate

_SETTINGS = {  # beside the tensors of an operation
    "options": (Optional[Mapping[str, Any]], None), "precision": (str, "f192"), "grad": (bool, False),
    "schedule": (Optional[Mapping[str, Any]], None), "requested": (Sequence[str], ()),
    "given": (Optional[Mapping[str, Any]], None), "cot": (Optional[Mapping[str, Any]], None), "contract": (Any, None),
    "threads": (int, 0), "more": (Optional[Mapping[str, Any]], None),
}


def __dir__() -> List[str]:
    return list(ops())


def __getattr__(name: str) -> Callable[..., Result]:
    if name not in ops():
        raise AttributeError(f"no operation {name}; there are {', '.join(ops())}")
    globals()[name] = _function(name)
    return globals()[name]


def _function(name: str) -> Callable[..., Result]:
    described = operation(name)
    names = {each["name"].replace(".", "_"): each["name"] for each in described.inputs}

    def function(*arguments: Any, **keywords: Any) -> Result:
        bound = function.__signature__.bind(*arguments, **keywords).arguments  # type: ignore[attr-defined]
        settings = {key: bound[key] for key in _SETTINGS if key in bound and key != "more"}
        if "requested" in settings:
            settings["outputs"] = settings.pop("requested")
        inputs = {names[key]: value for key, value in bound.items() if key in names and value is not None}
        inputs.update(bound.get("more") or {})
        return evaluate(name, inputs, **settings)

    parameter = inspect.Parameter
    ordered = sorted(described.inputs, key=lambda each: not each["required"])
    parameters = [
        parameter(each["name"].replace(".", "_"), parameter.POSITIONAL_OR_KEYWORD, annotation=Any,
                  default=parameter.empty if each["required"] else None) for each in ordered]
    parameters += [parameter(key, parameter.KEYWORD_ONLY, annotation=annotation, default=default)
                   for key, (annotation, default) in _SETTINGS.items()]
    function.__signature__ = inspect.Signature(parameters, return_annotation=Result)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = (described.__doc__ or "") + (
        "\nThe other arguments are those of plumbline.evaluate, `requested` its outputs; `more` holds companions of "
        "inputs, as \"x.lo\".\n")
    return function
