"""Faults where nobody looks: each of these cases is fine."""
from bad_input_cases import INF, NAN, all_of, fill, metadata, option, poke, put

# For operations without a scalar loss: a cotangent in the shape of the base case's output.
COTANGENTS = {
    "linear": ("cot.y", [3, 2, 4]), "rms_norm": ("cot.y", [3, 4]), "layer_norm": ("cot.y", [3, 4]),
    "rope": ("cot.y", [1, 3, 2, 4]), "mla_projection": ("cot.query", [1, 3, 2, 4]),
    "mla_attention": ("cot.output", [1, 3, 2, 3]), "csa_attention": ("cot.output", [1, 4, 2, 4]), "merge_attention": ("cot.output", [1, 3, 2, 3]),
    "indexer_scores": ("cot.scores", [1, 3, 4]), "dsa_indexer": ("cot.scores", [1, 4, 4]),
    "mla_layer": ("cot.output", [1, 4, 4]), "csa_layer": ("cot.output", [1, 4, 4]), "csa_indexer": ("cot.scores", [1, 4, 2]),
    "csa_compress": ("cot.compressed", [1, 2, 4]), "csa_compress plain": ("cot.compressed", [1, 2, 2]),
}
# Operations that have no gradient.
FORWARD = ("topk", "stage_routing", "mla_step", "csa_step")


def with_cotangent(name, case):
    cotangent = COTANGENTS.get(name, COTANGENTS.get(name.split()[0]))
    if cotangent:
        case.put(*cotangent)
    return case


NO_FIRST_ROW = put("in.row_mask", "BOOL", [1, 3], [False, True, True])


def hide_key(shape, key):
    """valid that hides one key from every row."""
    def change(case):
        batch, rows, keys = shape
        case.put("in.valid", "BOOL", shape, [k != key for _ in range(batch * rows) for k in range(keys)])
    return change


