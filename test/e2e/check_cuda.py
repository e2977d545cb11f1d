#!/usr/bin/env python3
"""check_cuda.py [--precision=bf16] SCRATCH MODEL [MESH ...]: the CUDA program of a model, emulated.

The golden's inputs and options, five steps (--all: ten). On one rank losses are the CPU program's to 1e-5, exported
weights to 1e-5. Each further mesh (RANKS or AXIS=N,...) runs its ranks as threads: losses are those of
one rank to 2e-6 and gradient norms to 2e-5. In bf16, where both targets round at other places, losses
and norms agree as far as bf16's of the CPU and of f32 do. On one rank both hold without epilogues of cuBLASLt too. On every mesh streams that run late, in a random order,
and threads of blocks in a random order change no bit of the log or of the weights. Sums of products run in an order that depends on
their sizes, and so on the mesh, as those of cuBLASLt may; losses agree all the same as bench/gpu_check asks.
"""

import json
import math
import os
import pathlib
import sys

import emulated
import training

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "bench"))
from gpu.cases import between_meshes  # noqa: E402

STEPS = 10 if training.WHOLE else 5
# Of losses and norms against the CPU's program, of weights against it, of losses and norms against one rank.
TOLERANCES = {
    "f32": (("--loss=1e-5", "--grad_norm=1e-4"), "--absolute=1e-5", (f"--loss={between_meshes([])}", "--grad_norm=2e-5")),
    "bf16": (("--loss=2e-3", "--grad_norm=1e-2"), "--absolute=1e-2",
             (f"--loss={between_meshes(['--precision=bf16'])}", "--grad_norm=1e-2")),
}


def inputs(model):
    """Options of the model, names of its metrics, first weights and data, by its golden."""
    goldens = training.GOLDEN / model
    if model == "linear":
        case = json.loads((goldens / "cases.json").read_text())["16-8-4"]
        return ([f"--in={case['in']}", f"--out={case['out']}", f"--batch={case['batch']}",
                 "--optimizer=adamw", "--clip=1"], goldens / "16-8-4.init.safetensors",
                goldens / "16-8-4.data.safetensors")
    golden = json.loads((goldens / "adamw.json").read_text())
    sizes = golden.get("sizes") or {name: golden[name] for name in ("in", "hidden", "classes")}
    data = goldens / ("data.safetensors" if model == "mlp" else "tokens.bin")
    # Parameters whose gradient is zero but for rounding (biases of keys) must not be moved by it.
    options = [option for option in golden["options"] if not option.startswith("--eps=")]
    return ([f"--{name}={size}" for name, size in sizes.items()]
            + [f"--batch={golden['batch']}", *options, "--eps=1e-4"], goldens / "init.safetensors", data)


def main(*arguments):
    precision = "f32"
    if arguments[0].startswith("--precision="):
        precision, arguments = arguments[0].partition("=")[2], arguments[1:]
    scratch, model, *meshes = arguments
    to_cpu, weights_to_cpu, to_one = TOLERANCES[precision]
    folder = pathlib.Path(scratch)
    options, init, data = inputs(model)
    options.append(f"--precision={precision}")
    os.environ.update(training.unoptimized())
    cpu = training.compile_model(model, folder, *options)
    expected, expected_weights = training.train(cpu, "cpu", STEPS, init, data, "--log-data")
    one = None
    for mesh in ("1", *training.chosen(meshes, -1)):
        axes = f"fsdp={mesh}" if mesh.isdigit() else mesh
        ranks = math.prod(int(axis.split("=")[1]) for axis in axes.split(","))
        program = emulated.compile_model(model, folder, *options, ranks=mesh, mesh=axes)
        log, weights = emulated.train(program, f"cuda-{mesh}", STEPS, init, data, "--log-data", ranks=ranks,
                                     mode="products=split" + ",leaks" * (ranks == 1))  # Loopback never destroys its events
        # Batches are loaded a step ahead.
        training.compare_log(log, expected, *to_cpu, "--samples_digest=0")
        training.compare_weights(weights, expected_weights, weights_to_cpu)
        one = one or log
        training.compare_log(log, one, *to_one)
        if mesh == "1":
            apart, apart_weights = emulated.train(program, "cuda-apart", STEPS, init, data, epilogues=False)
            training.compare_log(apart, expected, *to_cpu)
            training.compare_weights(apart_weights, expected_weights, weights_to_cpu)
            if precision == "bf16" and apart_weights.read_bytes() == weights.read_bytes():
                sys.exit("got the same weights whether cuBLASLt computes what follows a product or a kernel does, expected other roundings")
        for seed in training.chosen((1, 2), 0) if mesh == "1" else (ranks,):
            late, late_weights = emulated.train(program, f"cuda-{mesh}-late-{seed}", STEPS, init, data, ranks=ranks,
                                                mode=f"products=split,deferred,shuffle,seed={seed}")
            training.compare_log(late, log, "--loss=0", "--grad_norm=0")
            training.same_bytes(late_weights, weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
