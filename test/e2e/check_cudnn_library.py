#!/usr/bin/env python3
"""check_cudnn_library.py BUILD DEVICES FOLDERS: NVIDIA's cuDNN in FOLDERS, asked without a GPU.

To wrong descriptors the emulated library (test/emulator/cudnn) says what NVIDIA's says, or refuses what that accepts. NVIDIA's has a kernel for forward and
gradient of the attention of gpt2-124m and llama-8b, and one of heads and lengths that are no multiples of its blocks, on each GPU of DEVICES; scratch
memory is as docs/cuda.md says: up to 9.24 of the order of all scores, from 9.25 on of the order of the queries.
"""

import os
import pathlib
import re
import subprocess
import sys

# batch, heads, groups, positions, width
SHAPES = {"gpt2-124m": (32, 12, 12, 1024, 64), "llama-8b": (1, 32, 8, 8192, 128), "odd": (2, 6, 2, 1000, 80)}
CHUNK = 1 << 20


def run(program, *arguments, folders, status=0):
    ended = subprocess.run([str(program), *map(str, arguments)], env={**os.environ, "LD_LIBRARY_PATH": str(folders)}, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode != status:
        sys.exit(f"{program} {arguments}: got status {ended.returncode}, expected {status}: {ended.stdout}")
    return ended.stdout


def same_refusals(program, emulated, nvidia):
    ours, theirs = (dict(line.split(": ") for line in run(program, folders=folders).splitlines()) for folders in (emulated, nvidia))
    if list(ours) != list(theirs) or "CUDNN_STATUS_SUCCESS" not in ours.values():
        sys.exit(f"got cases {ours} and {theirs}, expected the same, one of which is right")
    wrong = {case: (ours[case], theirs[case]) for case in ours if ours[case] != theirs[case] and theirs[case] != "CUDNN_STATUS_SUCCESS"}
    if wrong:
        sys.exit(f"got other refusals of the emulated library than of NVIDIA's: {wrong}")
    print(f"{sum(ours[case] != 'CUDNN_STATUS_SUCCESS' for case in ours)} of {len(ours)} cases are refused")


def kernels(program, device, nvidia):
    for name, (batch, heads, groups, positions, width) in SHAPES.items():
        said = run(program, device, f"{batch}x{heads}/{groups}x{positions}x{width}", folders=nvidia)
        version = tuple(map(int, re.match(r"cuDNN (\d+)[.](\d+)", said).groups()))
        found = dict(re.findall(r"^  (forward|gradient) +engine \d+, scratch memory (\d+) bytes$", said, re.MULTILINE))
        if set(found) != {"forward", "gradient"}:
            sys.exit(f"{device}, {name}: got {said}, expected an engine for forward and one for the gradient")
        rows, scores = 4 * batch * heads * positions, 2 * batch * heads * positions * positions
        least = rows * (width + 1) if version >= (9, 25) else scores + rows
        if heads != groups:  # gradients of keys and values of each head, in bf16
            least += rows * width
        if not least <= int(found["gradient"]) <= 1.2 * least + CHUNK or int(found["forward"]) > CHUNK:
            sys.exit(f"{device}, {name}: got {found} bytes of scratch memory, expected about {least} of the gradient and at most {CHUNK} of forward")
        print(f"{device.stem} {name}: {found}")


def main(build, devices, nvidia):
    programs = pathlib.Path(build) / "test" / "unit"
    same_refusals(programs / "cudnn-misuse", pathlib.Path(build) / "test" / "emulator" / "cudnn", nvidia)
    for device in sorted(pathlib.Path(devices).glob("*.json")):
        kernels(programs / "cudnn-plans", device, nvidia)
    for shape, says in (("1x2x8", "got the shape '1x2x8', expected BATCHxHEADS[/GROUPS]xPOSITIONSxWIDTH"),
                        ("1x2x8x20", "heads are 20 wide, expected a multiple of 8 up to 128")):
        said = run(programs / "cudnn-plans", device, shape, folders=nvidia, status=2)
        if says not in said:
            sys.exit(f"{shape}: got {said}, expected '{says}'")
    said = run(programs / "cudnn-plans", device.parent / "none", "1x2x8x16", folders=nvidia, status=2)
    if "cannot open" not in said:
        sys.exit(f"a device that is none: got {said}")


if __name__ == "__main__":
    main(*sys.argv[1:])
