#!/usr/bin/env python3
"""check_packing.py SCRATCH: --document-end and --mask-prompt of compiled programs, against transformers (test/golden/from.json).

Loss and gradients of the first step are those of transformers, which computes with positions and a mask of attention and, to the same numbers, each document
by itself: on meshes that split data, weights, heads and the vocabulary, with microbatches, in bf16 roughly, and in a CUDA program,
emulated. An evaluation whose last batch is not full counts the targets of all samples. Where nothing counts, the loss is 0, no
weight changes, and an evaluation warns. What the options cannot mean is refused.
"""

import json
import os
import pathlib
import random
import subprocess
import sys

import check_from
import emulated
import from_cases
import training
from check_from import expect
from from_cases import BATCH

# Case, mesh, options, whether in bf16.
PLANS = training.chosen([
    ("gpt2-answers", "fsdp=2,tensor=2", (), False), ("gpt2-documents", "fsdp=1", ("--accumulate=3",), False),
    ("qwen2-chat", "fsdp=3", ("--strategy=zero2", "--loss-chunks=2"), False),
    ("llama-chat", "fsdp=2", ("--accumulate=2", "--strategy=ddp", "--remat=full"), False),
    ("qwen2-chat", "tensor=2", ("--precision=bf16",), True)], 0, 1, 2)
REFUSED = [("--mask-prompt=1,", 1, "got --mask-prompt=1,, expected ANSWER or ANSWER:END, each one or more token ids separated by commas"),
           ("--mask-prompt=1:", 1, "got --mask-prompt=1:, expected ANSWER or ANSWER:END"),
           ("--mask-prompt=1:2:3", 1, "got --mask-prompt=1:2:3, expected ANSWER or ANSWER:END"),
           ("--mask-prompt=-1", 1, "got --mask-prompt=-1, expected ANSWER or ANSWER:END"),
           ("--mask-prompt=1:7", 1, "got the token 7 in --mask-prompt, expected tokens below --vocab=7"),
           ("--mask-prompt=" + ",".join(["1"] * 17), 1, "got --mask-prompt with 17 tokens in a row, expected at most 16"),
           ("--mask-prompt=1,3,1", 1, "got --mask-prompt=1,3,1, whose ANSWER has the token of --document-end=3, expected an ANSWER within one document"),
           ("--mask-prompt=1,2:2", 1, "got --mask-prompt=1,2:2, expected ANSWER and END of which neither ends with the other"),
           ("--document-end=7", 1, "got --document-end=7, expected a token below --vocab=7")]


def counted(name):
    """The share of the targets that count."""
    rows = [from_cases.counts(row, *from_cases.PACKED[name]) for row in from_cases.tokens(7)]
    return sum(map(sum, rows)) / sum(map(len, rows))


class Case:
    def __init__(self, scratch, name, case):
        self.name, self.case, self.folder = name, case, scratch / name
        self.model = from_cases.program_of(case["config"])
        check_from.write_model(self.folder, case["config"], {key: tensor["shape"] for key, tensor in case["tensors"].items()})
        row = from_cases.stream(7)
        self.data = self.folder / "tokens.bin"
        self.data.write_bytes(b"".join(n.to_bytes(4, "little") for n in [20240520, 1, len(row), *[0] * 253]) +
                              b"".join(token.to_bytes(2, "little") for token in row))

    def compile(self, mesh, *options, compiler=training.compile_model, batch=BATCH):
        folder = self.folder / f"{mesh.replace(',', '-')}-{batch}{''.join(options)}{compiler.__module__}"
        return compiler(self.model, folder, f"--from={self.folder}", *check_from.STEP, f"--batch={batch}",
                        *check_from.options_of(self.name), *options, mesh=mesh)

    def compare(self, program, log, weights, isRough=False):
        gradients = check_from.gradients_between(self.folder / "model.safetensors", weights)
        line = json.loads(log.read_text().splitlines()[0])
        if isRough:
            expect(abs(line["loss"] - self.case["loss"]) <= 2e-2, f"{program}: got {line['loss']}, expected {self.case['loss']}")
        else:
            check_from.compare(str(program), (line["loss"], gradients), self.case)
        if from_cases.PACKED[self.name][1]:
            expect(abs(line["counted"] - counted(self.name)) <= 1e-6, f"{program}: got {line['counted']} counted, expected {counted(self.name)}")
        else:
            expect("counted" not in line, f"{program}: {line}")


