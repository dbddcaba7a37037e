"""Truth for dsa_indexer, as an operation and as the stage of a layer."""
import mpmath

import tape
from case import Rows
from losses import score_factor
from mla import Rope, centred, per_token, plain, positive, seed_all
from tape import Leaves, constant, dot, value

INDEXER_WEIGHTS = ("wq_b", "wk", "k_norm_weight", "k_norm_bias", "weights_proj")


class Indexer:
    """prefix "" for the operation, "indexer_" for the stage of a layer; x and q_latent give token rows."""

    def __init__(self, case, leaf, options, rows, position, x, q_latent, prefix=""):
        self.case, self.leaf, self.o, self.rows, self.prefix = case, leaf, options, rows, prefix
        self.position, self.x, self.q_latent = position, x, q_latent
        shape = case.shape("in.%swq_b" % prefix)
        self.set_up(shape, Rope(options["rope"], shape[2], "leading", "half"))
        self.eps = positive(options, "eps", 1e-6)

    query_weight = "wq_b"

    def set_up(self, query_shape, turn):
        self.Rq, self.A, self.e = query_shape
        self.turn = turn
        self.factor = score_factor(self.o, self.A, self.e)
        self.kept = {}

    def _once(self, what, b, s, width, make, count=None):
        key = (what, b, s)
        if key not in self.kept:
            name = "given." + self.prefix + what
            if self.case.has(name):
                begin = (b * (self.rows.S if count is None else count) + s) * width
                self.kept[key] = [constant(self.case, name, begin + n) for n in range(width)]
            else:
                self.kept[key] = make()
        return self.kept[key]

    def _times(self, x, weight, columns, width):
        return [dot(x, self.leaf.row(self.prefix + weight, n, len(x), width)) for n in columns]

    def index_q(self, b, s):
        def make():
            out = []
            for a in range(self.A):
                out += self.turn(self._times(self.q_latent(b, s), self.query_weight, range(a * self.e, (a + 1) * self.e),
                                             self.A * self.e), self.position(b, s))
            return out
        return self._once("index_q", b, s, self.A * self.e, make)

    def index_k(self, b, s):
        def make():
            k = self._times(self.x(b, s), "wk", range(self.e), self.e)
            k = centred(k, self.eps, self.leaf.row(self.prefix + "k_norm_weight", 0, self.e),
                        self.leaf.row(self.prefix + "k_norm_bias", 0, self.e))
            return self.turn(k, self.position(b, s))
        return self._once("index_k", b, s, self.e, make)

    def index_w(self, b, s):
        return self._once("index_w", b, s, self.A,
                          lambda: self._times(self.x(b, s), "weights_proj", range(self.A), self.A))

    def score(self, b, t, s):
        if self.case.has("given.%sscores" % self.prefix):
            return constant(self.case, "given.%sscores" % self.prefix, (b * self.rows.T + t) * self.rows.K + s)
        r = self.rows.token[t]
        q, k, w = self.index_q(b, r), self.index_k(b, s), self.index_w(b, r)
        return dot(w, [tape.relu(dot(q[a * self.e:(a + 1) * self.e], k)) for a in range(self.A)]) * self.factor

    def select(self):
        """scores (flat, -inf where hidden), indices, selected."""
        rows, k = self.rows, self.o["k"]
        scores, indices, selected = [], [], []
        for b in range(rows.B):
            for t in range(rows.T):
                seen = rows.visible(b, t) if rows.is_real(b, t) else []
                z = {s: self.score(b, t, s) for s in seen}
                scores += [z.get(s, -mpmath.inf) for s in range(rows.K)]
                order = sorted(seen, key=lambda s: (-value(z[s]), s))
                best = order[:k]
                chosen = set(best)
                if self.o.get("tie", "lowest_index") == "threshold" and best:
                    chosen = {s for s in seen if value(z[s]) >= value(z[best[-1]])}
                indices += best + [-1] * (k - len(best))
                selected += [s in chosen for s in range(rows.K)]
        return scores, indices, selected

    def outputs(self):
        B, S = self.rows.B, self.rows.S
        return {"index_q": ((B, S, self.A, self.e), self.index_q), "index_k": ((B, S, self.e), self.index_k),
                "index_w": ((B, S, self.A), self.index_w)}


def dsa_indexer(case):
    leaf = Leaves(case)
    B, S, E = case.shape("in.x")
    T = case.shape("in.row_index")[0] if case.has("in.row_index") else S
    rows = Rows(case, B, T, False, [S], S)
    Rq = case.shape("in.q_latent")[2]
    indexer = Indexer(case, leaf, case.options, rows, lambda b, s: rows.position[b][s],
                      lambda b, s: leaf.row("x", (b * S + s) * E, E),
                      lambda b, s: leaf.row("q_latent", (b * S + s) * Rq, Rq))
    scores, indices, selected = indexer.select()
    indices, selected = given_selection(case, "", rows, indices, selected)
    seed_all(case, "scores", scores)
    result = {"out.scores": ((B, T, S), plain(scores)), "out.indices": ((B, T, case.options["k"]), indices),
              "out.selected": ((B, T, S), selected)}
    for name, (shape, make) in indexer.outputs().items():
        values = per_token(shape, make, True)
        seed_all(case, name, values)
        result["out." + name] = (shape, plain(values))
    tape.backward()
    result.update(leaf.gradients(("x", "q_latent") + INDEXER_WEIGHTS))
    return result


def given_selection(case, prefix, rows, indices, selected):
    """Given indices or a given set in place of the computed ones; rows that are not real stay empty."""
    T, S = rows.T, rows.K
    width = {"indices": len(indices) // (rows.B * T) if rows.B * T else 0, "selected": S}
    given = {n: case.value("given." + prefix + n) for n in width if case.has("given." + prefix + n)}
    if not given:
        return indices, selected
    indices, selected = list(indices), list(selected)
    for b in range(rows.B):
        for t in range(T):
            here = b * T + t
            if not rows.is_real(b, t):
                continue
            if "indices" in given:
                k = width["indices"]
                indices[here * k:(here + 1) * k] = given["indices"][here * k:(here + 1) * k]
                named = set(indices[here * k:(here + 1) * k])
                selected[here * S:(here + 1) * S] = [s in named for s in range(S)]
            if "selected" in given:
                selected[here * S:(here + 1) * S] = given["selected"][here * S:(here + 1) * S]
    return indices, selected
