"""Truth for linear, rms_norm, layer_norm, rope, mla_projection and stage_routing.

Forward in plain loops, gradients from the tape; written from the text of the specification only.
"""
import mpmath

import tape
from case import BadCase, number, real
from safetensors_io import count
from tape import Leaves, constant, dot, value


def positive(options, name, default):
    return real(number(options.get(name, default)))


def seed_all(case, name, vars_):
    """Add cot.<name> to a flat list of outputs; an output without a path never reads its cotangent."""
    if case.has("cot." + name):
        for i, x in enumerate(vars_):
            if isinstance(x, tape.Var):
                tape.seed(x, constant(case, "cot." + name, i))


def plain(values):
    return [x.v if isinstance(x, tape.Var) else x for x in values]


# ---------------------------------------------------------------------------------------------------
# linear and the norms
# ---------------------------------------------------------------------------------------------------

def linear(case):
    leaf = Leaves(case)
    n_rows, I = case.shape("in.x")
    _, G, O = case.shape("in.weight")
    begin, end = case.options.get("slice_bounds", (0, O))
    if not 0 <= begin < end <= O:
        raise BadCase("slice_bounds")
    y = []
    for n in range(n_rows):
        for g in range(G):
            for o in range(begin, end):
                z = dot(leaf.row("x", n * I, I), leaf.row("weight", g * O + o, I, G * O))
                if case.has("in.bias"):
                    z = z + leaf("bias", g * O + o)
                y.append(z)
    seed_all(case, "y", y)
    tape.backward()
    result = {"out.y": ((n_rows, G, end - begin), plain(y))}
    result.update(leaf.gradients(("x", "weight", "bias")))
    return result


def rms(x, eps, weight=None):
    D = len(x)
    mean = dot(x, x) / mpmath.mpf(D) + eps
    if value(mean) == 0:
        raise BadCase("a zero row under a norm with eps 0")
    r = tape.rsqrt(mean)
    y = [a * r for a in x]
    return y if weight is None else [a * w for a, w in zip(y, weight)]


def centred(x, eps, weight=None, bias=None):
    """layer_norm of one row."""
    D = mpmath.mpf(len(x))
    mean = tape.add_all(x) / D
    x = [a - mean for a in x]
    var = dot(x, x) / D + eps
    if value(var) == 0:
        raise BadCase("a zero row under a norm with eps 0")
    r = tape.rsqrt(var)
    y = [a * r for a in x]
    if weight is not None:
        y = [a * w for a, w in zip(y, weight)]
    if bias is not None:
        y = [a + b for a, b in zip(y, bias)]
    return y


def _norm(case, layer):
    leaf = Leaves(case)
    shape = case.shape("in.x")
    D, eps = shape[-1], positive(case.options, "eps", 1e-6)
    y = []
    for n in range(count(shape[:-1])):
        weight = leaf.row("weight", 0, D) if case.has("in.weight") else None
        bias = leaf.row("bias", 0, D) if layer and case.has("in.bias") else None
        x = leaf.row("x", n * D, D)
        y += centred(x, eps, weight, bias) if layer else rms(x, eps, weight)
    seed_all(case, "y", y)
    tape.backward()
    result = {"out.y": (shape, plain(y))}
    result.update(leaf.gradients(("x", "weight", "bias") if layer else ("x", "weight")))
    return result


def rms_norm(case):
    return _norm(case, False)


def layer_norm(case):
    return _norm(case, True)


# ---------------------------------------------------------------------------------------------------
# rope
# ---------------------------------------------------------------------------------------------------