def agrees_with_transformers(cases):
    for name, mesh, options, isRough in PLANS:
        program = cases[name].compile(mesh, *options)
        log, weights = training.train(program, "step", 1, cases[name].folder, cases[name].data)
        cases[name].compare(program, log, weights, isRough)
    case = cases["gpt2-answers"]
    program = case.compile("fsdp=2", compiler=emulated.compile_model)
    log, weights = emulated.train(program, "step", 1, case.folder, case.data, ranks=2, mode="deferred,shuffle,seed=3")
    case.compare(program, log, weights)


def evaluates_all_samples(cases):
    case = cases["qwen2-chat"]
    program = case.compile("fsdp=2", batch=2)  # of 3 samples
    log = case.folder / "eval.jsonl"
    training.run([program, "eval", "--init", case.folder, "--val-data", case.data, "--log", log])
    line = json.loads(log.read_text())
    expect(line["samples"] == BATCH and abs(line["val_loss"] - case.case["loss"]) <= 1e-6, f"got {line}, expected {case.case['loss']}")
    expect(abs(line["val_counted"] - counted(case.name)) <= 1e-6, f"got {line}, expected {counted(case.name)}")


def counts_nothing(cases):
    case = cases["llama-nothing"]
    for mesh, *options in (("fsdp=2",), ("fsdp=1", "--accumulate=3")):
        program = case.compile(mesh, *options)
        log, weights = training.train(program, "step", 1, case.folder, case.data)
        line = json.loads(log.read_text().splitlines()[0])
        expect(line["loss"] == 0 and line["grad_norm"] == 0 and line["counted"] == 0, f"{program}: {line}")
        unchanged = check_from.gradients_between(case.folder / "model.safetensors", weights)
        expect(all(number == 0 for values in unchanged.values() for number in values), f"{program}: weights have changed")
    said = training.run([program, "eval", "--init", case.folder, "--val-data", case.data])
    expect("warning: nothing in --val-data counts in val_loss, which is 0" in said.stderr and "val_loss 0 " in said.stdout, said)


def counts_as_defined(scratch):
    """Random rows and options: the share that counts is that of the definition token by token."""
    draw = random.Random(5)
    for number in range(10):
        vocab, end = draw.choice((3, 5)), draw.choice((None, 0))
        begin = [draw.randrange(1, vocab) for _ in range(draw.choice((1, 1, 2, 3)))]
        stop = [draw.randrange(1, vocab) for _ in range(draw.choice((0, 1, 1, 2)))]
        if stop and (begin[-len(stop):] == stop or stop[-len(begin):] == begin):
            continue
        rows = [[draw.randrange(vocab) for _ in range(41)] for _ in range(BATCH)]
        from_cases.write_safetensors(scratch / "rows.safetensors", {
            name: ("I32", [BATCH, 40], [token for row in rows for token in row[first:first + 40]]) for name, first in (("tokens", 0), ("targets", 1))})
        answers = ":".join(",".join(map(str, tokens)) for tokens in (begin, stop) if tokens)
        module = scratch / "model.mlir"
        training.run([training.tool("llama"), "--layers=1", "--width=4", "--heads=1", "--ffn=2", "--context=40", f"--batch={BATCH}", f"--vocab={vocab}",
                      f"--document-end={-1 if end is None else end}", f"--mask-prompt={answers}", "--emit=model", "-o", module])
        said = training.run([training.tool("fsdp-run"), module, "--inputs", scratch / "rows.safetensors", "--steps=1"]).stdout
        got = next(float(line.split()[3]) for line in said.splitlines() if line.split()[2] == "counted")
        expected = sum(sum(from_cases.counts(row, end, begin, stop)) for row in rows) / (40 * BATCH)
        expect(abs(got - expected) <= 1e-6, f"{answers} to {end} in {rows}: got {got} counted, expected {expected}")


def refused(scratch):
    for option, status, expected in REFUSED:
        done = subprocess.run([training.tool("llama"), "--layers=1", "--width=16", "--heads=2", "--ffn=24", "--context=8", "--vocab=7",
                               "--document-end=3", option, "--emit=model", "-o", scratch / "refused.mlir"], capture_output=True, text=True)
        expect(done.returncode == status and expected in done.stderr, f"{option}: {done.returncode} {done.stderr}")


def main():
    scratch = pathlib.Path(sys.argv[1])
    scratch.mkdir(parents=True)
    os.environ.update(training.unoptimized())
    cases = {case["name"]: Case(scratch, case["name"], case) for case in json.loads((training.GOLDEN / "from.json").read_text())
             if case["name"] in from_cases.PACKED}
    refused(scratch)
    counts_as_defined(scratch)
    agrees_with_transformers(cases)
    evaluates_all_samples(cases)
    counts_nothing(cases)


if __name__ == "__main__":
    main()
