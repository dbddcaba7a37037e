"""The table of faults of mask inputs and mask options, of operations over tokens and over blocks."""
from bad_input_cases import NAN, all_of, arguments, dtype, mentions, metadata, option, poke, put

# Operations whose base case has 3 rows at tokens 2, 3, 4 of 5.
TOKENS = ("mla_attention", "topk", "dsa_indexer_loss")
# Operations whose base case has 4 rows, 4 tokens and 2 blocks of 2.
BLOCKS = ("topk blocks", "csa_indexer_loss", "csa_attention")


def token_rows(base):
    ints = lambda name, shape, values: put("in." + name, "I32", shape, values)  # noqa: E731
    return [(fault, base, where, change) for fault, where, change in [
        ("a row at a token a second time", "in.row_index[2]", ints("row_index", [3], [4, 1, 4])),
        ("a row beyond the tokens", "in.row_index[1]", ints("row_index", [3], [0, 5, 1])),
        ("a row at token -1", "in.row_index[0]", ints("row_index", [3], [-1, 0, 1])),
        ("row_index of other rows", "in.row_index", ints("row_index", [2], [0, 1])),
        ("row_index in 64 bits", "in.row_index", put("in.row_index", "I64", [3], [0, 1, 2])),
        ("query_offset beside row_index", "option mask.query_offset",
         all_of(ints("row_index", [3], [0, 1, 2]), option("mask.query_offset", 0))),
        ("query_offset beyond the tokens", "option mask.query_offset", option("mask.query_offset", 3)),
        ("query_offset < 0", "option mask.query_offset", option("mask.query_offset", -1)),
        ("the largest query_offset", "option mask.query_offset", option("mask.query_offset", (1 << 63) - 1)),
        ("documents without segment_ids", "option mask.documents", option("mask.documents", True)),
        ("padding_segment without segment_ids", "option mask.padding_segment", option("mask.padding_segment", 0)),
        ("padding_segment that is a fraction", "option mask.padding_segment", option("mask.padding_segment", 0.5)),
        ("a mask that is a list", "option mask", option("mask", [])),
        ("an unknown option of the mask", "option mask", option("mask.window", 4)),
        ("causal that is a number", "option mask.causal", option("mask.causal", 1)),
        ("segment_ids of other tokens", "in.segment_ids", ints("segment_ids", [1, 4], [0] * 4)),
        ("segment_ids of real numbers", "in.segment_ids", put("in.segment_ids", [1, 5])),
        ("positions of another batch", "in.positions", ints("positions", [2, 5], [0] * 10)),
        ("cu_seqlens beside segment_ids", "in.cu_seqlens",
         all_of(ints("cu_seqlens", [2], [0, 5]), ints("segment_ids", [1, 5], [0] * 5))),
        ("cu_seqlens beside positions", "in.cu_seqlens",
         all_of(ints("cu_seqlens", [2], [0, 5]), ints("positions", [1, 5], [0, 1, 2, 3, 4]))),
        ("cu_seqlens that begin at 1", "in.cu_seqlens[0]", ints("cu_seqlens", [2], [1, 5])),
        ("cu_seqlens that decrease", "in.cu_seqlens[2]", ints("cu_seqlens", [4], [0, 3, 2, 5])),
        ("cu_seqlens that end early", mentions("in.cu_seqlens"), ints("cu_seqlens", [2], [0, 4])),
        ("cu_seqlens that end late", mentions("in.cu_seqlens"), ints("cu_seqlens", [2], [0, 6])),
        ("cu_seqlens beyond the tokens on the way", "in.cu_seqlens[1]", ints("cu_seqlens", [3], [0, 7, 5])),
        ("cu_seqlens below 0", "in.cu_seqlens", ints("cu_seqlens", [3], [0, -1, 5])),
        ("cu_seqlens without an entry", "in.cu_seqlens", ints("cu_seqlens", [0], [])),
        ("cu_seqlens of rank 2", "in.cu_seqlens", ints("cu_seqlens", [1, 2], [0, 5])),
        ("a float mask of -1", "in.mask[0, 2, 0]", all_of(put("in.mask", "F32", [1, 3, 5], [0.0] * 15), poke("in.mask", 10, -1.0))),
        ("a float mask of -9899", "in.mask[0, 0, 0]", all_of(put("in.mask", "F32", [1, 3, 5], [0.0] * 15), poke("in.mask", 0, -9899.0))),
        ("a float mask of 1", "in.mask[0, 0, 1]", all_of(put("in.mask", "F32", [1, 3, 5], [0.0] * 15), poke("in.mask", 1, 1.0))),
        ("a float mask of NaN", "in.mask[0, 0, 1]", all_of(put("in.mask", "F32", [1, 3, 5], [0.0] * 15), poke("in.mask", 1, NAN))),
        ("a float mask of other rows", "in.mask", put("in.mask", "F32", [1, 4, 5], [0.0] * 20)),
        ("a float mask of rank 4", "in.mask", put("in.mask", "F32", [1, 1, 3, 5], [0.0] * 15)),
        ("a float mask of BOOL", "in.mask", put("in.mask", "BOOL", [1, 3, 5])),
        ("valid of rank 2", "in.valid", put("in.valid", "BOOL", [3, 5])),
        ("valid of other keys", "in.valid", put("in.valid", "BOOL", [1, 3, 4])),
        ("valid as U8", "in.valid", put("in.valid", "U8", [1, 3, 5], [1] * 15)),
        ("valid with a byte of 2", "in.valid", put("in.valid", "BOOL", [1, 3, 5], b"\1" * 7 + b"\2" + b"\1" * 7)),
        ("row_mask of other rows", "in.row_mask", put("in.row_mask", "BOOL", [1, 4])),
        ("row_mask as numbers", "in.row_mask", put("in.row_mask", [1, 3])),
        ("row_mask with a byte of 255", "in.row_mask", put("in.row_mask", "BOOL", [1, 3], b"\1\1\xff")),
    ]]


