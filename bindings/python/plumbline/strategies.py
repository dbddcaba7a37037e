"""Strategies for hypothesis: cases of an operation, which shrink to small ones.

    from hypothesis import given
    from plumbline import strategies

    @given(strategies.cases("csa_attention", options={"m": 4, "window": 4}))
    def test_kernel(case):
        plumbline.assert_passes(case.check(kernel(case.inputs), "bf16_f32acc"))
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from hypothesis import reject
from hypothesis import strategies as st

from ._case import Case, generate_case
from ._describe import families as all_families
from ._describe import operation
from ._error import Error

SIZES = {"B": (1, 2), "T": (1, 12), "H": (1, 4), "L": (1, 4), "G": (1, 2), "n": (1, 5), "A": (1, 3)}


@st.composite
def cases(draw: Any, op: str, *, options: Optional[Mapping[str, Any]] = None,
          dims: Optional[Mapping[str, Union[int, Tuple[int, int]]]] = None, families: Optional[Sequence[str]] = None,
          dtypes: Sequence[str] = ("BF16", "F32"), grad: bool = False, with_: Sequence[str] = (),
          without: Sequence[str] = ()) -> Case:
    """Cases of an operation, with goldens. dims: a size, or (smallest, largest), by letter; other letters are small, or
    the generator's. Sizes and families that do not go together are rejected."""
    letters = {letter for info in operation(op).inputs if info["required"] for letter in info["shape"].split()}
    ranges: Dict[str, Union[int, Tuple[int, int]]] = {
        letter: limits for letter, limits in SIZES.items() if letter in letters}
    ranges.update(dims or {})
    sizes = {letter: limits if isinstance(limits, int) else draw(st.integers(*limits), label=letter)
             for letter, limits in ranges.items()}
    request = {"op": op, "dims": sizes, "family": draw(st.sampled_from(list(families or all_families()))),
               "dtype": draw(st.sampled_from(list(dtypes))), "seed": draw(st.integers(0, 2**32)), "grad": grad,
               "options": dict(options or {}), "with": list(with_), "without": list(without)}
    try:
        return generate_case(request, 1)
    except Error:
        reject()
        raise AssertionError from None  # reject raises
