"""python -m plumbline MODULE:FUNCTION OP --contract NAME: judges a function from the command line."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from typing import List, Optional

from . import Error, verify


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m plumbline", description=__doc__)
    parser.add_argument("function", help="module:function, as for plumbline.verify")
    parser.add_argument("op", help="the operation it claims to be")
    parser.add_argument("--contract", required=True, help="the name of a preset, or a JSON object")
    parser.add_argument("--suite", default="default", help="default, quick, or a suite's file")
    parser.add_argument("--options", default="{}", help="of the operation, a JSON object")
    parser.add_argument("--dims", default="", help="sizes fn insists on, as H=4,D=64")
    parser.add_argument("--dtype", default="BF16", help="of the inputs: BF16, F16, F32, F64")
    parser.add_argument("--arrays", default="numpy", help="what the function gets: numpy, torch, jax, ml_dtypes")
    parser.add_argument("--folder", help="where a failing case is put")
    parser.add_argument("--strict", action="store_true", help="SUSPECT fails too")
    asked = parser.parse_args(arguments)
    sys.path.insert(0, os.getcwd())
    try:
        module, _, name = asked.function.partition(":")
        fn = getattr(importlib.import_module(module), name)
        contract = json.loads(asked.contract) if asked.contract.startswith("{") else asked.contract
        dims = {letter: int(size) for letter, size in (part.split("=") for part in asked.dims.split(",") if part)}
        found = verify(fn, asked.op, asked.suite, contract=contract, options=json.loads(asked.options), dims=dims,
                       dtype=asked.dtype, arrays=asked.arrays, folder=asked.folder, strict=asked.strict, quiet=True)
    except (Error, ImportError, AttributeError, json.JSONDecodeError) as error:
        print(f"plumbline: {error}", file=sys.stderr)
        return 2
    print(found)
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())
