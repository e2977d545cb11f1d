#!/usr/bin/env python3
"""check_roles.py SCRATCH IR MODEL: a program whose ranks run different programs trains, saves and exports as one program does.

IR is a local module of three roles (test/codegen/roles.mlir) that share no storage but one; MODEL is the same model for one
program. The interpreter (local, and scheduled in several orders) and real processes log the losses, norms and evaluations of
MODEL to 1e-5 and export its weights. Checkpoints of both have the same files and tensors: each program resumes those of the other, on
another number of ranks, and a run of roles that is resumed has the bits of the one that was not interrupted. Compiled to record,
the programs print the actions that are read off the IR.
"""

import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

import training
import weights as safetensors
from check_refusals import write
from ports import free_port

STEPS, SAVED, SAMPLES, WIDTH = 6, 3, 14, 4  # the last batch of an evaluation is not whole
RANKS = 6


def expect(condition, what):
    if not condition:
        sys.exit(what)


def dataset(path, huge=None):
    """`huge`: a sample of which the loss is not finite."""
    draw = random.Random(5)
    rows = {name: [draw.gauss(0, 1) for _ in range(SAMPLES * WIDTH)] for name in ("t", "x")}
    if huge is not None:
        rows["x"][huge * WIDTH] = 1e30
    return write(path, {name: ("F32", (SAMPLES, WIDTH), values) for name, values in rows.items()})


def initial(folder):
    draw = random.Random(6)
    return write(folder / "init.safetensors", {name: ("F32", (WIDTH,), [draw.gauss(0, 0.7) for _ in range(WIDTH)]) for name in "abc"})


def close(got, expected, what):
    for step, (one, other) in enumerate(zip(got, expected, strict=True)):
        for name, value in other.items():
            expect(abs(one[name] - value) <= 1e-5 * max(1, abs(value)),
                   f"{what}: step {step + 1}: {name} is {one[name]}, expected {value}")


def close_weights(got, expected, what):
    one, other = safetensors.read(got), safetensors.read(expected)
    expect(set(one) == set(other), f"{what}: got {sorted(one)}, expected {sorted(other)}")
    for name, (_, _, values) in other.items():
        expect(all(abs(a - b) <= 1e-5 for a, b in zip(one[name][2], values, strict=True)), f"{what}: '{name}' differs")


def interpreted(module, data, init, *options):
    text = training.run([training.tool("fsdp-run"), module, "--inputs", data, "--params", init, "--numerics=typed", f"--steps={STEPS}",
                         *options]).stdout
    steps = [{} for _ in range(STEPS)]
    for line in text.splitlines():
        words = line.split()
        steps[int(words[1]) - 1][words[-2]] = float(words[-1])
    return steps


def names_of(tensor_file):
    """Names and shapes of a checkpoint's file, in order, without its values."""
    data = tensor_file.read_bytes()
    return data[8:8 + struct.unpack("<Q", data[:8])[0]]


class Program:
    """A binary and the data that it trains on."""

    def __init__(self, path, data, init, *launch):
        self.path, self.data, self.init, self.launch = path, data, init, launch

    def command(self, name, steps, *options):
        folder = self.path.parent
        log, weights = folder / f"{name}.jsonl", folder / f"{name}.safetensors"
        return log, weights, [str(word) for word in (self.path, "--data", self.data, "--steps", steps, "--export", weights,
                                                     "--log", log, *self.launch, *options)]

    def train(self, name, *options, steps=STEPS):
        """(log, weights, what was said)"""
        log, weights, command = self.command(name, steps, *options)
        said = training.run(command).stdout
        return self.read(log), weights, said

    def train_over_tcp(self, name, *options):
        """Starts each rank as torchrun would."""
        log, weights, command = self.command(name, STEPS, "--communicator=tcp", *options)
        port = free_port()
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": str(rank),
                                         "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
                   for rank in range(RANKS)]
        said = "".join(process.communicate()[0] for process in started)
        expect(not any(process.returncode for process in started), f"{name} failed\n{said}")
        return self.read(log), weights, said

    @staticmethod
    def read(log):
        keys = ("loss", "grad_norm", "lr", "val_loss", "samples_digest")
        steps = [json.loads(line) for line in log.read_text().splitlines()]
        return [{key: step[key] for key in keys if key in step} for step in steps if "step" in step]


def split_files(text, folder):
    """Writes the files of a program that fsdp-translate has printed."""
    folder.mkdir()
    files = re.split(r"^//--- (.*)\n", text, flags=re.MULTILINE)[1:]
    for name, content in zip(files[::2], files[1::2]):
        (folder / name).write_text(content)


def compile_roles(module, folder):
    """The files of all roles, compiled to train and to record."""
    split_files(training.run([training.tool("fsdp-translate"), "--fsdp-to-cpp", module]).stdout, folder)
    sources = sorted(folder.glob("*.cpp"))
    expect(len([source for source in sources if "role" in source.name]) == 3, f"got {sources}, expected a file of each role")
    training.build_unoptimized(sources, folder / "train", f"-I{folder}")
    got = training.run([training.build_unoptimized(sources, folder / "record", f"-I{folder}", record=True)]).stdout
    expected = training.run([training.tool("fsdp-translate"), "--fsdp-to-record", module]).stdout
    expect(got == expected, f"{folder}/record printed\n{got}expected\n{expected}")
    return folder / "train"


