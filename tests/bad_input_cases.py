"""Small valid cases, one or more for each operation, and the mutations that make them wrong.

A Case is held in parts until it is written, so that a mutation can break one thing and leave the rest consistent.
"""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "truth"))
import safetensors_io  # noqa: E402

NAN, INF = float("nan"), float("inf")


def framed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def values_of(shape, salt):
    """Small dyadic numbers, none of them 0, that every float type here holds."""
    return [((i * 7 + salt * 5) % 15 - 7 or 8) / 8 for i in range(safetensors_io.count(shape))]


class Case:
    def __init__(self, op, options=None, tensors=None, arguments=()):
        # A copy through text: two options never share an object that a mutation would change in both.
        self.metadata = json.loads(json.dumps({"op": op, "options": options or {}}))
        self.tensors = {}  # name -> [dtype, shape, values or raw bytes]
        for salt, (name, what) in enumerate((tensors or {}).items()):
            self.put(name, *what, salt=salt)
        self.arguments = ["--precision", "f64", *arguments]
        self.file = None  # a function of the bytes, applied last

    @property
    def op(self):
        return self.metadata["op"]

    def put(self, name, *what, salt=1):
        """put(name, shape), put(name, dtype, shape) or put(name, dtype, shape, values or bytes)."""
        dtype, shape, values = (("F32",) + what + (None,))[:3] if len(what) == 1 else (what + (None,))[:3]
        if values is None:
            real = dtype in safetensors_io.FLOATS
            values = values_of(shape, salt) if real else [dtype == "BOOL"] * safetensors_io.count(shape)
        self.tensors[name] = [dtype, list(shape), values if isinstance(values, bytes) else list(values)]

    def header(self):
        header, data = {"__metadata__": {"plumbline": json.dumps(self.metadata)}}, b""
        for name, (dtype, shape, values) in self.tensors.items():
            raw = values if isinstance(values, bytes) else safetensors_io.encode(dtype, values)
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        return header, data

    def to_bytes(self):
        whole = framed(*self.header())
        return self.file(self) if self.file else whole


# ---- mutations: each gives a function that changes a case ----------------------------------------

def option(path, value):
    def change(case):
        *outer, last = path.split(".")
        at = case.metadata["options"]
        for key in outer:
            at = at.setdefault(key, {})
        at[last] = value
    return change


def without_option(path):
    def change(case):
        *outer, last = path.split(".")
        at = case.metadata["options"]
        for key in outer:
            at = at[key]
        del at[last]
    return change


def metadata(key, value):
    return lambda case: case.metadata.__setitem__(key, value)


def without_metadata(key):
    return lambda case: case.metadata.pop(key)


def raw_metadata(text):
    """The text of the metadata key, JSON or not."""
    def change(case):
        def build(self):
            header, data = self.header()
            if text is None:
                del header["__metadata__"]
            else:
                header["__metadata__"]["plumbline"] = text(self.metadata) if callable(text) else text
            return framed(header, data)
        case.file = build
    return change


def put(name, *what):
    return lambda case: case.put(name, *what)


def drop(*names):
    def change(case):
        for name in names:
            del case.tensors[name]
    return change


def poke(name, place, value):
    """One element, by its place in C order."""
    def change(case):
        values = list(case.tensors[name][2])
        values[place] = value
        case.tensors[name][2] = values
    return change


def fill(name, value):
    return lambda case: case.tensors[name].__setitem__(2, [value] * len(case.tensors[name][2]))


def dtype(name, kind):
    return lambda case: case.put(name, kind, case.tensors[name][1])


def rank_up(name):
    return lambda case: case.put(name, case.tensors[name][0], [1] + case.tensors[name][1])


def larger(name, axis=-1):
    def change(case):
        kind, shape, _ = case.tensors[name]
        shape = list(shape)
        shape[axis] += 1
        case.put(name, kind, shape)
    return change


def arguments(*more):
    return lambda case: case.arguments.extend(more)


def instead(*words):
    """Other arguments than the case's."""
    return lambda case: case.arguments.__setitem__(slice(None), words)


def mentions(name):
    """For a row's `where`: the line names it, as what is wrong or as what disagrees with it."""
    return lambda match: name in match.string


def all_of(*changes):
    def change(case):
        for each in changes:
            each(case)
    return change


# ---- base cases ----------------------------------------------------------------------------------

