"""Truth for csa_compress and csa_indexer, from the formulas of the specification: plain loops over a tape."""
import mpmath

import tape
from case import BadCase, Rows
from dsa_indexer import Indexer, given_selection
from mla import Rope, per_token, plain, positive, rms, seed_all
from tape import Leaves, add_all, dot, value

COMPRESS_INPUTS = ("kv", "gate", "position_bias", "norm_weight", "prior_kv", "prior_gate")
INDEXER_INPUTS = ("x", "q_latent", "q_proj", "kv_proj", "gate_proj", "position_bias", "kv_norm_weight", "weights_proj")


def softmax(logits):
    top = max(value(x) for x in logits)
    terms = [tape.exp(x - top) for x in logits]
    share = tape.inverse(add_all(terms))
    return [x * share for x in terms]


class Grid:
    """First tokens of the blocks, and where lane A is cut."""

    def __init__(self, case, options, B, S):
        self.S, self.m = S, options["m"]
        self.document = options.get("grid", "physical") == "document"
        self.boundary = options.get("boundary", "positions")
        ids, places = None, None
        if case.has("in.cu_seqlens"):
            ends = case.value("in.cu_seqlens")
            ids = [d for d in range(len(ends) - 1) for _ in range(ends[d], ends[d + 1])]
            places = [s - ends[d] for s, d in enumerate(ids)]
        if case.has("in.segment_ids"):
            ids = case.value("in.segment_ids")
        if case.has("in.positions"):
            places = case.value("in.positions")
        if self.boundary == "segments" and ids is None:
            raise BadCase("boundary segments without segments")
        self.segment = lambda b, s: 0 if ids is None else ids[b * S + s]
        self.position = lambda b, s: s if places is None else places[b * S + s]
        padding = options.get("mask", {}).get("padding_segment")
        if not self.document:
            self.first = [j * self.m for j in range(S // self.m)]
            return
        if B != 1:
            raise BadCase("grid document with B > 1")
        self.first, s = [], 0
        while s < S:  # a token begins a block if the m tokens from it on are of one document, and goes on there
            end = s
            while end < S and self.segment(0, end) == self.segment(0, s):
                end += 1
            if ids is None or padding is None or self.segment(0, s) != padding:
                self.first += list(range(s, end - self.m + 1, self.m))
            s = end

    def follows(self, b, j):
        """Block j has block j-1 in lane A, j > 0."""
        here, before = self.first[j], self.first[j - 1]
        if self.document or self.boundary == "segments":
            return self.segment(b, here) == self.segment(b, before)
        return self.position(b, here) == self.position(b, before) + self.m


class Compressor:
    """kv(b, s), gate(b, s): rows of lanes·D; prior(b): (kv rows, gate rows) or None; bias(i): a row or None."""

    def __init__(self, grid, options, D, kv, gate, prior=lambda b: None, bias=lambda i: None, weight=lambda: None):
        self.grid, self.D, self.kv, self.gate, self.prior, self.bias = grid, D, kv, gate, prior, bias
        self.overlap, self.norm, self.weight = options.get("overlap", True), options.get("norm", True), weight
        self.eps = positive(options, "eps", 1e-6)
        rope = options.get("rope")
        self.turn = Rope(rope, D) if rope else None

    def lane_a(self, b, j):
        if not self.overlap:
            return None
        if j == 0:
            return self.prior(b)
        if not self.grid.follows(b, j):
            return None
        tokens = range(self.grid.first[j - 1], self.grid.first[j - 1] + self.grid.m)
        return [self.kv(b, s) for s in tokens], [self.gate(b, s) for s in tokens]

    def block(self, b, j):
        first, m, D = self.grid.first[j], self.grid.m, self.D
        tokens = range(first, first + m)
        places = [(self.kv(b, s), self.gate(b, s), self.bias(i), D if self.overlap else 0)
                  for i, s in enumerate(tokens)]
        before = self.lane_a(b, j)
        if before is not None:
            places += [(before[0][i], before[1][i], self.bias(i), 0) for i in range(m)]
        pooled = []
        for c in range(D):
            logits = [gate[lane + c] if bias is None else gate[lane + c] + bias[lane + c]
                      for _, gate, bias, lane in places]
            pooled.append(dot(softmax(logits), [kv[lane + c] for kv, _, _, lane in places]))
        if self.norm:
            pooled = rms(pooled, self.eps, self.weight())
        return self.turn(pooled, self.grid.position(b, first)) if self.turn else pooled


def csa_compress(case):
    leaf, o = Leaves(case), case.options
    B, S, W = case.shape("in.kv")
    overlap = o.get("overlap", True)
    D, m = W // 2 if overlap else W, o["m"]
    grid = Grid(case, o, B, S)
    flags = case.value("in.prior_present") if case.has("in.prior_present") else [case.has("in.prior_kv")] * B

    def prior(b):
        if not flags[b]:
            return None
        return [[leaf.row(name, (b * m + i) * W, W) for i in range(m)] for name in ("prior_kv", "prior_gate")]

    compressor = Compressor(
        grid, o, D, lambda b, s: leaf.row("kv", (b * S + s) * W, W), lambda b, s: leaf.row("gate", (b * S + s) * W, W),
        prior, lambda i: leaf.row("position_bias", i * W, W) if case.has("in.position_bias") else None,
        lambda: leaf.row("norm_weight", 0, D) if case.has("in.norm_weight") else None)
    N = len(grid.first)
    result = {}

    def put(name, shape, values):
        seed_all(case, name, values)
        result["out." + name] = (shape, plain(values))

    def copied(name, begin, count):
        """Copies; None where a NaN is copied."""
        out = []
        for at in range(begin, begin + count):
            try:
                out.append(leaf(name, at))
            except BadCase:
                out.append(None)
        return out

    put("compressed", (B, N, D), [x for b in range(B) for j in range(N) for x in compressor.block(b, j)])
    if not grid.document:
        for kind in ("kv", "gate"):
            put("leftover_" + kind, (B, S - N * m, W),
                [x for b in range(B) for x in copied(kind, (b * S + N * m) * W, (S - N * m) * W)])
            if not overlap:
                continue
            if N:
                last = [x for b in range(B) for x in copied(kind, (b * S + (N - 1) * m) * W, m * W)]
            elif case.has("in.prior_kv"):
                last = copied("prior_" + kind, 0, B * m * W)
            else:
                last = [0] * (B * m * W)
            put("prior_" + kind, (B, m, W), last)
        if overlap:
            result["out.prior_present"] = ((B,), [True] * B if N else [bool(x) for x in flags])
    tape.backward()
    result.update(leaf.gradients(COMPRESS_INPUTS))
    return result


class BlockIndexer(Indexer):
    query_weight = "q_proj"

    def __init__(self, case, leaf, options, rows, x, q_latent):
        self.case, self.leaf, self.o, self.rows, self.prefix = case, leaf, options, rows, ""
        self.x, self.q_latent = x, q_latent
        self.position = lambda b, s: rows.position[b][s]
        self.set_up(case.shape("in.q_proj"), Rope(options["rope"], case.shape("in.q_proj")[2]))
        e, B = self.e, rows.B
        self.grid = Grid(case, options, B, rows.S)
        pooled = {}

        def projected(weight):
            def row(b, s):
                if (weight, b, s) not in pooled:
                    pooled[weight, b, s] = self._times(x(b, s), weight, range(2 * e), 2 * e)
                return pooled[weight, b, s]
            return row

        self.compressor = Compressor(self.grid, options, e, projected("kv_proj"), projected("gate_proj"),
                                     bias=lambda i: leaf.row("position_bias", i * 2 * e, 2 * e),
                                     weight=lambda: leaf.row("kv_norm_weight", 0, e))

    def index_k(self, b, j):
        return self._once("index_k", b, j, self.e, lambda: self.compressor.block(b, j), self.rows.K)

    def outputs(self):
        out = super().outputs()
        out["index_k"] = ((self.rows.B, self.rows.K, self.e), self.index_k)
        return out


def rows_of_tokens(case):
    B, S, _ = case.shape("in.x")
    return Rows(case, B, case.shape("in.row_index")[0] if case.has("in.row_index") else S, True, [S])


def csa_indexer(case):
    leaf = Leaves(case)
    B, S, E = case.shape("in.x")
    rows, Rq = rows_of_tokens(case), case.shape("in.q_latent")[2]
    indexer = BlockIndexer(case, leaf, case.options, rows, lambda b, s: leaf.row("x", (b * S + s) * E, E),
                           lambda b, s: leaf.row("q_latent", (b * S + s) * Rq, Rq))
    scores, indices, selected = indexer.select()
    indices, selected = given_selection(case, "", rows, indices, selected)
    seed_all(case, "scores", scores)
    result = {"out.scores": ((B, rows.T, rows.K), plain(scores)),
              "out.indices": ((B, rows.T, case.options["k"]), indices),
              "out.selected": ((B, rows.T, rows.K), selected)}
    for name, (shape, make) in indexer.outputs().items():
        values = per_token(shape, make, True)
        seed_all(case, name, values)
        result["out." + name] = (shape, plain(values))
    tape.backward()
    result.update(leaf.gradients(INDEXER_INPUTS))
    return result
