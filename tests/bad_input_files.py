"""The table of faults of files: headers that lie, metadata that is not what it says, names that no case has."""
import json
import struct

from bad_input_cases import arguments, framed, instead, metadata, put, raw_metadata, without_metadata

PLAIN = "rms_norm"  # in.x [3,4] and in.weight [4], F32: 48 and 16 bytes


def whole(build):
    """The file is build(header, data)."""
    def change(case):
        case.file = lambda self: build(*self.header())
    return change


def entry(name, key, value):
    """A field of a tensor in the header."""
    def build(header, data):
        header[name][key] = value
        return framed(header, data)
    return whole(build)


def text(replace):
    """The header's text through `replace`."""
    return whole(lambda header, data: framed(replace(json.dumps(header)).encode("utf-8", "surrogateescape"), data))


def edit(old, new):
    def replace(header):
        assert old in header
        return header.replace(old, new, 1)
    return text(replace)


def length(value):
    def build(header, data):
        body = json.dumps(header).encode()
        return struct.pack("<Q", value(len(body)) & (2**64 - 1)) + body + data
    return whole(build)


def cut(count):
    return whole(lambda header, data: framed(header, data)[:count])


FILE = "case.safetensors"
HEADER = FILE + " header"
X = FILE + " tensor in.x"
WEIGHT = FILE + " tensor in.weight"

