#!/usr/bin/env python3
"""real_shapes.py PROGRAM [NAME …]: operations of a DeepSeek-V4-Flash layer at S = 32768, rows spot-checked, in f64.

Writes each case to a temporary folder (bf16 from numpy, the same every time), evaluates it with
`plumbline eval --precision f64` and prints wall time, user time and the largest resident set. NAME: some of the
cases, by default all. The layer's case holds 0.7 GB. docs/real-shapes.md has the numbers.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

import numpy

S, E, HEADS, WIDTH, ROPE, RQ = 32768, 4096, 64, 512, 64, 1024
WINDOW, M, K, INDEX_HEADS, INDEX_WIDTH, GROUPS, GROUP_RANK = 128, 4, 512, 64, 128, 8, 1024
N = S // M
ROWS = numpy.arange(1, 17, dtype=numpy.int32) * (S // 16) - 1  # spread over the sequence, the last token included
ROTARY = {"theta": 10000.0, "dim": ROPE}
COMPRESS_ROTARY = {"theta": 160000.0, "dim": ROPE}


class Writer:
    """A safetensors file, a tensor at a time, so that the script itself stays small."""

    def __init__(self, op, options):
        self.metadata = {"schema": 1, "op": op, "options": options}
        self.tensors, self.seed = [], 0

    def normal(self, name, shape, deviation=1.0, dtype="BF16"):
        self.seed += 1
        self.tensors.append((name, shape, dtype, (self.seed, deviation)))

    def exact(self, name, values, dtype):
        self.tensors.append((name, values.shape, dtype, values))

    def weight(self, name, shape):
        self.normal(name, shape, shape[0] ** -0.5)

    def save(self, path):
        header, at = {"__metadata__": {"plumbline": json.dumps(self.metadata)}}, 0
        sizes = {"BF16": 2, "F32": 4, "I32": 4}
        for name, shape, dtype, _ in self.tensors:
            size = int(numpy.prod(shape)) * sizes[dtype]
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _, shape, dtype, source in self.tensors:
                if not isinstance(source, tuple):
                    file.write(source.tobytes())
                    continue
                stream = numpy.random.Generator(numpy.random.Philox(source[0]))
                left = int(numpy.prod(shape))
                while left > 0:
                    count = min(left, 1 << 22)
                    values = (stream.standard_normal(count, dtype=numpy.float32) * numpy.float32(source[1]))
                    values = values.astype(numpy.float32)
                    if dtype == "BF16":  # the upper half of a binary32
                        values = (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
                    file.write(values.tobytes())
                    left -= count


def selection():
    """512 blocks that each row sees, in no order; fewer, then -1, where it sees fewer."""
    stream = numpy.random.Generator(numpy.random.Philox(99))
    indices = numpy.full((1, len(ROWS), K), -1, numpy.int32)
    for t, row in enumerate(ROWS):
        seen = (row + 1) // M
        chosen = stream.permutation(seen)[:K]
        indices[0, t, :len(chosen)] = chosen
    return indices


def attention():
    case = Writer("csa_attention", {"m": M, "window": WINDOW})
    case.normal("in.query", (1, len(ROWS), HEADS, WIDTH), WIDTH ** -0.5)
    case.normal("in.kv", (1, S, WIDTH))
    case.normal("in.compressed", (1, N, WIDTH))
    case.normal("in.sink", (HEADS,), dtype="F32")
    case.exact("in.indices", selection(), "I32")
    case.exact("in.row_index", ROWS, "I32")
    case.normal("cot.output", (1, len(ROWS), HEADS, WIDTH))
    return case


def loss(sparse):
    case = Writer("csa_indexer_loss", {"m": M, "sparse": sparse, "S": S})
    case.normal("in.index_q", (1, len(ROWS), INDEX_HEADS, INDEX_WIDTH))
    case.normal("in.index_k", (1, N, INDEX_WIDTH))
    case.normal("in.index_w", (1, len(ROWS), INDEX_HEADS))
    case.normal("in.query", (1, len(ROWS), HEADS, WIDTH), WIDTH ** -0.5)
    case.normal("in.compressed", (1, N, WIDTH))
    if sparse:
        case.exact("in.indices", selection(), "I32")
    case.exact("in.row_index", ROWS, "I32")
    return case


def layer():
    case = Writer("csa_layer", {"m": M, "window": WINDOW, "rope": ROTARY, "compress_rope": COMPRESS_ROTARY,
                                "indexer": {"k": K}, "loss": {"sparse": True}})
    case.normal("in.x", (1, S, E))
    case.weight("in.wq_a", (E, RQ))
    case.normal("in.q_norm", (RQ,))
    case.weight("in.wq_b", (RQ, HEADS, WIDTH))
    case.weight("in.wkv", (E, WIDTH))
    case.normal("in.kv_norm", (WIDTH,))
    case.weight("in.kv_proj", (E, 2 * WIDTH))
    case.weight("in.gate_proj", (E, 2 * WIDTH))
    case.normal("in.position_bias", (M, 2 * WIDTH))
    case.normal("in.compress_norm", (WIDTH,))
    case.normal("in.sink", (HEADS,), dtype="F32")
    case.normal("in.o_a", (GROUPS, HEADS * WIDTH // GROUPS, GROUP_RANK), (HEADS * WIDTH // GROUPS) ** -0.5)
    case.weight("in.o_b", (GROUPS * GROUP_RANK, E))
    case.weight("in.indexer_q_proj", (RQ, INDEX_HEADS, INDEX_WIDTH))
    case.weight("in.indexer_kv_proj", (E, 2 * INDEX_WIDTH))
    case.weight("in.indexer_gate_proj", (E, 2 * INDEX_WIDTH))
    case.normal("in.indexer_position_bias", (M, 2 * INDEX_WIDTH))
    case.normal("in.indexer_kv_norm_weight", (INDEX_WIDTH,))
    case.weight("in.indexer_weights_proj", (E, INDEX_HEADS))
    case.exact("in.row_index", ROWS, "I32")
    return case


CASES = {
    "csa_attention": (attention, ["--grad"]),
    "csa_indexer_loss_sparse": (lambda: loss(True), ["--grad"]),
    "csa_indexer_loss_dense": (lambda: loss(False), ["--grad"]),
    "csa_layer": (layer, []),
}


def measured(command):
    """Wall seconds, user seconds and peak resident bytes of a child."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"real_shapes.py: {' '.join(command)} ended with {child.returncode}")
    return time.monotonic() - start, usage.ru_utime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--folder", help="keep the cases and their results here")
    parser.add_argument("--threads", default="0")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in CASES:
            parser.error(f"{name}: expected some of {', '.join(CASES)}")
    with tempfile.TemporaryDirectory(prefix="plumbline_real_") as temporary:
        folder = arguments.folder or temporary
        print(f"{'case':<26}{'wall s':>9}{'user s':>9}{'peak GB':>9}")
        for name in arguments.names or CASES:
            make, more = CASES[name]
            case, result = (os.path.join(folder, name + end) for end in (".safetensors", ".result"))
            if not os.path.exists(case):
                make().save(case)
            wall, user, peak = measured([arguments.program, "eval", case, "-o", result, "--precision", "f64",
                                         "--threads", arguments.threads, *more])
            print(f"{name:<26}{wall:>9.1f}{user:>9.1f}{peak / 1e9:>9.2f}", flush=True)
            if not arguments.folder:
                os.remove(case), os.remove(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
