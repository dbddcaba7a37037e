"""Truth for csa_compress, as an operation and as a stage of csa_indexer and of a layer."""
import tape
from case import BadCase, Rows
from mla import Rope, plain, positive, rms, seed_all
from tape import Leaves, dot, value


def block_starts(rows, options):
    """First tokens of the blocks of the grid."""
    if options.get("grid", "physical") == "document":
        return rows._document_blocks(options["m"])
    return [j * options["m"] for j in range(rows.S // options["m"])]


class Compressor:
    """Pools blocks of m tokens.  `raw(b, s)` gives a token's (kv, gate), `bias(i)` a row of the position bias or
    None, `prior(b)` the m (kv, gate) pairs that stand before the first block or None."""

    def __init__(self, rows, options, D, raw, bias=None, norm=None, prior=lambda b: None, overlap=True):
        self.rows, self.o, self.m, self.D, self.raw, self.prior = rows, options, options["m"], D, raw, prior
        if self.m < 1:
            raise BadCase("m < 1")
        self.bias = bias or (lambda i: None)
        self.weight, self.overlap = norm, overlap
        self.first = block_starts(rows, options)
        self.N = len(self.first)
        self.normed = options.get("norm", True)
        self.eps = positive(options, "eps", 1e-6)
        self.turn = Rope(options["rope"], D) if options.get("rope") else None
        self.boundary = options.get("boundary", "positions")
        self.physical = options.get("grid", "physical") == "physical"
        if overlap and self.physical and self.boundary == "segments" and rows.segment is None:
            raise BadCase("boundary segments without segment_ids")
        self.kept = {}

    def continues(self, b, j):
        """Whether block j > 0 goes on with what block j - 1 began."""
        here, before = self.first[j], self.first[j - 1]
        if not self.physical:
            ids = self.rows.segment
            return ids is None or here == before + self.m and ids[b][here] == ids[b][before]
        if self.boundary == "segments":
            return self.rows.segment[b][here] == self.rows.segment[b][before]
        return self.rows.position[b][here] == self.rows.position[b][before] + self.m

    def before(self, b, j):
        """The m (kv, gate) pairs of lane A, or None."""
        if not self.overlap:
            return None
        if j == 0:
            return self.prior(b)
        if not self.continues(b, j):
            return None
        return [self.raw(b, self.first[j - 1] + i) for i in range(self.m)]

    def tokens(self, b, j):
        """The tokens that block j is made of, lane A's included."""
        out = list(range(self.first[j], self.first[j] + self.m))
        if self.overlap and j > 0 and self.continues(b, j):
            out += range(self.first[j - 1], self.first[j - 1] + self.m)
        return out

    def block(self, b, j):
        if (b, j) not in self.kept:
            self.kept[b, j] = self._pool(b, j)
        return self.kept[b, j]

    def _pool(self, b, j):
        own, old = [self.raw(b, self.first[j] + i) for i in range(self.m)], self.before(b, j)
        shift = self.D if self.overlap else 0
        pooled = []
        for d in range(self.D):
            pairs = []
            for rows, column in ((old or [], d), (own, shift + d)):
                for i, (kv, gate) in enumerate(rows):
                    bias = self.bias(i)
                    pairs.append((gate[column] if bias is None else gate[column] + bias[column], kv[column]))
            top = max(value(g) for g, _ in pairs)
            weights = [tape.exp(g - top) for g, _ in pairs]
            pooled.append(dot(weights, [x for _, x in pairs]) / tape.add_all(weights))
        if self.normed:
            pooled = rms(pooled, self.eps, self.weight() if self.weight else None)
        return self.turn(pooled, self.rows.position[b][self.first[j]]) if self.turn else pooled


def restated(leaf, name, flats):
    """Inputs as they are; None where one is hidden and not finite."""
    out = []
    for i in flats:
        try:
            out.append(leaf(name, i))
        except BadCase:
            out.append(None)
    return out


def csa_compress(case):
    leaf, o = Leaves(case), case.options
    B, S, width = case.shape("in.kv")
    overlap, m = o.get("overlap", True), o["m"]
    D = width // 2 if overlap else width
    if overlap and width % 2:
        raise BadCase("kv needs two lanes")
    rows = Rows(case, B, S, False, [S])
    with_prior = case.has("in.prior_kv")
    if with_prior != case.has("in.prior_gate") or with_prior and not overlap or \
            case.has("in.prior_present") and not with_prior:
        raise BadCase("prior_kv and prior_gate, together and with overlap")
    if case.has("in.norm_weight") and not o.get("norm", True):
        raise BadCase("norm_weight with norm false")

    def present(b):
        return with_prior and (not case.has("in.prior_present") or case.value("in.prior_present")[b])

    def prior(b):
        if not present(b):
            return None
        return [tuple(leaf.row(n, (b * m + i) * width, width) for n in ("prior_kv", "prior_gate")) for i in range(m)]

    def raw(b, s):
        return tuple(leaf.row(n, (b * S + s) * width, width) for n in ("kv", "gate"))

    bias = (lambda i: leaf.row("position_bias", i * width, width)) if case.has("in.position_bias") else None
    norm = (lambda: leaf.row("norm_weight", 0, D)) if case.has("in.norm_weight") else None
    compressor = Compressor(rows, o, D, raw, bias, norm, prior, overlap)
    N, result = compressor.N, {}

    def add(name, shape, values):
        seed_all(case, name, values)
        result["out." + name] = (shape, plain(values))

    add("compressed", (B, N, D), [x for b in range(B) for j in range(N) for x in compressor.block(b, j)])
    if compressor.physical:
        left = S % m
        for name in ("kv", "gate"):
            add("leftover_" + name, (B, left, width), [
                x for b in range(B)
                for x in restated(leaf, name, range((b * S + S - left) * width, (b + 1) * S * width))])
            if not overlap:
                continue
            values = []
            for b in range(B):
                if N:
                    values += leaf.row(name, (b * S + (N - 1) * m) * width, m * width)
                elif with_prior:
                    cells = range(b * m * width, (b + 1) * m * width)
                    values += restated(leaf, "prior_" + name, cells) if present(b) else [None] * len(cells)
                else:
                    values += [0] * (m * width)
            add("prior_" + name, (B, m, width), values)
        if overlap:
            result["out.prior_present"] = ((B,), [bool(N) or bool(present(b)) for b in range(B)])
    tape.backward()
    result.update(leaf.gradients(("kv", "gate", "position_bias", "norm_weight", "prior_kv", "prior_gate")))
    return result


class Projected:
    """(kv, gate) rows of a compressor made from x by two matrices; `x(b, s)` gives a token."""

    def __init__(self, leaf, x, prefix, width):
        self.leaf, self.x, self.prefix, self.width, self.kept = leaf, x, prefix, width, {}

    def __call__(self, b, s):
        if (b, s) not in self.kept:
            x = self.x(b, s)
            self.kept[b, s] = tuple(
                [dot(x, self.leaf.row(self.prefix + name, n, len(x), self.width)) for n in range(self.width)]
                for name in ("kv_proj", "gate_proj"))
        return self.kept[b, s]