ROPE = {"theta": 10000.0, "dim": 2}
YARN = {"factor": 4.0, "original_max_position": 16, "beta_fast": 32.0, "beta_slow": 1.0}
PROJECTION = {"nope_dim": 2, "rope_dim": 2, "v_dim": 3, "rope": ROPE}
INDEXER = {"k": 2, "rope": ROPE}
KV_WEIGHTS = {"in.wkv_a": ([4, 5],), "in.kv_norm": ([3],), "in.wkv_b": ([3, 2, 5],)}
LATENT_WEIGHTS = {"in.wq_a": ([4, 3],), "in.q_norm": ([3],), "in.wq_b": ([3, 2, 4],)}
INDEX_WEIGHTS = {"wq_b": ([3, 2, 4],), "wk": ([4, 4],), "k_norm_weight": ([4],), "k_norm_bias": ([4],),
                 "weights_proj": ([4, 2],)}
RAW_INDEX = {"in.index_q": ([1, 3, 2, 2],), "in.index_w": ([1, 3, 2],)}
ATTENTION = {"in.query": ([1, 3, 2, 4],), "in.key": ([1, 5, 1, 4],), "in.value": ([1, 5, 1, 3],)}
TEACHER = {"in.query": ([1, 3, 2, 4],), "in.key": ([1, 5, 1, 4],)}
BLOCK_TEACHER = {"in.scores": ([1, 4, 2],), "in.query": ([1, 4, 2, 4],), "in.compressed": ([1, 2, 4],)}
BLOCK_ATTENTION = {"in.query": ([1, 4, 2, 4],), "in.kv": ([1, 4, 4],), "in.compressed": ([1, 2, 4],)}
SLOTS = ("I32", [1, 3, 2], [0, 2, 3, -1, 1, 4])
CSA_OPTIONS = {"m": 2, "window": 2, "rope": ROPE}
CSA_WEIGHTS = {"in.wq_a": ([4, 3],), "in.q_norm": ([3],), "in.wq_b": ([3, 2, 4],), "in.wkv": ([4, 4],),
               "in.kv_norm": ([4],), "in.sink": ([2],), "in.o_a": ([2, 4, 3],), "in.o_b": ([6, 4],)}
CSA_INDEX_WEIGHTS = {"in.indexer_q_proj": ([3, 2, 4],), "in.indexer_kv_proj": ([4, 8],),
                     "in.indexer_gate_proj": ([4, 8],), "in.indexer_position_bias": ([2, 8],),
                     "in.indexer_kv_norm_weight": ([4],), "in.indexer_weights_proj": ([4, 2],)}


def csa_lanes(width):
    return {"in.kv_proj": ([4, width],), "in.gate_proj": ([4, width],), "in.position_bias": ([2, width],),
            "in.compress_norm": ([4],)}


def csa_state(kind, indexer):
    """Three tokens in a state of six: a block, and a token of the next."""
    lanes = 8 if kind == "csa" else 4
    state = {"kv": ([1, 6, 4],)}
    if kind != "window":
        state.update(compressed=([1, 3, 4],), partial_kv=([1, 2, lanes],), partial_gate=([1, 2, lanes],))
    if kind == "csa":
        state.update(prior_kv=([1, 2, 8],), prior_gate=([1, 2, 8],), prior_present=("BOOL", [1]))
    if indexer:
        state.update({"indexer_" + name: ([1, 2, 8],) for name in
                      ("partial_kv", "partial_gate", "prior_kv", "prior_gate")}, indexer_index_k=([1, 3, 4],))
    state.update(length=("I32", [1], [3]), positions=("I32", [1, 6], [0, 1, 2, 0, 0, 0]),
                 segment_ids=("I32", [1, 6], [0] * 6))
    return {"in.state." + name: what for name, what in state.items()}


