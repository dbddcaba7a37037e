"""Random sizes, documents, positions, rows, masks, tensors and poison for random_cases.py."""
import math
from fractions import Fraction

import losses
import safetensors_io as st
from safetensors_io import Tensor

COMMON_DTYPES = ("F32",) * 9 + ("BF16",) * 5 + ("F64",) * 5 + ("F16",)
NUMBER_POISON = (math.nan, math.nan, math.inf, -math.inf, 1e30)


class Geometry:
    """Sizes, documents, positions and rows; fills the mask inputs and `mask`, `m`, `grid`, `S` options."""

    def __init__(self, rng, blocks):
        self.rng, self.blocks = rng, blocks
        self.inputs, self.mask, self.options = {}, {}, {}
        self.B = rng.choice((1, 1, 1, 2, 2, 3))
        self.m = rng.choice((1, 2, 2, 3, 3, 4, 5)) if blocks else None
        self.document_grid = blocks and rng.random() < 0.25
        if self.document_grid:
            self.B = 1
        elif rng.random() < 0.01:
            self.B = 0
        self.S = rng.randint(5, 24 if self.B < 3 else 15)
        if rng.random() < 0.02:
            self.S = 1 if not blocks else max(1, self.m - 1)
        self._segments()
        self._rows()
        if blocks:
            self.options["m"] = self.m
            if self.document_grid or rng.random() < 0.2:
                self.options["grid"] = "document" if self.document_grid else "physical"
        self.K = self._key_count()
        self._row_masks()
        if self.mask:
            self.options["mask"] = self.mask

    def _lengths(self):
        """Ragged document lengths with sum S."""
        rng, left, lengths = self.rng, self.S, []
        while left:
            n = min(left, rng.choice((1, 2, 3, 4, 5, 6, 7, 9, 12)))
            lengths.append(n)
            left -= n
        return lengths

    def _segments(self):
        rng, B, S = self.rng, self.B, self.S
        kind = rng.choice(("none", "none", "ids", "ids", "ids", "cu"))
        if kind == "cu" and B != 1:
            kind = "ids"
        self.causal = rng.random() < 0.85
        if not self.causal or rng.random() < 0.3:
            self.mask["causal"] = self.causal
        self.documents = kind != "none"
        if kind != "none" and not (self.blocks and kind == "cu") and rng.random() < 0.15:
            self.documents = False
            self.mask["documents"] = False
        elif rng.random() < 0.3:
            self.mask["documents"] = self.documents

        per_batch = [self._lengths() for _ in range(B)]
        if kind == "cu":
            lengths = per_batch[0]
            while rng.random() < 0.3:  # documents without a token
                lengths.insert(rng.randrange(len(lengths) + 1), 0)
            ends = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
            self.inputs["in.cu_seqlens"] = Tensor("I32", (len(ends),), ends)
            if rng.random() < 0.35:
                self.mask["padding_segment"] = rng.choice((len(lengths) - 1, 0, rng.randrange(len(lengths))))
            return
        restarting = []
        if kind == "ids":
            padding = rng.choice((0, -1, 7)) if rng.random() < 0.4 else None
            if padding is not None:
                self.mask["padding_segment"] = padding
            flat = []
            for b in range(B):
                ids = rng.sample([i for i in range(-3, 40) if i != padding], len(per_batch[b]))
                if padding is not None and len(ids) > 1:
                    where = rng.choice(("tail", "tail", "head", "middle", "two"))
                    places = {"tail": [-1], "head": [0], "middle": [len(ids) // 2],
                              "two": [0, len(ids) // 2]}[where]
                    for i in places:
                        ids[i] = padding
                for n, d in zip(per_batch[b], ids):
                    flat += [d] * n
            self.inputs["in.segment_ids"] = Tensor("I32", (B, S), flat)
        for b in range(B):
            for n in per_batch[b] if kind == "ids" else [S]:
                start = rng.choice((0, 0, 0, 0, 6))
                restarting += range(start, start + n)
        increasing = []
        for b in range(B):
            place = rng.choice((0, 0, 3))
            for s in range(S):
                increasing.append(place)
                place += rng.choice((1, 1, 1, 1, 2, 5))
        choice = rng.choice(("none", "restart", "restart", "restart", "increasing"))
        if not self.documents and self.blocks and choice == "restart":
            choice = "increasing"
        if choice == "restart" and kind == "ids" or choice == "increasing":
            values = restarting if choice == "restart" else increasing
            if not self.blocks and rng.random() < 0.2:
                values = [rng.randint(0, 9) for _ in values]  # tokens have no use for positions
            self.inputs["in.positions"] = Tensor("I32", (B, S), values)

    def _rows(self):
        rng, S = self.rng, self.S
        way = rng.choice(("full", "full", "full", "tail", "offset", "row_index", "row_index"))
        limit = max(1, 60 // max(1, self.B))
        if way == "full" and S > limit:
            way = "tail"
        self.way = way
        self.T = S if way == "full" else rng.randint(1, min(S, limit))
        if rng.random() < 0.015:
            self.T, self.way = 0, "tail"
        if way == "offset" and self.T:
            self.mask["query_offset"] = rng.randint(0, S - self.T)
        if way == "row_index" and self.T:
            rows = rng.sample(range(S), self.T)
            if rng.random() < 0.3:
                rows.sort()
            self.inputs["in.row_index"] = Tensor("I32", (self.T,), rows)

    def probe(self):
        """The rows as the truth resolves them (no key masks yet)."""
        options = dict(self.options, mask=self.mask, S=self.S)
        if self.blocks:
            options.update(m=self.m, grid="document" if self.document_grid else "physical")
        case = losses.Case({"op": "topk", "options": options}, self.inputs)
        return losses.Rows(case, self.B, self.T, self.blocks, [])

    def _key_count(self):
        return self.probe().K

    def _row_masks(self):
        rng, B, T, K = self.rng, self.B, self.T, self.K
        if rng.random() < 0.3:
            flags = [rng.random() < 0.8 for _ in range(B * T)]
            if flags and rng.random() < 0.5:
                flags[rng.choice((0, len(flags) // 2, -1))] = False
            self.inputs["in.row_mask"] = Tensor("BOOL", (B, T), flags)

        def cells(density):
            out = []
            for _ in range(B):
                blank = set()
                if rng.random() < 0.6:
                    blank = {rng.choice((0, T // 2, T - 1)), rng.randint(0, max(T - 1, 0))}
                for t in range(T):
                    out += [t not in blank and rng.random() < density for _ in range(K)]
            return out

        if rng.random() < 0.25:
            self.inputs["in.valid"] = Tensor("BOOL", (B, T, K), cells(rng.choice((0.5, 0.8, 0.95))))
        if rng.random() < 0.15:
            dtype = rng.choice(("F32", "F32", "BF16", "F64"))
            hidden = [st.round_to(dtype, x) for x in (-math.inf, -10048.0, -1e9, -2.3819763e38)]
            if dtype in ("F32", "F64"):
                hidden.append(Fraction(-9900))
            shown = [Fraction(0)]
            self.inputs["in.mask"] = Tensor(dtype, (B, T, K), [
                rng.choice(shown if cell else hidden) for cell in cells(0.85)])

    def need_S(self, options, token_tensors):
        """Name S where nothing else tells it, sometimes also where something does."""
        told = token_tensors or any(n in self.inputs for n in ("in.positions", "in.segment_ids", "in.cu_seqlens"))
        if (not told and self.T != self.S) or self.rng.random() < 0.15:
            options["S"] = self.S


def sizes(rng, taken, **ranges):
    """Pairwise different sizes, also different from those taken, as far as the ranges allow."""
    out = {}
    for name, (low, high) in ranges.items():
        free = [n for n in range(low, high + 1) if n not in taken and n not in out.values()]
        out[name] = rng.choice(free) if free else rng.randint(low, high)
    return out


def floats(rng, shape, width, dtype=None, family=None):
    """A float tensor: normal numbers of the given width, or small integers (exact zeros and ties)."""
    dtype = dtype or rng.choice(COMMON_DTYPES)
    family = family or ("integers" if rng.random() < 0.15 else "normal")
    if dtype == "F16":
        width = min(width, 50.0)
    if family == "integers":
        top = max(1, min(3, int(width)))
        values = [Fraction(rng.randint(-top, top)) for _ in range(st.count(shape))]
    else:
        values = [st.round_to(dtype, rng.gauss(0, 1) * width) for _ in range(st.count(shape))]
    return Tensor(dtype, tuple(shape), values)


def put(rng, tensors, name, tensor):
    """Store a float input, some F64 ones with a second half."""
    tensors[name] = tensor
    if tensor.dtype == "F64" and rng.random() < 0.4:
        low = [st.round_to("F64", rng.gauss(0, 1) * float(abs(v) or 1) * 2.0 ** -56) for v in tensor.values]
        tensors[name + ".lo"] = Tensor("F64", tensor.shape, low)


def put_f8(rng, tensors, name, shape):
    dtype = rng.choice(("F8_E4M3", "F8_E5M2"))
    tensors[name] = floats(rng, shape, 2.0, dtype)
    parts = [rng.choice([d for d in range(1, n + 1) if n % d == 0] if n else [1]) for n in shape]
    if rng.random() < 0.8:
        values = [st.round_to("F32", math.exp(rng.gauss(0, 0.5))) for _ in range(st.count(parts))]
        tensors[name + ".scale"] = Tensor("F32", tuple(parts), values)


def put_indexer(rng, tensors, names, B, T, K, A, e):
    shapes = ((B, T, A, e), (B, K, e), (B, T, A))
    width = rng.choice((0.5, 1.0, 1.5, 6.0))
    family = "integers" if rng.random() < 0.25 else None
    for name, shape in zip(names, shapes):
        if shape[-1] == e and 0 not in shape and rng.random() < 0.08 and name != names[2]:
            put_f8(rng, tensors, name, shape)
        else:
            put(rng, tensors, name, floats(rng, shape, width, family=family))


def poison(rng, tensors, name, hidden):
    """Overwrite the cells in `hidden` (flat indices) of a float tensor."""
    tensor = tensors[name]
    values = list(tensor.values)
    for i in hidden:
        bad = rng.choice(NUMBER_POISON)
        if tensor.dtype in ("F16", "F8_E4M3", "F8_E5M2"):
            bad = math.nan
        values[i] = st.round_to(tensor.dtype, bad)
    tensors[name] = Tensor(tensor.dtype, tensor.shape, values)


def rows_of(shape, leading, keep):
    """Flat cells of all items not in `keep`, an item being an index over the first `leading` axes."""
    inner = st.count(shape[leading:])
    return [i * inner + n for i in range(st.count(shape[:leading])) if i not in keep for n in range(inner)]
