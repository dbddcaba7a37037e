"""Truth for mla_layer: projection, indexer, attention and loss put together."""
import losses
import tape
from case import BadCase, Case, Rows
from dsa_indexer import INDEXER_WEIGHTS, Indexer, given_selection
from mla import WEIGHTS, Projection, per_token, plain, seed_all
from mla_attention import Attention
from safetensors_io import Tensor, count
from tape import Leaves, dot, value


def mla_layer(case):
    return layer(case, lambda projection, indexer: None)


def layer(case, prime):
    """`prime` may put rows of earlier calls into the stages before anything is computed."""
    leaf, o = Leaves(case), case.options
    B, S, E = case.shape("in.x")
    T = case.shape("in.row_index")[0] if case.has("in.row_index") else S
    rows = Rows(case, B, T, False, [S], S)
    token = rows.token

    def position(b, s):
        return rows.position[b][s]

    projection = Projection(case, leaf, position, rows.is_padding)
    H, dn, dr, dv = projection.H, projection.dn, projection.dr, projection.dv
    width = dn + dr
    result = {}

    # the selection
    indexer = selected = None
    if o.get("indexer") is not None:
        if projection.direct and not case.has("given.q_latent"):
            raise BadCase("an indexer needs a query latent")
        if projection.direct:
            projection.Rq = case.shape("in.indexer_wq_b")[0]
        indexer = Indexer(case, leaf, o["indexer"], rows, position,
                          lambda b, s: [value(x) for x in projection.x(b, s)],
                          lambda b, s: [value(x) for x in projection.q_latent(b, s)], "indexer_")
    prime(projection, indexer)
    if indexer is not None:
        scores, indices, selected = indexer.select()
        indices, selected = given_selection(case, "indexer_", rows, indices, selected)
        result["out.indexer_scores"] = ((B, T, S), plain(scores))
        result["out.indexer_indices"] = ((B, T, len(indices) // (B * T) if B * T else o["indexer"]["k"]), indices)
        result["out.indexer_selected"] = ((B, T, S), selected)

    def keys(b, t):
        return {s: 1 for s in rows.visible(b, t) if selected is None or selected[(b * T + t) * S + s]}

    # attention and the output projection
    attention = Attention(
        case, rows, H, dv, lambda b, t, h: projection.query(b, token[t])[h * width:(h + 1) * width],
        lambda b, s, h: projection.key(b, s)[h * width:(h + 1) * width],
        lambda b, s, h: projection.value(b, s)[h * dv:(h + 1) * dv], keys, lambda h: None, {}, "attention_")
    attended, lse, largest = attention.run()
    output = []
    for b in range(B):
        for t in range(T):
            here = b * T + t
            if not rows.is_real(b, t) or not keys(b, t):
                output += [0] * E
                continue
            z = attended[here * H * dv:(here + 1) * H * dv]
            output += [dot(z, leaf.row("wo", n, H * dv, E)) for n in range(E)]
    result["out.output"] = ((B, T, E), plain(output))
    result["out.attention_output"] = ((B, T, H, dv), plain(attended))
    result["out.attention_lse"] = ((B, T, H), plain(lse))
    result["out.attention_max_logit"] = ((B, T, H), largest)

    # the loss, with the query, key and indexer's rows as plain numbers
    result["out.loss"] = ((), [0])
    seed_all(case, "output", output)
    if o.get("loss") is not None:
        loss_stage(case, o["loss"], rows, projection, indexer, selected, result)

    stages = dict(projection.outputs())
    if indexer is not None:
        stages.update({"indexer_" + n: x for n, x in indexer.outputs().items()})
        if projection.direct:
            stages["q_latent"] = ((B, S, projection.Rq), projection.q_latent)
    read = tokens_read(rows)  # what the stages say about other tokens is left open
    for name, (shape, make) in stages.items():
        result["out." + name] = (shape, plain(per_token(shape, make, True, read)))
    tape.backward()
    names = ("x",) + WEIGHTS + ("wo",) + tuple("indexer_" + n for n in INDEXER_WEIGHTS)
    if "prefill" not in case.plumbline.get("schedule", {}) and "step" not in case.plumbline.get("schedule", {}):
        result.update(leaf.gradients(names))
    return result


def tokens_read(rows):
    """Tokens at which a real row stands, or which one sees; and the padding, read as 0."""
    read = {(b, s) for b in range(rows.B) for s in range(rows.S) if rows.is_padding(b, s)}
    for b in range(rows.B):
        for t in range(rows.T):
            if rows.is_real(b, t):
                read |= {(b, s) for s in rows.visible(b, t)}
                read.add((b, rows.token[t]))
    return read


def loss_stage(case, options, rows, projection, indexer, selected, result):
    """Runs the loss on numbers and sends its gradients into the indexer's rows."""
    B, T, S, H = rows.B, rows.T, rows.S, projection.H
    width = projection.dn + projection.dr
    row_cells = [(b, rows.token[t]) for b in range(B) for t in range(T)]
    key_cells = [(b, s) for b in range(B) for s in range(S)]
    inputs = {"in.query": ((B, T, H, width), projection.query, row_cells),
              "in.key": ((B, S, H, width), projection.key, key_cells)}
    options = {n: x for n, x in options.items() if n != "allow_full_selection"}
    if "mask" in case.options:
        options["mask"] = case.options["mask"]
    run_loss(case, "dsa_indexer_loss", options, inputs, indexer, row_cells, key_cells, (B, T, S), selected, result)


def run_loss(case, op, options, inputs, indexer, row_cells, key_cells, grid, selected, result):
    """`inputs`: name -> (shape, make, cells); the indexer's own rows are added."""
    (B, T, K), A, e = grid, indexer.A, indexer.e
    if float(options.get("coefficient", 1)) < 0:  # stage_routing: no loss is computed; 0 gives zeros
        return
    nan = float("nan")

    def numbers(make, cells, inner):
        out = []
        for b, s in cells:
            try:
                out += [value(x) for x in make(b, s)]
            except BadCase:
                out += [nan] * inner
        return out

    tensors = {n: t for n, t in case.tensors.items() if n in (
        "in.row_index", "in.segment_ids", "in.positions", "in.cu_seqlens", "in.valid", "in.mask", "in.row_mask",
        "in.sink", "in.sink.lo", "given.log_mass", "given.head_sum", "given.target", "given.target.lo", "cot.loss",
        "given.log_mass.lo", "given.head_sum.lo", "cot.loss.lo")}
    if "cot.loss" not in tensors:
        tensors["cot.loss"] = Tensor("F64", (), [0])
    inputs = dict(inputs)
    inputs.update({"in.index_q": ((B, T, A, e), indexer.index_q, row_cells),
                   "in.index_k": ((B, K, e), indexer.index_k, key_cells),
                   "in.index_w": ((B, T, A), indexer.index_w, row_cells)})
    for name, (shape, make, cells) in inputs.items():
        tensors[name] = Tensor("F64", shape, numbers(make, cells, count(shape[2:])))
    options = dict(options)
    if "score_scale" in indexer.o:
        options.setdefault("score_scale", indexer.o["score_scale"])
    if options.get("sparse", False):
        tensors["in.selected"] = Tensor("BOOL", grid, selected)
    inner = losses.Loss(Case({"op": op, "options": options}, tensors)).run()
    for name in ("loss", "row_loss", "row_valid", "log_mass", "head_sum", "target", "student"):
        if "out." + name in inner:
            result["out." + name] = inner["out." + name]
    for name, make, cells, size in (("index_q", indexer.index_q, row_cells, A * e),
                                    ("index_k", indexer.index_k, key_cells, e),
                                    ("index_w", indexer.index_w, row_cells, A)):
        grads = inner["grad." + name][1]
        for n, (b, s) in enumerate(cells):
            part = grads[n * size:(n + 1) * size]
            if all(isinstance(g, int) and g == 0 for g in part):
                continue
            for x, g in zip(make(b, s), part):
                if not (isinstance(g, int) and g == 0):
                    tape.seed(x, g)
