#!/usr/bin/env python3
"""check_evaluation.py [--cuda] SCRATCH: val_loss and val_* are sums over weights of the whole validation set.

`eval` of a program, and --steps=0, evaluate weights as --eval-every of a run does, and train nothing.

Programs of a batch evaluate sets that are smaller than it, a multiple of it, or end in a batch of one sample;
what they log equals the sums over weights that programs of just the size of each batch log, to 2e-6, on
1, 2, 3, 4 ranks, on 2 x 2 and in two stages. The models: a classifier (a constant weight, a metric of counts), one with
weights from the data (a batch of weight 0 among them), and a language model on tokens. A model with statistics over the
batch, whose numbers are no sums over samples, is compiled with a warning and refuses a set with a rest.
With --cuda the programs are CUDA's, emulated.
"""

import json
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys

import check_branches
import emulated
import training
import weights as safetensors
from check_refusals import write

TOLERANCE = 2e-6
MLP = ["--in=12", "--hidden=17", "--classes=10", "--lr=0"]
BRANCHES = [f"--width={check_branches.WIDTH}", "--lr=0", "--per-sample"]
GPT2 = ["--layers=2", "--width=32", "--heads=4", "--context=16", "--vocab=61", "--lr=0"]
CONTEXT = 16
METRICS = {"mlp": ("accuracy",), "branches": ("distance", "largest"), "gpt2": ()}


class Evaluator:
    """Programs of one model, compiled when they are first asked for."""

    def __init__(self, folder, model, options, init, cuda=False):
        self.folder, self.model, self.options, self.init, self.cuda = folder, model, options, init, cuda
        self.programs = {}

    def program(self, batch, mesh, cuda=False):
        key = (batch, mesh, cuda)
        if key not in self.programs:
            folder = self.folder / f"{self.model}-{batch}-{mesh}{'-cuda' if cuda else ''}".replace(",", "-")
            compile_model = emulated.compile_model if cuda else training.compile_model
            self.programs[key] = compile_model(self.model, folder, *self.options, f"--batch={batch}", mesh=mesh)
        return self.programs[key]

    def one_batch(self, batch, data):
        """What a step on the first `batch` samples logs, as one batch."""
        log, _ = training.train(self.program(batch, "fsdp=1"), "batch", 1, self.init, data)
        return json.loads(log.read_text())

    def evaluate(self, batch, mesh, data, name):
        program = self.program(batch, mesh, self.cuda)
        options = ["--val-data", data]
        if self.cuda:
            ranks = 1
            for axis in mesh.split(","):
                ranks *= int(axis.split("=")[1])
            log, _ = emulated.train(program, name, 1, self.init, data, *options, ranks=ranks,
                                    mode="deferred,shuffle,seed=3")
        else:
            log, _ = training.train(program, name, 1, self.init, data, *options)
        return json.loads(log.read_text())

    def check(self, batch, meshes, whole, parts):
        """`parts`: for each batch (data of its samples alone, how many, its weight of loss and of metrics)."""
        names = ("loss", *METRICS[self.model])
        sums, weights = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        for data, samples, weight in parts:
            logged = self.one_batch(samples, data)
            for name in names:
                share = weight if name == "loss" else samples
                if share:
                    sums[name] += logged[name] * share
                    weights[name] += share
        samples = sum(part[1] for part in parts)
        for mesh in meshes:
            logged = self.evaluate(batch, mesh, whole, f"of-{samples}")
            for name in names:
                got, expected = logged[f"val_{name}"], sums[name] / weights[name]
                if got is None or abs(got - expected) > TOLERANCE * max(1.0, abs(expected)):
                    sys.exit(f"evaluation: {self.model}, batch {batch}, {mesh}, {samples} samples: got val_{name} "
                             f"{got}, expected {expected}")
        print(f"evaluation: {self.model}, batch {batch}, {samples} samples: {sums['loss'] / weights['loss']:.9g} on "
              f"{len(meshes)} mesh(es)")