ROWS = [("hidden", *row) for row in [
    ("indices of an unreal row beyond the keys", "mla_attention indices", "", NO_FIRST_ROW,
     all_of(poke("in.indices", 0, 99), poke("in.indices", 1, -7))),
    ("indices of an unreal row named twice", "mla_attention indices", "", NO_FIRST_ROW,
     all_of(poke("in.indices", 0, 1), poke("in.indices", 1, 1))),
    ("indices of an unreal row, strictly", "mla_attention indices", "", NO_FIRST_ROW,
     all_of(option("strict_selection", True), poke("in.indices", 0, 4))),
    ("a query of an unreal row", "mla_attention", "", NO_FIRST_ROW, poke("in.query", 0, NAN)),
    ("a hidden key", "mla_attention", "", hide_key([1, 3, 5], 0), poke("in.key", 0, NAN), poke("in.value", 0, INF)),
    ("a key outside every set", "mla_attention indices", "",
     put("in.indices", "I32", [1, 3, 2], [1, 2, 3, -1, 1, 4]), poke("in.key", 0, NAN), poke("in.value", 0, NAN)),
    ("a float mask of an unreal row", "mla_attention", "", NO_FIRST_ROW,
     put("in.mask", "F32", [1, 3, 5], [NAN] * 5 + [0.0] * 10)),
    ("a hidden token of the latent form", "mla_attention latent", "", hide_key([1, 3, 5], 0),
     poke("in.kv_latent", 0, NAN), poke("in.k_pe", 0, NAN)),
    ("a NaN sink without a real row", "mla_attention", "", put("in.row_mask", "BOOL", [1, 3], [False] * 3),
     poke("in.sink", 0, NAN)),
    ("a key under padding", "mla_attention", "", put("in.segment_ids", "I32", [1, 5], [9, 0, 0, 0, 0]),
     option("mask.padding_segment", 9), poke("in.key", 0, NAN)),
    ("a key of another document", "mla_attention", "", put("in.segment_ids", "I32", [1, 5], [1, 0, 0, 0, 0]),
     poke("in.key", 0, NAN), poke("in.value", 0, NAN)),
    ("an infinite sink", "mla_attention", "", poke("in.sink", 0, -INF), poke("in.sink", 1, INF)),
    ("a part with an empty lse", "merge_attention", "", poke("in.lse", 0, -INF), poke("in.outputs", 0, NAN)),
    ("infinite and NaN scores", "topk", "", poke("in.scores", 0, INF), poke("in.scores", 1, NAN)),
    ("a hidden NaN under nan error", "topk", "", option("nan", "error"), poke("in.scores", 4, NAN)),
    ("scores of an unreal row under nan error", "topk", "", NO_FIRST_ROW, option("nan", "error"),
     poke("in.scores", 0, NAN)),
    ("a score behind the row", "dsa_indexer_loss", "", poke("in.scores", 4, NAN)),
    ("a hidden key of the teacher", "dsa_indexer_loss", "", hide_key([1, 3, 5], 0), poke("in.key", 0, NAN),
     poke("in.scores", 0, NAN)),
    ("indices of an unreal row", "dsa_indexer_loss indices", "", NO_FIRST_ROW, poke("in.indices", 0, 99)),
    ("slots of an unreal row", "dsa_indexer_loss slots", "", NO_FIRST_ROW, poke("in.indices", 0, -99),
     poke("in.scores", 0, NAN)),
    ("a score in an empty slot", "dsa_indexer_loss slots", "", poke("in.scores", 3, NAN)),
    ("a given head sum outside the set", "dsa_indexer_loss", "",
     put("given.head_sum", "F32", [1, 3, 5], [1.0, 1.0, 1.0, NAN, -1.0] + [1.0] * 10)),
    ("window keys that the teacher does not use", "csa_indexer_loss joint", "", option("teacher", "own"),
     poke("in.kv", 0, NAN), poke("in.sink", 0, NAN)),
    ("a block that nobody sees", "csa_indexer_loss", "", hide_key([1, 4, 2], 0), poke("in.compressed", 0, NAN)),
    ("a query of an unreal row over blocks", "csa_indexer_loss", "",
     put("in.row_mask", "BOOL", [1, 4], [True, True, True, False]), poke("in.query", 24, NAN)),
    ("a token before every window", "csa_attention", "",
     put("in.row_mask", "BOOL", [1, 4], [False, False, False, True]), poke("in.kv", 0, NAN), poke("in.kv", 7, INF)),
    ("window keys without a window", "csa_attention", "", option("window", 0), fill("in.kv", NAN)),
    ("a block that nobody attends to", "csa_attention", "", hide_key([1, 4, 2], 0), poke("in.compressed", 0, NAN)),
    ("a block outside every set", "csa_attention indices", "",
     put("in.indices", "I32", [1, 4, 2], [-1, -1, -1, 1, -1, -1, 1, -1]), poke("in.compressed", 0, NAN)),
    ("block indices of an unreal row", "csa_attention indices", "",
     put("in.row_mask", "BOOL", [1, 4], [False, True, True, True]), poke("in.indices", 0, 99), poke("in.indices", 1, 99),
     poke("in.query", 0, NAN), poke("in.kv", 0, 1.0)),
    ("a token of padding in a window", "csa_attention", "", put("in.segment_ids", "I32", [1, 4], [0, 9, 0, 0]),
     option("mask.padding_segment", 9), poke("in.kv", 4, NAN), poke("in.compressed", 0, NAN)),
    ("infinite sinks beside a window", "csa_attention", "", poke("in.sink", 0, -INF), poke("in.sink", 1, INF)),
    ("a token of no block", "csa_compress plain", "", poke("in.kv", 16, NAN), poke("in.gate", 19, INF)),
    ("a prior that is not there", "csa_compress", "", put("in.prior_present", "BOOL", [1], [False]),
     poke("in.prior_kv", 0, NAN), poke("in.prior_gate", 5, INF)),
    ("a flag without a prior", "csa_compress plain", "", put("in.prior_present", "BOOL", [1], [False])),
    ("a rest on the document grid", "csa_compress plain", "", option("grid", "document"),
     put("in.segment_ids", "I32", [1, 5], [0, 0, 0, 2, 2]), poke("in.kv", 8, NAN)),
    ("padding on the document grid", "csa_compress plain", "",
     all_of(option("grid", "document"), option("mask.padding_segment", 9)),
     put("in.segment_ids", "I32", [1, 5], [9, 0, 0, 2, 2]), poke("in.kv", 0, NAN)),
    ("a token of an unreal row and of blocks that nobody sees", "csa_indexer", "",
     put("in.row_mask", "BOOL", [1, 4], [True, True, False, False]), poke("in.x", 8, NAN), poke("in.x", 12, INF)),
    ("a latent of an unreal row", "csa_indexer", "", put("in.row_mask", "BOOL", [1, 4], [False, True, True, True]),
     poke("in.q_latent", 0, NAN), all_of(put("in.valid", "BOOL", [1, 4, 2], [False] * 8))),
    ("a given index of an unreal row", "dsa_indexer", "", put("in.row_mask", "BOOL", [1, 4], [False, True, True, True]),
     put("given.indices", "I32", [1, 4, 2], [99, -9, 0, 1, 0, 1, 3, 0])),
    ("padding tokens of a layer", "mla_layer", "", put("in.segment_ids", "I32", [1, 4], [0, 0, 0, 9]),
     option("mask.padding_segment", 9), poke("in.x", 12, NAN)),
    ("a row that is not real in a layer", "mla_layer plain", "",
     put("in.row_mask", "BOOL", [1, 4], [True, True, True, False]), poke("in.x", 12, NAN)),
    ("a state beyond its length", "mla_step", "", poke("in.state.kv_latent", 6, NAN), poke("in.state.k_pe", 7, INF),
     poke("in.state.indexer_index_k", 15, NAN), poke("in.state.positions", 3, -1)),
    ("tokens of unreal rows and of no block that is seen", "csa_layer", "",
     put("in.row_mask", "BOOL", [1, 4], [True, True, False, False]), poke("in.x", 8, NAN), poke("in.x", 15, INF)),
    ("tokens before every window", "csa_layer window", "",
     put("in.row_mask", "BOOL", [1, 4], [False, False, False, True]), poke("in.x", 0, NAN), poke("in.x", 7, NAN)),
    ("tokens of a hidden block with one lane", "csa_layer hca", "", hide_key([1, 4, 2], 0),
     put("in.row_mask", "BOOL", [1, 4], [False, False, False, True]), poke("in.x", 3, NAN), poke("in.x", 4, NAN)),
    ("padding tokens of a layer with blocks", "csa_layer", "", put("in.segment_ids", "I32", [1, 4], [0, 0, 0, 9]),
     option("mask.padding_segment", 9), poke("in.x", 12, NAN)),
    ("padding tokens on the document grid", "csa_layer plain", "",
     all_of(option("grid", "document"), option("mask.padding_segment", 9)),
     put("in.segment_ids", "I32", [1, 4], [9, 9, 0, 0]), poke("in.x", 0, NAN), poke("in.x", 7, NAN)),
    ("given stages where nobody reads them", "csa_layer", "",
     put("in.row_mask", "BOOL", [1, 4], [True, True, False, False]), put("given.kv", [1, 4, 4]),
     put("given.compressed", [1, 2, 4]), put("given.indexer_index_q", [1, 4, 2, 4]), poke("given.kv", 8, NAN),
     poke("given.compressed", 4, NAN), poke("given.indexer_index_q", 31, NAN)),
    ("infinite sinks of a layer", "csa_layer", "", poke("in.sink", 0, -INF), poke("in.sink", 1, INF)),
    ("a CSA state beyond its length", "csa_step", "",
     *[poke("in.state." + name, at, NAN) for name, at in
       (("kv", 12), ("compressed", 4), ("partial_kv", 8), ("partial_gate", 15), ("indexer_index_k", 4),
        ("indexer_partial_kv", 8), ("indexer_partial_gate", 15))],
     poke("in.state.positions", 3, -1), poke("in.state.segment_ids", 4, 77)),
    ("a prior of a state that is not there", "csa_step", "", poke("in.state.prior_present", 0, False),
     *[fill("in.state." + name, NAN) for name in ("prior_kv", "prior_gate", "indexer_prior_kv", "indexer_prior_gate")]),
    ("a state before every window", "csa_step window", "", poke("in.state.kv", 0, NAN), poke("in.state.kv", 7, INF)),
    ("the state of another document", "csa_step", "",
     put("in.state.segment_ids", "I32", [1, 6], [7, 7, 7, 0, 0, 0]),
     *[fill("in.state." + of + name, NAN) for of, names in
       (("", ("kv", "compressed", "partial_kv", "partial_gate", "prior_kv", "prior_gate")),
        ("indexer_", ("index_k", "partial_kv", "partial_gate", "prior_kv", "prior_gate"))) for name in names]),
    ("a mask input without use", "rms_norm", "", put("in.valid", "BOOL", [7], [True] * 7)),
    ("a tensor of a peer", "rms_norm", "", put("peer.anything", "F32", [2], [NAN, INF])),
    ("results of an earlier run", "rms_norm", "", put("out.y", "F64", [9])),
    ("unknown metadata", "rms_norm", "", metadata("peer", {"any": ["thing"]})),
]]
