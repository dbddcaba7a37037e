"""Truth for csa_layer: latents, compressor, indexer, attention, grouped projection and loss put together."""
import mpmath

import tape
from case import BadCase, Rows, number
from csa_attention import BLOCK, WINDOW
from csa_compress import Compressor, Projected
from csa_indexer import CSA_INDEXER_WEIGHTS, CsaIndexer
from dsa_indexer import given_selection
from mla import Rope, per_token, plain, positive, rms, seed_all
from mla_attention import Attention, Sink
from mla_layer import run_loss
from tape import Leaves, constant, dot, value

WEIGHTS = ("wq_a", "q_norm", "wq_b", "wkv", "kv_norm", "kv_proj", "gate_proj", "position_bias", "compress_norm",
           "sink", "o_a", "o_b")


def inherited(o, part, names):
    """Options of a part, with those it does not name taken from the layer."""
    out = dict(o[part])
    for name in names:
        if name not in out and name in o:
            out[name] = o[name]
    return out


class Stages:
    """What one token or one block becomes, computed when asked for.  `prior(b)` as in Compressor."""

    def __init__(self, case, leaf, rows, prior=lambda b: None):
        self.case, self.leaf, self.rows = case, leaf, rows
        o = case.options
        self.B, self.S, self.E = case.shape("in.x")
        self.Rq, self.H, self.D = case.shape("in.wq_b")
        self.kind = o.get("kind", "csa")
        self.eps = positive(o, "eps", 1e-6)
        self.turn = Rope(o["rope"], self.D)
        self.back = Rope(dict(o["rope"], inverse=True), self.D)
        self.scale = 1 / mpmath.sqrt(mpmath.mpf(self.D))
        self.kept = {}
        self.compressor = None
        if self.kind != "window":
            width = self.D if self.kind == "hca" else 2 * self.D
            options = {"m": o["m"], "eps": o.get("eps", 1e-6), "rope": o.get("compress_rope", o["rope"]),
                       "boundary": o.get("boundary", "positions"), "grid": o.get("grid", "physical")}
            self.compressor = Compressor(
                rows, options, self.D, Projected(leaf, self.x, "", width),
                lambda i: leaf.row("position_bias", i * width, width), lambda: leaf.row("compress_norm", 0, self.D),
                prior, self.kind == "csa")

    def _once(self, what, b, s, make, width, count):
        key = (what, b, s)
        if key not in self.kept:
            name = "given." + what
            if self.case.has(name):
                begin = (b * count + s) * width
                self.kept[key] = [constant(self.case, name, begin + n) for n in range(width)]
            else:
                self.kept[key] = make()
        return self.kept[key]

    def x(self, b, s):
        if self.rows.is_padding(b, s):
            return [mpmath.mpf(0)] * self.E
        return self.leaf.row("x", (b * self.S + s) * self.E, self.E)

    def _times(self, x, weight, columns, width):
        return [dot(x, self.leaf.row(weight, n, len(x), width)) for n in columns]

    def q_latent(self, b, s):
        return self._once("q_latent", b, s, lambda: rms(
            self._times(self.x(b, s), "wq_a", range(self.Rq), self.Rq), self.eps,
            self.leaf.row("q_norm", 0, self.Rq)), self.Rq, self.S)

    def query(self, b, s):
        """[H, D] flat."""
        D, width = self.D, self.H * self.D

        def make():
            out, latent = [], self.q_latent(b, s)
            for h in range(self.H):
                row = rms(self._times(latent, "wq_b", range(h * D, (h + 1) * D), width), self.eps)
                out += [a * self.scale for a in self.turn(row, self.rows.position[b][s])]
            return out
        return self._once("query", b, s, make, width, self.S)

    def kv(self, b, s):
        return self._once("kv", b, s, lambda: self.turn(
            rms(self._times(self.x(b, s), "wkv", range(self.D), self.D), self.eps, self.leaf.row("kv_norm", 0, self.D)),
            self.rows.position[b][s]), self.D, self.S)

    def compressed(self, b, j):
        return self._once("compressed", b, j, lambda: self.compressor.block(b, j), self.D, self.compressor.N)

    def project(self, b, s, attended):
        """Output row of a token from its [H, D] attention output."""
        D, leaf = self.D, self.leaf
        turned = []
        for h in range(self.H):
            turned += self.back(attended[h * D:(h + 1) * D], self.rows.position[b][s])
        G, width, r = self.case.shape("in.o_a")
        if G * width != self.H * D:
            raise BadCase("o_a does not fit the heads")
        middle = [dot(turned[g * width:(g + 1) * width], leaf.row("o_a", g * width * r + n, width, r))
                  for g in range(G) for n in range(r)]
        return [dot(middle, leaf.row("o_b", n, G * r, self.E)) for n in range(self.E)]


def csa_layer(case):
    return layer(case, lambda stages, indexer: None)


