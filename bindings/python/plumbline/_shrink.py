"""From a failing case to a small one that fails too."""

from __future__ import annotations

import re
from typing import Any, Callable, Collection, Dict, Iterator, Optional

from ._case import Case, generate_case
from ._describe import operation
from ._error import Error

MOST_ATTEMPTS = 120


def sizes_of(case: Case) -> Dict[str, int]:
    """Sizes of letters, read off the inputs."""
    sizes: Dict[str, int] = {}
    inputs = case.inputs
    for info in operation(case.op).inputs:
        if info["name"] not in inputs:
            continue
        for letters, size in zip(info["shape"].split(), inputs[info["name"]].shape):
            if re.fullmatch(r"[A-Za-z]+", letters):
                sizes.setdefault(letters, size)
    return sizes


def shrunk(case: Case, fails: Callable[[Case], bool], fixed: Collection[str] = ()) -> Case:
    """The smallest case found whose request `fails`. Letters shrink one at a time, but those that are fixed; sizes that
    do not go together are refused by generate, and passed over."""
    smallest, attempts, progress = case, 0, True
    while progress:
        progress = False
        for candidate in simpler(smallest, fixed):
            if attempts >= MOST_ATTEMPTS:
                return smallest
            attempts += 1
            if fails(candidate):
                smallest, progress = candidate, True
                break
    return smallest


def attempt(request: Dict[str, Any]) -> Optional[Case]:
    try:
        return generate_case(request)
    except Error:
        return None


def simpler(case: Case, fixed: Collection[str]) -> Iterator[Case]:
    """Cases in which one letter is smaller."""
    assert case.request is not None
    request = case.request
    before = total(case)
    dims = request.get("dims", {})
    for letter, size in sorted(sizes_of(case).items(), key=lambda item: -item[1]):
        for target in sorted({1, size // 2, size - 1}):
            if letter in fixed or not 1 <= target < size:
                continue
            # Alone, and with keys and rows following one another.
            alone = {**request, "dims": {**dims, letter: target}}
            rest = {**request, "dims": {**{k: v for k, v in dims.items() if k not in ("T", "S", "N", "K")},
                                        letter: target}}
            for smaller in (alone, rest):
                made = attempt(smaller)
                if made is not None and total(made) < before:
                    yield made


def total(case: Case) -> int:
    return sum(each.raw.size for each in case.inputs.values())
