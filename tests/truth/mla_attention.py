"""Truth for mla_attention and merge_attention: plain loops, gradients from the tape (tape.py)."""
import mpmath

import tape
from case import BadCase, Rows, _finite, number, real
from mla import plain, seed_all
from tape import Leaves, Var, constant, dot, value

INF = mpmath.inf
EMPTY = {"-inf": -INF, "+inf": INF, 0: 0}


class Sink:
    """sink[h] as a Var, or one of the infinities, or None without sinks."""

    def __init__(self, case, leaf):
        self.case, self.leaf = case, leaf

    def __call__(self, h):
        if not self.case.has("in.sink"):
            return None
        x = self.case.value("in.sink")[h]
        if _finite(x):
            return self.leaf("sink", h)
        if x != x:
            raise BadCase("a sink is NaN")
        return INF if x > 0 else None  # -inf is no sink


def log_base(options):
    return mpmath.log(2) if options.get("lse_base", "e") == 2 else mpmath.mpf(1)


def empty_lse(options, sink):
    """lse of a row without keys; `sink` is None where there is none or it is not counted."""
    if "empty_lse" in options:
        return EMPTY[options["empty_lse"]]
    if sink is None:
        return -INF
    return INF if value(sink) == INF else sink / log_base(options)


def chosen_keys(case, rows, b, t):
    """Visible selected keys of a real row, key -> how often it counts."""
    o, T, S = case.options, rows.T, rows.K
    seen = rows.visible(b, t)
    if case.has("in.selected") and case.has("in.indices"):
        raise BadCase("selected and indices")
    if case.has("in.selected"):
        flags = case.value("in.selected")[(b * T + t) * S:(b * T + t + 1) * S]
        named = [s for s in range(S) if flags[s]]
    elif case.has("in.indices"):
        k = case.shape("in.indices")[2]
        named = [s for s in case.value("in.indices")[(b * T + t) * k:(b * T + t + 1) * k] if s != -1]
        if any(not 0 <= s < S for s in named):
            raise BadCase("an index out of range")
    else:
        return {s: 1 for s in seen}
    if o.get("strict_selection", False) and set(named) - set(seen):
        raise BadCase("an invisible key is selected")
    times = {}
    for s in sorted(s for s in named if s in set(seen)):
        times[s] = times.get(s, 0) + 1
    how = o.get("duplicates", "error")
    if how == "error" and any(n > 1 for n in times.values()):
        raise BadCase("a key is named twice")
    return times if how == "multiset" else {s: 1 for s in times}


class Attention:
    """query(b,t,h), key(b,s,h), val(b,s,h) give lists of numbers; `keys(b,t)` the dict of chosen_keys."""

    def __init__(self, case, rows, H, Dv, query, key, val, keys, sink, options, prefix=""):
        self.case, self.rows, self.H, self.Dv = case, rows, H, Dv
        self.query, self.key, self.val, self.keys, self.sink = query, key, val, keys, sink
        self.o = options
        self.given_output = "given.%soutput" % prefix if case.has("given.%soutput" % prefix) else None
        self.given_lse = "given.%slse" % prefix if case.has("given.%slse" % prefix) else None
        self.given_max = "given.%smax_logit" % prefix if case.has("given.%smax_logit" % prefix) else None
        self.scale = real(number(options.get("softmax_scale", 1)))
        self.base = log_base(options)
        self.counted = options.get("lse_includes_sink", False)

    def run(self):
        """Flat output [B,T,H,Dv], lse and max_logit [B,T,H]."""
        rows, output, lse, largest = self.rows, [], [], []
        for b in range(rows.B):
            for t in range(rows.T):
                is_real = rows.is_real(b, t)
                keys = self.keys(b, t) if is_real else {}
                for h in range(self.H):
                    sink = self.sink(h)
                    one = ([0] * self.Dv, empty_lse(self.o, sink if self.counted else None), -INF)
                    if keys:
                        one = self._row(b, t, h, keys, sink)
                    elif not is_real:
                        one = (one[0], value(one[1]), one[2])
                    output += one[0]
                    lse.append(one[1])
                    largest.append(one[2])
        return output, lse, largest

    def _row(self, b, t, h, keys, sink):
        q = self.query(b, t, h)
        c = {s: dot(q, self.key(b, s, h)) * self.scale for s in keys}
        v = {s: self.val(b, s, h) for s in keys}
        top = max(value(x) for x in c.values())
        weight = {s: tape.exp(c[s] - top) * mpmath.mpf(n) for s, n in keys.items()}
        mass = tape.add_all(list(weight.values()))
        finite_sink = sink is not None and value(sink) != INF
        everything = mass + tape.exp(sink - top) if finite_sink else mass
        if value(sink) == INF and self.counted:
            lse = INF
        else:
            lse = (tape.log(everything if self.counted else mass) + top) / self.base
        where = (b * self.rows.T + t) * self.H + h
        if self.given_lse:
            x = self.case.value(self.given_lse)[where]
            lse = real(x) if _finite(x) else mpmath.mpf(x)
        if value(sink) == INF:
            out = [0] * self.Dv
            if self.given_output:
                out = [constant(self.case, self.given_output, where * self.Dv + d) for d in range(self.Dv)]
            return out, lse, top
        p = {s: w / everything for s, w in weight.items()}
        out = [dot([p[s] for s in keys], [v[s][d] for s in keys]) for d in range(self.Dv)]
        if self.given_lse or self.given_output:
            out = self._given(where, c, v, p, keys, sink, lse, out)
        return out, lse, top

    def _given(self, where, c, v, p, keys, sink, lse, out):
        """p = exp(c - lse), dc = p (cot.output v - cot.output output), with the forward's own lse and output."""
        p = {s: value(x) for s, x in p.items()}
        stated = plain(out)
        if self.given_output:
            stated = [constant(self.case, self.given_output, where * self.Dv + d) for d in range(self.Dv)]
        p_sink = 0
        if self.given_lse:
            total = lse * self.base
            if sink is not None and not self.counted:
                high = max(total, value(sink))
                total = high + mpmath.log(mpmath.exp(total - high) + mpmath.exp(value(sink) - high))
            p = {s: n * mpmath.exp(value(c[s]) - total) for s, n in keys.items()}
            p_sink = 0 if sink is None else mpmath.exp(value(sink) - total)
        elif sink is not None:
            p_sink = 1 - mpmath.fsum(p.values())
        cut = [Var(x) for x in stated]

        def hook():
            cot = [x.g for x in cut]
            if all(isinstance(g, int) and g == 0 for g in cot):
                return
            delta = mpmath.fsum(g * x for g, x in zip(cot, stated))
            for s in keys:
                tape.seed(c[s], p[s] * (mpmath.fsum(g * value(x) for g, x in zip(cot, v[s])) - delta))
                for g, x in zip(cot, v[s]):
                    tape.seed(x, p[s] * g)
            if sink is not None:
                tape.seed(sink, -p_sink * delta)
        cut[0].hook = hook
        return cut


