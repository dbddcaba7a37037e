#!/usr/bin/env python3
"""break_row.py CASE TENSOR ROW FACTOR OUT: a copy of CASE in which one row of a float32 tensor [B, T, …] is FACTOR
times what it was, in batch 0. For the demo: a mistake to be found."""
import json
import struct
import sys

case, name, row, factor, out = sys.argv[1:]
with open(case, "rb") as file:
    data = bytearray(file.read())
(length,) = struct.unpack("<Q", data[:8])
entry = json.loads(data[8:8 + length])[name]
width = 1
for size in entry["shape"][2:]:
    width *= size
begin = 8 + length + entry["data_offsets"][0] + 4 * width * int(row)
values = struct.unpack_from("<%df" % width, data, begin)
struct.pack_into("<%df" % width, data, begin, *(float(factor) * value for value in values))
with open(out, "wb") as file:
    file.write(data)
