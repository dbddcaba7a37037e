"""Truth for indexer_scores, topk, dsa_indexer_loss and csa_indexer_loss: plain loops over mpmath numbers.

`evaluate(case)` returns a dict  name -> (shape, flat list)  with every `out.*` (also those on request)
and every `grad.*`.  Elements of a float tensor are mpf where something was computed, and the Python
int 0 where the number is zero by definition (hidden keys, rows that are not real, empty slots, skipped
rows): those must be matched exactly.  Indices are ints, flags bools.

Written from the text of the specification only; it shares no code with the library.  Dot products are
exact (Fractions of the stored numbers), so the kink of the ReLU is decided without rounding.
"""
from fractions import Fraction

import mpmath

from case import BadCase, Case, Rows, dot, load, number, real, _finite  # noqa: F401

from scores import Scorer, indexer_scores, score_factor, topk  # noqa: F401

INF = mpmath.inf


# ---------------------------------------------------------------------------------------------------
# dsa_indexer_loss, csa_indexer_loss
# ---------------------------------------------------------------------------------------------------

FLT_MIN = 2.0 ** -126


def _mode(name, eps):
    return {"mode": name, "eps": eps}


EXACT = "exact"
NONE = "none"
PRESETS = {
    "exact": dict(teacher="own", l1=NONE, target_log=EXACT, student_log=EXACT,
                  gradient="of_value", reduction="mean_valid"),
    "maxtext_v32": dict(teacher="own", l1=_mode("add", 1e-8), target_log=_mode("add", 1e-8),
                        student_log=_mode("add", 1e-8), gradient="of_value", reduction="mean_all"),
    "maxtext_v4": dict(teacher="own", l1=_mode("add", 1e-8), target_log=_mode("add", 1e-8),
                       student_log=_mode("add", 1e-8), gradient="of_value", reduction="mean_valid"),
    "megatron": dict(teacher="own", l1=_mode("clamp", 1e-10), target_log=_mode("clamp", 1e-10),
                     student_log=EXACT, gradient="p_minus_t", reduction="mean_real"),
    "megatron_csa_eager": dict(teacher="joint", l1=NONE, target_log=_mode("clamp", 1e-10),
                               student_log=EXACT, gradient="p_minus_t", reduction="mean_all"),
    "megatron_csa_fused": dict(teacher="joint", l1=_mode("clamp", FLT_MIN),
                               target_log=_mode("clamp", FLT_MIN), student_log=_mode("clamp", FLT_MIN),
                               gradient="p_minus_t", reduction="mean_all"),
    "primus": dict(teacher="joint", l1=_mode("clamp", FLT_MIN), target_log=_mode("add", 1e-10),
                   student_log=_mode("add", 1e-10), gradient="of_value", reduction="mean_all"),
    "veomni": dict(teacher="joint", l1=_mode("zero_below", FLT_MIN), target_log=EXACT,
                   student_log=EXACT, gradient="p_minus_t", reduction="mean_real"),
    "tilelang": dict(teacher="own", l1=NONE, target_log={"mode": "clip", "lo": -100},
                     student_log={"mode": "clip", "lo": -100}, gradient="p_minus_t",
                     reduction="sum", score_scale="dim"),
}
CSA_ONLY = ("megatron_csa_eager", "megatron_csa_fused", "primus", "veomni")
FIRST_LISTED = dict(sparse=False, teacher="own", restrict="before_softmax", l1=NONE, target_log=EXACT,
                    student_log=EXACT, gradient="of_value", reduction="sum", coefficient=1,
                    softmax_scale=1, score_scale="heads_and_dim", relu=True, layout="dense",
                    grid="physical")


def loss_options(case):
    """Options with the preset's values, then the first listed ones, filled in."""
    csa = case.op == "csa_indexer_loss"
    preset = case.options.get("preset", "maxtext_v4" if csa else "maxtext_v32")
    if preset in CSA_ONLY and not csa:
        raise BadCase("preset %s is csa only" % preset)
    full = dict(FIRST_LISTED)
    full.update(PRESETS[preset])
    full.update(case.options)
    for name in ("l1", "target_log", "student_log"):
        if isinstance(full[name], str):
            full[name] = {"mode": full[name]}
    if full["teacher"] != "own" and not csa:
        raise BadCase("joint teachers are csa only")
    return full


