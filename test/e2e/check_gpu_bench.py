#!/usr/bin/env python3
"""check_gpu_bench.py SCRATCH BUILD: device-bench measures every function of Kernels.def and Kernels.h, and every product that the emitted programs
of one block of gpt2-124m and llama-8b have, at the same sizes."""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = {"gpt2-124m": ["gpt2", "--layers=1", "--width=768", "--heads=12", "--vocab=50257", "--context=1024", "--batch=32"],
          "llama-8b": ["llama", "--layers=1", "--width=4096", "--heads=32", "--kv-heads=8", "--ffn=14336", "--vocab=128256",
                       "--context=8192", "--batch=1"]}
# No launch; a part of concat; the parameter of a macro; a slice_piece, which is measured.
NO_KERNELS = {"find_kernels", "insert", "kernel", "all_slice"}


def listed(build, group, model):
    text = subprocess.run([build / "test" / "unit" / "device-bench", group, model, "--list"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in text.splitlines()]


def main(scratch, build):
    build = pathlib.Path(build)
    header = (ROOT / "runtime" / "kernels" / "cuda" / "Kernels.h").read_text()
    table = (ROOT / "runtime" / "program" / "Kernels.def").read_text()
    kernels = set(re.findall(r"^ *cudaError_t (\w+)\(", header, re.M))
    kernels |= set(re.findall(r"^FSDP_\w+\((\w+), \w+, \w+", table, re.M))
    kernels -= NO_KERNELS
    if len(kernels) < 30:
        raise SystemExit(f"got {sorted(kernels)} of Kernels.def and Kernels.h, expected at least 30 functions")
    measured = {row["name"] for model in MODELS for row in listed(build, "kernels", model)}
    if missing := kernels - measured:
        raise SystemExit(f"device-bench measures no {', '.join(sorted(missing))}")
    counts = []
    for model, (tool, *options) in MODELS.items():
        source = pathlib.Path(scratch) / f"bench-{model}"
        subprocess.run([build / "bin" / tool, *options, "--precision=bf16", "--mesh=fsdp=1", "--target=cuda", "--emit=source", "-o", source],
                       check=True)
        products = set(re.findall(r"Gemm\{/\*m=\*/(\d+), /\*n=\*/(\d+), /\*k=\*/(\d+)", (source / "train.cpp").read_text()))
        shapes = {tuple(row["shape"].split(" to ")[0].split(" x ")) for row in listed(build, "products", model)}
        # c^T = b^T a^T: a product and its transpose are one.
        same = shapes | {(n, m, k) for m, n, k in shapes}
        if not products or products - same:
            raise SystemExit(f"{model}: the program has products {sorted(products - same)}, device-bench {sorted(shapes)}")
        counts.append(len(products))
    print(f"{len(kernels)} kernels, {counts[0]} products of gpt2-124m, {counts[1]} of llama-8b: all are measured")


if __name__ == "__main__":
    main(*sys.argv[1:])
