"""Truth for indexer_scores and topk, and the raw-index scores that the losses are made of."""
from fractions import Fraction

import mpmath

from case import BadCase, Case, Rows, dot, load, number, real, _finite  # noqa: F401

INF = mpmath.inf


# ---------------------------------------------------------------------------------------------------
# indexer_scores
# ---------------------------------------------------------------------------------------------------

def score_factor(options, A, e):
    kind = options.get("score_scale", "heads_and_dim")
    if kind == "heads_and_dim":
        return 1 / mpmath.sqrt(mpmath.mpf(A) * e)
    if kind == "dim":
        return 1 / mpmath.sqrt(mpmath.mpf(e))
    if kind == "none":
        return mpmath.mpf(1)
    raise BadCase("score_scale " + repr(kind))


class Scorer:
    """score[b,t,s] = c * sum_a w[b,t,a] * relu(q[b,t,a] . k[b,s]) and its vector-Jacobian product."""

    def __init__(self, case, q, k, w, options):
        self.names = (q, k, w)
        self.q, self.k, self.w = case.value(q), case.value(k), case.value(w)
        self.B, self.T, self.A, self.e = case.shape(q)
        self.K = case.shape(k)[1]
        if case.shape(k) != (self.B, self.K, self.e) or case.shape(w) != (self.B, self.T, self.A):
            raise BadCase("shapes of the indexer's inputs")
        self.factor = score_factor(options, self.A, self.e)
        self.relu = options.get("relu", True)
        self.dq = [0] * len(self.q)
        self.dk = [0] * len(self.k)
        self.dw = [0] * len(self.w)

    def _places(self, b, t, a, s):
        return ((b * self.T + t) * self.A + a) * self.e, (b * self.K + s) * self.e

    def score(self, b, t, s):
        total = Fraction(0)
        for a in range(self.A):
            i, j = self._places(b, t, a, s)
            x = dot(self.q, i, self.k, j, self.e)
            if self.relu and x < 0:
                x = Fraction(0)
            weight = self.w[(b * self.T + t) * self.A + a]
            if not _finite(weight):
                raise BadCase("a visible head weight is not finite")
            total += weight * x
        return self.factor * real(total)

    def backward(self, b, t, s, cotangent):
        for a in range(self.A):
            i, j = self._places(b, t, a, s)
            x = dot(self.q, i, self.k, j, self.e)
            if self.relu and x <= 0:
                continue  # relu and its derivative are 0 at 0 and below
            here = (b * self.T + t) * self.A + a
            common = self.factor * cotangent
            self.dw[here] += common * real(x)
            common *= real(self.w[here])
            for n in range(self.e):
                self.dq[i + n] += common * real(self.k[j + n])
                self.dk[j + n] += common * real(self.q[i + n])

    def gradients(self):
        q, k, w = (name[len("in."):] for name in self.names)
        return {"grad." + q: ((self.B, self.T, self.A, self.e), self.dq),
                "grad." + k: ((self.B, self.K, self.e), self.dk),
                "grad." + w: ((self.B, self.T, self.A), self.dw)}


def indexer_scores(case):
    scorer = Scorer(case, "in.q", "in.k", "in.w", case.options)
    B, T, K = scorer.B, scorer.T, scorer.K
    scores = [scorer.score(b, t, s) for b in range(B) for t in range(T) for s in range(K)]
    result = {"out.scores": ((B, T, K), scores)}
    if case.has("cot.scores"):
        cot = case.value("cot.scores")
        for b in range(B):
            for t in range(T):
                for s in range(K):
                    scorer.backward(b, t, s, real(cot[(b * T + t) * K + s]))
        result.update(scorer.gradients())
    return result


# ---------------------------------------------------------------------------------------------------
# topk
# ---------------------------------------------------------------------------------------------------

def topk(case):
    options = case.options
    k, tie = options["k"], options.get("tie", "lowest_index")
    scores = case.value("in.scores")
    B, T, K = case.shape("in.scores")
    blocks = options.get("keys", "tokens") == "blocks"
    rows = Rows(case, B, T, blocks, [] if blocks else [K], K)

    def rank(x):
        """Smaller is better: numbers downwards, then -inf, then NaN (all equal); -0 equals 0."""
        return (1, 0) if x != x else (0, -x)

    indices = [-1] * (B * T * k)
    selected = [False] * (B * T * K)
    for b in range(B):
        for t in range(T):
            if not rows.is_real(b, t):
                continue
            row = (b * T + t) * K
            seen = rows.visible(b, t)
            if options.get("nan", "last") == "error" and any(scores[row + s] != scores[row + s] for s in seen):
                raise BadCase("a visible score is NaN")
            order = sorted(seen, key=lambda s: (rank(scores[row + s]), s))
            best = order[:k]
            for slot, s in enumerate(best):
                indices[(b * T + t) * k + slot] = s
            chosen = best
            if tie == "threshold" and best:
                last = rank(scores[row + best[-1]])
                chosen = [s for s in seen if rank(scores[row + s]) <= last]
            for s in chosen:
                selected[row + s] = True
    return {"out.indices": ((B, T, k), indices), "out.selected": ((B, T, K), selected)}
