#!/usr/bin/env python3
"""check_padding.py SCRATCH gpt2|llama: a padded vocabulary changes no number, and is in no file.

Vocabularies that no multiple of 64 divides, on one rank, over `fsdp` and over two and three ranks of `tensor`, with what else changes a program: losses,
norms and weights are those of the interpreter's global phase, which has the true size and computes in double precision (f32: to 2e-5; weights to 1e-5 of the largest; bf16: losses to
1e-2). Exports have the true shapes, and before the first update the bits of one another. Checkpoints load on every other mesh. The measured peak is the report's
arena, and the last token of the vocabulary is one, the next one an error. The emulated CUDA program too.
"""

import json
import os
import pathlib
import random
import struct
import sys

import emulated
import training
import weights as safetensors
from check_dropout import numbers
from checkpoints import Runs, expect, folders, logged, run_cases

STEPS, CONTEXT, BATCH, VOCABULARY = 5, 7, 5, {"gpt2": 1001, "llama": 509}
SIZES = {
    "gpt2": ["--layers=1", "--width=12", "--heads=2"],
    "llama": ["--layers=1", "--width=12", "--heads=2", "--kv-heads=2", "--ffn=18"],
}
OPTIONS = ["--lr=0.01", "--eps=1e-4", "--weight-decay=0.1", "--clip=0.5"]
# Mesh, options, and the rows of the table that a rank computes with.
CASES = {
    "one": ("fsdp=1", [], {"gpt2": 1024, "llama": 512}),
    "fsdp-2": ("fsdp=2", ["--loss-chunks=3", "--strategy=zero1"], {"gpt2": 1024, "llama": 512}),
    "tensor-2": ("tensor=2", ["--remat=full", "--loss-chunks=2"], {"gpt2": 512, "llama": 256}),
    "tensor-3": ("tensor=3", ["--accumulate=2"], {"gpt2": 336, "llama": 176}),
    "both": ("fsdp=2,tensor=2", ["--accumulate=2", "--loss-chunks=3", "--strategy=zero2"], {"gpt2": 512, "llama": 256}),
    "dimension": ("fsdp=2", ["--shard=*:0"], {"gpt2": 1024, "llama": 512}),
    "defer": ("fsdp=2", ["--defer-updates=on", "--buckets=parameter"], {"gpt2": 1024, "llama": 512}),
}
CHOSEN = training.chosen(CASES, "one", "tensor-2", "tensor-3", "both")
TABLES = {"gpt2": "wte", "llama": "embed_tokens"}


class Cases:
    def __init__(self, folder, model):
        self.folder, self.model, self.vocabulary = folder, model, VOCABULARY[model]
        self.options = [*SIZES[model], f"--context={CONTEXT}", f"--batch={BATCH}", f"--vocab={self.vocabulary}", *OPTIONS]
        draw = random.Random(7)
        count = STEPS * BATCH * CONTEXT + 1
        # With the first and the last token there is.
        self.tokens = [0, self.vocabulary - 1, *(draw.randrange(self.vocabulary) for _ in range(count - 2))]
        self.data = self.write_tokens("tokens.bin", self.tokens)
        os.environ.update(training.unoptimized())
        self.runs = Runs(folder, self.data, "--seed=5")
        self.programs = {}

    def write_tokens(self, name, tokens):
        path = self.folder / name
        path.write_bytes(struct.pack("<256i", 20240520, 1, len(tokens), *([0] * 253)) + struct.pack(f"<{len(tokens)}H", *tokens))
        return path

    def program(self, name):
        """(program, its report)"""
        if name not in self.programs:
            mesh, options, _ = CASES[name]
            program, report = self.folder / name, self.folder / f"{name}.json"
            training.run([training.tool(self.model), *self.options, *options, f"--mesh={mesh}", f"--report={report}", "-o", program])
            self.programs[name] = program, json.loads(report.read_text())
        return self.programs[name]

    def train(self, name, program, *options, steps=STEPS):
        """(log, exported weights) of a run."""
        log, weights = self.folder / f"{name}.jsonl", self.folder / f"{name}.safetensors"
        log.unlink(missing_ok=True)
        self.runs.run(program, "--log", log, "--export", weights, *options, steps=steps)
        return log, weights

    def inputs(self):
        """The batches of the token file as tensors."""
        samples = STEPS * BATCH
        header, body = {}, b""
        for name, first in (("tokens", 0), ("targets", 1)):
            rows = [self.tokens[i * CONTEXT + first:(i + 1) * CONTEXT + first] for i in range(samples)]
            data = b"".join(struct.pack(f"<{CONTEXT}i", *row) for row in rows)
            header[name] = {"dtype": "I32", "shape": [samples, CONTEXT], "data_offsets": [len(body), len(body) + len(data)]}
            body += data
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        path = self.folder / "inputs.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + body)
        return path

    def reference(self):
        """({name: its value in each step}, the weights) of the interpreter, without padding."""
        module, out = self.folder / "global.mlir", self.folder / "reference.safetensors"
        training.run([training.tool(self.model), *self.options, "--mesh=fsdp=1", "--emit=global", "-o", module])
        said = training.run([training.tool("fsdp-run"), module, "--params", self.folder / "first-one.safetensors", "--inputs", self.inputs(),
                             f"--steps={STEPS}", "--outputs", out]).stdout
        series = {}
        for line in said.splitlines():
            _, _, name, value = line.split()
            series.setdefault(name, []).append(float(value))
        return series, safetensors.read(out)


