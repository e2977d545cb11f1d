#!/usr/bin/env python3
"""check_refusals.py SCRATCH: what a training program says of bad input, and how soon it ends.

Each case: the exit status, words that the message must have (the thing, got, expected), and
that neither weights nor their beginnings are left behind.
"""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import training
import weights as safetensors

LIMIT = training.HANGS


def write(path, tensors):
    """Writes name -> (dtype, shape, values) as safetensors."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}{safetensors.FORMATS[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def refused(title, command, status, *words, timeout=LIMIT):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout)
    said = done.stderr + done.stdout
    lacking = [word for word in words if word not in said]
    if done.returncode != status or lacking:
        sys.exit(f"{title}: got status {done.returncode}, expected {status}; lacking {lacking} in:\n{said}")
    print(f"refused: {title}: {said.strip().splitlines()[-1] if said.strip() else ''}")


def changed(tensors, name, tensor):
    return {**tensors, name: tensor}


def without(tensors, name):
    return {k: v for k, v in tensors.items() if k != name}


def bad_files(folder, program, init, data):
    """Weights and data that do not fit, are cut off, or hold what is no number."""
    weights, samples = safetensors.read(init), safetensors.read(data)
    shape, values = weights["fc1.weight"][1], weights["fc1.weight"][2]
    turned = ("F32", (shape[1], shape[0]), values)
    pixels = samples["x"]
    spoilt = ("F32", pixels[1], (float("nan"),) + pixels[2][1:])
    labels = ("I32", samples["label"][1], (10,) + samples["label"][2][1:])
    cut = folder / "cut.safetensors"
    cut.write_bytes(pathlib.Path(init).read_bytes()[:-10])
    garbage = folder / "garbage.safetensors"
    garbage.write_bytes(b"\xff" * 64)
    cases = [
        ("a missing weight", write(folder / "missing.safetensors", without(weights, "head.bias")), data,
         ["head.bias", "missing.safetensors"]),
        ("a weight of another shape", write(folder / "turned.safetensors", changed(weights, "fc1.weight", turned)),
         data, ["fc1.weight", "got", "expected"]),
        ("weights cut off", cut, data, ["cut.safetensors", "got", "expected"]),
        ("a file that is no safetensors", garbage, data, ["garbage.safetensors"]),
        ("a file that is not there", folder / "nowhere.safetensors", data, ["nowhere.safetensors"]),
        ("a missing input", init, write(folder / "no-label.safetensors", without(samples, "label")),
         ["label", "no-label.safetensors"]),
        ("a pixel that is no number", init, write(folder / "nan.safetensors", changed(samples, "x", spoilt)),
         ["'x'", "nan.safetensors"]),
        ("a label out of range", init, write(folder / "label.safetensors", changed(samples, "label", labels)),
         ["'label'", "10"]),
    ]
    export = folder / "out" / "weights.safetensors"
    export.parent.mkdir()
    for title, weights_file, data_file, words in cases:
        refused(title, [program, "--init", weights_file, "--data", data_file, "--steps", 1, "--export", export],
                1, *words)
    refused("a folder to export to that is not there",
            [program, "--init", init, "--data", data, "--steps", 1, "--export", folder / "no" / "w.safetensors"],
            1, "w.safetensors")
    left = os.listdir(export.parent)
    if left:
        sys.exit(f"left behind by refused runs: {left}")


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def dead_rank(program, init, data):
    """One rank is killed in the middle: all end within seconds, and the cause is named."""
    log = program.parent / "dead.jsonl"
    job = subprocess.Popen([program, "--init", init, "--data", data, "--steps", "1000000000", "--log", log],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while job.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.05)
    ranks = children(job.pid)
    os.kill(ranks[-1], signal.SIGKILL)
    start = time.monotonic()
    try:
        _, said = job.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        job.kill()
        sys.exit(f"a killed rank: the job still runs after {LIMIT} s")
    if job.returncode == 0 or "rank" not in said:
        sys.exit(f"a killed rank: got status {job.returncode} and: {said}")
    alive = [rank for rank in ranks if os.path.exists(f"/proc/{rank}")]
    if alive:
        sys.exit(f"a killed rank: others still run: {alive}")
    print(f"refused: a killed rank, after {time.monotonic() - start:.1f} s: {said.strip().splitlines()[-1]}")


def main(scratch):
    goldens, folder = training.GOLDEN / "mlp", pathlib.Path(scratch)
    init, data = goldens / "init.safetensors", goldens / "data.safetensors"
    os.environ.update(training.unoptimized())
    model = ["--in=12", "--hidden=17", "--classes=10", "--batch=10"]
    program = training.compile_model("mlp", folder, *model, ranks=2)
    bad_files(folder, program, init, data)
    run = [program, "--init", init, "--data", data, "--steps", 1]
    refused("another number of ranks", ["mpirun", "-n", 3, "--oversubscribe", *run], 1, "3", "2", "rank")
    refused("an unknown option", [*run, "--no-such-option"], 2, "--no-such-option")
    refused("steps that are no number", [*run[:-1], "many"], 2, "many")
    dead_rank(program, init, data)
    tool = training.tool("mlp")
    refused("an unknown option of the compiler", [tool, *model, "--no-such-option", "-o", folder / "x"], 2,
            "no-such-option")
    refused("a mesh without ranks", [tool, *model, "--mesh=fsdp=0", "-o", folder / "x"], 2, "fsdp", "0")
    refused("a folder that is not there", [tool, *model, "-o", folder / "no" / "train"], 1, "no/train")


if __name__ == "__main__":
    main(*sys.argv[1:])