def the_log(how, x, ln_x):
    """target_log / student_log of a positive x whose logarithm is ln_x."""
    mode = how["mode"]
    if mode == "exact":
        return ln_x
    if mode == "add":
        return mpmath.log(x + real(number(how["eps"])))
    if mode == "clamp":
        eps = real(number(how["eps"]))
        return ln_x if x > eps else mpmath.log(eps)
    if mode == "clip":
        return max(ln_x, real(number(how["lo"])))
    raise BadCase("unknown logarithm " + repr(how))


def slope(how, p, ln_p):
    """g: the derivative of student_log with respect to ln p."""
    mode = how["mode"]
    if mode == "exact":
        return mpmath.mpf(1)
    if mode == "add":
        return p / (p + real(number(how["eps"])))
    if mode == "clamp":
        return mpmath.mpf(1 if p > real(number(how["eps"])) else 0)
    if mode == "clip":
        return mpmath.mpf(1 if ln_p > real(number(how["lo"])) else 0)
    raise BadCase("unknown logarithm " + repr(how))


def log_sum_exp(terms):
    """ln of the sum of exp; the empty sum and -inf terms count as 0, one +inf wins."""
    terms = [x for x in terms if x != -INF]
    if not terms:
        return -INF
    top = max(terms)
    if top == INF:
        return INF
    return top + mpmath.log(mpmath.fsum(mpmath.exp(x - top) for x in terms))


