"""Compares what a module computes on one device, on its mesh and on streams.

    same_numbers.py FSDP_OPT FSDP_RUN MODEL.mlir WORK [OPTIONS]

Runs three steps of MODEL in exact numerics in the global, the local and the scheduled phase (pipelines with OPTIONS),
on the same drawn inputs, and fails unless every output, parameter and optimizer state agrees.
"""

import json
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))
import weights  # noqa: E402

PHASES = ("global", "local", "scheduled")
INPUT = re.compile(r'fsdp\.input "(\w+)" sample_dim (\d+)(?: \{[^}]*\})? : tensor<([0-9x]*)x(f32|i32)>')


def draw_inputs(text, path):
    """Writes one tensor per input of `text`: more samples than two batches have, samples first."""
    draw = random.Random(11)
    header, body = {}, b""
    for name, dim, shape, kind in INPUT.findall(text):
        shape = [int(size) for size in shape.split("x")]
        batch = shape.pop(int(dim))
        shape = [2 * batch + 1] + shape
        count = 1
        for size in shape:
            count *= size
        if kind == "f32":
            data = struct.pack(f"<{count}f", *(draw.uniform(-1, 1) for _ in range(count)))
        else:
            data = struct.pack(f"<{count}i", *(draw.randrange(3) for _ in range(count)))
        header[name] = {"dtype": kind.upper(), "shape": shape,
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded + body)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def close(a, b):
    return abs(a - b) <= 1e-6 * max(1e-3, abs(a), abs(b)) or (a != a and b != b)


def main():
    opt, execute, model, work, *options = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    with open(model) as file:
        text = file.read()
    inputs = os.path.join(work, "inputs.safetensors")
    draw_inputs(text, inputs)
    results = []
    for phase in PHASES:
        lowered = os.path.join(work, phase + ".mlir")
        flag = f"--fsdp-to-{phase}" + (f"={' '.join(options)}" if options else "")
        run([opt, model, flag, "-o", lowered])
        outputs = os.path.join(work, phase + ".safetensors")
        log = run([execute, lowered, "--inputs=" + inputs, "--outputs=" + outputs, "--steps=3",
                   "--numerics=exact", "--seed=5"])
        numbers = {" ".join(line.split()[:-1]): float(line.split()[-1])
                   for line in log.splitlines() if line.startswith("step")}
        results.append((numbers, weights.read(outputs)))
    numbers, tensors = results[0]
    if not numbers or not tensors:
        sys.exit("nothing was computed")
    for phase, (others, other_tensors) in zip(PHASES[1:], results[1:]):
        if numbers.keys() != others.keys() or tensors.keys() != other_tensors.keys():
            sys.exit(f"{phase}: got {sorted(others)} and {sorted(other_tensors)}, "
                     f"expected {sorted(numbers)} and {sorted(tensors)}")
        for name, value in numbers.items():
            if not close(value, others[name]):
                sys.exit(f"{phase}: '{name}' is {others[name]}, expected {value}")
        for name, (_, shape, values) in tensors.items():
            _, other_shape, other_values = other_tensors[name]
            if shape != other_shape:
                sys.exit(f"{phase}: '{name}' has shape {other_shape}, expected {shape}")
            for index, (a, b) in enumerate(zip(values, other_values)):
                if not close(a, b):
                    sys.exit(f"{phase}: '{name}' is {b} at {index}, expected {a}")
    print(f"same numbers: {len(numbers)} outputs, {len(tensors)} tensors")


main()