def part(tensors, first, count):
    """Samples [first, first + count) of every tensor."""
    result = {}
    for name, (dtype, shape, values) in tensors.items():
        width = len(values) // shape[0]
        result[name] = (dtype, (count, *shape[1:]), values[first * width:(first + count) * width])
    return result


def split(folder, name, tensors, samples, batch, weight_of=None):
    """The first `samples` samples as one file, and those of each batch with its weight."""
    whole = write(folder / f"{name}-{samples}.safetensors", part(tensors, 0, samples))
    parts = []
    for first in range(0, samples, batch):
        count = min(batch, samples - first)
        data = write(folder / f"{name}-{samples}-from-{first}.safetensors", part(tensors, first, count))
        parts.append((data, count, weight_of(first, count) if weight_of else count))
    return whole, parts


def run(program, *words, status=0):
    """Standard output and error, which must end with `status`."""
    done = subprocess.run([str(word) for word in (program, *words)], capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"evaluation: {words}: got status {done.returncode}, expected {status}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def lines_of_results(said):
    return [line for line in said.splitlines() if line.startswith("val_")]


def without_training(folder, evaluator, batch, meshes, data, validation):
    """`eval` of each checkpoint and of exported weights gives the bits that --eval-every of the run gave, also on other meshes."""
    metrics = ["val_loss", *(f"val_{name}" for name in METRICS[evaluator.model])]
    for mesh in meshes:
        program = evaluator.program(batch, mesh)
        root = folder / f"{evaluator.model}-eval-{mesh}".replace(",", "-")
        weights, log, own = root.with_suffix(".safetensors"), root.with_suffix(".jsonl"), root.with_suffix(".eval.jsonl")
        trained = run(program, "--data", data, "--val-data", validation, "--eval-every=1", "--steps=3", "--init", evaluator.init, "--lr=1e-3",
                      "--shuffle", "--save", root, "--save-every=1", "--export", weights, "--log", log)
        printed = lines_of_results(trained)[-1]
        before = log.read_bytes()
        steps = [json.loads(line) for line in before.splitlines()]
        for source, step in ((("--init", weights), 3), (("--init", root), 3), (("--resume", root), 3),
                             *((("--resume", root / f"step-{step:08}"), step) for step in (1, 2, 3))):
            said = run(program, "eval", "--val-data", validation, *source, "--log", own)
            line = json.loads(own.read_text())
            expected = {name: steps[step - 1][name] for name in metrics} | {"step": 0 if source[0] == "--init" else step}
            got = {name: line[name] for name in expected}
            if got != expected:
                sys.exit(f"evaluation: eval {source} on {mesh}: got {got}, expected {expected}")
            if step == 3 and not (len(lines_of_results(said)) == 1 and lines_of_results(said)[0].startswith(printed)):
                sys.exit(f"evaluation: eval {source} on {mesh}: got {said}, expected '{printed}'")
            if any(word in said for word in ("done:", "step 1/", "warning", "--seed=")) or f"evaluated {line['samples']} samples" not in said:
                sys.exit(f"evaluation: eval {source} on {mesh}: got {said}")
            further = set(line) - set(expected) - {"samples"}
            if further != ({"val_perplexity"} if evaluator.model == "gpt2" else set()):
                sys.exit(f"evaluation: eval on {mesh}: got {line}")
            if further and line["val_perplexity"] != math.exp(line["val_loss"]):
                sys.exit(f"evaluation: eval on {mesh}: got perplexity {line['val_perplexity']} of {line}")
        said = run(program, "--val-data", validation, "--steps=0", "--resume", root, "--log", log, "--log-header")
        if f"kept the existing log as '{log}." not in said or log.with_name(f"{log.name}.1").read_bytes() != before:
            sys.exit(f"evaluation: --steps=0 has changed the log of the run: {said}")
        header, again = [json.loads(line) for line in log.read_text().splitlines()]
        if again != line or header["run"]["steps"] != 0:
            sys.exit(f"evaluation: --steps=0 on {mesh}: got the log {header} {again}, expected {line}")
        if sorted(path.name for path in root.iterdir()) != [f"step-{step:08}" for step in (1, 2, 3)]:
            sys.exit(f"evaluation: eval has changed {root}")
        other = evaluator.program(batch, meshes[0])
        run(other, "eval", "--val-data", validation, "--resume", root, "--log", own)
        elsewhere = json.loads(own.read_text())
        if any(abs(elsewhere[name] - line[name]) > 1e-5 * max(1.0, abs(line[name])) for name in metrics):
            sys.exit(f"evaluation: eval on {meshes[0]} of weights of {mesh}: got {elsewhere}, expected {line}")
    print(f"evaluation: eval on {len(meshes)} meshes: {printed}")
    steps_0 = ("--steps=0", "--val-data", validation)
    given = ("eval", "--val-data", validation)
    for words, refusal in ((("--steps=0", "--init", weights), "got --steps=0 without --val-data"),
                           (steps_0, "got --steps=0 without --init or --resume"),
                           ((*steps_0, "--resume=latest", "--save", root), "got --save with --steps=0"),
                           (("eval", "--init", weights), f"--val-data is missing: name the file to evaluate on; see {program} eval --help"),
                           (given, "got neither --init nor --resume: name the weights to evaluate"),
                           ((*given, "--init", weights, "--resume", root), "got both --resume and --init, expected one of them"),
                           ((*given, "--resume=latest"), "got --resume=latest, expected a folder"),
                           ((*given, "--init", weights, "--log-header"), "got --log-header without --log"),
                           ((*given, "--init", weights, "--data", data), "unknown option '--data'"),
                           ((*given, "--init", weights, "--steps=1"), "unknown option '--steps=1'"),
                           ((*given, "--init", weights, "again"), "unexpected argument 'again'")):
        if refusal not in (said := run(program, *words, status=2)):
            sys.exit(f"evaluation: {words}: got {said!r}, expected '{refusal}'")
    results_are_not_lost(program, (*given, "--init", weights))
    if "--val-data FILE" not in (said := run(program, "eval", "--help")) or "--save" in said.replace("--save DIR,", ""):
        sys.exit(f"evaluation: eval --help: got {said}")


def results_are_not_lost(program, evaluation):
    """What cannot be written is an error: the log, what is printed, the help, a file of options. Where nobody reads it, nothing is said."""
    full = "No space left on device"

    def lost(words, output, status, says=None):
        done = subprocess.run([str(word) for word in (program, *words)], stdout=output, stderr=subprocess.PIPE, text=True)
        if done.returncode != status or done.stderr.count(full) != bool(says) or (done.stderr.strip() != says if says else done.stderr):
            sys.exit(f"evaluation: {words}: got status {done.returncode} and {done.stderr!r}, expected {status} and {says!r}")

    lost((*evaluation, "--log", "/dev/full"), subprocess.DEVNULL, 1,
         f"error: cannot write '/dev/full': {full}; free some space or choose another location")
    for words in (evaluation, ("--help",), ("eval", "--help"), ("--version",), ("--print-config",), (*evaluation, "--print-config")):
        with open("/dev/full", "w") as output:
            lost(words, output, 1, f"error: cannot write to standard output: {full}")
        reader, writer = os.pipe()
        os.close(reader)
        lost(words, writer, 141 if words == evaluation else -signal.SIGPIPE)
        os.close(writer)


def tokens(path, values):
    header = [20240520, 1, len(values)] + [0] * 253
    path.write_bytes(struct.pack("<256i", *header) + struct.pack(f"<{len(values)}H", *values))
    return path


def classifier(folder, cuda, meshes):
    golden = training.GOLDEN / "mlp"
    tensors = safetensors.read(golden / "data.safetensors")
    evaluator = Evaluator(folder, "mlp", MLP, golden / "init.safetensors", cuda)
    for samples in (9,) if cuda else training.chosen((3, 8, 9), 0, 2):
        whole, parts = split(folder, "mlp", tensors, samples, 8)
        evaluator.check(8, meshes, whole, parts)
    if not cuda:
        data = golden / "data.safetensors"
        without_training(folder, evaluator, 8, training.chosen(("fsdp=1", "fsdp=2", "data=2,fsdp=2"), 0, 2), data,
                         write(folder / "mlp-validation.safetensors", part(tensors, 0, 9)))


def branches(folder, cuda, meshes):
    tensors = safetensors.read(check_branches.dataset(folder))
    dtype, shape, importance = tensors["importance"]
    # The first batch counts nothing.
    importance = [0.0] * 10 + list(importance[10:])
    tensors["importance"] = (dtype, shape, importance)
    evaluator = Evaluator(folder, "branches", BRANCHES, check_branches.initial(folder), cuda)
    for samples in (23,) if cuda else (13, 23):
        whole, parts = split(folder, "branches", tensors, samples, 10,
                             lambda first, count: sum(importance[first:first + count]))
        evaluator.check(10, meshes, whole, parts)


def statistics(folder):
    """What statistics over the batch have scaled is no sum over samples."""
    program = folder / "statistics"
    compiled = subprocess.run([training.tool("branches"), f"--width={check_branches.WIDTH}", "--batch=10", "-o", program],
                              capture_output=True, text=True, check=True)
    expected = "evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples"
    if expected not in compiled.stderr:
        sys.exit(f"evaluation: statistics over the batch: got {compiled.stderr!r}, expected '{expected}'")
    tensors = safetensors.read(check_branches.dataset(folder))
    for samples, status in ((13, 1), (20, 0)):
        data = write(folder / f"statistics-{samples}.safetensors", part(tensors, 0, samples))
        initial = check_branches.initial(folder)
        for words in (["--data", data, "--val-data", data, "--steps=1"], ["eval", "--val-data", data, "--init", initial]):
            ended = subprocess.run([program, *words], capture_output=True, text=True)
            if ended.returncode != status or (status and "expected a multiple of the batch" not in ended.stderr):
                sys.exit(f"evaluation: statistics over the batch, {samples} samples: {words}: got status {ended.returncode} and "
                         f"{ended.stderr!r}, expected {status}")


def language(folder, cuda, meshes):
    golden = training.GOLDEN / "gpt2"
    data = (golden / "tokens.bin").read_bytes()[1024:]
    row = struct.unpack(f"<{len(data) // 2}H", data)
    evaluator = Evaluator(folder, "gpt2", GPT2, golden / "init.safetensors", cuda)
    for samples in (5,) if cuda else (2, 5):
        # Tokens that make no further sample are left out.
        whole = tokens(folder / f"tokens-{samples}.bin", row[:samples * CONTEXT + 1 + (CONTEXT - 1)])
        parts = []
        for first in range(0, samples, 4):
            count = min(4, samples - first)
            begin = first * CONTEXT
            path = tokens(folder / f"tokens-{samples}-from-{first}.bin", row[begin:begin + count * CONTEXT + 1])
            parts.append((path, count, count))
        evaluator.check(4, meshes, whole, parts)
    if not cuda:
        without_training(folder, evaluator, 4, ("fsdp=1", "fsdp=3"), golden / "tokens.bin", folder / "tokens-5.bin")


def main(*arguments):
    os.environ.update(training.unoptimized())
    cuda = arguments[0] == "--cuda"
    folder = pathlib.Path(arguments[-1])
    folder.mkdir(parents=True, exist_ok=True)
    meshes = ("fsdp=1", "fsdp=2") if cuda else training.chosen(("fsdp=1", "fsdp=2", "fsdp=3", "fsdp=4", "data=2,fsdp=2", "pipeline=2,fsdp=2"), 2, 4)
    classifier(folder, cuda, meshes)
    branches(folder, cuda, meshes[:1] if cuda else meshes)
    if not cuda:
        statistics(folder)
    language(folder, cuda, meshes[1:] if cuda else training.chosen(("fsdp=1", "fsdp=3", "data=2,fsdp=2", "pipeline=2,fsdp=2"), 2, 3))


if __name__ == "__main__":
    main(*sys.argv[1:])