def files_have_the_true_size(cases):
    first = None
    for name in CHOSEN:
        program, _ = cases.program(name)
        _, weights = cases.train(f"first-{name}", program, "--lr=0", steps=1)
        first = first or weights
        expect(weights.read_bytes() == first.read_bytes(), f"{name}: first values differ from those of one rank")
    tables = [shape for key, (_, shape, _) in safetensors.read(first).items() if TABLES[cases.model] in key]
    expect(tables == [(cases.vocabulary, 12)], f"got tables {tables}, expected one of {cases.vocabulary} rows")


def steps_are_those_of_the_true_size(cases):
    series, reference = cases.reference()
    expect(len(series["loss"]) == STEPS and len(series["grad_norm"]) == STEPS, f"the interpreter logs {series}")
    for name in CHOSEN:
        program, report = cases.program(name)
        log, weights = cases.train(name, program, "--init", cases.folder / "first-one.safetensors")
        for what, allowed in (("loss", 2e-5), ("grad_norm", 2e-4)):
            for got, wanted in zip(numbers(log, what), series[what], strict=True):
                expect(abs(got - wanted) <= allowed * abs(wanted), f"{name}: got {what} {got}, expected {wanted}")
        for key, (_, shape, values) in safetensors.read(weights).items():
            wanted = reference[key.removeprefix("transformer.")][2] if key not in reference else reference[key][2]
            largest = max(map(abs, wanted))
            worst = max(abs(a - b) for a, b in zip(values, wanted, strict=True))
            expect(worst <= 1e-5 * max(largest, 1), f"{name}: '{key}' {shape} differs by {worst} of at most {largest}")
        peak = max(numbers(log, "peak_bytes"))
        expect(peak == report["arena"], f"{name}: measured a peak of {peak} bytes, expected the report's arena, {report['arena']}")


def ranks_have_equal_parts(cases):
    for name, (mesh, options, rows) in CHOSEN.items():
        text = training.run([training.tool(cases.model), *cases.options, *options, f"--mesh={mesh}", "--emit=local"]).stdout
        wanted = rows[cases.model]
        expect(f"x{wanted}xf32>" in text and f"x{cases.vocabulary}xf32>" not in text.split("fsdp.program")[1],
               f"{name}: no logits of {wanted} columns in the program of a rank")


def checkpoints_load_on_every_mesh(cases):
    series = None
    for name in training.chosen(("one", "tensor-3", "both"), 0, 1):
        root = cases.folder / f"{name}-checkpoints"
        program, _ = cases.program(name)
        cases.runs.run(program, "--save", root, "--save-every", 2, "--log", cases.folder / f"{name}-saved.jsonl", steps=4)
        expect(folders(root) == ["step-00000002", "step-00000004"], f"{name}: {folders(root)}")
        series = series or [step["loss"] for step in logged(cases.folder / f"{name}-saved.jsonl")][2:]
        for other in CHOSEN:
            log = cases.folder / f"{name}-to-{other}.jsonl"
            cases.runs.run(cases.program(other)[0], "--resume", root / "step-00000002", "--log", log, steps=4)
            got = [step["loss"] for step in logged(log)]
            expect(len(got) == 2 and all(abs(a - b) <= 2e-5 * abs(b) for a, b in zip(got, series)),
                   f"{name} to {other}: got {got}, expected {series}")
        for file in ("model", "exp_avg", "exp_avg_sq"):
            tables = [shape for key, (_, shape, _) in safetensors.read(root / "step-00000004" / f"{file}.safetensors").items()
                      if TABLES[cases.model] in key]
            expect(tables == [(cases.vocabulary, 12)], f"{name}: {file} has tables {tables}")


def tokens_past_the_true_size_are_refused(cases):
    """They are rows of the padded table: nothing may look them up."""
    bad = cases.write_tokens("bad.bin", [*cases.tokens[:9], cases.vocabulary, *cases.tokens[10:]])
    other = Runs(cases.folder, bad, "--seed=5")
    for name in ("one", "tensor-2"):
        other.run(cases.program(name)[0], status=1, says=[f"{cases.vocabulary}", "bad.bin"], steps=1)


def bf16_too(cases):
    series, _ = cases.reference()
    for mesh, options in training.chosen((("fsdp=2", []), ("tensor=2", ["--loss-chunks=3"])), 1):
        program = cases.folder / f"bf16-{mesh}"
        training.run([training.tool(cases.model), *cases.options, *options, "--precision=bf16", f"--mesh={mesh}", "-o", program])
        log, _ = cases.train(program.name, program, "--init", cases.folder / "first-one.safetensors")
        for got, wanted in zip(numbers(log, "loss"), series["loss"], strict=True):
            expect(abs(got - wanted) <= 1e-2 * abs(wanted), f"bf16 on {mesh}: got a loss of {got}, expected {wanted}")


def cuda_too(cases):
    series, _ = cases.reference()
    for mesh in training.chosen(("fsdp=1", "fsdp=2,tensor=2"), 1):
        program = emulated.compile_model(cases.model, cases.folder / f"cuda-{mesh}", *cases.options, mesh=mesh)
        log, _ = cases.train(f"cuda-{mesh}", program, "--init", cases.folder / "first-one.safetensors", "--communicator=loopback")
        for got, wanted in zip(numbers(log, "loss"), series["loss"], strict=True):
            expect(abs(got - wanted) <= 2e-5 * abs(wanted), f"CUDA on {mesh}: got a loss of {got}, expected {wanted}")


def main(scratch, model):
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    run_cases((files_have_the_true_size, ranks_have_equal_parts, steps_are_those_of_the_true_size, checkpoints_load_on_every_mesh,
               tokens_past_the_true_size_are_refused, bf16_too, cuda_too), Cases(folder, model))


if __name__ == "__main__":
    main(*sys.argv[1:])
