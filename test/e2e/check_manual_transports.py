#!/usr/bin/env python3
"""check_manual_transports.py SCRATCH: collectives by hand are the same whatever carries them.

The networks of examples/shard_map leave the same bits over shared memory, MPI and TCP, and on an emulated GPU the losses and gradients
that JAX has.
"""

import json
import math
import os
import pathlib
import shutil
import sys

import emulated
import training
from check_manual_networks import NETWORKS, Runner

STEPS = 3


def ranks_of(mesh):
    return math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))


class Transports(Runner):
    def __init__(self, scratch, golden):
        super().__init__(scratch, golden)
        self.programs = {}

    def init_of(self, network):
        return self.init_stacked if network == "pipeline" else self.init

    def options(self, network):
        return ["--in=16", "--hidden=8", "--blocks=2", "--out=4", "--batch=8", "--microbatches=4", f"--network={network}", "--optimizer=sgd",
                "--lr=0.1", *NETWORKS[network][1]]

    def shared(self, network):
        """(program, weights after STEPS) over shared memory"""
        if network not in self.programs:
            program = training.compile_model("shard_map", self.scratch / network, *self.options(network), mesh=NETWORKS[network][0])
            _, weights = training.train(program, "shm", STEPS, self.init_of(network), self.data)
            self.programs[network] = program, weights
        return self.programs[network]

    def over_mpi(self, network):
        program, expected = self.shared(network)
        launcher = ("mpirun", "-n", ranks_of(NETWORKS[network][0]), "--oversubscribe")
        _, weights = training.train(program, "mpi", STEPS, self.init_of(network), self.data, "--communicator=mpi", launcher=launcher)
        training.same_bytes(weights, expected)

    def over_tcp(self, network):
        program, expected = self.shared(network)
        weights = program.parent / "tcp.safetensors"
        training.run_over_tcp([program, "--data", self.data, "--steps", STEPS, "--init", self.init_of(network), "--export", weights],
                              ranks_of(NETWORKS[network][0]))
        training.same_bytes(weights, expected)

    def on_emulator(self, network):
        mesh = NETWORKS[network][0]
        program = emulated.compile_model("shard_map", self.scratch / f"{network}-cuda", *self.options(network), ranks=ranks_of(mesh), mesh=mesh)
        train = lambda name, steps: emulated.train(program, name, steps, self.init_of(network), self.data, ranks=ranks_of(mesh))
        log, _ = train("log", STEPS)
        self.check(network, [json.loads(line)["loss"] for line in log.read_text().splitlines()], train("first", 1)[1], 2e-6)


def main(scratch):
    os.environ.update(training.unoptimized())
    golden = json.loads((training.GOLDEN / "manual" / "networks.json").read_text())
    transports = Transports(scratch, golden)
    networks = {network: network for network in NETWORKS}
    for network in training.chosen(networks, "fsdp-ring"):
        transports.over_tcp(network)
    for network in training.chosen(networks, "fsdp-ring") if shutil.which("mpirun") else ():
        transports.over_mpi(network)
    for network in training.chosen(networks, "pipeline"):
        transports.on_emulator(network)


if __name__ == "__main__":
    main(*sys.argv[1:])