BASES = {
    "linear": lambda: Case("linear", {"slice_bounds": [1, 5]},
                           {"in.x": ([3, 4],), "in.weight": ([4, 2, 5],), "in.bias": ([2, 5],)}),
    "rms_norm": lambda: Case("rms_norm", {}, {"in.x": ([3, 4],), "in.weight": ([4],)}),
    "layer_norm": lambda: Case("layer_norm", {}, {"in.x": ([3, 4],), "in.weight": ([4],), "in.bias": ([4],)}),
    "rope": lambda: Case("rope", {"rope": dict(ROPE, yarn=dict(YARN))},
                         {"in.x": ([1, 3, 2, 4],), "in.positions": ("I32", [1, 3], [0, 1, 2])}),
    "mla_projection": lambda: Case("mla_projection", dict(PROJECTION),
                                   {"in.x": ([1, 3, 4],), **LATENT_WEIGHTS, **KV_WEIGHTS}),
    "mla_projection direct": lambda: Case("mla_projection", dict(PROJECTION),
                                          {"in.x": ([1, 3, 4],), "in.wq": ([4, 2, 4],), **KV_WEIGHTS}),
    "mla_attention": lambda: Case("mla_attention", {}, {**ATTENTION, "in.sink": ([2],)}),
    "mla_attention indices": lambda: Case("mla_attention", {}, {**ATTENTION, "in.indices": SLOTS}),
    "mla_attention selected": lambda: Case("mla_attention", {}, {**ATTENTION, "in.selected": ("BOOL", [1, 3, 5])}),
    "mla_attention latent": lambda: Case(
        "mla_attention", {"nope_dim": 2, "v_dim": 3},
        {"in.query": ([1, 3, 2, 4],), "in.kv_latent": ([1, 5, 3],), "in.k_pe": ([1, 5, 2],),
         "in.wkv_b": ([3, 2, 5],)}),
    "merge_attention": lambda: Case("merge_attention", {},
                                    {"in.outputs": ([2, 1, 3, 2, 3],), "in.lse": ([2, 1, 3, 2],),
                                     "in.sink": ([2],)}),
    "indexer_scores": lambda: Case("indexer_scores", {},
                                   {"in.q": ([1, 3, 2, 2],), "in.k": ([1, 4, 2],), "in.w": ([1, 3, 2],)}),
    "topk": lambda: Case("topk", {"k": 2}, {"in.scores": ([1, 3, 5],)}),
    "topk blocks": lambda: Case("topk", {"k": 1, "keys": "blocks", "m": 2, "S": 4}, {"in.scores": ([1, 4, 2],)}),
    "dsa_indexer": lambda: Case("dsa_indexer", dict(INDEXER),
                                {"in.x": ([1, 4, 4],), "in.q_latent": ([1, 4, 3],),
                                 **{"in." + name: what for name, what in INDEX_WEIGHTS.items()}}),
    "csa_compress": lambda: Case(
        "csa_compress", {"m": 2, "rope": ROPE},
        {"in.kv": ([1, 4, 8],), "in.gate": ([1, 4, 8],), "in.position_bias": ([2, 8],), "in.norm_weight": ([4],),
         "in.prior_kv": ([1, 2, 8],), "in.prior_gate": ([1, 2, 8],), "in.prior_present": ("BOOL", [1])}),
    "csa_compress plain": lambda: Case("csa_compress", {"m": 2}, {"in.kv": ([1, 5, 4],), "in.gate": ([1, 5, 4],)}),
    "csa_indexer": lambda: Case(
        "csa_indexer", {**INDEXER, "m": 2},
        {"in.x": ([1, 4, 4],), "in.q_latent": ([1, 4, 3],), "in.q_proj": ([3, 2, 4],), "in.kv_proj": ([4, 8],),
         "in.gate_proj": ([4, 8],), "in.position_bias": ([2, 8],), "in.kv_norm_weight": ([4],),
         "in.weights_proj": ([4, 2],)}),
    "dsa_indexer_loss": lambda: Case("dsa_indexer_loss", {}, {"in.scores": ([1, 3, 5],), **TEACHER}),
    "dsa_indexer_loss raw": lambda: Case("dsa_indexer_loss", {},
                                         {**RAW_INDEX, "in.index_k": ([1, 5, 2],), **TEACHER}),
    "dsa_indexer_loss indices": lambda: Case(
        "dsa_indexer_loss", {"sparse": True}, {"in.scores": ([1, 3, 5],), **TEACHER, "in.indices": SLOTS}),
    "dsa_indexer_loss slots": lambda: Case(
        "dsa_indexer_loss", {"sparse": True, "layout": "slots"},
        {"in.scores": ([1, 3, 2],), **TEACHER, "in.indices": SLOTS}),
    "csa_indexer_loss": lambda: Case("csa_indexer_loss", {"m": 2, "S": 4}, BLOCK_TEACHER),
    "csa_indexer_loss joint": lambda: Case(
        "csa_indexer_loss", {"m": 2, "preset": "primus", "window": 2},
        {**BLOCK_TEACHER, "in.kv": ([1, 4, 4],), "in.sink": ([2],)}),
    "csa_attention": lambda: Case("csa_attention", {"m": 2, "window": 2}, {**BLOCK_ATTENTION, "in.sink": ([2],)}),
    "csa_attention indices": lambda: Case(
        "csa_attention", {"m": 2, "window": 2},
        {**BLOCK_ATTENTION, "in.indices": ("I32", [1, 4, 2], [-1, -1, 0, -1, -1, 0, 1, 0])}),
    "csa_attention selected": lambda: Case(
        "csa_attention", {"m": 2, "window": 2}, {**BLOCK_ATTENTION, "in.selected": ("BOOL", [1, 4, 2])}),
    "mla_layer": lambda: Case(
        "mla_layer", {**PROJECTION, "indexer": dict(INDEXER), "loss": {}},
        {"in.x": ([1, 4, 4],), **LATENT_WEIGHTS, **KV_WEIGHTS, "in.wo": ([2, 3, 4],),
         **{"in.indexer_" + name: what for name, what in INDEX_WEIGHTS.items()}}),
    "mla_layer plain": lambda: Case(
        "mla_layer", dict(PROJECTION),
        {"in.x": ([1, 4, 4],), "in.wq": ([4, 2, 4],), **KV_WEIGHTS, "in.wo": ([2, 3, 4],)}),
    "mla_step": lambda: Case(
        "mla_step", {**PROJECTION, "indexer": dict(INDEXER)},
        {"in.x": ([1, 2, 4],), **LATENT_WEIGHTS, **KV_WEIGHTS, "in.wo": ([2, 3, 4],),
         **{"in.indexer_" + name: what for name, what in INDEX_WEIGHTS.items()},
         "in.state.length": ("I32", [1], [2]), "in.state.kv_latent": ([1, 4, 3],), "in.state.k_pe": ([1, 4, 2],),
         "in.state.indexer_index_k": ([1, 4, 4],), "in.state.positions": ("I32", [1, 4], [0, 1, 0, 0]),
         "in.state.segment_ids": ("I32", [1, 4], [0] * 4)}),
    "csa_layer": lambda: Case(
        "csa_layer", {**CSA_OPTIONS, "indexer": {"k": 1}, "loss": {}},
        {"in.x": ([1, 4, 4],), **CSA_WEIGHTS, **csa_lanes(8), **CSA_INDEX_WEIGHTS}),
    "csa_layer plain": lambda: Case("csa_layer", dict(CSA_OPTIONS),
                                    {"in.x": ([1, 4, 4],), **CSA_WEIGHTS, **csa_lanes(8)}),
    "csa_layer hca": lambda: Case("csa_layer", {**CSA_OPTIONS, "kind": "hca"},
                                  {"in.x": ([1, 4, 4],), **CSA_WEIGHTS, **csa_lanes(4)}),
    "csa_layer window": lambda: Case("csa_layer", {"kind": "window", "window": 2, "rope": ROPE},
                                     {"in.x": ([1, 4, 4],), **CSA_WEIGHTS}),
    "csa_step": lambda: Case(
        "csa_step", {**CSA_OPTIONS, "indexer": {"k": 1}},
        {"in.x": ([1, 2, 4],), **CSA_WEIGHTS, **csa_lanes(8), **CSA_INDEX_WEIGHTS, **csa_state("csa", True)}),
    "csa_step plain": lambda: Case(
        "csa_step", dict(CSA_OPTIONS),
        {"in.x": ([1, 2, 4],), **CSA_WEIGHTS, **csa_lanes(8), **csa_state("csa", False)}),
    "csa_step hca": lambda: Case(
        "csa_step", {**CSA_OPTIONS, "kind": "hca"},
        {"in.x": ([1, 2, 4],), **CSA_WEIGHTS, **csa_lanes(4), **csa_state("hca", False)}),
    "csa_step window": lambda: Case(
        "csa_step", {"kind": "window", "window": 2, "rope": ROPE},
        {"in.x": ([1, 2, 4],), **CSA_WEIGHTS, **csa_state("window", False)}),
    "stage_routing": lambda: Case("stage_routing", {"use_indexer": True, "sparse": False, "coefficient": 1.0}),
}


def base(name):
    return BASES[name]()
