"""Rows that follow from the registry: what every operation refuses of every tensor, option and schedule key it has.

They are made from `ops OP --json`, so an operation that is added comes with its rows.
"""
from bad_input_cases import (BASES, INF, NAN, arguments, base, drop, dtype, larger, mentions, metadata, option,
                             poke, put, rank_up)

SCHEDULE = {"barrier": False, "head_chunk": 1, "key_block": 1, "sliced": True, "absorbed": True, "prefill": 1, "step": 1}
WRONG = {"bool": 1, "integer": 1.5, "number": "1", "choice": "nonsense", "mode": 3, "object": 3}
MASK_INPUTS = ("row_index", "segment_ids", "positions", "cu_seqlens", "valid", "mask", "row_mask")
# Tensors whose infinities are values: sinks, and scores that are only ranked.
INFINITE = {("mla_attention", "in.sink"), ("merge_attention", "in.sink"), ("csa_indexer_loss", "in.sink"),
            ("csa_attention", "in.sink"), ("csa_layer", "in.sink"), ("csa_step", "in.sink"),
            ("topk", "in.scores")}
# NaN too: ranked last unless option nan says otherwise.
NOT_A_NUMBER = {("topk", "in.scores")}


# What may have another size, or more leading axes, without a fault; k_pe is blamed on the query, in a row of its own.
FREE = {("rope", "in.x"), ("mla_attention", "in.value"), ("merge_attention", "in.outputs"), ("topk", "in.scores"),
        ("mla_attention", "in.k_pe")}
# Tensors of the base cases that may as well be absent.
OPTIONAL = {("linear", "in.bias"), ("rms_norm", "in.weight"), ("layer_norm", "in.weight"), ("layer_norm", "in.bias"),
            ("rope", "in.positions"), ("mla_attention", "in.sink"), ("mla_attention", "in.indices"),
            ("mla_attention", "in.selected"), ("merge_attention", "in.sink"), ("csa_indexer_loss", "in.sink"),
            ("csa_attention", "in.sink"), ("csa_attention", "in.indices"), ("csa_attention", "in.selected"),
            ("csa_compress", "in.position_bias"), ("csa_compress", "in.norm_weight"), ("csa_compress", "in.prior_present"),
            ("csa_layer", "in.sink"), ("csa_step", "in.sink")}
CSA_STEPS = ("csa_step", "csa_step plain", "csa_step hca", "csa_step window")
# Elements that are read, of tensors whose last one is not: a state beyond its length.
READ = {"in.state.kv_latent": 5, "in.state.k_pe": 3, "in.state.indexer_index_k": 7}
# The same, where another case's last element is not read: a token of no block.
READ_OF = {("csa_compress plain", "in.kv"): 15, ("csa_compress plain", "in.gate"): 15,
           ("csa_step", "in.state.indexer_index_k"): 3,
           **{(base, "in.state.kv"): 11 for base in CSA_STEPS},
           **{(base, "in.state.compressed"): 3 for base in CSA_STEPS},
           **{(base, "in.state." + of + "partial_" + part): 3 for base in CSA_STEPS
              for of in ("", "indexer_") for part in ("kv", "gate")}}
ANY_RANK = {("rms_norm", "in.x"), ("layer_norm", "in.x")}


def tensor_rows(op, of):
    case = base(of)
    for name, (kind, _, _) in case.tensors.items():
        real, place = kind == "F32", READ_OF.get((of, name), READ.get(name, -1))
        if (op, name) not in ANY_RANK:
            yield "%s of a rank too many" % name, of, name, rank_up(name)
        if (op, name) not in FREE:
            yield "%s with an axis too long" % name, of, mentions(name), larger(name)
        for other in ("I32", "BOOL") if real else ("F32", "U8"):
            yield "%s as %s" % (name, other), of, name, dtype(name, other)
        if real and (op, name) not in NOT_A_NUMBER:
            yield "a NaN in %s" % name, of, name, poke(name, place, NAN)
        if real and (op, name) not in INFINITE:
            yield "an infinity in %s" % name, of, name, poke(name, place, INF)
            yield "a negative infinity in %s" % name, of, name, poke(name, place, -INF)
        if (op, name) not in OPTIONAL:
            yield "no %s" % name, of, mentions(name.removeprefix("in.")), drop(name)


def unread(op, of):
    """-inf as the lse of a part says that the part is empty."""
    return {"a negative infinity in in.lse"} if op == "merge_attention" else set()


def option_rows(page, of):
    def walk(options, path):
        for each in options:
            name = path + each["name"]
            kind = each["type"] if each["type"] in WRONG else None
            yield "%s of another type" % name, of, "option " + name, option(name, WRONG.get(kind, "nonsense"))
            if each.get("options") and path.count(".") < 1:
                if each.get("default") is not None:
                    yield from walk(each["options"], name + ".")
    yield from walk(page["options"], "")
    yield "an unknown option", of, "option \"nonsense\"", option("nonsense", 1)
    if page["presets"]:
        yield "preset nonsense", of, "option preset", option("preset", "nonsense")
    else:
        yield "a preset of another operation", of, "option \"preset\"", option("preset", "maxtext_v4")


def other_rows(page, of):
    honoured = page["schedule"] or []
    for key, value in SCHEDULE.items():
        if key not in honoured:
            yield "schedule key %s, not honoured" % key, of, "schedule." + key, metadata("schedule", {key: value})
        elif not isinstance(value, bool):
            yield "schedule key %s < 0" % key, of, "schedule." + key, metadata("schedule", {key: -1})
            yield "schedule key %s beyond 63 bits" % key, of, "schedule." + key, metadata("schedule", {key: 1 << 63})
        else:
            yield "schedule key %s of another type" % key, of, "schedule." + key, metadata("schedule", {key: "yes"})
    yield "an unknown schedule key", of, "schedule.", metadata("schedule", {"nonsense": 1})
    yield "an unknown output", of, "outputs", metadata("outputs", ["nonsense"])
    yield "an unknown input", of, "in.nonsense", put("in.nonsense", [1])
    yield "an unknown given tensor", of, "given.nonsense", put("given.nonsense", [1])
    if page["cotangents"]:
        yield "an unknown cotangent", of, "cot.nonsense", put("cot.nonsense", [1]), arguments("--grad")
        yield "an unknown cotangent, no gradient asked for", of, "cot.nonsense", put("cot.nonsense", [1])


def registry_rows(pages):
    rows = []
    for of in BASES:
        op = base(of).op
        if op not in pages:
            continue
        made = list(tensor_rows(op, of))
        if of == op:
            made += list(option_rows(pages[op], of)) + list(other_rows(pages[op], of))
        rows += [("registry", *row) for row in made if row[0] not in unread(op, of)]
    return rows