LIES = [
    ("an empty file", FILE, cut(0)),
    ("a file of 7 bytes", FILE, cut(7)),
    ("a header of length 0", FILE, whole(lambda header, data: struct.pack("<Q", 0))),
    ("a length one beyond the file", FILE, length(lambda n: n + 65)),
    ("a length of 2^64 - 1", FILE, length(lambda n: -1)),
    ("a length of 2^63", FILE, length(lambda n: 1 << 63)),
    ("a claim of more than 100 MB", FILE, length(lambda n: 100_000_001)),
    ("a length one short", HEADER, length(lambda n: n - 1)),
    ("a file cut inside its header", FILE, cut(60)),
    ("a file cut inside its data", "tensor in.", whole(lambda header, data: framed(header, data[:-1]))),
    ("a header without data", "tensor in.", whole(lambda header, data: framed(header))),
    ("a byte after the last tensor", FILE, whole(lambda header, data: framed(header, data + b"\0"))),
    ("another file after the first", FILE, whole(lambda header, data: framed(header, data) * 2)),
    ("text that is not JSON", HEADER, whole(lambda header, data: framed(b"tensors", data))),
    ("a header that is a list", HEADER, whole(lambda header, data: framed(b"[]", data))),
    ("a header cut off", HEADER, text(lambda header: header[:-1])),
    ("two headers", HEADER, text(lambda header: header + "{}")),
    ("a comment", HEADER, text(lambda header: header[:-1] + "/* */}")),
    ("a trailing comma", HEADER, text(lambda header: header[:-1] + ",}")),
    ("a byte order mark", HEADER, text(lambda header: "\ufeff" + header)),
    ("a blank before the header", HEADER, text(lambda header: " " + header)),
    ("a NUL in the header", HEADER, text(lambda header: header + "\0")),
    ("a name that is not UTF-8", HEADER, edit("in.weight", "in.\udcff\udcfe")),
    ("a name with an overlong form", HEADER, edit("in.weight", "in.\udcc0\udcaf")),
    ("a lone surrogate", HEADER, edit("in.weight", "in.\\ud800")),
    ("NaN in a shape", HEADER, edit("[3, 4]", "[NaN, 4]")),
    ("Infinity in a shape", HEADER, edit("[3, 4]", "[Infinity, 4]")),
    ("a number beyond binary64", HEADER, edit("[3, 4]", "[1e999, 4]")),
    ("JSON 100000 levels deep", HEADER, whole(lambda header, data: framed(b"[" * 100000, data))),
    ("objects 100000 levels deep", FILE, whole(lambda header, data: framed(b'{"a":' * 100000, data))),
    ("a tensor named twice", HEADER, edit("in.weight", "in.x")),
    ("a tensor named twice by an escape", HEADER, edit("in.weight", "in.\\u0078")),
    ("a field twice", X, edit("\"shape\": [3, 4]", "\"shape\": [3, 4], \"shape\": [3, 4]")),
    ("metadata twice", HEADER, edit("\"in.x\":", "\"__metadata__\": {}, \"in.x\":")),
    ("a metadata key twice", HEADER, edit("\"plumbline\":", "\"plumbline\": \"{}\", \"plumbline\":")),
    ("a tensor without a name", HEADER, edit("in.weight", "")),
    ("a field too many", X, entry("in.x", "strides", [4, 1])),
    ("an unknown dtype", X, entry("in.x", "dtype", "F4")),
    ("a dtype in lower case", X, entry("in.x", "dtype", "f32")),
    ("a dtype that is a number", X, entry("in.x", "dtype", 32)),
    ("a shape that is a number", X, entry("in.x", "shape", 12)),
    ("a shape that is null", X, entry("in.x", "shape", None)),
    ("a size < 0", X, entry("in.x", "shape", [-3, -4])),
    ("a size with a fraction", X, entry("in.x", "shape", [3.0, 4])),
    ("a size that is text", X, entry("in.x", "shape", ["3", 4])),
    ("a size that is true", X, entry("in.x", "shape", [True, 12])),
    ("sizes whose product overflows", X, entry("in.x", "shape", [1 << 32, 1 << 32])),
    ("sizes whose product wraps to the right one", X, entry("in.x", "shape", [3, (1 << 62) + 1, 4])),
    ("an overflow behind a size of 0", X, entry("in.x", "shape", [0, 1 << 62, 1 << 62])),
    ("33 axes", X, entry("in.x", "shape", [1] * 33)),
    ("other bytes than the shape says", X, entry("in.x", "shape", [3, 5])),
    ("other bytes than the dtype says", X, entry("in.x", "dtype", "F64")),
    ("a scalar of many bytes", X, entry("in.x", "shape", [])),
    ("offsets backwards", X, entry("in.x", "data_offsets", [48, 0])),
    ("one offset", X, entry("in.x", "data_offsets", [0])),
    ("an offset < 0", X, entry("in.x", "data_offsets", [-48, 0])),
    ("an offset with an exponent", X, entry("in.x", "data_offsets", [0, 4.8e1])),
    ("an offset of 2^64", X, entry("in.x", "data_offsets", [0, 1 << 64])),
    ("an overlap", WEIGHT, entry("in.weight", "data_offsets", [40, 56])),
    ("two tensors in one place", X, entry("in.weight", "data_offsets", [0, 16])),
    ("a gap", WEIGHT, whole(lambda header, data: framed(
        {**header, "in.weight": {**header["in.weight"], "data_offsets": [52, 68]}}, data + b"\0" * 4))),
    ("a gap at the start", X, whole(lambda header, data: framed(
        {k: v if k == "__metadata__" else {**v, "data_offsets": [x + 1 for x in v["data_offsets"]]}
         for k, v in header.items()}, b"\0" + data))),
    ("an empty tensor beyond the data", "tensor in.none", whole(lambda header, data: framed(
        {**header, "in.none": {"dtype": "F32", "shape": [0], "data_offsets": [99, 99]}}, data))),
    ("a newline in a name", "tensor a\\nb", whole(lambda header, data: framed({**header, "a\nb": {}}, data))),
    ("an escape sequence in a name", "tensor a\\x1b[31m", whole(lambda header, data: framed({**header, "a\x1b[31m": {}}, data))),
    ("metadata that is a list", HEADER + " __metadata__", whole(lambda header, data: framed({**header, "__metadata__": []}, data))),
    ("metadata of numbers", HEADER + " __metadata__", whole(lambda header, data: framed(
        {**header, "__metadata__": {**header["__metadata__"], "n": 1}}, data))),
]


def value_of(key, value):
    return raw_metadata(lambda metadata: json.dumps({**metadata, key: value}))