def two(case):
    """The case with every tensor twice along the batch."""
    for entry in case.tensors.values():
        if len(entry[1]) > 1:
            entry[1] = [2] + entry[1][1:]
            entry[2] = list(entry[2]) * 2


def block_rows(base):
    ints = lambda name, shape, values: put("in." + name, "I32", shape, values)  # noqa: E731
    return [(fault, base, where, *changes) for fault, where, *changes in [
        ("positions that restart without documents", "position", ints("positions", [1, 4], [0, 1, 0, 1])),
        ("positions that stand still", "position", ints("positions", [1, 4], [0, 0, 1, 2])),
        ("cu_seqlens with documents off", "position",
         all_of(ints("cu_seqlens", [3], [0, 2, 4]), option("mask.documents", False))),
        ("grid document with a batch of 2", "option grid", all_of(two, option("grid", "document"))),
        ("cu_seqlens with a batch of 2", "in.cu_seqlens", all_of(two, ints("cu_seqlens", [3], [0, 2, 4]))),
        ("a document that returns on the document grid", "in.segment_ids",
         all_of(option("grid", "document"), ints("segment_ids", [1, 4], [0, 1, 1, 0]))),
        ("fewer blocks on the document grid", "in.",
         all_of(option("grid", "document"), ints("segment_ids", [1, 4], [0, 1, 1, 2]))),
        ("an unknown grid", "option grid", option("grid", "packed")),
        ("S beside segment_ids that disagree", "in.segment_ids", ints("segment_ids", [1, 6], [0] * 6)),
        ("m beyond 32 bits", "in.", option("m", 1 << 62)),
        ("valid over tokens", "in.valid", put("in.valid", "BOOL", [1, 4, 4])),
        ("a float mask over tokens", "in.mask", put("in.mask", "F32", [1, 4, 4], [0.0] * 16)),
        ("a row beyond the tokens", "in.row_index[3]", ints("row_index", [4], [0, 1, 2, 4])),
    ]]


