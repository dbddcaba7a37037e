#!/usr/bin/env python3
"""make_pictures.py PROGRAM [--check]: the pictures of the manual, drawn by `plumbline mask --svg`.

Writes each small case to a temporary folder and its picture beside this script; with --check it compares instead,
and says which picture is not up to date.
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = {"F64": (8, "d"), "I32": (4, "i"), "BOOL": (1, "?")}


def case(path, op, options, tensors):
    header, data = {"__metadata__": {"plumbline": json.dumps({"schema": 1, "op": op, "options": options})}}, b""
    for name, (dtype, shape, values) in tensors.items():
        count = math.prod(shape)
        values = [values] * count if isinstance(values, (int, float)) else values
        raw = struct.pack(f"<{count}{SIZES[dtype][1]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def restarting(segments):
    positions = []
    for s, segment in enumerate(segments):
        positions.append(positions[-1] + 1 if s and segment == segments[s - 1] else 0)
    return positions


def packed():
    """Two documents, the border inside block 2, padding at the end."""
    segments = [0] * 10 + [1] * 10 + [9] * 4
    return {"in.segment_ids": ("I32", [1, 24], segments), "in.positions": ("I32", [1, 24], restarting(segments))}


def attention(tokens, more, **options):
    tensors = {"in.query": ("F64", [1, tokens, 1, 1], 0.0), "in.kv": ("F64", [1, tokens, 1], 0.0)}
    if "in.row_index" in more:
        tensors["in.query"] = ("F64", [1, more["in.row_index"][1][0], 1, 1], 0.0)
    tensors.update(more)
    return "csa_attention", options, tensors


def window_and_blocks():
    return attention(16, {"in.compressed": ("F64", [1, 4, 1], 0.0)}, m=4, window=5)


def documents_and_padding():
    return attention(24, {"in.compressed": ("F64", [1, 6, 1], 0.0), **packed()}, m=4, window=4,
                     mask={"padding_segment": 9})


def document_grid():
    return attention(24, {"in.compressed": ("F64", [1, 4, 1], 0.0), **packed()}, m=4, window=4, grid="document",
                     mask={"padding_segment": 9})


def selection():
    """Rows of one rank of a context-parallel layout, two blocks each; the last names a block it does not see."""
    rows = [0, 1, 2, 3, 12, 13, 14, 15, 24, 25, 26, 27]
    indices = []
    for row in rows:
        seen = (row + 1) // 3
        indices += [seen - 1 if seen else -1, 5 * row % (seen - 1) if seen > 1 else -1]
    indices[-1] = 9
    return attention(30, {"in.compressed": ("F64", [1, 10, 1], 0.0), "in.row_index": ("I32", [len(rows)], rows),
                          "in.indices": ("I32", [1, len(rows), 2], indices)}, m=3, window=6)


def sparse_loss():
    """The loss of a packed sequence: a joint teacher's window, selected blocks, one row masked out."""
    rows = 20
    segments = [0] * 7 + [1] * 13
    selected = [[(t + j) % 3 != 0 and 2 * j < t for j in range(10)] for t in range(rows)]
    tensors = {"in.scores": ("F64", [1, rows, 10], 0.0), "in.query": ("F64", [1, rows, 1, 1], 0.0),
               "in.compressed": ("F64", [1, 10, 1], 0.0), "in.kv": ("F64", [1, rows, 1], 0.0),
               "in.selected": ("BOOL", [1, rows, 10], sum(selected, [])),
               "in.segment_ids": ("I32", [1, rows], segments),
               "in.positions": ("I32", [1, rows], restarting(segments)),
               "in.row_mask": ("BOOL", [1, rows], [t not in (11, 12) for t in range(rows)])}
    return "csa_indexer_loss", {"preset": "megatron_csa_fused", "sparse": True, "m": 2, "window": 3}, tensors


PICTURES = {make.__name__: make for make in (window_and_blocks, documents_and_padding, document_grid, selection,
                                             sparse_loss)}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    with tempfile.TemporaryDirectory(prefix="plumbline_pictures_") as folder:
        for name, make in PICTURES.items():
            path, target = os.path.join(folder, name + ".safetensors"), os.path.join(HERE, name + ".svg")
            case(path, *make())
            drawn = subprocess.run([sys.argv[1], "mask", path, "--svg"], check=True, capture_output=True).stdout
            old = b""
            if os.path.exists(target):
                with open(target, "rb") as file:
                    old = file.read()
            if drawn == old:
                continue
            stale.append(name)
            if len(sys.argv) == 2:
                with open(target, "wb") as file:
                    file.write(drawn)
    unknown = {name for name in os.listdir(HERE) if name.endswith(".svg")} - {name + ".svg" for name in PICTURES}
    for name in stale:
        print(f"docs/pictures/{name}.svg: " +
              ("not up to date, ./dev docs draws it" if len(sys.argv) == 3 else "drawn"))
    for name in sorted(unknown):
        print(f"docs/pictures/{name}: drawn by nobody")
    return 1 if unknown or (stale and len(sys.argv) == 3) else 0


if __name__ == "__main__":
    sys.exit(main())
