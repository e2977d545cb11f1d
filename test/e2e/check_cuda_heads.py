#!/usr/bin/env python3
"""check_cuda_heads.py SCRATCH MODEL WIDTH: the CUDA program of a transformer whose heads are WIDTH wide, emulated.

Heads of real models are 64 and 128 wide, their vocabularies odd (GPT-2's 50,257): kernels of other sizes, and other
limits of shared memory, than those of the goldens' heads. One layer, three steps, f32 and bf16: losses, norms and weights
are the CPU program's as in check_cuda.py, and no order of streams and threads changes a bit.
"""

import os
import pathlib
import random
import struct
import sys

import emulated
import training
from check_cuda import TOLERANCES

STEPS = 3
VOCABULARY, CONTEXT, BATCH = 77, 70, 2  # more than one block of queries, and a part of one


def tokens(path, batch=BATCH * CONTEXT):
    """Random ones, enough for STEPS batches of `batch`."""
    draw = random.Random(1)
    count = STEPS * batch + 1
    path.write_bytes(struct.pack("<256i", 20240520, 1, count, *[0] * 253)
                     + struct.pack(f"<{count}H", *(draw.randrange(VOCABULARY) for _ in range(count))))
    return path


def main(scratch, model, width):
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(training.unoptimized())
    data, init = tokens(folder / "tokens.bin"), folder / "init.safetensors"
    options = ["--layers=1", f"--width={2 * int(width)}", "--heads=2", f"--context={CONTEXT}", f"--vocab={VOCABULARY}",
               f"--batch={BATCH}", "--clip=1", "--eps=1e-4", *(["--kv-heads=1", "--ffn=96"] if model == "llama" else [])]
    for precision, (to_cpu, weights_to_cpu, _) in TOLERANCES.items():
        place, chosen = folder / precision, [*options, f"--precision={precision}"]
        cpu = training.compile_model(model, place, *chosen)
        if not init.exists():  # the values of the seed, unchanged
            training.run([cpu, "--data", data, "--steps", 1, "--lr", 0, "--export", init])
        expected, expected_weights = training.train(cpu, "cpu", STEPS, init, data)
        program = emulated.compile_model(model, place, *chosen)
        log, weights = emulated.train(program, "cuda", STEPS, init, data)
        training.compare_log(log, expected, *to_cpu)
        training.compare_weights(weights, expected_weights, weights_to_cpu)
        late, late_weights = emulated.train(program, "late", STEPS, init, data, mode="deferred,shuffle,seed=5")
        training.compare_log(late, log, "--loss=0", "--grad_norm=0")
        training.same_bytes(late_weights, weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
