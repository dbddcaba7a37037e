#!/usr/bin/env python3
"""The tables of docs/presets-side-by-side.md, from the independent evaluation in tests/truth (needs mpmath).

    side_by_side.py                prints the tables
    side_by_side.py FOLDER PRESET  writes FOLDER/side_by_side_PRESET.safetensors, the same rows as a case
"""

import json
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "truth"))

import losses  # noqa: E402
import mpmath  # noqa: E402
import safetensors_io as st  # noqa: E402
from case import Case  # noqa: E402

getcontext().prec = 60
DIVISOR = {"sum": 1, "mean_all": 4, "mean_valid": 2, "mean_real": 3}


def ln(x):
    return Decimal(x).ln()


# Four rows over 12 tokens, blocks of 4. Row 0 stands at token 2 and sees no block, row 1 at token 4 and sees one,
# row 2 at token 11 and sees all three, row 3 is not real. Component h of a key is its logit under head h.
QUERY = [1, 0, 0, 1] * 4
COMPRESSED = [ln(3), 0, 0, ln(3), ln(4), ln(4)]  # logits (ln 3, 0, ln 4) and (0, ln 3, ln 4)
KV = [0] * 22 + [ln(3), ln(11)]                  # window 1: row 2 has masses 3 and 11 there
SINK = [ln(5), ln(13)]                           # window and sink of row 2: 8 and 24


def tensors(far):
    """`far`: the student's score of the last block in row 2."""
    named = {
        "in.query": ([1, 4, 2, 2], QUERY), "in.compressed": ([1, 3, 2], COMPRESSED),
        "in.kv": ([1, 12, 2], KV), "in.sink": ([2], SINK),
        "in.scores": ([1, 4, 3], [0, 0, 0, 1, 0, 0, Decimal("0.2"), Decimal("-0.1"), far, 0, 0, 0]),
    }
    out = {"in.row_index": st.Tensor("I32", (4,), [2, 4, 11, 10]),
           "in.row_mask": st.Tensor("BOOL", (1, 4), [True, True, True, False])}
    for name, (shape, values) in named.items():
        high = [float(x) for x in values]
        low = [float(Decimal(x) - Decimal(y)) for x, y in zip(values, high)]
        for key, numbers in ((name, high), (name + ".lo", low)):
            out[key] = st.Tensor("F64", tuple(shape), [Fraction(x) for x in numbers])
    return out


def metadata(preset):
    return {"schema": 1, "op": "csa_indexer_loss", "outputs": ["student", "target"],
            "options": {"m": 4, "preset": preset, "window": 1}}


def table(far):
    print(f"\nscore of the last block {far}\n")
    for preset in losses.PRESETS:
        stored = tensors(far)
        value = losses.evaluate(Case(metadata(preset), stored))
        # cot.row_loss of row 2 alone: the gradient of the row itself, before any mean
        stored["cot.row_loss"] = st.Tensor("F64", (1, 4), [Fraction(0)] * 2 + [Fraction(1), Fraction(0)])
        slope = losses.evaluate(Case(metadata(preset), stored))
        row = [f"{float(x):.10g}" for x in slope["grad.scores"][1][6:9]]
        single, loss = value["out.row_loss"][1][1], value["out.loss"][1][0]
        print(f"| `{preset}` | {mpmath.nstr(value['out.row_loss'][1][2], 13)} | {row[0]} | {row[1]} | {row[2]} | "
              f"{mpmath.nstr(single, 4)} | /{DIVISOR[losses.PRESETS[preset]['reduction']]} | {mpmath.nstr(loss, 11)} |")
        shares = [[mpmath.nstr(x, 11) for x in value[k][1][6:9]] for k in ("out.target", "out.student")]
        print("   ", *shares, file=sys.stderr)


def main(arguments):
    if len(arguments) == 2 and arguments[1] in losses.PRESETS:
        path = Path(arguments[0]) / f"side_by_side_{arguments[1]}.safetensors"
        text = json.dumps(metadata(arguments[1]), sort_keys=True, separators=(",", ":"))
        st.write(str(path), {"plumbline": text}, tensors(-20))
    elif not arguments:
        for far in (-20, -120):
            table(far)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
