#!/usr/bin/env python3
"""check_machines.py SCRATCH: two machines of two ranks that meet over TCP compute what one does.

The machines are network namespaces joined by a cable, each with a /dev/shm of its own, where this
user may make such; and this machine alone, whose ranks are told apart by FSDP_MACHINE. Sums are made
in rank order by every communicator, so the logs and weights are the same bits as those of forked
ranks. Then the cable is cut: every rank ends within seconds, and says why.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import training
from ports import free_port

RANKS, PER_MACHINE = 4, 2
TOKEN = {"FSDP_JOB_TOKEN": "of these machines"}


class Namespaces:
    """Two network namespaces with a cable between them, `a` being machine 0."""

    def __init__(self):
        self.names = [f"fsdp-{os.getpid()}-{end}" for end in "ab"]
        self.addresses = ["10.213.77.1", "10.213.77.2"]
        self.holders = []

    def ip(self, *words):
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def __enter__(self):
        try:
            for name in self.names:
                self.ip("netns", "add", name)
            a, b = self.names
            self.ip("-n", a, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", b)
            for name, address in zip(self.names, self.addresses):
                self.ip("-n", name, "addr", "add", address + "/24", "dev", "cable")
                self.ip("-n", name, "link", "set", "lo", "up")
                self.ip("-n", name, "link", "set", "cable", "up")
                self.holders.append(self.hold(name))
        except OSError:
            self.__exit__()
            raise
        return self

    @staticmethod
    def hold(name):
        """A process in a namespace that has a /dev/shm of its own; ranks enter where it is."""
        words = "mount -t tmpfs none /dev/shm && echo mounted && exec sleep 100000"
        holder = subprocess.Popen(["ip", "netns", "exec", name, "sh", "-c", words], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if holder.stdout.readline() != "mounted\n":
            raise OSError(holder.stderr.read().strip())
        return holder

    def __exit__(self, *_):
        for holder in self.holders:
            holder.kill()
            holder.communicate()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def inside(self, machine):
        return ["nsenter", f"--target={self.holders[machine].pid}", "--net", "--mount"]

    def cut(self):
        self.ip("-n", self.names[0], "link", "set", "cable", "down")


class Job:
    """The ranks of a training run, started as torchrun would."""

    def __init__(self, command, inside, address, variables):
        self.ranks = []
        port = free_port()
        for rank in range(RANKS):
            machine = rank // PER_MACHINE
            environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
            environment |= {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": str(rank % PER_MACHINE),
                            "LOCAL_WORLD_SIZE": str(PER_MACHINE), "MASTER_ADDR": address,
                            "MASTER_PORT": str(port), **variables(machine)}
            self.ranks.append(subprocess.Popen([*inside(machine), *map(str, command)], env=environment, text=True,
                                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT))

    def wait(self, seconds):
        """Statuses and outputs; a rank that does not end in time has None as its status."""
        deadline = time.monotonic() + seconds
        results = []
        for rank in self.ranks:
            try:
                output, _ = rank.communicate(timeout=max(0.1, deadline - time.monotonic()))
                results.append((rank.returncode, output))
            except subprocess.TimeoutExpired:
                rank.kill()
                results.append((None, rank.communicate()[0]))
        return results


def compare(program, name, inputs, expected, inside, address, variables):
    steps, init, data = inputs
    log, weights = (program.parent / f"{name}.{end}" for end in ("jsonl", "safetensors"))
    job = Job([program, "--data", data, "--steps", steps, "--init", init, "--export", weights, "--log", log],
              inside, address, variables)
    results = job.wait(training.HANGS)
    if any(status != 0 for status, _ in results):
        sys.exit(f"{name}: {results}")
    training.compare_log(log, expected[0], "--loss=0", "--grad_norm=0", f"--steps={steps}")
    training.same_bytes(weights, expected[1])
    print(f"{name}: the same bits", flush=True)


def cut_the_cable(program, namespaces, inputs):
    _, init, data = inputs
    log = program.parent / "cut.jsonl"
    log.unlink(missing_ok=True)
    job = Job([program, "--data", data, "--steps", 1000000, "--init", init, "--log", log], namespaces.inside,
              namespaces.addresses[0], lambda machine: {"FSDP_TIMEOUT": "5", **TOKEN})
    deadline = time.monotonic() + training.HANGS
    while not (log.exists() and log.read_text().count("\n") > 5):
        if time.monotonic() > deadline:
            sys.exit(f"no step: {job.wait(1)}")
        if any(rank.poll() is not None for rank in job.ranks):
            sys.exit(f"a rank ended: {job.wait(1)}")
        time.sleep(0.05)
    namespaces.cut()
    start = time.monotonic()
    results = job.wait(100)  # well below the time after which the kernel gives a connection up
    seconds = time.monotonic() - start
    said = [line for _, output in results for line in output.splitlines() if line.startswith("error: ")]
    if any(status in (0, None) for status, _ in results) or not 1 <= len(said) <= 2:
        sys.exit(f"after the cable was cut, got {results}")
    if not all("no heartbeat for" in line or "timed out after" in line for line in said):
        sys.exit(f"after the cable was cut, got {said}")
    print(f"without the cable every rank ended within {seconds:.1f} s: {said[0]}", flush=True)


def main(scratch):
    goldens, folder = training.GOLDEN / "mlp", pathlib.Path(scratch)
    golden = json.loads((goldens / "clip.json").read_text())
    options = [f"--in={golden['in']}", f"--hidden={golden['hidden']}", f"--classes={golden['classes']}",
               f"--batch={golden['batch']}", *golden["options"]]
    inputs = (10, goldens / "init.safetensors", goldens / "data.safetensors")
    os.environ.update(training.unoptimized())
    # Every group on both machines; and gathers inside of each, gradients between them.
    programs = [training.compile_model("mlp", folder / "fsdp", *options, mesh="fsdp=4"),
                training.compile_model("mlp", folder / "hsdp", *options, "--strategy=hsdp", mesh="data=2,fsdp=2")]
    for program in programs:
        expected = training.train(program, "forked", *inputs)
        compare(program, "told-apart", inputs, expected, lambda machine: [], "127.0.0.1",
                lambda machine: {"FSDP_MACHINE": str(machine)})
        try:
            with Namespaces() as namespaces:
                compare(program, "namespaces", inputs, expected, namespaces.inside, namespaces.addresses[0],
                        lambda machine: TOKEN)
                if program == programs[0]:
                    cut_the_cable(program, namespaces, inputs)
        except OSError as error:
            print(f"skipped: network namespaces are not permitted here: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