def scheduled_from(ir, folder):
    scheduled = folder / "scheduled.mlir"
    training.run([training.tool("fsdp-opt"), "--fsdp-schedule", "--fsdp-plan-memory", "--fsdp-link-segments", "--fsdp-verify-schedule",
                  "--fsdp-verify-phase", ir, "-o", scheduled])
    return scheduled


def check_interpreter(folder, ir, model, data, init):
    scheduled = scheduled_from(ir, folder)
    one = folder / "one.mlir"
    training.run([training.tool("fsdpc"), model, "--mesh=fsdp=1", "--emit=local", "-o", one])
    for segments in ("train", "train,evaluate"):
        expected = interpreted(one, data, init, f"--segment={segments}")
        close(interpreted(ir, data, init, f"--segment={segments}"), expected, "local IR")
        for seed in range(4):
            close(interpreted(scheduled, data, init, f"--segment={segments}", f"--seed={seed}"), expected, f"scheduled IR, seed {seed}")
    return scheduled


def check_programs(roles, one):
    """Losses, norms, evaluations and weights; started by the program, and rank by rank."""
    trace = roles.path.parent / "trace.json"
    evaluate = ("--val-data", roles.data, "--eval-every", "2", "--init", roles.init, "--log-data")
    log, weights, said = roles.train("roles", *evaluate, "--trace", trace)
    expected, reference, _ = one.train("one", *evaluate)
    expect(len(log) == STEPS and any("val_loss" in step for step in log), f"got the log {log}")
    expect([step["samples_digest"] for step in log] == [step["samples_digest"] for step in expected], "each sample counts once")
    processes = {event["pid"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"}
    expect(len(processes) == RANKS, f"got a trace of ranks {processes}")
    close(log, expected, "programs of roles")
    close_weights(weights, reference, "programs of roles")
    expect("mesh pipeline=3,fsdp=2" in said, f"got the header\n{said}")
    launched, others, _ = roles.train_over_tcp("tcp", *evaluate)
    expect(launched == log, f"over TCP got {launched}, expected {log}")
    training.same_bytes(others, weights)
    # Without files the values are drawn by name, whoever keeps them.
    close_weights(roles.train("drawn", steps=1)[1], one.train("drawn", steps=1)[1], "drawn values")


def check_checkpoints(roles, one):
    """The files do not say who wrote them."""
    folder = roles.path.parent
    _, whole, _ = roles.train("whole", "--init", roles.init)
    for name, program in (("saved-roles", roles), ("saved-one", one)):
        program.train(name, "--init", roles.init, "--save", folder / name, "--save-every", SAVED, *(("--save-async",) if program is roles else ()))
    steps = [folder / name / f"step-{SAVED:08}" for name in ("saved-roles", "saved-one")]
    kept = sorted(path.name for path in steps[0].iterdir())
    expect(kept == sorted(path.name for path in steps[1].iterdir()), f"got the files {kept}")
    for name in kept:
        if name.endswith(".safetensors"):
            expect(names_of(steps[0] / name) == names_of(steps[1] / name), f"'{name}' differs")
            close_weights(steps[0] / name, steps[1] / name, name)
    manifests = [json.loads((step / "manifest.json").read_text()) for step in steps]
    expect(manifests[0]["fingerprint"] == manifests[1]["fingerprint"], "the fingerprints differ")
    _, resumed, _ = roles.train("resumed", "--resume", steps[0])
    training.same_bytes(resumed, whole)
    for name, program, options in (("from-one", roles, ()), ("from-roles-2", one, ()), ("from-roles-1", one, ("--plan=fsdp=1",))):
        start = steps[1] if program is roles else steps[0]
        close_weights(program.train(name, "--resume", start, *options)[1], whole, name)


def check_bad_step(roles):
    """The first gradient that is not finite is named by every role, whoever keeps the parameter; the update is skipped by all."""
    start = write(roles.path.parent / "huge.safetensors", {name: ("F32", (WIDTH,), [3e38 if name == "c" else 0.0] * WIDTH) for name in "abc"})
    _, _, command = roles.command("diverged", STEPS, "--init", start)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expect(done.returncode == 1 and "the first gradient that is not finite is that of 'b'" in done.stderr,
           f"a loss that is not finite: status {done.returncode}\n{done.stdout}{done.stderr}")


def check_rollback(roles, one, data):
    """The second step is bad: both runs go back to their beginning, where moments are zero, and pass over its samples."""
    runs = [Program(program.path, data, program.init).train("rollback", "--init", program.init, "--on-nan=rollback", "--save",
                                                            program.path.parent / "rollback", "--save-every", "9", steps=2)
            for program in (roles, one)]
    expect(len(runs[1][0]) == 2, f"got the log {runs[1][0]}")
    close(runs[0][0], runs[1][0], "after a rollback")
    close_weights(runs[0][1], runs[1][1], "after a rollback")


def main(scratch, ir, model):
    folder = pathlib.Path(scratch)
    data, init = dataset(folder / "data.safetensors"), initial(folder)
    scheduled = check_interpreter(folder, ir, model, data, init)
    roles = Program(compile_roles(scheduled, folder / "roles"), data, init)
    reference = folder / "one"
    reference.mkdir()
    training.run([training.tool("fsdpc"), model, "--mesh=fsdp=2|fsdp=1", "-o", reference / "train"])
    one = Program(reference / "train", data, init)
    check_programs(roles, one)
    check_checkpoints(roles, one)
    check_bad_step(roles)
    check_rollback(roles, one, dataset(folder / "huge.safetensors", huge=5))


if __name__ == "__main__":
    main(*sys.argv[1:])