KEY = "metadata plumbline"
METADATA = [
    ("no metadata", KEY, raw_metadata(None)),
    ("metadata of others only", KEY, whole(lambda header, data: framed({**header, "__metadata__": {"format": "pt"}}, data))),
    ("metadata that is not JSON", KEY, raw_metadata("op: rms_norm")),
    ("metadata that is empty", KEY, raw_metadata("")),
    ("metadata whose text is a list", KEY, raw_metadata("[]")),
    ("metadata that is text", KEY, raw_metadata("\"rms_norm\"")),
    ("metadata in two values", KEY, raw_metadata("{\"op\":\"rms_norm\"} {}")),
    ("NaN in the options", KEY, raw_metadata("{\"op\":\"rms_norm\",\"options\":{\"eps\":NaN}}")),
    ("an option beyond binary64", KEY, raw_metadata("{\"op\":\"rms_norm\",\"options\":{\"eps\":1e400}}")),
    ("an option twice", KEY, raw_metadata("{\"op\":\"rms_norm\",\"options\":{\"eps\":0,\"eps\":1}}")),
    ("options 100000 levels deep", KEY, raw_metadata("{\"op\":\"rms_norm\",\"options\":" + "{\"a\":" * 100000)),
    ("lists 100000 levels deep", KEY, raw_metadata("[" * 100000)),
    ("a NUL in the metadata", KEY, raw_metadata("{\"op\":\"rms_norm\"}\0")),
    ("no op", KEY + ".op", without_metadata("op")),
    ("an op that is a number", KEY + ".op", metadata("op", 4)),
    ("an unknown op", "op", metadata("op", "rms_nrom")),
    ("an op with a newline in its name", "op", metadata("op", "rms\nnorm")),
    ("another schema", KEY + ".schema", metadata("schema", 2)),
    ("a schema that is text", KEY + ".schema", metadata("schema", "1")),
    ("options that are a list", KEY + ".options", metadata("options", [])),
    ("options that are null", KEY + ".options", metadata("options", None)),
    ("a schedule that is a list", KEY + ".schedule", metadata("schedule", [])),
    ("outputs that are text", KEY + ".outputs", metadata("outputs", "all")),
    ("outputs that are numbers", KEY + ".outputs", metadata("outputs", [1])),
    ("an unknown precision", KEY + ".precision", metadata("precision", "f128")),
    ("a precision that is a number", KEY + ".precision", metadata("precision", 64)),
    ("an option with a newline in its name", "option \"a\\nb\"", metadata("options", {"a\nb": 1})),
    ("a name of no known kind", "tensor x", put("x", [4])),
    ("a name of an unknown place", "tensor input.x", put("input.x", [4])),
    ("a name with a slash", "tensor in.a/b", put("in.a/b", [4])),
    ("a place without a name", "tensor in.", put("in.", [4])),
    ("a remainder of nothing", "in.y.lo", put("in.y.lo", "F64", [4])),
    ("a remainder in F32", "in.x.lo", put("in.x.lo", [3, 4])),
    ("a remainder of another shape", "in.x.lo", put("in.x.lo", "F64", [3, 5])),
    ("a scale of numbers that need none", "in.x.scale", put("in.x.scale", [1, 1])),
    ("a scale that does not divide", "in.x.scale", put("in.x", "F8_E4M3", [3, 4]), put("in.x.scale", [2, 1])),
    ("a scale of another rank", "in.x.scale", put("in.x", "F8_E4M3", [3, 4]), put("in.x.scale", [1])),
    ("a scale in F64", "in.x.scale", put("in.x", "F8_E4M3", [3, 4]), put("in.x.scale", "F64", [1, 1])),
    ("a scale that is NaN", "in.x", put("in.x", "F8_E4M3", [3, 4]), put("in.x.scale", "F32", [1, 1], [float("nan")])),
    ("an F8 code that is NaN", "in.x", put("in.x", "F8_E4M3", [3, 4], b"\x7f" * 12)),
]

COMMAND = [
    ("--precision nobody has", "--precision", instead("--precision", "fp64")),
    ("--schedule that is no JSON", "--schedule", arguments("--schedule", "{barrier:false}")),
    ("--schedule that is a list", "--schedule", arguments("--schedule", "[]")),
    ("--schedule with a key twice", "--schedule", arguments("--schedule", '{"step":1,"step":2}')),
    ("--schedule 100000 levels deep", "--schedule", arguments("--schedule", "[" * 100000)),
    ("--outputs with an empty name", "--outputs", arguments("--outputs", "y,,y")),
    ("--outputs nobody has", "outputs", arguments("--outputs", "z")),
    ("--threads < 0", "--threads", arguments("--threads", "-1")),
    ("--threads that is a word", "command line", arguments("--threads", "many")),
]

ROWS = [("files", fault, PLAIN, where, *changes) for fault, where, *changes in LIES] \
    + [("metadata", fault, PLAIN, where, *changes) for fault, where, *changes in METADATA] \
    + [("command line", fault, PLAIN, where, *changes)
       for fault, where, *changes in COMMAND]
