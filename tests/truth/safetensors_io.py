"""Read and write safetensors files with the standard library alone; every number stays exact.

A tensor is (dtype, shape, flat list in C order).  Elements are
  float dtypes  Fraction when finite, else the Python floats inf, -inf, nan;
  int dtypes    int;
  BOOL          bool.
F8_E4M3 is the "fn" variant (no infinities, S.1111.111 is NaN, largest 448); F8_E5M2 is IEEE-like.
"""
import json
import math
import struct
from collections import namedtuple
from fractions import Fraction

Tensor = namedtuple("Tensor", "dtype shape values")

SIZES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "U8": 1, "BOOL": 1,
         "F8_E4M3": 1, "F8_E5M2": 1}
INTS = {"I64": "q", "I32": "i", "U8": "B"}
FLOATS = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")


def count(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def exact(x):
    """A Python float as an exact Fraction; non-finite ones stay floats."""
    return Fraction(x) if math.isfinite(x) else x


def _decode_f8(code, exponent_bits, mantissa_bits, bias, ieee):
    sign = -1 if code & 0x80 else 1
    exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    top = exponent == (1 << exponent_bits) - 1
    if ieee and top:
        return sign * math.inf if mantissa == 0 else math.nan
    if not ieee and top and mantissa == (1 << mantissa_bits) - 1:
        return math.nan
    if exponent == 0:
        return sign * Fraction(mantissa, 1 << mantissa_bits) * Fraction(2) ** (1 - bias)
    return sign * (1 + Fraction(mantissa, 1 << mantissa_bits)) * Fraction(2) ** (exponent - bias)


F8 = {"F8_E4M3": [_decode_f8(c, 4, 3, 7, False) for c in range(256)],
      "F8_E5M2": [_decode_f8(c, 5, 2, 15, True) for c in range(256)]}


def decode(dtype, raw):
    n = len(raw) // SIZES[dtype]
    if dtype == "F64":
        return [exact(x) for x in struct.unpack("<%dd" % n, raw)]
    if dtype == "F32":
        return [exact(x) for x in struct.unpack("<%df" % n, raw)]
    if dtype == "F16":
        return [exact(x) for x in struct.unpack("<%de" % n, raw)]
    if dtype == "BF16":
        halves = struct.unpack("<%dH" % n, raw)
        return [exact(struct.unpack("<f", struct.pack("<I", h << 16))[0]) for h in halves]
    if dtype in F8:
        return [F8[dtype][c] for c in raw]
    if dtype in INTS:
        return list(struct.unpack("<%d%s" % (n, INTS[dtype]), raw))
    if dtype == "BOOL":
        if any(c > 1 for c in raw):
            raise ValueError("a BOOL byte is neither 0 nor 1")
        return [c == 1 for c in raw]
    raise ValueError("unknown dtype " + dtype)


def _bfloat16_bits(x):
    """The bits of the bfloat16 nearest x (ties to even)."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    if math.isnan(x):
        return 0x7FC0
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def round_to(dtype, x):
    """The value of `dtype` nearest the Python float x (through F32 for BF16), as an exact element."""
    if not math.isfinite(x):
        return x
    if dtype == "F64":
        return exact(x)
    if dtype == "F32":
        return exact(struct.unpack("<f", struct.pack("<f", x))[0])
    if dtype == "F16":
        return exact(struct.unpack("<e", struct.pack("<e", x))[0])
    if dtype == "BF16":
        return exact(struct.unpack("<f", struct.pack("<I", _bfloat16_bits(x) << 16))[0])
    if dtype in F8:
        finite = [v for v in F8[dtype] if isinstance(v, Fraction)]
        return min(finite, key=lambda v: abs(v - Fraction(x)))
    raise ValueError("not a float dtype: " + dtype)


def encode(dtype, values):
    """Bytes of exact elements; a finite value the dtype cannot hold is an error, never rounded."""
    if dtype in INTS:
        return struct.pack("<%d%s" % (len(values), INTS[dtype]), *values)
    if dtype == "BOOL":
        return bytes(1 if v else 0 for v in values)
    if dtype in F8:
        table = {}
        for code, v in enumerate(F8[dtype]):
            table.setdefault("nan" if v != v else v, code)
        return bytes(table["nan" if v != v else v] for v in values)
    floats = [float(v) for v in values]
    if dtype == "F64":
        raw = struct.pack("<%dd" % len(floats), *floats)
    elif dtype == "F32":
        raw = struct.pack("<%df" % len(floats), *floats)
    elif dtype == "F16":
        raw = struct.pack("<%de" % len(floats), *floats)
    elif dtype == "BF16":
        raw = struct.pack("<%dH" % len(floats), *[_bfloat16_bits(x) for x in floats])
    else:
        raise ValueError("unknown dtype " + dtype)
    for wanted, got in zip(values, decode(dtype, raw)):
        if wanted != got and not (wanted != wanted and got != got):
            raise ValueError("%s cannot hold %r" % (dtype, wanted))
    return raw


def read(path):
    """(metadata: dict of strings, tensors: dict name -> Tensor)."""
    with open(path, "rb") as f:
        blob = f.read()
    (length,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8:8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    body = blob[8 + length:]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        shape = tuple(entry["shape"])
        if end - begin != count(shape) * SIZES[entry["dtype"]] or end > len(body):
            raise ValueError("%s: wrong size of tensor %s" % (path, name))
        tensors[name] = Tensor(entry["dtype"], shape, decode(entry["dtype"], body[begin:end]))
    return metadata, tensors


def write(path, metadata, tensors):
    """Deterministic: widest dtypes first, then by name; the header is padded to 8 bytes."""
    header = {"__metadata__": dict(sorted(metadata.items()))}
    body = b""
    for name in sorted(tensors, key=lambda n: (-SIZES[tensors[n].dtype], n)):
        tensor = tensors[name]
        raw = encode(tensor.dtype, tensor.values)
        if len(raw) != count(tensor.shape) * SIZES[tensor.dtype]:
            raise ValueError("%s: %d values for shape %s" % (name, len(tensor.values), tensor.shape))
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape),
                        "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)
