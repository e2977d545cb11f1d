#!/usr/bin/env python3
"""read_ptx.py OBJECT OUTPUT TARGET: writes the PTX of TARGET, such as sm_90a, that nvcc embedded in OBJECT to OUTPUT.

nvcc 13 compresses each text that is long enough as a frame of Zstandard.
"""

import pathlib
import subprocess
import sys

FRAME, HEAD = b"\x28\xb5\x2f\xfd", b".version "  # RFC 8878, 3.1.1; PTX ISA, 5.1

made, output, target = sys.argv[1:]
content = pathlib.Path(made).read_bytes()


def texts(content):
    for mark in (FRAME, HEAD):
        begin = content.find(mark)
        while begin >= 0:
            text = content[begin:]
            if mark == FRAME:  # status 1: the object continues behind the frame
                text = subprocess.run(["zstd", "--decompress", "--stdout"], input=text, capture_output=True, check=False).stdout.strip(b"\0\n")
            yield text.split(b"\0", 1)[0]
            begin = content.find(mark, begin + 1)


for text in texts(content):
    if text.startswith(HEAD) and b"\n.target " + target.encode() + b"\n" in text[:100]:
        pathlib.Path(output).write_bytes(text)
        sys.exit()
sys.exit(f"{made}: got no PTX of {target}, expected one: configure with -DFSDP_KEEP_PTX=ON, and compile with nvcc 13")
