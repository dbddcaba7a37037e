#!/usr/bin/env python3
"""The discriminating case of docs/discriminating-case.md, with Python's standard library alone.

    make_discriminating.py [FOLDER]     writes discriminating_own.safetensors and
                                        discriminating_joint.safetensors (beside this file by default)
    make_discriminating.py --show FILE  prints the results in FILE, each pair x + x.lo to 31 digits

The two files hold the same tensors. They differ in one word of their metadata, the preset.
The same bytes come out on every machine: logarithms are taken in decimal arithmetic.
"""

import json
import struct
import sys
from decimal import Decimal, getcontext
from pathlib import Path

getcontext().prec = 60
FORMATS = {"F64": "d", "I32": "i", "BOOL": "?"}


def ln(x):
    return Decimal(x).ln()


# One query row at token 7 of 8, blocks of 4 tokens, so both blocks are visible. Two heads whose queries are the
# unit vectors: component h of a key is its logit under head h.
QUERY = [1, 0, 0, 1]                             # B T H D = 1 1 2 2
COMPRESSED = [ln(3), 0, 0, ln(3)]                # B N D = 1 2 2: logits (ln 3, 0) and (0, ln 3)
KV = [0] * 14 + [ln(2), ln(7)]                   # B S D = 1 8 2: the window is token 7 alone, masses 2 and 7
SINK = [ln(2), ln(5)]                            # H: masses 2 and 5, so window and sink together 4 and 12
SCORES = [Decimal("0.2"), Decimal("-0.1")]       # B T N = 1 1 2

TENSORS = {
    "in.query": ([1, 1, 2, 2], QUERY),
    "in.compressed": ([1, 2, 2], COMPRESSED),
    "in.kv": ([1, 8, 2], KV),
    "in.sink": ([2], SINK),
    "in.scores": ([1, 1, 2], SCORES),
}
PRESETS = {"own": "exact", "joint": "veomni"}


def file_of(preset):
    """The bytes of one case: each value as a double and its remainder as another."""
    metadata = {"schema": 1, "op": "csa_indexer_loss", "generator": "docs/cases/make_discriminating.py",
                "options": {"m": 4, "preset": preset, "window": 1},
                "outputs": ["head_sum", "target", "student"]}
    header = {"__metadata__": {"plumbline": json.dumps(metadata, sort_keys=True, separators=(",", ":"))}}
    data = b""
    for name, (shape, values) in sorted(TENSORS.items()):
        high = [float(x) for x in values]
        low = [float(Decimal(x) - Decimal(y)) for x, y in zip(values, high)]
        for key, numbers in ((name, high), (name + ".lo", low)):
            raw = struct.pack(f"<{len(numbers)}d", *numbers)
            header[key] = {"dtype": "F64", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def show(path):
    blob = Path(path).read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    header, data = json.loads(blob[8:8 + size]), blob[8 + size:]

    def numbers(name):
        begin, end = header[name]["data_offsets"]
        kind = FORMATS[header[name]["dtype"]]
        return struct.unpack(f"<{(end - begin) // struct.calcsize(kind)}{kind}", data[begin:end])

    for name in sorted(header):
        if not name.startswith(("out.", "grad.")) or name.endswith(".lo"):
            continue
        values = numbers(name)
        if name + ".lo" in header:
            values = [f"{Decimal(x) + Decimal(y):.31g}" for x, y in zip(values, numbers(name + ".lo"))]
        print(f"{name:14}", *values)


def main(arguments):
    if arguments[:1] == ["--show"] and len(arguments) == 2:
        show(arguments[1])
    elif len(arguments) <= 1 and not arguments[:1] in (["-h"], ["--help"]):
        folder = Path(arguments[0] if arguments else Path(__file__).parent)
        for name, preset in PRESETS.items():
            (folder / f"discriminating_{name}.safetensors").write_bytes(file_of(preset))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