class Rope:
    def __init__(self, options, width, placement="trailing", pairing="interleaved"):
        self.dim = dim = options["dim"]
        self.width = width
        if dim % 2 or dim > width:
            raise BadCase("rope.dim")
        self.placement = options.get("placement", placement)
        self.pairing = options.get("pairing", pairing)
        self.half_output = options.get("output", "same") == "half"
        self.inverse = options.get("inverse", False)
        self.factor = real(number(options.get("attention_factor", 1)))
        theta = real(number(options["theta"]))
        self.frequency = [mpmath.power(theta, mpmath.mpf(-2 * i) / dim) for i in range(dim // 2)]
        yarn = options.get("yarn")
        if yarn is not None:
            self._stretch(theta, yarn)
        self.turns = {}

    def _stretch(self, theta, yarn):
        factor = real(number(yarn["factor"]))

        def corner(beta):
            span = real(number(yarn["original_max_position"])) / (2 * mpmath.pi * real(number(beta)))
            return self.dim * mpmath.log(span) / (2 * mpmath.log(theta))

        low, high = corner(yarn["beta_fast"]), corner(yarn["beta_slow"])
        if yarn.get("truncate", True):
            low, high = mpmath.floor(low), mpmath.ceil(high)
        low, high = max(low, mpmath.mpf(0)), min(high, mpmath.mpf(self.dim - 1))
        if low == high:
            high += mpmath.mpf(1) / 1000
        for i, f in enumerate(self.frequency):
            ramp = (i - low) / (high - low)
            s = 1 - min(max(ramp, mpmath.mpf(0)), mpmath.mpf(1))
            self.frequency[i] = f / factor * (1 - s) + f * s

    def __call__(self, x, position):
        """Rotate the row x of `width` channels."""
        if position not in self.turns:
            sign = -1 if self.inverse else 1
            self.turns[position] = [(mpmath.cos(position * f), sign * mpmath.sin(position * f))
                                    for f in self.frequency]
        dim, half = self.dim, self.dim // 2
        first = self.width - dim if self.placement == "trailing" else 0
        part = x[first:first + dim]
        out = [None] * dim
        for i, (c, s) in enumerate(self.turns[position]):
            interleaved, halves = (2 * i, 2 * i + 1), (i, i + half)
            source = target = interleaved if self.pairing == "interleaved" else halves
            if self.pairing == "interleaved" and self.half_output:
                if self.inverse:
                    source = halves
                else:
                    target = halves
            a, b = part[source[0]], part[source[1]]
            c, s = c * self.factor, s * self.factor
            out[target[0]] = dot((a, b), (c, -s))
            out[target[1]] = dot((a, b), (s, c))
        return list(x[:first]) + out + list(x[first + dim:])


def token_positions(case, B, S):
    if case.has("in.cu_seqlens"):
        return None
    if case.has("in.positions"):
        return case.value("in.positions")
    return list(range(S)) * B


def rope(case):
    leaf = Leaves(case)
    B, S, H, D = case.shape("in.x")
    turn = Rope(case.options["rope"], D)
    places = token_positions(case, B, S)
    y = []
    for row in range(B * S * H):
        y += turn(leaf.row("x", row * D, D), places[row // H])
    seed_all(case, "y", y)
    tape.backward()
    result = {"out.y": ((B, S, H, D), plain(y))}
    result.update(leaf.gradients(("x",)))
    return result


# ---------------------------------------------------------------------------------------------------
# mla_projection
# ---------------------------------------------------------------------------------------------------

WEIGHTS = ("wq", "wq_a", "q_norm", "wq_b", "wkv_a", "kv_norm", "wkv_b", "bq", "bq_a", "bq_b", "bkv_a", "bkv_b")


class Projection:
    """Query, key and value of single tokens, computed when asked for."""

    def __init__(self, case, leaf, position, padding=lambda b, s: False):
        self.case, self.leaf, self.position, self.padding = case, leaf, position, padding
        o = case.options
        self.B, self.S, self.E = case.shape("in.x")
        self.dn, self.dr, self.dv = o["nope_dim"], o["rope_dim"], o["v_dim"]
        self.Rkv, self.H, _ = case.shape("in.wkv_b")
        self.direct = case.has("in.wq")
        self.Rq = None if self.direct else case.shape("in.wq_b")[0]
        self.eps = positive(o, "eps", 1e-6)
        if o["rope"]["dim"] != self.dr:
            raise BadCase("rope.dim is not rope_dim")
        self.turn = Rope(o["rope"], self.dr)
        self.scale = 1 / mpmath.sqrt(mpmath.mpf(self.dn + self.dr))
        longest, original = o.get("max_position", 0), o.get("original_max_position", 0)
        if longest and original and longest > original:
            factor = real(number(o["rope"]["yarn"]["factor"]))
            m = mpmath.mpf(1) / 10 * real(number(o.get("mscale", 1))) * mpmath.log(factor) + 1
            self.scale *= m * m
        self.kept = {}

    def _once(self, what, b, s, make, width):
        """The given value, or make() the first time."""
        key = (what, b, s)
        if key not in self.kept:
            name = "given." + what
            if self.case.has(name):
                begin = (b * self.S + s) * width
                self.kept[key] = [constant(self.case, name, begin + n) for n in range(width)]
            else:
                self.kept[key] = make()
        return self.kept[key]

    def x(self, b, s):
        if self.padding(b, s):
            return [mpmath.mpf(0)] * self.E
        return self.leaf.row("x", (b * self.S + s) * self.E, self.E)

    def _times(self, x, weight, bias, column, width):
        """sum_i x_i weight[i, column] + bias[column]."""
        y = dot(x, self.leaf.row(weight, column, len(x), width))
        return y + self.leaf(bias, column) if self.case.has("in." + bias) else y

    def q_latent(self, b, s):
        def make():
            x = self.x(b, s)
            return rms([self._times(x, "wq_a", "bq_a", n, self.Rq) for n in range(self.Rq)], self.eps,
                       self.leaf.row("q_norm", 0, self.Rq))
        return self._once("q_latent", b, s, make, self.Rq)

    def query(self, b, s):
        """[H, dn+dr] flat."""
        width = self.dn + self.dr

        def make():
            source, weight, bias = (self.x(b, s), "wq", "bq") if self.direct else \
                (self.q_latent(b, s), "wq_b", "bq_b")
            out = []
            for h in range(self.H):
                row = [self._times(source, weight, bias, h * width + d, self.H * width) for d in range(width)]
                row = row[:self.dn] + self.turn(row[self.dn:], self.position(b, s))
                out += [a * self.scale for a in row]
            return out
        return self._once("query", b, s, make, self.H * width)

    def _kv_a(self, b, s, columns):
        x = self.x(b, s)
        return [self._times(x, "wkv_a", "bkv_a", n, self.Rkv + self.dr) for n in columns]

    def kv_latent(self, b, s):
        return self._once("kv_latent", b, s, lambda: rms(
            self._kv_a(b, s, range(self.Rkv)), self.eps, self.leaf.row("kv_norm", 0, self.Rkv)), self.Rkv)

    def k_pe(self, b, s):
        return self._once("k_pe", b, s, lambda: self.turn(
            self._kv_a(b, s, range(self.Rkv, self.Rkv + self.dr)), self.position(b, s)), self.dr)

    def _kv_b(self, b, s, h, columns):
        latent, width = self.kv_latent(b, s), self.dn + self.dv
        return [self._times(latent, "wkv_b", "bkv_b", h * width + d, self.H * width) for d in columns]

    def key(self, b, s):
        return self._once("key", b, s, lambda: [x for h in range(self.H) for x in
                                                self._kv_b(b, s, h, range(self.dn)) + self.k_pe(b, s)],
                          self.H * (self.dn + self.dr))

    def value(self, b, s):
        return self._once("value", b, s, lambda: [x for h in range(self.H) for x in self._kv_b(
            b, s, h, range(self.dn, self.dn + self.dv))], self.H * self.dv)

    def outputs(self):
        """name -> (shape, function of a token)."""
        B, S, H, width = self.B, self.S, self.H, self.dn + self.dr
        out = {"query": ((B, S, H, width), self.query), "key": ((B, S, H, width), self.key),
               "value": ((B, S, H, self.dv), self.value), "kv_latent": ((B, S, self.Rkv), self.kv_latent),
               "k_pe": ((B, S, self.dr), self.k_pe)}
        if not self.direct:
            out["q_latent"] = ((B, S, self.Rq), self.q_latent)
        return out


def per_token(shape, make, exempt=False, read=None):
    """All tokens in order; with `exempt`, None where something hidden that is not finite would be read,
    and at tokens outside the set `read`."""
    out, inner = [], count(shape[2:])
    for b in range(shape[0]):
        for s in range(shape[1]):
            try:
                out += [None] * inner if read is not None and (b, s) not in read else make(b, s)
            except BadCase:
                if not exempt:
                    raise
                out += [None] * inner
    return out


def mla_projection(case):
    leaf = Leaves(case)
    B, S, _ = case.shape("in.x")
    places = token_positions(case, B, S)
    projection = Projection(case, leaf, lambda b, s: places[b * S + s])
    result = {}
    for name, (shape, make) in projection.outputs().items():
        values = per_token(shape, make)
        seed_all(case, name, values)
        result["out." + name] = (shape, plain(values))
    tape.backward()
    result.update(leaf.gradients(("x",) + WEIGHTS))
    return result


# ---------------------------------------------------------------------------------------------------
# stage_routing
# ---------------------------------------------------------------------------------------------------

def stage_routing(case):
    o = case.options
    v4, has = o.get("model", "v32") == "v4", o["use_indexer"]
    loss = o.get("mode", "train") == "train" and has and number(o["coefficient"]) > 0
    warm = loss and not o["sparse"]
    return {"out.computes_loss": ((), [loss]), "out.warm_up": ((), [warm]),
            "out.attends_all": ((), [(warm or not has) if v4 else not has]), "out.lm_loss": ((), [not warm])}
