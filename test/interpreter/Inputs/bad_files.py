#!/usr/bin/env python3
"""bad_files.py FOLDER: safetensors files that are wrong, each in one way."""

import json
import struct
import sys


def write(name, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(f"{sys.argv[1]}/{name}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text) if length is None else length) + text + data)


def tensor(dtype, shape, size, begin=0):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + size]}


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


with open(f"{sys.argv[1]}/short.safetensors", "wb") as file:
    file.write(b"abc")
write("header", b"{}", length=1000)
write("json", b"{]")
write("list", [])
write("entry", {"w": {"dtype": "F32"}})
write("dtype", {"w": tensor("F8", [2, 2], 4)}, bytes(4))
write("bytes-of-eight-bits", {"w": tensor("U8", [2, 2], 4)}, bytes(4))
write("sizes", {"w": tensor("F32", [2, -2], 16)}, bytes(16))
write("truncated", {"w": tensor("F32", [2, 2], 16)}, bytes(8))
write("bytes", {"w": tensor("F32", [2, 2], 8)}, bytes(8))
write("other", {"v": tensor("F32", [2, 2], 16)}, bytes(16))
write("shape", {"w": tensor("F32", [2], 8)}, bytes(8))
write("good", {"x": tensor("F32", [4, 2], 32)}, bytes(32))
write("wide", {"x": tensor("F32", [4, 3], 48)}, bytes(48))
write("integer", {"x": tensor("I32", [4, 2], 32)}, bytes(32))
write("empty", {"x": tensor("F32", [0, 2], 0)})
write("nan", {"x": tensor("F32", [4, 2], 32)}, floats(0, 0, 0, float("nan"), 0, 0, 0, 0))
write("hostile", {"x\x1b[31m\0": tensor("F32", [4, 2], 32)}, bytes(32))
write("unequal", {"a": tensor("F32", [3, 2], 24), "x": tensor("F32", [4, 2], 32, begin=24)}, bytes(56))
write("large", {"x": tensor("I64", [4], 32)}, struct.pack("<4q", 1, 2, 5000000000, 3))