def layer_rows(base):
    """Layers and indexers take T from row_index and S from x."""
    ints = lambda name, shape, values: put("in." + name, "I32", shape, values)  # noqa: E731
    keys = 2 if base.startswith("csa") else 4
    return [(fault, base, where, change) for fault, where, change in [
        ("a row at a token a second time", "in.row_index[1]", ints("row_index", [2], [3, 3])),
        ("a row beyond the tokens", "in.row_index[0]", ints("row_index", [2], [4, 0])),
        ("query_offset beside row_index", "option mask.query_offset",
         all_of(ints("row_index", [2], [0, 1]), option("mask.query_offset", 0))),
        ("query_offset without room", "option mask.query_offset", option("mask.query_offset", 1)),
        ("positions in 64 bits", "in.positions", put("in.positions", "I64", [1, 4], [0, 1, 2, 3])),
        ("segment_ids of other tokens", "in.segment_ids", ints("segment_ids", [1, 5], [0] * 5)),
        ("documents without segment_ids", "option mask.documents", option("mask.documents", True)),
        ("padding_segment without segment_ids", "option mask.padding_segment", option("mask.padding_segment", 3)),
        ("cu_seqlens that end early", mentions("in.cu_seqlens"), ints("cu_seqlens", [2], [0, 3])),
        ("cu_seqlens with a batch of 2", "in.cu_seqlens",
         all_of(put("in.x", [2, 4, 4]), put("in.q_latent", [2, 4, 3]) if base == "dsa_indexer" else option("eps", 1e-6),
                ints("cu_seqlens", [2], [0, 4]))),
        ("a float mask of 0.5", "in.mask[0, 0, 0]", put("in.mask", "F32", [1, 4, keys], [0.5] * 4 * keys)),
        ("valid with a byte of 2", "in.valid", put("in.valid", "BOOL", [1, 4, keys], b"\2" * 4 * keys)),
        ("row_mask of other rows", "in.row_mask", put("in.row_mask", "BOOL", [1, 3])),
        ("valid of other rows", "in.valid", put("in.valid", "BOOL", [1, 3, keys])),
        ("a float mask of other rows", "in.mask", put("in.mask", "F32", [1, 3, keys], [0.0] * 3 * keys)),
    ]]


OTHER = [
    ("keys of no row or token", "mla_attention", "in.key", dtype("in.key", "I32")),
    ("a schedule of negative chunks", "mla_attention", "schedule.head_chunk", metadata("schedule", {"head_chunk": -1})),
    ("a schedule of negative blocks", "mla_attention", "schedule.key_block", metadata("schedule", {"key_block": -64})),
    ("a schedule of text", "mla_attention", "schedule.key_block", metadata("schedule", {"key_block": "64"})),
    ("a schedule with a fraction", "mla_attention", "schedule.head_chunk", metadata("schedule", {"head_chunk": 1.5})),
    ("a barrier that is a number", "dsa_indexer_loss", "schedule.barrier", metadata("schedule", {"barrier": 1})),
]

ROWS_ARGUMENT = [
    ("--rows that is a word", "topk", "--rows", arguments("--rows", "last")),
    ("--rows with an empty entry", "topk", "--rows", arguments("--rows", "0,,2")),
    ("--rows beyond 64 bits", "topk", "--rows", arguments("--rows", "18446744073709551616")),
    ("--rows of another number than the tensors have", "topk", mentions("row_index"), arguments("--rows", "0,1")),
    ("--rows at a token a second time", "topk", mentions("row_index"), arguments("--rows", "3,1,3")),
    ("--rows beyond the tokens", "topk", mentions("row_index"), arguments("--rows", "0,1,5")),
    ("--rows below 0", "topk", "row", arguments("--rows", "0,1,-2")),
    ("--rows beside query_offset", "topk", "option mask.query_offset",
     all_of(option("mask.query_offset", 0), arguments("--rows", "0,1,2"))),
    ("--rows beside row_index", "topk", "row",
     all_of(put("in.row_index", "I32", [3], [0, 1, 2]), arguments("--rows", "0,1,2"))),
]

ROWS = [("masks", *row) for base in TOKENS for row in token_rows(base)] \
    + [("masks", *row) for base in BLOCKS for row in block_rows(base)] \
    + [("masks", *row) for base in ("dsa_indexer", "mla_layer", "csa_layer") for row in layer_rows(base)] \
    + [("operations", *row) for row in OTHER] \
    + [("command line", *row) for row in ROWS_ARGUMENT]
