#!/usr/bin/env python3
"""bad_params.py FOLDER: files of parameters that are wrong, each in one way."""

import struct
import sys


def write(name, header, data=b""):
    with open(f"{sys.argv[1]}/{name}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode() + data)


def entry(begin, end, shape="[2,2]", dtype="F32"):
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}'


write("nan", f'{{"w":{entry(0, 16)}}}', struct.pack("<4f", 1, 2, float("nan"), 4))
write("twice", f'{{"w":{entry(0, 16)},"w":{entry(16, 32)}}}', bytes(32))
write("overlap", f'{{"v":{entry(0, 16)},"w":{entry(8, 24)}}}', bytes(24))
write("hole", f'{{"w":{entry(8, 24)}}}', bytes(24))
write("rest", f'{{"w":{entry(0, 16)}}}', bytes(24))
write("integers", f'{{"w":{entry(0, 16, dtype="I32")}}}', bytes(16))
depth = 10_000_000
write("deep", '{"w":' + "[" * depth + "]" * depth + "}")
write("long", "{}" + " " * 99_999_999)
