"""Random cases of csa_layer and csa_step."""
import losses
import safetensors_io as st
from random_attention_cases import put_sink
from random_csa_basics import block_geometry, indexer_places, put_csa_indexer, some_rope, window_size
from random_inputs import Geometry, floats, poison, put, rows_of, sizes
from random_mla_basics import cot, evaluated, give, nonzero
from safetensors_io import Tensor

OPEN_QUESTIONS = False  # also make cases on which the specification can be read in two ways


def put_weights(rng, tensors, options, kind, m, E, taken):
    """The weights of a layer and its own options; sizes by name."""
    n = sizes(rng, set(taken) | {E}, Rq=(1, 5), D=(2, 6), r=(1, 4))
    n["H"] = H = rng.choice((1, 2, 2, 3, 4))
    G = rng.choice([d for d in range(1, H + 1) if H % d == 0])
    Rq, D, r = n["Rq"], n["D"], n["r"]
    shapes = {"wq_a": (E, Rq), "q_norm": (Rq,), "wq_b": (Rq, H, D), "wkv": (E, D), "kv_norm": (D,),
              "o_a": (G, H * D // G, r), "o_b": (G * r, E)}
    if kind != "window":
        lanes = 2 * D if kind == "csa" else D
        shapes.update(kv_proj=(E, lanes), gate_proj=(E, lanes), position_bias=(m, lanes), compress_norm=(D,))
    width = rng.choice((0.5, 1.0, 1.5))
    for name, shape in shapes.items():
        # zeros in the query's path make scores that are 0 but for rounding
        plain = name in ("wq_a", "q_norm", "wq_b")
        put(rng, tensors, "in." + name, nonzero(rng, shape, width) if plain else floats(rng, shape, width))
    if rng.random() < 0.7:
        put_sink(rng, tensors, H)
    options["rope"] = some_rope(rng, D)
    if rng.random() < 0.6:
        options["compress_rope"] = some_rope(rng, D)
    if rng.random() < 0.5:
        options["eps"] = rng.choice((1e-6, 1e-5, 0.25))
    if kind != "csa" or rng.random() < 0.6:
        options["kind"] = kind
    return n


def layer_loss(rng, options, S, N):
    loss = {}
    if rng.random() < 0.8:
        loss["preset"] = rng.choice(list(losses.PRESETS))
    for name, values, share in (
            ("teacher", ("own", "joint", "joint_window"), 0.25), ("gradient", ("of_value", "p_minus_t"), 0.3),
            ("reduction", ("sum", "mean_all", "mean_valid", "mean_real"), 0.3),
            ("coefficient", (0.25, 0.7, 1, 2.5, 1e-3, 0), 0.4), ("softmax_scale", (0.5, 2.0), 0.2),
            ("restrict", ("before_softmax", "after_softmax"), 0.3), ("relu", (True, False, False), 0.2)):
        if rng.random() < share:
            loss[name] = rng.choice(values)
    if rng.random() < 0.6:
        loss["sparse"] = rng.random() < 0.7
    if loss.get("sparse") and options["indexer"]["k"] >= N:
        loss["allow_full_selection"] = True
    if rng.random() < 0.2:
        loss["m"] = options["m"]
    scale = losses.PRESETS[loss.get("preset", "maxtext_v4")].get("score_scale", "heads_and_dim")  # both say the same
    options["indexer"].pop("score_scale", None)
    if scale != "heads_and_dim" or rng.random() < 0.3:
        loss["score_scale"] = options["indexer"]["score_scale"] = scale
    return loss


def window_geometry(rng, server):
    while True:
        g = Geometry(rng, False)
        if g.S > 9 or g.B > 2 or not g.B or not g.T or "query_offset" in g.mask or \
                (g.way not in ("full", "row_index") and g.T != g.S):
            continue
        g.inputs.pop("in.valid", None)
        g.inputs.pop("in.mask", None)
        if server and (not g.causal or "in.row_mask" in g.inputs or "in.row_index" in g.inputs):
            continue
        return g


def put_layer_indexer(rng, tensors, options, E, n, taken):
    options["indexer"], A, e = put_csa_indexer(rng, tensors, "indexer_", E, n["Rq"], options["m"], taken)
    if rng.random() < 0.6 and options.get("compress_rope", options["rope"])["dim"] <= e:
        del options["indexer"]["rope"]
    if rng.random() < 0.3:
        options["indexer"]["m"] = options["m"]
    return A, e


def make_csa_layer(rng):
    server = rng.random() < 0.25
    kind = rng.choice(("csa",) * 6 + ("hca", "hca", "window"))
    g = window_geometry(rng, server) if kind == "window" else block_geometry(rng, 13, server)
    tensors, options = dict(g.inputs), dict(g.options)
    B, T, S, N = g.B, g.T, g.S, g.K
    E = sizes(rng, {B, T, S, N}, E=(2, 6))["E"]
    n = put_weights(rng, tensors, options, kind, g.m, E, {B, T, S, N})
    options["window"] = W = window_size(rng, S)
    if kind == "window" and rng.random() < 0.5:
        options["m"] = rng.choice((2, 3))
    tensors["in.x"] = nonzero(rng, (B, S, E), rng.choice((1.0, 2.0)))
    boundary = "positions"
    if rng.random() < 0.5 and kind != "window":
        options["boundary"] = boundary = rng.choice(("positions", "segments")) if \
            "in.segment_ids" in tensors or "in.cu_seqlens" in tensors else "positions"
    has_indexer = kind == "csa" and rng.random() < 0.85
    options["indexer"] = options["loss"] = None
    if has_indexer:
        A, _ = put_layer_indexer(rng, tensors, options, E, n, {B, T, S, N, E})
        if not server and rng.random() < 0.8:
            options["loss"] = layer_loss(rng, options, S, N)
    if rng.random() < 0.3 and options["loss"] is None:
        del options["loss"]
    if rng.random() < 0.3 and kind != "csa":
        del options["indexer"]
    if not server:
        cot(rng, tensors, "output", (B, T, E))
        if rng.random() < 0.7:
            tensors["cot.loss"] = Tensor("F64", (), [st.round_to("F64", rng.gauss(0, 2))])
    if rng.random() < 0.5:
        case = losses.Case({"op": "csa_layer", "options": options}, tensors)
        read, real_rows = layer_places(g, case, kind, boundary, W)
        poison(rng, tensors, "in.x", rows_of(tensors["in.x"].shape, 2, read))
        if not server:
            poison(rng, tensors, "cot.output", rows_of((B, T, E), 2, real_rows))
    if not server and rng.random() < 0.3:
        give_stages(rng, tensors, options, g, kind)
    plan = {}
    if rng.random() < 0.4:
        plan["barrier"] = rng.random() < 0.6
    if rng.random() < 0.4:
        plan["head_chunk"] = rng.randint(0, n["H"] + 1)
    if rng.random() < 0.4:
        plan["key_block"] = rng.randint(0, S + 1)
    if server:
        plan["prefill"] = rng.randint(0, S)
        plan["step"] = rng.randint(0 if plan["prefill"] else 1, 4)
    return options, plan, tensors


def layer_places(g, case, kind, boundary, W):
    """(tokens whose x is read, real rows), flat."""
    rows = losses.Rows(case, g.B, g.T, kind != "window", [g.S])
    read, real_rows = set(), set()
    if kind != "window":
        read = indexer_places(g, case, kind == "csa", boundary)[1]
    for b in range(g.B):
        for t in range(g.T):
            if rows.is_real(b, t):
                real_rows.add(b * g.T + t)
                read |= {b * g.S + s for s in rows.window(b, t, W) + [rows.token[t]]}
    return read, real_rows


def give_stages(rng, tensors, options, g, kind):
    forward = evaluated("csa_layer", options, tensors)
    names = ["q_latent", "query", "kv", "attention_output", "attention_lse"]
    if kind != "window":
        names += ["compressed"] * 2
    indexer, loss = options.get("indexer"), options.get("loss")
    if indexer is not None:
        names += ["indexer_index_q", "indexer_index_k", "indexer_index_w", "indexer_indices", "indexer_selected"] * 2
        if loss is None:
            names.append("indexer_scores")
    if "out.log_mass" in forward and g.B * g.T:
        names += ["log_mass", "head_sum"]
        sums = forward["out.head_sum"][1]
        if loss.get("sparse") is not True and any(x != 0 for x in sums) and no_row_skipped(loss, options, tensors, g):
            names += ["target"]
    chosen = set(rng.sample(names, rng.randint(1, 2)))
    if "attention_lse" in chosen:
        chosen.add("attention_output")
    if "indexer_selected" in chosen:
        chosen.discard("indexer_indices")
    if "target" in chosen:
        chosen = {"target"}
    if "log_mass" in chosen:
        chosen.discard("head_sum")
    for name in sorted(chosen):
        if "out." + name not in forward:
            continue
        if name == "indexer_selected":
            shape, values = forward["out.indexer_selected"]
            tensors["given.indexer_selected"] = Tensor("BOOL", shape, [x ^ (rng.random() < 0.2) for x in values])
        elif name == "indexer_indices":
            k = indexer["k"]
            rows = [rng.sample(range(g.K), min(k, g.K)) for _ in range(g.B * g.T)]
            flat = [x if rng.random() < 0.8 else -1 for row in rows for x in row + [-1] * (k - len(row))]
            tensors["given.indexer_indices"] = Tensor("I32", (g.B, g.T, k), flat)
        else:
            give(rng, tensors, name, forward)


def no_row_skipped(loss, options, tensors, g):
    """A given target leaves open what a skipped row does: no +inf sinks, no row dropped."""
    sinks = tensors["in.sink"].values if "in.sink" in tensors else []
    l1 = loss.get("l1") or losses.PRESETS[loss.get("preset", "maxtext_v4")]["l1"]
    return all(x != float("inf") for x in sinks) and (l1 == "none" or l1["mode"] != "zero_below")


# ---------------------------------------------------------------------------------------------------
# csa_step
# ---------------------------------------------------------------------------------------------------

def documents_of(rng, P, padding, increasing):
    """Segments and positions of P tokens; positions restart with each segment, or rise without end."""
    ids, positions, place = [], [], rng.choice((0, 0, 3))
    while len(ids) < P:
        segment = rng.choice((0, 3, 4) if padding is None else (0, 3, padding))
        if ids and segment == ids[-1] and rng.random() < 0.7:
            continue
        start = rng.choice((0, 0, 0, 2))
        for i in range(rng.randint(1, 6)):
            ids.append(segment)
            place += rng.choice((1, 1, 1, 1, 4))
            positions.append(place if increasing else start + i)
    return ids[:P], positions[:P]


def make_csa_step(rng):
    tensors, options = {}, {}
    kind = rng.choice(("csa",) * 5 + ("hca", "hca", "window"))
    B, L, m = rng.choice((1, 2, 3)), rng.choice((1, 1, 2, 3, 4, 6)), rng.choice((1, 2, 2, 3, 3, 4))
    lengths = [rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 9, 11)) for _ in range(B)]
    P = max(lengths) + L + rng.choice((0, 0, 1, 3))
    E = sizes(rng, {B, L, P, m}, E=(2, 6))["E"]
    n = put_weights(rng, tensors, options, kind, m, E, {B, L, P, m})
    D = n["D"]
    options["window"] = window_size(rng, P)
    if kind != "window" or rng.random() < 0.5:
        options["m"] = m
    tensors["in.x"] = nonzero(rng, (B, L, E), 1.5)
    options["indexer"] = None
    state = {"kv": (B, P, D)}
    e = 0
    if kind == "csa" and rng.random() < 0.8:
        _, e = put_layer_indexer(rng, tensors, options, E, n, {B, L, P, E})
        state["indexer_index_k"] = (B, P // m, e)
    if kind != "window":
        state["compressed"] = (B, P // m, D)
        for prefix, width in [("", D)] + ([("indexer_", e)] if e else []):
            for part in ("kv", "gate"):
                state[prefix + "partial_" + part] = (B, m, width * (2 if kind == "csa" else 1))
                if kind == "csa":
                    state[prefix + "prior_" + part] = (B, m, 2 * width)
    for name in sorted(state):
        put(rng, tensors, "in.state." + name, floats(rng, state[name], 1.0, family="normal"))
    if rng.random() < 0.3:
        options["loss"] = None

    mask, padding = {}, None
    with_ids = rng.random() < 0.65
    increasing = not with_ids or rng.random() < 0.3
    if with_ids:
        padding = rng.choice((None, None, 7))
        if padding is not None:
            mask["padding_segment"] = padding
        if rng.random() < 0.3:
            mask["documents"] = not increasing or rng.random() < 0.5
    elif rng.random() < 0.3:
        mask["causal"] = True
    if mask:
        options["mask"] = mask
    if rng.random() < 0.5 and kind != "window":
        options["boundary"] = rng.choice(("positions", "segments")) if with_ids else "positions"
    told = rng.random() < 0.6 or not increasing
    segments, positions = [], []
    for b in range(B):
        ids, places = documents_of(rng, P, padding, increasing)
        segments.append(ids if with_ids else [0] * P)
        positions.append(places if told else list(range(P)))
    junk = rng.choice((0, 9, -5))
    for name, table, scale in (("segment_ids", segments, 1), ("positions", positions, -1)):
        tensors["in.state." + name] = Tensor("I32", (B, P), [
            scale * junk if s >= lengths[b] else table[b][s] for b in range(B) for s in range(P)])
        if with_ids if name == "segment_ids" else told:
            tensors["in." + name] = Tensor("I32", (B, L), [
                table[b][lengths[b] + i] for b in range(B) for i in range(L)])
    tensors["in.state.length"] = Tensor("I32", (B,), lengths)
    present = []
    if kind == "csa":
        for length in lengths:
            has = length >= m
            if has and rng.random() < 0.1:
                has = False  # a caller that cleared it
            elif OPEN_QUESTIONS and rng.random() < 0.2:
                has = True
            present.append(has)
        tensors["in.state.prior_present"] = Tensor("BOOL", (B,), present)
    if rng.random() < 0.6:
        for name, shape in state.items():
            if "prior" in name:
                kept = {b * m + i for b in range(B) for i in range(m) if present[b]}
            elif "partial" in name:
                kept = {b * m + i for b in range(B) for i in range(lengths[b] % m)}
            elif name == "kv":
                kept = {b * P + s for b in range(B) for s in range(lengths[b])}
            else:
                kept = {b * (P // m) + j for b in range(B) for j in range(lengths[b] // m)}
            poison(rng, tensors, "in.state." + name, rows_of(shape, 2, kept))
        if padding is not None:
            poison(rng, tensors, "in.x", rows_of(tensors["in.x"].shape, 2, {
                i for i, x in enumerate(tensors["in.segment_ids"].values) if x != padding}))
    plan = {}
    if rng.random() < 0.4:
        plan["head_chunk"] = rng.randint(0, n["H"] + 1)
    if rng.random() < 0.4:
        plan["key_block"] = rng.randint(0, P + 1)
    return options, plan, tensors
