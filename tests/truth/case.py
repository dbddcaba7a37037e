"""A case, its exact numbers, and section 3 of the specification: where a row stands and what it sees."""
import json
import math
from fractions import Fraction

import mpmath

import safetensors_io as st


class BadCase(Exception):
    """The case breaks a rule of the specification."""


# ---------------------------------------------------------------------------------------------------
# A case
# ---------------------------------------------------------------------------------------------------

class Case:
    """`plumbline` is the JSON object of the metadata, `tensors` the stored tensors."""

    def __init__(self, plumbline, tensors):
        self.plumbline = plumbline
        self.tensors = tensors
        self.op = plumbline["op"]
        self.options = plumbline.get("options", {})
        self._cache = {}

    def has(self, name):
        return name in self.tensors

    def shape(self, name):
        return self.tensors[name].shape

    def value(self, name):
        """Flat list of exact values: x + x.lo, or code times scale."""
        if name in self._cache:
            return self._cache[name]
        tensor = self.tensors[name]
        values = tensor.values
        if name + ".lo" in self.tensors:
            low = self.tensors[name + ".lo"].values
            values = [x + y if _finite(x) and _finite(y) else x for x, y in zip(values, low)]
        if name + ".scale" in self.tensors:
            values = _scaled(tensor, self.tensors[name + ".scale"])
        self._cache[name] = values
        return values


def _finite(x):
    return isinstance(x, (int, Fraction)) or math.isfinite(x)


