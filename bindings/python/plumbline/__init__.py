"""plumbline: the reference that attention kernels are checked against.

    import plumbline as pl

    print(pl.ops())                                  # the operations; print(pl.ops()["rms_norm"]) is a page
    result = pl.evaluate("rms_norm", {"x": x})       # any array; high, low = result["y"]
    report = pl.check("rms_norm", {"x": x}, {"y": kernel(x)}, contract="ieee_f32")
    pl.assert_passes(report)                         # no tolerance: certified bounds of that arithmetic
    pl.verify(kernel, "rms_norm", contract="ieee_f32")  # on inputs made to catch mistakes
"""

from ._arrays import Tensor, tensor
from ._case import Case, generate, load, save
from ._describe import Operation, contract, contracts, families, operation, ops
from ._error import Error
from ._evaluate import Real, Result, evaluate
from ._plumbline import version as _version
from ._report import Element, Report, assert_passes, check
from ._verify import Verification, verify

__version__ = _version()
__all__ = [
    "Case", "Element", "Error", "Operation", "Real", "Report", "Result", "Tensor", "Verification", "assert_passes",
    "check", "contract", "contracts", "evaluate", "families", "generate", "load", "operation", "ops", "save", "tensor",
    "verify",
]