def mla_attention(case):
    leaf, o = Leaves(case), case.options
    B, T, H, D = case.shape("in.query")
    latent = case.has("in.kv_latent")
    if latent:
        S, Rkv = case.shape("in.kv_latent")[1:]
        dn, dv = o["nope_dim"], o["v_dim"]
        dr = case.shape("in.k_pe")[2]
        width = dn + dv

        def expand(b, s, h, columns):
            z = leaf.row("kv_latent", (b * S + s) * Rkv, Rkv)
            out = [dot(z, leaf.row("wkv_b", h * width + d, Rkv, H * width)) for d in columns]
            if case.has("in.bkv_b"):
                out = [x + leaf("bkv_b", h * width + d) for x, d in zip(out, columns)]
            return out

        def key(b, s, h):
            return expand(b, s, h, range(dn)) + leaf.row("k_pe", (b * S + s) * dr, dr)

        def val(b, s, h):
            return expand(b, s, h, range(dn, width))
        names = ("query", "kv_latent", "k_pe", "wkv_b", "bkv_b", "sink")
    else:
        S, Hk = case.shape("in.key")[1:3]
        if H % Hk:
            raise BadCase("Hk does not divide H")
        dv = case.shape("in.value")[3] if case.has("in.value") else o["v_dim"]

        def key(b, s, h):
            return leaf.row("key", ((b * S + s) * Hk + h * Hk // H) * D, D)

        def val(b, s, h):
            place = (b * S + s) * Hk + h * Hk // H
            return leaf.row("value", place * dv, dv) if case.has("in.value") else leaf.row("key", place * D, dv)
        names = ("query", "key", "value", "sink")
    rows = Rows(case, B, T, False, [S], S)
    cache = {}

    def kept(name, make):
        def get(b, s, h):
            if (name, b, s, h) not in cache:
                cache[name, b, s, h] = make(b, s, h)
            return cache[name, b, s, h]
        return get

    attention = Attention(case, rows, H, dv, lambda b, t, h: leaf.row("query", ((b * T + t) * H + h) * D, D),
                          kept("key", key), kept("val", val), lambda b, t: chosen_keys(case, rows, b, t),
                          Sink(case, leaf), o)
    output, lse, largest = attention.run()
    seed_all(case, "output", output)
    seed_all(case, "lse", lse)
    result = {"out.output": ((B, T, H, dv), plain(output)), "out.lse": ((B, T, H), plain(lse)),
              "out.max_logit": ((B, T, H), largest)}
    tape.backward()
    result.update(leaf.gradients(names))
    return result


# ---------------------------------------------------------------------------------------------------
# merge_attention
# ---------------------------------------------------------------------------------------------------

def merge_attention(case):
    leaf, o = Leaves(case), case.options
    P, B, T, H, D = case.shape("in.outputs")
    sink, base = Sink(case, leaf), log_base(o)
    if o.get("empty_lse", "-inf") == 0:
        raise BadCase("empty_lse 0")
    empty = EMPTY[o.get("empty_lse", "-inf")]
    counted = o.get("lse_includes_sink", False)
    lses, rows = case.value("in.lse"), B * T * H
    output, lse = [], []
    for row in range(rows):
        s = sink(row % H)
        live = [p for p in range(P) if lses[p * rows + row] != empty]
        if not live:
            output += [0] * D
            lse.append(empty_lse(o, s if counted else None))
            continue
        c = [leaf("lse", p * rows + row) * base for p in live]
        top = max(value(x) for x in c)
        weight = [tape.exp(x - top) for x in c]
        mass = tape.add_all(weight)
        infinite = s is not None and value(s) == INF
        everything = mass if s is None or infinite else mass + tape.exp(s - top)
        lse.append(INF if infinite and counted else (tape.log(everything if counted else mass) + top) / base)
        for d in range(D):
            if infinite:
                output.append(0)
                continue
            parts = [leaf("outputs", (p * rows + row) * D + d) for p in live]
            output.append(dot(weight, parts) / everything)
    seed_all(case, "output", output)
    seed_all(case, "lse", lse)
    result = {"out.output": ((B, T, H, D), plain(output)), "out.lse": ((B, T, H), plain(lse))}
    tape.backward()
    result.update(leaf.gradients(("outputs", "lse", "sink")))
    return result
