"""Truth for mla_step: every sequence alone, as a layer over its cached and its new tokens."""
import mpmath
from case import BadCase, Case, _finite, real
from mla import plain
from mla_layer import layer
from safetensors_io import Tensor, count

CACHES = ("kv_latent", "k_pe", "indexer_index_k")
PER_TOKEN = ("query", "key", "value", "q_latent", "kv_latent", "k_pe", "indexer_index_q", "indexer_index_k",
             "indexer_index_w")
PER_KEY = ("indexer_scores", "indexer_selected")


def rows_of(case, name, b):
    inner = count(case.shape(name)[1:])
    return case.value(name)[b * inner:(b + 1) * inner]


def one(case, b):
    """(result of the layer over length + L tokens, the caches after the call) of sequence b."""
    B, L, E = case.shape("in.x")
    P = case.shape("in.state.kv_latent")[1]
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
    caches = {}

    def prime(projection, indexer):
        for name in CACHES:
            stage = indexer if name.startswith("indexer_") else projection
            if stage is None:
                continue
            short = name.replace("indexer_", "")
            width = case.shape("in.state." + name)[2]
            stored = rows_of(case, "in.state." + name, b)
            for s in range(length):
                stage.kept[short, 0, s] = [real(x) if _finite(x) else x
                                           for x in stored[s * width:(s + 1) * width]]
            new = [x for s in range(length, S) for x in getattr(stage, short)(0, s)]
            caches[name] = [x for s in range(length) for x in stage.kept[short, 0, s]] + new + \
                [0] * ((P - S) * width)
    result = layer(Case({"op": "mla_layer", "options": case.options}, tensors), prime)
    caches["positions"] = positions + [0] * (P - S)
    caches["segment_ids"] = segments + [0] * (P - S)
    return result, caches, length


def mla_step(case):
    B, L, E = case.shape("in.x")
    P = case.shape("in.state.kv_latent")[1]
    result, lengths = {}, []
    for b in range(B):
        part, caches, length = one(case, b)
        lengths.append(length + L)
        for name, (shape, values) in part.items():
            if not name.startswith("out.") or name == "out.loss":
                continue
            short = name[len("out."):]
            if short in PER_TOKEN:  # the L new ones
                inner = count(shape[2:])
                shape, values = (1, L) + shape[2:], values[length * inner:]
            if short in PER_KEY:  # over the capacity
                S, empty = shape[2], False if short == "indexer_selected" else -mpmath.inf
                values = [x for t in range(L) for x in values[t * S:(t + 1) * S] + [empty] * (P - S)]
                shape = (1, L, P)
            old = result.setdefault(name, ((B,) + shape[1:], []))
            old[1].extend(values)
        for name, values in caches.items():
            shape = case.shape("in.state." + name)
            result.setdefault("out.state." + name, (shape, []))[1].extend(plain(values))
    result["out.state.length"] = ((B,), lengths)
    result["out.loss"] = ((), [0])
    return result
