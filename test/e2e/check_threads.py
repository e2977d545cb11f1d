#!/usr/bin/env python3
"""check_threads.py SCRATCH: `--threads` of generated programs.

Losses, gradient norms and weights have the same bits on 1, 2, 3 and 4 threads and on the default: gpt2 and llama, in f32 and
bf16, on one rank and on two, evaluated and generating too. Products, attention, norms and loops are large enough here to be
shared. The arena is the same. The first lines of a run say how many threads there are: by default the cores that the
process may run on, divided by the ranks. Other values are refused.
"""

import json
import os
import pathlib
import subprocess
import sys

import training

GPT2 = ("gpt2", "--layers=1", "--width=128", "--heads=2", "--context=128", "--vocab=256", "--batch=8", "--clip=1")
LLAMA = ("llama", "--layers=1", "--width=128", "--heads=4", "--kv-heads=2", "--ffn=256", "--context=128", "--vocab=256",
         "--batch=8", "--clip=1")
CASES = {
    "gpt2-f32": (GPT2, 1, []), "llama-bf16": (LLAMA, 1, ["--precision=bf16"]),
    "gpt2-bf16": (GPT2, 2, ["--precision=bf16"]), "llama-f32": (LLAMA, 2, []),
}
STEPS = 2


def fail(*words):
    sys.exit("check_threads: " + " ".join(str(word) for word in words))


def run(program, *options, cores=None, status=0):
    done = subprocess.run([program, *options], capture_output=True, text=True, errors="replace",
                          preexec_fn=cores and (lambda: os.sched_setaffinity(0, cores)))
    if done.returncode != status:
        fail(f"{program} {' '.join(map(str, options))}: got status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def results(program, data, threads, name):
    """What must not depend on the threads; and the first lines."""
    log, weights = program.with_name(f"{name}.jsonl"), program.with_name(f"{name}.safetensors")
    said, _ = run(program, "--data", data, "--val-data", data, "--steps", str(STEPS), "--seed=3", "--log", log,
                  "--export", weights, *([f"--threads={threads}"] if threads else []))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    values = [[line[key] for key in ("loss", "grad_norm", "peak_bytes")] for line in lines if "loss" in line]
    return (values, weights.read_bytes(), [line["val_loss"] for line in lines if "val_loss" in line]), said


def check_same(folder, data, name, model, ranks, options):
    program = folder / name
    training.run([training.tool(model[0]), *model[1:], *options, f"--mesh=fsdp={ranks}", "-o", program])
    expected, said = results(program, data, 1, f"{name}-1")
    if "  --threads=1  " not in said:
        fail(f"{name}: the first lines do not say --threads=1:\n{said}")
    if not (len(expected[0]) == STEPS and expected[2]):
        fail(f"{name}: the log has not {STEPS} steps and a validation: {expected[0]}, {expected[2]}")
    for threads in training.chosen((2, 3, 4, None), 1, 3) if ranks == 1 else (3,):
        got, said = results(program, data, threads, f"{name}-{threads}")
        for what, one, other in zip(("losses, norms and arena", "weights", "validation"), expected, got):
            if one != other:
                fail(f"{name}: the {what} on {threads} threads are not those on one")
        if threads and f"  --threads={threads}  " not in said:
            fail(f"{name}: the first lines do not say --threads={threads}:\n{said}")
    return program


def check_default(program, ranks, data):
    """As many threads as cores, divided by the ranks; one at least."""
    all_cores = sorted(os.sched_getaffinity(0))
    for count in sorted({1, len(all_cores)}):
        said, _ = run(program, "--data", data, "--steps=1", cores=all_cores[:count])
        # A control group may allow less.
        if not any(f"  --threads={threads}  " in said for threads in range(1, max(count // ranks, 1) + 1)):
            fail(f"{program.name}: the first lines do not say --threads={max(count // ranks, 1)} or less on {count} cores:\n{said}")


def check_words(program, data):
    """eval and generate take the option, and say and compute the same."""
    weights = program.with_name("gpt2-f32-1.safetensors")
    texts = {run(program, "eval", "--val-data", data, "--init", weights, f"--threads={threads}")[0].replace(
        f"--threads={threads}", "").split("memory:")[0] for threads in (1, 3)}
    if len(texts) != 1 or "val_loss" not in next(iter(texts)):
        fail("eval: the values on three threads are not those on one:", texts)
    for asked in ("0", "-1", "2.5", "many", "1025"):
        _, said = run(program, "--data", data, "--steps=1", f"--threads={asked}", status=2)
        if "--threads" not in said or asked not in said or said.count("\n") != 1:
            fail(f"--threads={asked}: got the message\n{said}")
    said, _ = run(program, "--help")
    if "--threads N" not in said:
        fail("the help does not have --threads:", said)


def check_generation(folder, program):
    small = folder / "generating"
    training.run([training.tool("gpt2"), *GPT2[1:], "--generate", "-o", small])
    texts = {run(small, "generate", "--prompt=" + "A text to continue. " * 4, "--tokens=4", "--threads", str(threads), "--init",
                 program.with_name("gpt2-f32-1.safetensors"))[0] for threads in (1, 3)}
    if len(texts) != 1:
        fail("generate: the text on three threads is not that on one:", texts)


def main():
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    data = folder / "data.txt"
    data.write_bytes(bytes((i * i + i // 7) % 251 for i in range(4000)))
    cases = training.chosen(CASES, "gpt2-f32", "llama-bf16", "llama-f32")
    programs = {name: check_same(folder, data, name, *case) for name, case in cases.items()}
    check_default(programs["gpt2-f32"], 1, data)
    check_default(programs["llama-f32"], 2, data)
    check_words(programs["gpt2-f32"], data)
    check_generation(folder, programs["gpt2-f32"])


if __name__ == "__main__":
    main()
