#!/usr/bin/env python3
"""check_checkpoint_cuda.py SCRATCH: checkpoints of the emulated CUDA program on two ranks.

With --save-async the copies go through a stream of their own into pinned memory; the files have the bytes of those that are written
while training waits, in whatever order the device's streams run. A run in parts ends bit for bit as one in one piece, and the CPU's
program goes on from the same files.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

import emulated
import training
from checkpoints import LIMIT, Runs, close, expect, folders, logged, mlp, run_cases, same, same_checkpoint, twice

OPTIONS = ["--in=12", "--hidden=17", "--classes=10", "--batch=10", "--lr=0.05", "--optimizer=adamw", "--warmup=3", "--schedule=cosine"]


def environment(mode):
    return {**os.environ, "FSDP_EMULATOR": mode}


def saved_behind_training_or_not(runs, program, cpu):
    runs.run(program, "--save", runs.at("at-once"), "--save-every", 3, "--log", runs.at("whole.jsonl"), "--export",
             runs.at("whole.safetensors"), env=environment("inline"))
    expect(folders(runs.at("at-once")) == ["step-00000003", "step-00000006", "step-00000008"], folders(runs.at("at-once")))
    for mode in ("inline", "deferred,seed=1", "deferred,seed=2"):
        root = runs.at(mode)
        runs.run(program, "--save", root, "--save-every", 3, "--save-async", env=environment(mode))
        for step in folders(runs.at("at-once")):
            same_checkpoint(root / step, runs.at("at-once") / step, f"{mode}, {step}")


def a_run_in_parts(runs, program, cpu):
    log, out = runs.at("parts.jsonl"), runs.at("parts.safetensors")
    log.write_text("".join(line + "\n" for line in runs.at("whole.jsonl").read_text().splitlines()[:5]))
    runs.run(program, "--resume", runs.at("at-once") / "step-00000003", "--log", log, "--export", out, env=environment("inline"))
    same(out, runs.at("whole.safetensors"), "weights")
    expect(logged(log) == logged(runs.at("whole.jsonl")), "another log")


def the_cpu_goes_on(runs, program, cpu):
    log = runs.at("cpu.jsonl")
    plain = Runs(runs.folder, runs.data)
    plain.run(cpu, "--resume", runs.at("at-once") / "step-00000003", "--log", log)
    close(logged(runs.at("whole.jsonl")), logged(log), 2e-5, "the CPU's program")


def a_signal_ends_all_ranks(runs, program, cpu):
    log = runs.at("signal.jsonl")
    run = subprocess.Popen(runs.command(program, "--save", runs.at("signal"), "--log", log, steps=10**8), env=environment("inline"),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    end = time.monotonic() + LIMIT
    while (not log.exists() or not log.read_text()) and time.monotonic() < end:
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    said = run.communicate(timeout=LIMIT)[0]
    expect(run.returncode == 143 and "stopped by SIGTERM" in said, f"got status {run.returncode}: {said}")
    expect(len(folders(runs.at("signal"))) == 1, folders(runs.at("signal")))


def goes_back_past_bad_samples(runs, program, cpu):
    """The batch that was loaded ahead when the run went back is the next one."""
    init = ("--init", training.GOLDEN / "mlp" / "init.safetensors")
    bad, good = (Runs(runs.folder, twice(runs.at(f"samples-{name}"), **options), *runs.options)
                 for name, options in (("bad", {"bad": 3e38}), ("good", {"without": range(40, 60)})))
    out, whole = runs.at("rollback.safetensors"), runs.at("without.safetensors")
    good.run(program, *init, "--export", whole, env=environment("inline"))
    for mode in ("inline", "deferred,seed=3"):
        bad.run(program, *init, "--save", runs.at(f"rollback-{mode}"), "--save-every", 4, "--on-nan=rollback", "--export", out,
                env=environment(mode), says="in step 6, a step that is not finite; ")
        same(out, whole, f"rollback, {mode}")


def skips_a_spike(runs, program, cpu):
    """As a step whose loss is infinite is skipped."""
    init = ("--init", training.GOLDEN / "mlp" / "init.safetensors")
    ends = []
    for bad, words in ((3e38, ()), (1e3, ("--on-spike=skip", "--spike-window=8"))):
        ends.append(runs.at(f"spike-{len(words)}.safetensors"))
        said = Runs(runs.folder, twice(runs.at(f"spike-{len(words)}"), bad=bad), *runs.options).run(
            program, *init, *words, "--export", ends[-1], env=environment("deferred,seed=4" if words else "inline"))
        expect(said.count("in step 6, a spike of more than 6 standard deviations over 5 steps: its update was skipped") == bool(words), said)
    same(*ends, "a spike")


def main():
    folder = pathlib.Path(sys.argv[1])
    program = emulated.compile_model("mlp", folder / "program", *OPTIONS, ranks=2)
    os.environ.update(training.unoptimized())
    cpu = mlp(folder / "cpu", "fsdp=3")
    run_cases((saved_behind_training_or_not, a_run_in_parts, the_cpu_goes_on, a_signal_ends_all_ranks, goes_back_past_bad_samples,
               skips_a_spike),
              Runs(folder / "runs", training.GOLDEN / "mlp" / "data.safetensors", "--communicator=loopback"), program, cpu)


if __name__ == "__main__":
    main()
