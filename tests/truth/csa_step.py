"""Truth for csa_step: every sequence alone, as a layer over its cached and its new tokens."""
import mpmath

from case import BadCase, Case, _finite, real
from csa_layer import layer
from mla import plain
from mla_step import rows_of
from safetensors_io import Tensor, count

PER_TOKEN = ("query", "kv", "q_latent", "indexer_index_q", "indexer_index_w")
PER_BLOCK = ("compressed", "indexer_index_k")
PER_ROW_AND_BLOCK = ("indexer_scores", "indexer_selected")


class Lane:
    """The pooling state of one compressor: raw (kv, gate) rows of the partial block and of the one before."""

    def __init__(self, case, b, prefix, m):
        self.case, self.b, self.prefix, self.m = case, b, "in.state." + prefix, m

    def rows(self, which):
        """m pairs of rows of numbers; not finite ones stay as they are."""
        out = []
        for part in ("_kv", "_gate"):
            name = self.prefix + which + part
            width = self.case.shape(name)[2]
            flat = [real(x) if _finite(x) else x for x in rows_of(self.case, name, self.b)]
            out.append([flat[i * width:(i + 1) * width] for i in range(self.m)])
        return list(zip(*out))


def checked(rows):
    for pair in rows:
        for row in pair:
            if any(isinstance(x, float) for x in row):
                raise BadCase("a state that is read is not finite")
    return rows


def one(case, b):
    """(result of the layer over length + L tokens, the state after the call) of sequence b."""
    _, L, E = case.shape("in.x")
    P, D = case.shape("in.state.kv")[1:]
    kind = case.options.get("kind", "csa")
    m = case.options.get("m", 1)
    length = case.value("in.state.length")[b]
    S = length + L
    if S > P:
        raise BadCase("the caches are full")
    new_positions = rows_of(case, "in.positions", b) if case.has("in.positions") else list(range(length, S))
    new_segments = rows_of(case, "in.segment_ids", b) if case.has("in.segment_ids") else [0] * L
    positions = rows_of(case, "in.state.positions", b)[:length] + new_positions
    segments = rows_of(case, "in.state.segment_ids", b)[:length] + new_segments
    tensors = {n: t for n, t in case.tensors.items() if n.startswith("in.") and not n.startswith("in.state.")
               and n not in ("in.x", "in.x.lo", "in.positions", "in.segment_ids")}
    nan = float("nan")
    tensors.update({
        "in.x": Tensor("F64", (1, S, E), [nan] * (length * E) + rows_of(case, "in.x", b)),
        "in.positions": Tensor("I32", (1, S), positions), "in.segment_ids": Tensor("I32", (1, S), segments),
        "in.row_index": Tensor("I32", (L,), list(range(length, S)))})
    old_blocks, blocks = (0, 0) if kind == "window" else (length // m, S // m)
    lanes = {} if kind == "window" else {"": Lane(case, b, "", m)}
    if case.options.get("indexer"):
        lanes["indexer_"] = Lane(case, b, "indexer_", m)
    present = kind == "csa" and bool(case.value("in.state.prior_present")[b])
    state = {}

    def stored(name, width, items):
        """The first `items` rows of a cache."""
        values = [real(x) if _finite(x) else x for x in rows_of(case, name, b)]
        return [values[i * width:(i + 1) * width] for i in range(items)]

    def prime(stages, indexer):
        for s, row in enumerate(stored("in.state.kv", D, length)):
            stages.kept["kv", 0, s] = row
        state["kv"] = [x for s in range(S) for x in stages.kv(0, s)] + [0] * ((P - S) * D)
        for prefix, lane in lanes.items():
            compressor, name, width = (indexer.compressor, "indexer_index_k", indexer.e) if prefix else \
                (stages.compressor, "compressed", D)
            for j, row in enumerate(stored("in.state." + name, width, old_blocks)):
                compressor.kept[0, j] = row
            raw = compressor.raw.kept
            for i, pair in enumerate(lane.rows("partial")[:length - old_blocks * m]):
                raw[0, old_blocks * m + i] = pair
            if kind == "csa":
                before = lane.rows("prior")
                if old_blocks and present:
                    for i, pair in enumerate(before):
                        raw[0, (old_blocks - 1) * m + i] = pair
                if old_blocks and not present:
                    cut(compressor, old_blocks)
            capacity = P // m
            state[name] = [x for j in range(blocks) for x in compressor.block(0, j)] + \
                [0] * ((capacity - blocks) * width)
            wide = width * (2 if kind == "csa" else 1)
            for part, which in enumerate(("_kv", "_gate")):
                left = S - blocks * m
                state[prefix + "partial" + which] = [
                    x for i in range(left) for x in compressor.raw(0, blocks * m + i)[part]] + [0] * ((m - left) * wide)
                if kind != "csa":
                    continue
                if blocks > old_blocks:
                    last = [compressor.raw(0, (blocks - 1) * m + i)[part] for i in range(m)]
                elif present:
                    last = [pair[part] for pair in before]
                else:
                    last = [[None] * wide] * m  # what stands in a prior that is not there is left open
                state[prefix + "prior" + which] = [x for row in last for x in row]

    def prior(prefix):
        def make(_):
            return checked(lanes[prefix].rows("prior")) if present and not old_blocks else None
        return make
    options = {n: x for n, x in case.options.items() if n != "loss"}
    result = layer(Case({"op": "csa_layer", "options": options}, tensors), prime, prior(""), prior("indexer_"))
    state["positions"] = positions + [0] * (P - S)
    state["segment_ids"] = segments + [0] * (P - S)
    if kind == "csa":
        state["prior_present"] = [present or blocks > old_blocks]
    return result, state, length


def cut(compressor, block):
    """Nothing stands before this block."""
    inner = compressor.continues

    def continues(b, j):
        return j != block and inner(b, j)
    compressor.continues = continues


def csa_step(case):
    B, L, E = case.shape("in.x")
    capacity = case.shape("in.state.compressed")[1] if case.has("in.state.compressed") else 0
    result, lengths = {}, []
    for b in range(B):
        part, state, length = one(case, b)
        lengths.append(length + L)
        for name, (shape, values) in part.items():
            short = name[len("out."):]
            if not name.startswith("out.") or short == "loss":
                continue
            if short in PER_BLOCK:
                continue  # as state.compressed and state.indexer_index_k say it
            if short in PER_TOKEN:  # the L new ones
                inner = count(shape[2:])
                shape, values = (1, L) + shape[2:], values[length * inner:]
            if short in PER_ROW_AND_BLOCK:  # over the capacity
                N, empty = shape[2], False if short == "indexer_selected" else -mpmath.inf
                values = [x for t in range(L) for x in values[t * N:(t + 1) * N] + [empty] * (capacity - N)]
                shape = (1, L, capacity)
            result.setdefault(name, ((B,) + shape[1:], []))[1].extend(values)
        for name, values in state.items():
            shape = case.shape("in.state." + name)
            result.setdefault("out.state." + name, (shape, []))[1].extend(plain(values))
    for name in PER_BLOCK:  # what a step calls its blocks is left open
        if case.has("in.state." + name):
            result["out." + name] = (None, None)
    result["out.state.length"] = ((B,), lengths)
    result["out.loss"] = ((), [0])
    return result