def _scaled(tensor, scale):
    """code * scale; every axis of scale divides that of the tensor (blocks) or is 1."""
    out = []
    for flat, code in enumerate(tensor.values):
        rest, place, stride = flat, 0, 1
        for size, parts in zip(reversed(tensor.shape), reversed(scale.shape)):
            i = rest % size
            rest //= size
            place += (i * parts // size) * stride
            stride *= parts
        out.append(code * scale.values[place] if _finite(code) else code)
    return out


def load(path):
    metadata, tensors = st.read(path)
    return Case(json.loads(metadata["plumbline"]), tensors)


def real(x):
    """An exact number as an mpf (at the working precision)."""
    if isinstance(x, Fraction):
        return mpmath.mpf(x.numerator) / x.denominator
    return mpmath.mpf(x)


def number(x):
    """A number of the options: the binary64 nearest its text, then exact."""
    return Fraction(float(x))


def dot(a, i, b, j, width):
    """Exact dot product of a[i : i+width] and b[j : j+width]."""
    total = Fraction(0)
    for n in range(width):
        x, y = a[i + n], b[j + n]
        if not (_finite(x) and _finite(y)):
            raise BadCase("a visible input is not finite")
        total += x * y
    return total


# ---------------------------------------------------------------------------------------------------
# Section 3: where a row stands, what it sees
# ---------------------------------------------------------------------------------------------------

class Rows:
    """Visibility of keys (tokens or blocks) for every row of every batch entry."""

    def __init__(self, case, B, T, over_blocks, token_counts, key_count=None):
        """token_counts: sizes S stated by key-like tensors; key_count: K stated by tensors, or None."""
        options = case.options
        mask = options.get("mask", {})
        self.case, self.B, self.T, self.over_blocks = case, B, T, over_blocks
        self.causal = mask.get("causal", True)

        # S
        stated = list(token_counts)
        for name in ("in.positions", "in.segment_ids"):
            if case.has(name):
                stated.append(case.shape(name)[1])
        if case.has("in.cu_seqlens"):
            stated.append(case.value("in.cu_seqlens")[-1])
        if "S" in options:
            stated.append(options["S"])
        if len(set(stated)) > 1:
            raise BadCase("sizes of S disagree: %s" % stated)
        self.S = S = stated[0] if stated else T

        # r(t)
        if case.has("in.row_index"):
            if "query_offset" in mask:
                raise BadCase("row_index with query_offset")
            self.token = list(case.value("in.row_index"))
            if len(self.token) != T:
                raise BadCase("row_index has the wrong length")
        else:
            offset = mask.get("query_offset", S - T)
            self.token = [t + offset for t in range(T)]
        if any(not 0 <= r < S for r in self.token) or len(set(self.token)) != T:
            raise BadCase("rows outside the tokens, or not distinct")

        # segments and positions
        self.segment = self.position = None
        if case.has("in.cu_seqlens"):
            if case.has("in.segment_ids") or case.has("in.positions"):
                raise BadCase("cu_seqlens with segment_ids or positions")
            ends = case.value("in.cu_seqlens")
            if B != 1 or ends[0] != 0 or any(a > b for a, b in zip(ends, ends[1:])):
                raise BadCase("cu_seqlens")
            segment, position = [], []
            for d in range(len(ends) - 1):
                for i in range(ends[d + 1] - ends[d]):
                    segment.append(d)
                    position.append(i)
            self.segment, self.position = [segment], [position]
        if case.has("in.segment_ids"):
            ids = case.value("in.segment_ids")
            self.segment = [ids[b * S:(b + 1) * S] for b in range(B)]
        if case.has("in.positions"):
            places = case.value("in.positions")
            self.position = [places[b * S:(b + 1) * S] for b in range(B)]
        if self.position is None:
            self.position = [list(range(S)) for _ in range(B)]

        self.documents = mask.get("documents", self.segment is not None)
        self.padding = mask.get("padding_segment")
        if self.segment is None and (self.documents or self.padding is not None):
            raise BadCase("documents or padding_segment without segments")

        # keys
        if over_blocks:
            m = options["m"]
            if m < 1:
                raise BadCase("m < 1")
            self.m = m
            if options.get("grid", "physical") == "physical":
                firsts = [j * m for j in range(S // m)]
            else:
                firsts = self._document_blocks(m)
            self.first = firsts
            self.K = len(firsts)
            if not self.documents:
                for places in self.position:
                    if any(a >= b for a, b in zip(places, places[1:])):
                        raise BadCase("positions must increase strictly")
        else:
            self.K = S
        if key_count is not None and key_count != self.K:
            raise BadCase("%d keys stored, %d expected" % (key_count, self.K))

        self.valid = case.value("in.valid") if case.has("in.valid") else None
        self.float_mask = None
        if case.has("in.mask"):
            self.float_mask = [self._fold(x) for x in case.value("in.mask")]
        self.row_mask = case.value("in.row_mask") if case.has("in.row_mask") else None

    @staticmethod
    def _fold(x):
        if x == 0:
            return True
        if x <= -9900:
            return False
        raise BadCase("a mask value that is neither 0 nor hidden")

    def _document_blocks(self, m):
        """First keys of the blocks cut inside each document, documents being runs of equal ids."""
        if self.B != 1:
            raise BadCase("grid document with B > 1")
        if self.segment is None:
            return [j * m for j in range(self.S // m)]
        ids, firsts, seen, begin = self.segment[0], [], set(), 0
        while begin < self.S:
            end = begin
            while end < self.S and ids[end] == ids[begin]:
                end += 1
            if ids[begin] != self.padding or self.padding is None:
                if ids[begin] in seen:
                    raise BadCase("a document id that returns")
                seen.add(ids[begin])
                firsts += [begin + j * m for j in range((end - begin) // m)]
            begin = end
        return firsts

    def is_padding(self, b, s):
        return self.padding is not None and self.segment[b][s] == self.padding

    def is_real(self, b, t):
        if self.row_mask is not None and not self.row_mask[b * self.T + t]:
            return False
        return not self.is_padding(b, self.token[t])

    def _sees_token(self, b, r, s):
        if self.is_padding(b, s):
            return False
        if self.causal and s > r:
            return False
        return not self.documents or self.segment[b][s] == self.segment[b][r]

    def _sees_block(self, b, r, j):
        first = self.first[j]
        keys = range(first, first + self.m)
        if any(self.is_padding(b, s) for s in keys):
            return False
        place = self.position[b]
        if self.causal and place[first] + self.m > place[r] + 1:
            return False
        return not self.documents or all(self.segment[b][s] == self.segment[b][r] for s in keys)

    def visible(self, b, t):
        """V_t, ascending (asked for real rows only)."""
        r = self.token[t]
        keys = []
        for s in range(self.K):
            if not (self._sees_block if self.over_blocks else self._sees_token)(b, r, s):
                continue
            cell = (b * self.T + t) * self.K + s
            if self.valid is not None and not self.valid[cell]:
                continue
            if self.float_mask is not None and not self.float_mask[cell]:
                continue
            keys.append(s)
        return keys

    def window(self, b, t, W):
        """Window tokens r-W < s <= r of the same document; neither valid nor mask nor causal touch it."""
        r = self.token[t]
        return [s for s in range(max(0, r - W + 1), r + 1)
                if not self.is_padding(b, s)
                and (not self.documents or self.segment[b][s] == self.segment[b][r])]