class Loss:
    def __init__(self, case):
        self.case = case
        self.o = o = loss_options(case)
        self.csa = case.op == "csa_indexer_loss"
        self.slots = o["layout"] == "slots"
        has = case.has
        if o["sparse"] != (has("in.selected") or has("in.indices")) or \
                (has("in.selected") and has("in.indices")):
            raise BadCase("exactly one of selected and indices when sparse, none otherwise")
        if self.slots and not has("in.indices"):
            raise BadCase("layout slots needs sparse and indices")

        # shapes: B, T from whatever is there; K from the keys
        if has("in.scores"):
            self.B, self.T, width = case.shape("in.scores")
            self.scorer = None
            key_count = None if self.slots else width
        else:
            self.scorer = Scorer(case, "in.index_q", "in.index_k", "in.index_w", o)
            self.B, self.T = self.scorer.B, self.scorer.T
            key_count = self.scorer.K
        self.keys = "in.compressed" if self.csa else "in.key"
        tokens = []
        if has("in.key"):
            tokens.append(case.shape("in.key")[1])
        if has("in.kv"):
            tokens.append(case.shape("in.kv")[1])
        if not self.csa and key_count is not None:
            tokens.append(key_count)  # dsa: the keys are the tokens
        if has("in.compressed"):
            n = case.shape("in.compressed")[1]
            if key_count not in (None, n):
                raise BadCase("compressed and scores disagree about N")
            key_count = n
        self.rows = Rows(case, self.B, self.T, self.csa, tokens, key_count)
        self.K = self.rows.K
        self.k = case.shape("in.indices")[2] if has("in.indices") else 0
        self.width = self.k if self.slots else self.K

        self.given_head_sum = case.value("given.head_sum") if has("given.head_sum") else None
        self.given_target = case.value("given.target") if has("given.target") else None
        self.given_log_mass = case.value("given.log_mass") if has("given.log_mass") else None
        if has("in.query"):
            self.H, self.D = case.shape("in.query")[2:]
        elif self.given_head_sum is None:
            raise BadCase("query is missing")
        self.scale = number(o["softmax_scale"])

    # ---- sets ------------------------------------------------------------------------------------

    def chosen(self, b, t, seen):
        """S_t as a dict key -> column of the [B,T,width] tensors, ascending in the key."""
        case = self.case
        if not self.o["sparse"]:
            return {s: s for s in seen}
        if case.has("in.selected"):
            flags = case.value("in.selected")
            return {s: s for s in seen if flags[(b * self.T + t) * self.K + s]}
        row = case.value("in.indices")[(b * self.T + t) * self.k:(b * self.T + t + 1) * self.k]
        named = [s for s in row if s != -1]
        if any(not 0 <= s < self.K for s in named) or len(set(named)) != len(named):
            raise BadCase("indices out of range or named twice")
        allowed = set(seen)
        place = {s: (slot if self.slots else s) for slot, s in enumerate(row) if s in allowed}
        return dict(sorted(place.items()))

    # ---- teacher ---------------------------------------------------------------------------------

    def logit(self, b, t, h, s):
        """c_h[s], exactly."""
        query, keys = self.case.value("in.query"), self.case.value(self.keys)
        i = ((b * self.T + t) * self.H + h) * self.D
        if self.csa:
            j = (b * self.K + s) * self.D
        else:
            Hk = self.case.shape("in.key")[2]
            j = ((b * self.K + s) * Hk + h * Hk // self.H) * self.D
        return real(self.scale * dot(query, i, keys, j, self.D))

    def window_logit(self, b, t, h, s):
        i = ((b * self.T + t) * self.H + h) * self.D
        j = (b * self.rows.S + s) * self.D
        return real(self.scale * dot(self.case.value("in.query"), i, self.case.value("in.kv"), j, self.D))

    def log_mass(self, b, t, h, seen, chosen):
        """ln Z_h of a real row."""
        if self.given_log_mass is not None:
            return real(self.given_log_mass[(b * self.T + t) * self.H + h])
        o = self.o
        support = chosen if o["restrict"] == "before_softmax" else seen
        terms = [self.logit(b, t, h, s) for s in support]
        if o["teacher"] in ("joint", "joint_window"):
            if o["window"] > 0:
                terms += [self.window_logit(b, t, h, s) for s in self.rows.window(b, t, o["window"])]
            if o["teacher"] == "joint" and self.case.has("in.sink"):
                terms.append(real(self.case.value("in.sink")[h]))
        return log_sum_exp(terms)

    def head_sum(self, b, t, chosen, masses):
        """T[s] on S_t."""
        T = {}
        for s, column in chosen.items():
            if self.given_head_sum is not None:
                x = self.given_head_sum[(b * self.T + t) * self.width + column]
                if x != x or x < 0:
                    raise BadCase("head_sum is negative or NaN")
                T[s] = real(x)
            else:
                T[s] = mpmath.fsum(0 if mass == INF else mpmath.exp(self.logit(b, t, h, s) - mass)
                                   for h, mass in enumerate(masses))
        return T

    def normalised(self, T):
        """t = T normalised per l1, or None where zero_below makes the row 0."""
        total = mpmath.fsum(T.values())
        mode = self.o["l1"]["mode"]
        eps = real(number(self.o["l1"].get("eps", 0)))
        if mode == "none":
            divisor = total
        elif mode == "add":
            divisor = total + eps
        elif mode == "clamp":
            divisor = max(total, eps)
        elif mode == "zero_below":
            if total <= eps:
                return None
            divisor = total
        else:
            raise BadCase("unknown l1 " + repr(mode))
        return {s: x / divisor for s, x in T.items()}

    # ---- student ---------------------------------------------------------------------------------

    def student_logit(self, b, t, s, column):
        if self.scorer is not None:
            return self.scorer.score(b, t, s)
        z = self.case.value("in.scores")[(b * self.T + t) * self.width + column]
        if not _finite(z):
            raise BadCase("a visible score is not finite")
        return real(z)

    # ---- everything ------------------------------------------------------------------------------

    def run(self):
        o, B, T, width = self.o, self.B, self.T, self.width
        case, rows = self.case, self.rows
        row_loss = [0] * (B * T)
        row_valid = [False] * (B * T)
        log_mass = [-INF] * (B * T * self.H) if self.given_head_sum is None else None
        head_sum, target, student = ([0] * (B * T * width) for _ in range(3))
        slopes = {}  # (b, t) -> {key: d row_loss / d z}, only for rows that are not skipped
        columns = {}
        real_rows = 0

        for b in range(B):
            for t in range(T):
                if not rows.is_real(b, t):
                    continue
                real_rows += 1
                here = b * T + t
                seen = rows.visible(b, t)
                row_valid[here] = len(seen) > 0
                chosen = self.chosen(b, t, seen)

                masses = None
                if self.given_head_sum is None:
                    masses = [self.log_mass(b, t, h, seen, chosen) for h in range(self.H)]
                    log_mass[here * self.H:(here + 1) * self.H] = masses
                sums = self.head_sum(b, t, chosen, masses)
                for s, column in chosen.items():
                    head_sum[here * width + column] = sums[s]
                if all(x == 0 for x in sums.values()):
                    continue  # T is exactly zero (also: no key at all): a skipped row
                weights = self.normalised(sums)
                if weights is None:
                    continue
                if self.given_target is not None:
                    weights = {s: real(self.given_target[here * width + column])
                               for s, column in chosen.items()}

                z = {s: self.student_logit(b, t, s, column) for s, column in chosen.items()}
                ln_z = log_sum_exp(z.values())
                ln_p = {s: z[s] - ln_z for s in chosen}
                p = {s: mpmath.exp(ln_p[s]) for s in chosen}
                terms = []
                for s in chosen:
                    if weights[s] != 0:
                        x = weights[s]
                        terms.append(x * (the_log(o["target_log"], x, mpmath.log(x))
                                          - the_log(o["student_log"], p[s], ln_p[s])))
                row_loss[here] = mpmath.fsum(terms)
                for s, column in chosen.items():
                    target[here * width + column] = weights[s]
                    student[here * width + column] = p[s]

                if o["gradient"] == "p_minus_t":
                    slopes[b, t] = {s: p[s] - weights[s] for s in chosen}
                else:
                    u = {s: -weights[s] * slope(o["student_log"], p[s], ln_p[s]) for s in chosen}
                    total = mpmath.fsum(u.values())
                    slopes[b, t] = {s: u[s] - p[s] * total for s in chosen}
                columns[b, t] = chosen

        count = {"sum": 1, "mean_all": B * T, "mean_valid": sum(row_valid),
                 "mean_real": real_rows}[o["reduction"]]
        factor = real(number(o["coefficient"])) / count if count else mpmath.mpf(0)
        result = {
            "out.loss": ((), [factor * mpmath.fsum(row_loss)]),
            "out.row_loss": ((B, T), row_loss),
            "out.row_valid": ((B, T), row_valid),
            "out.head_sum": ((B, T, width), head_sum),
            "out.target": ((B, T, width), target),
            "out.student": ((B, T, width), student),
        }
        if log_mass is not None:
            result["out.log_mass"] = ((B, T, self.H), log_mass)

        # gradients
        given = [name for name in ("cot.loss", "cot.row_loss") if case.has(name)]
        cot_loss = real(case.value("cot.loss")[0]) if "cot.loss" in given else \
            mpmath.mpf(0 if given else 1)
        grad_scores = [0] * (B * T * width)
        for (b, t), dz in slopes.items():
            weight = cot_loss * factor
            if "cot.row_loss" in given:
                weight += real(case.value("cot.row_loss")[b * T + t])
            for s, x in dz.items():
                if self.scorer is not None:
                    self.scorer.backward(b, t, s, weight * x)
                else:
                    grad_scores[(b * T + t) * width + columns[b, t][s]] = weight * x
        if self.scorer is not None:
            result.update(self.scorer.gradients())
        else:
            result["grad.scores"] = ((B, T, width), grad_scores)
        return result


OPERATIONS = {"indexer_scores": indexer_scores, "topk": topk,
              "dsa_indexer_loss": lambda case: Loss(case).run(),
              "csa_indexer_loss": lambda case: Loss(case).run()}
ON_REQUEST = {"dsa_indexer_loss": ("head_sum", "target", "student"),
              "csa_indexer_loss": ("head_sum", "target", "student"),
              "indexer_scores": (), "topk": ()}


def evaluate(case, dps=60):
    """Every output and gradient of `case` (a Case), computed with `dps` decimal digits."""
    with mpmath.workdps(dps):
        return OPERATIONS[case.op](case)