def layer(case, prime, prior=lambda b: None, indexer_prior=lambda b: None):
    """`prime` may put rows of earlier calls into the stages before anything is computed."""
    leaf, o = Leaves(case), case.options
    B, S, E = case.shape("in.x")
    T = case.shape("in.row_index")[0] if case.has("in.row_index") else S
    kind = o.get("kind", "csa")
    rows = Rows(case, B, T, kind != "window", [S])
    stages = Stages(case, leaf, rows, prior)
    H, D, N, token = stages.H, stages.D, rows.K, rows.token
    options = inherited(o, "indexer", ("m", "eps", "grid", "boundary", "mask")) if o.get("indexer") else None
    loss = inherited(o, "loss", ("m", "grid", "mask", "window")) if o.get("loss") is not None else None
    if options is not None and kind != "csa" or loss is not None and options is None:
        raise BadCase("an indexer needs kind csa, a loss an indexer")
    result = {"out.loss": ((), [0])}

    indexer = selected = None
    if options is not None:
        options.setdefault("rope", o.get("compress_rope", o["rope"]))
        indexer = CsaIndexer(case, leaf, options, rows, lambda b, s: [value(x) for x in stages.x(b, s)],
                             lambda b, s: [value(x) for x in stages.q_latent(b, s)], "indexer_", indexer_prior)
    prime(stages, indexer)
    if indexer is not None:
        scores, indices, selected = indexer.select()
        indices, selected = given_selection(case, "indexer_", rows, indices, selected)
        result["out.indexer_scores"] = ((B, T, N), plain(scores))
        result["out.indexer_indices"] = ((B, T, options["k"]), indices)
        result["out.indexer_selected"] = ((B, T, N), selected)

    # which blocks attention sees
    weight = number(loss.get("coefficient", 1)) if loss is not None else 0
    sparse = loss is not None and loss.get("sparse", False)
    if loss is not None and sparse and weight and options["k"] >= N > 0 and not loss.get("allow_full_selection"):
        raise BadCase("nothing is selected against")
    attends_all = indexer is None or weight > 0 and not sparse

    def keys(b, t):
        out = {(WINDOW, s): 1 for s in rows.window(b, t, o["window"])}
        if kind != "window":
            out.update({(BLOCK, j): 1 for j in rows.visible(b, t) if attends_all or selected[(b * T + t) * N + j]})
        return out

    def key(b, where, h):
        return stages.kv(b, where[1]) if where[0] == WINDOW else stages.compressed(b, where[1])

    sink = Sink(case, leaf)
    attention = Attention(case, rows, H, D, lambda b, t, h: stages.query(b, token[t])[h * D:(h + 1) * D],
                          key, key, keys, sink, {}, "attention_")
    attended, lse, largest = attention.run()
    output = []
    for b in range(B):
        for t in range(T):
            z = attended[(b * T + t) * H * D:(b * T + t + 1) * H * D]
            # rows without keys, or with all mass on +inf sinks, are exactly 0
            nothing = all(isinstance(x, int) and x == 0 for x in z)
            output += [0] * E if nothing else stages.project(b, token[t], z)
    result["out.output"] = ((B, T, E), plain(output))
    result["out.attention_output"] = ((B, T, H, D), plain(attended))
    result["out.attention_lse"] = ((B, T, H), plain(lse))
    result["out.attention_max_logit"] = ((B, T, H), largest)
    seed_all(case, "output", output)
    if loss is not None:
        loss_stage(case, loss, rows, stages, indexer, selected, result)

    tokens_window, tokens_row, blocks = read_places(rows, o["window"], kind != "window")
    add_stage(result, "q_latent", (B, S, stages.Rq), stages.q_latent, tokens_row)
    add_stage(result, "query", (B, S, H, D), stages.query, tokens_row)
    add_stage(result, "kv", (B, S, D), stages.kv, tokens_window)
    if kind != "window":
        add_stage(result, "compressed", (B, N, D), stages.compressed, blocks)
    if indexer is not None:
        for name, (shape, make) in indexer.outputs().items():
            add_stage(result, "indexer_" + name, shape, make, blocks if name == "index_k" else tokens_row)
    tape.backward()
    schedule = case.plumbline.get("schedule", {})
    if not schedule.get("prefill") and not schedule.get("step"):
        result.update(leaf.gradients(("x",) + WEIGHTS + tuple("indexer_" + n for n in CSA_INDEXER_WEIGHTS)))
    return result


def add_stage(result, name, shape, make, read):
    result["out." + name] = (shape, plain(per_token(shape, make, True, read)))


def read_places(rows, W, with_blocks):
    """Tokens that real rows have in their windows, tokens they stand at, blocks they see; padding is read as 0."""
    padding = {(b, s) for b in range(rows.B) for s in range(rows.S) if rows.is_padding(b, s)}
    window, stand, blocks = set(padding), set(padding), set()
    for b in range(rows.B):
        for t in range(rows.T):
            if rows.is_real(b, t):
                stand.add((b, rows.token[t]))
                window |= {(b, s) for s in rows.window(b, t, W)}
                if with_blocks:
                    blocks |= {(b, j) for j in rows.visible(b, t)}
    return window, stand, blocks


def loss_stage(case, options, rows, stages, indexer, selected, result):
    """The loss on numbers; its gradients go into the indexer's rows."""
    B, T, S, H, D, N = rows.B, rows.T, rows.S, stages.H, stages.D, rows.K
    row_cells = [(b, rows.token[t]) for b in range(B) for t in range(T)]
    block_cells = [(b, j) for b in range(B) for j in range(N)]
    token_cells = [(b, s) for b in range(B) for s in range(S)]
    inputs = {"in.query": ((B, T, H, D), stages.query, row_cells), "in.compressed": ((B, N, D), stages.compressed,
                                                                                    block_cells),
              "in.kv": ((B, S, D), stages.kv, token_cells)}
    options = {n: x for n, x in options.items() if n != "allow_full_selection"}
    run_loss(case, "csa_indexer_loss", options, inputs, indexer, row_cells, block_cells,
             (B, T, N), selected, result)
