"""Reads safetensors files (F32, F64, I32, I64) with the standard library."""

import json
import struct

FORMATS = {"F32": "f", "F64": "d", "I32": "i", "I64": "q"}


def read(path):
    """name -> (dtype, shape, tuple of values)."""
    with open(path, "rb") as file:
        content = file.read()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        letter = FORMATS[entry["dtype"]]
        values = struct.unpack(f"<{(end - begin) // struct.calcsize(letter)}{letter}",
                               content[8 + size + begin:8 + size + end])
        tensors[name] = (entry["dtype"], tuple(entry["shape"]), values)
    return tensors
