#!/usr/bin/env python3
"""check_manual_networks.py SCRATCH: the networks of JAX's shard_map guide train as JAX trains them.

Every network of examples/shard_map: the losses of three steps of SGD and, by the difference that the first one makes, each gradient.
FSDP by hand has the bits of what the compiler shards, over the same ranks.
"""

import json
import os
import pathlib
import sys

import from_cases
import training
import weights

# network -> (mesh, options); rows of parameters for what gathers them itself.
ROWS = ["--shard=*.weight:fsdp,_@replicated", "--shard=*.bias:fsdp@replicated"]
NETWORKS = {
    "automatic": ("fsdp=2", []),
    "data": ("fsdp=2", []),
    "fsdp": ("fsdp=2", ROWS),
    "tensor": ("tensor=2", []),
    "fsdp-tensor": ("fsdp=2,tensor=2", []),
    "fsdp-ring": ("fsdp=2", ROWS),
    "tensor-ring": ("tensor=2", []),
    "pipeline": ("stages=2", []),
}
# The same with what enters a region: on a mesh with another axis, in microbatches, computed again, in mixed precision.
VARIANTS = {
    "data-accumulate": ("data", "fsdp=2", ["--accumulate=2"], 1e-6),
    "data-of-four": ("data", "data=2,fsdp=2", [], 1e-6),
    "fsdp-remat": ("fsdp", "fsdp=2", [*ROWS, "--remat=full"], 0),
    "fsdp-of-flat": ("fsdp", "fsdp=2", [], 0),
    "pipeline-of-data": ("pipeline", "fsdp=2,stages=2", [], 1e-6),
    "fsdp-bf16": ("fsdp", "fsdp=2", [*ROWS, "--precision=bf16"], 3e-2),
}
SIZES = (16, 8, 8, 8, 4)


def stacked(tensors):
    """The layers between the first and the last as one, as the pipeline has them."""
    joined = {f"middle.{what}": [*tensors[f"fc1.{what}"], *tensors[f"fc2.{what}"]] for what in ("weight", "bias")}
    return {**{name: values for name, values in tensors.items() if name[2] in "03"}, **joined}


def shape_of(name):
    if name.startswith("middle"):
        return (2, 8, 8) if name.endswith("weight") else (2, 8)
    layer = int(name[2:name.index(".")])
    return (SIZES[layer], SIZES[layer + 1]) if name.endswith("weight") else (SIZES[layer + 1],)


class Runner:
    def __init__(self, scratch, golden):
        self.scratch, self.golden = pathlib.Path(scratch), golden
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.init, self.data = self.scratch / "init.safetensors", self.scratch / "data.safetensors"
        self.init_stacked = self.scratch / "stacked.safetensors"
        for init, params in ((self.init, golden["params"]), (self.init_stacked, stacked(golden["params"]))):
            from_cases.write_safetensors(init, {name: ("F32", shape_of(name), values) for name, values in params.items()})
        from_cases.write_safetensors(
            self.data, {"x": ("F32", (24, 16), golden["x"]), "y": ("F32", (24, 4), golden["y"])})
        os.environ.update(training.unoptimized())

    def train(self, name, network, mesh, options):
        """(losses, weights after one step, weights after three)"""
        folder = self.scratch / name
        program = training.compile_model(
            "shard_map", folder, "--in=16", "--hidden=8", "--blocks=2", "--out=4", "--batch=8", "--microbatches=4",
            f"--network={network}", "--optimizer=sgd", "--lr=0.1", *options, mesh=mesh)
        init = self.init_stacked if network == "pipeline" else self.init
        _, first = training.train(program, "first", 1, init, self.data)
        log, last = training.train(program, "last", 3, init, self.data)
        return [json.loads(line)["loss"] for line in log.read_text().splitlines()], first, last

    def evaluate(self, network, mesh):
        local = self.scratch / f"{network}.mlir"
        training.run([training.tool("shard_map"), "--in=16", "--hidden=8", "--blocks=2", "--out=4", "--batch=8", f"--network={network}",
                      f"--mesh={mesh}", "--emit=local", "-o", local])
        said = training.run([training.tool("fsdp-run"), local, f"--params={self.init}", f"--inputs={self.data}", "--segment=evaluate",
                             "--samples=5"]).stdout
        return float(said.split("loss ")[1].split()[0])

    def check(self, name, losses, first, tolerance):
        for step, (got, want) in enumerate(zip(losses, self.golden["losses"], strict=True)):
            if abs(got - want) > tolerance * abs(want):
                sys.exit(f"{name}: loss {got} in step {step + 1}, expected {want}")
        after = weights.read(first)
        params, gradients = self.golden["params"], self.golden["gradients"]
        if "middle.weight" in after:
            params, gradients = stacked(params), stacked(gradients)
        assert after.keys() == gradients.keys(), after.keys()
        for parameter, want in gradients.items():
            largest = max(map(abs, want))
            for old, new, gradient in zip(params[parameter], after[parameter][2], want, strict=True):
                # A weight is rounded to f32 after the step.
                if abs((old - new) / 0.1 - gradient) > tolerance * max(largest, 10):
                    sys.exit(f"{name}: the gradient of {parameter} is {(old - new) / 0.1}, expected {gradient}")


def main(scratch):
    golden = json.loads((training.GOLDEN / "manual" / "networks.json").read_text())
    runner, results = Runner(scratch, golden), {}
    for network, (mesh, options) in NETWORKS.items():
        results[network] = runner.train(network, network, mesh, options)
        runner.check(network, *results[network][:2], 2e-6)
    # An evaluation of five of eight samples, by the interpreter: ranks leave out those that do not count.
    found = {network: runner.evaluate(network, NETWORKS[network][0]) for network in ("automatic", "data", "fsdp", "tensor", "fsdp-tensor")}
    assert max(found.values()) - min(found.values()) < 1e-12 * found["automatic"], found
    for network in ("data", "fsdp"):
        assert results[network][0] == results["automatic"][0], (network, results[network][0], results["automatic"][0])
        for turn in (1, 2):
            training.same_bytes(results[network][turn], results["automatic"][turn])
    for name, (network, mesh, options, tolerance) in training.chosen(VARIANTS, "data-accumulate", "fsdp-bf16").items():
        result = runner.train(name, network, mesh, options)
        runner.check(name, *result[:2], tolerance or 2e-6)
        if tolerance == 0:
            training.same_bytes(result[2], results[network][2])


if __name__ == "__main__":
    main(*sys.argv[1:])
