#!/usr/bin/env python3
"""check_bad_steps.py SCRATCH: --on-nan of programs.

A run that goes back to a checkpoint and passes over samples ends bit for bit as one on data without them: on 1, 2 and 4 ranks, with deferred
updates and asynchronous saves, from the beginning of the run, from the checkpoint of --resume, and after a rank was killed.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from check_refusals import write
from checkpoints import LIMIT, Runs, expect, lines_of, logged, mlp, run_cases, same, twice, until_hit
from ports import free_port
from training import compile_model, GOLDEN, unoptimized
from weights import read

SAMPLES, BATCH, SAVES = 200, 10, 4
BAD = 6  # the step whose samples hold a target that overflows the loss


def data(path, bad=(), without=(), samples=SAMPLES):
    """Samples of `linear`, those of the steps `bad` with a loss that is infinite, without those of the steps `without`."""
    draw = random.Random(1)
    x, y = [], []
    for sample in range(samples):
        row = [draw.gauss(0, 1) for _ in range(11)]
        step = sample // BATCH + 1
        if step in bad and sample % BATCH == 3:
            row[8] = 1e30
        if step not in without:
            x += row[:8]
            y += row[8:]
    return write(path, {"x": ("F32", (len(x) // 8, 8), x), "y": ("F32", (len(y) // 3, 3), y)})


def steps_of(path):
    """What a log says of each step, without the place in the data."""
    steps = [line for line in logged(path) if "step" in line]
    for step in steps:
        for name in ("tokens", "epoch"):
            del step[name]
    return steps


def rollbacks(path):
    return [line["rollback"] for line in map(json.loads, pathlib.Path(path).read_text().splitlines()) if "rollback" in line]


def reference(runs, program, *words, steps=9, without=None):
    """Log and weights of a run on the data `without`, by default without the samples of steps 5 and 6, those after the checkpoint."""
    log, out = runs.at("whole.jsonl"), runs.at("whole.safetensors")
    log.unlink(missing_ok=True)
    Runs(runs.folder, without or runs.without).run(program, "--log", log, "--export", out, *words, steps=steps)
    return log, out


def goes_back_and_ends_as_without_the_samples(runs, program):
    every = read(runs.data)
    batch = {name: (dtype, (BATCH, *shape[1:]), values[50 * shape[1]:60 * shape[1]]) for name, (dtype, shape, values) in every.items()}
    for plan, *more in (("fsdp=1",), ("fsdp=2", "--save-async"), ("fsdp=4",)):
        log, out, root = (runs.at(f"{plan}.{name}") for name in ("jsonl", "safetensors", "root"))
        whole, weights = reference(runs, program, f"--plan={plan}")
        said = runs.run(program, f"--plan={plan}", "--save", root, "--save-every", SAVES, "--on-nan=rollback", "--log", log, "--export", out,
                        *more, steps=9)
        expect("got loss inf and gradient norm" in said and "rollback 1 to step 4, past 20 samples" in said, said)
        same(out, weights, plan)
        expect(steps_of(log) == steps_of(whole), f"{plan}: another log")
        tokens = [json.loads(line).get("tokens") for line in log.read_text().splitlines()]
        expect(tokens == [10, 20, 30, 40, None, 70, 80, 90, 100, 110], f"{plan}: {tokens}")
        cause = rollbacks(log)[0]
        expect((cause["number"], cause["from_step"], cause["to_step"], cause["skipped"]) == (1, BAD, 4, [40, 60]), f"{cause}")
        expect("every gradient is finite" in cause["cause"], f"{cause}")
        note = json.loads(pathlib.Path(f"{root}.flight-record.txt.bad-step.json").read_text())
        expect((note["step"], note["loss"], note["parameter"], note["position"], note["samples"]) ==
               (BAD, "inf", None, 50, list(range(50, 60))), f"{note}")
        inputs = pathlib.Path(f"{root}.flight-record.txt.bad-step.safetensors")
        expect(note["inputs"] == str(inputs), f"{note}")
        expect(read(inputs) == batch, f"{plan}: another batch in {inputs}")
        # It is a data set on which the step is bad again, without that of the run.
        again = [str(program), f"--plan={plan}", "--data", inputs, "--init", root / "step-00000004", "--steps=1", "--on-nan=stop"]
        done = subprocess.run([str(word) for word in again], capture_output=True, text=True)
        expect(done.returncode == 1 and "got loss inf and gradient norm" in done.stderr and "in step 1," in done.stderr, done.stderr)
        manifest = json.loads((root / "step-00000009" / "manifest.json").read_text())
        expect(manifest["samples"] == 110, f"{manifest['samples']} samples")


def goes_back_to_what_it_began_with(runs, program):
    # To step 0, as nothing is saved yet: the samples of steps 1 to 6 are passed over.
    out, root = runs.at("first.safetensors"), runs.at("first")
    said = runs.run(program, "--save", root, "--on-nan=rollback", "--export", out, steps=3 + BAD)
    expect("rollback 1 to step 0, past 60 samples" in said, said)
    Runs(runs.folder, data(runs.at("later.safetensors"), without=range(1, BAD + 1))).run(
        program, "--export", runs.at("later-out.safetensors"), steps=3 + BAD)
    same(out, runs.at("later-out.safetensors"), "from step 0")
    # To the checkpoint of --resume, in a run that continues the log of the one before.
    root, log = runs.at("resumed"), runs.at("resumed.jsonl")
    runs.run(program, "--save", root, "--log", log, steps=4)
    said = runs.run(program, "--save", root, "--resume=latest", "--on-nan=rollback", "--log", log, "--export", out, steps=9)
    expect("rollback 1 to step 4, past 20 samples" in said, said)
    whole, weights = reference(runs, program)
    same(out, weights, "resumed")
    expect(steps_of(log) == steps_of(whole), "another log")
    # A run that continues from a later checkpoint of it takes the position from there, and the log with a rollback.
    runs.run(program, "--save", root, "--resume", root / "step-00000009", "--log", log, "--export", out, steps=11)
    whole, weights = reference(runs, program, steps=11)
    same(out, weights, "resumed after a rollback")
    expect(steps_of(log) == steps_of(whole) and len(rollbacks(log)) == 1, "another log after a rollback")


def seconds_and_samples_go_on(runs, program):
    root, log = runs.at("clock"), runs.at("clock.jsonl")
    runs.run(program, "--save", root, "--log", log, steps=4)
    runs.run(program, "--save", root, "--resume=latest", "--log", log, steps=5)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    seconds = [line["seconds"] for line in lines]
    expect(seconds == sorted(seconds) and seconds[0] > 0, f"{seconds}")
    expect([line["tokens"] for line in lines] == [10, 20, 30, 40, 50], f"{lines}")
    expect(lines[-1]["epoch"] == 50 / SAMPLES, f"{lines[-1]}")
    # 8 x 3 products for each of 10 samples, two flops each, times three: though the training step fuses them into a launch of backward.
    flops = [line["tflops"] * 1e9 * line["step_ms"] for line in lines]
    expect(all(abs(one / (3 * 2 * 8 * 3 * BATCH) - 1) < 1e-9 for one in flops), f"{flops}")
    expect(not any("mfu" in line for line in lines), "an mfu without --machine")


def stops_skips_and_gives_up(runs, program):
    several = Runs(runs.folder, data(runs.at("several.safetensors"), bad=range(5, 12)))
    root = runs.at("several")
    said = several.run(program, "--on-nan=stop", "--save", root, "--save-every", SAVES, "--max-restarts", 2, status=1, steps=12)
    expect("in step 5, a step that is not finite (--on-nan=stop); every gradient is finite; lower the learning rate" in said, said)
    expect("restart" not in said.split("error:")[1], f"it was restarted: {said}")
    expect([path.name for path in root.iterdir()] == ["step-00000004"], "other checkpoints")
    for words in ((), ("--on-nan=skip",)):
        said = several.run(program, *words, status=1, steps=12, says="in step 7, the last of 3 in a row that are not finite")
        expect("wrote the bad step" not in said, said)  # without --save and --log there is no place for it
    said = several.run(program, "--on-nan=rollback", "--save", runs.at("given-up"), "--save-every", SAVES, status=1, steps=12)
    expect(said.count("to step 4, past 10 samples") == 3, said)
    expect("in step 5, a step that is not finite, after 3 rollbacks to step 4; every gradient is finite; lower" in said, said)
    # Where each checkpoint is behind the last one, the number of rollbacks has no end: 4 of them here.
    apart = Runs(runs.folder, data(runs.at("apart.safetensors"), bad=(2, 5, 8, 11)))
    said = apart.run(program, "--on-nan=rollback", "--save", runs.at("apart"), "--save-every", 1, steps=12)
    expect("rollback 4 to step 7, past 10 samples" in said, said)
    runs.run(program, "--on-nan=rollback", status=2,
             says=f"got --on-nan=rollback without --save: name the folder of checkpoints to go back to; see {program} --help")
    runs.run(program, "--on-nan=none", status=2, says="--on-nan: got 'none', expected stop, skip or rollback")
    # One bad step is passed by, and its record is written if --on-nan is given.
    for words, written in (((), False), (("--on-nan=skip",), True)):
        log = runs.at(f"skipped-{written}.jsonl")
        said = runs.run(program, *words, "--log", log, steps=9)
        expect(pathlib.Path(f"{log}.flight-record.txt.bad-step.json").exists() == written == ("wrote the bad step to '" in said), said)
        expect(steps_of(log)[BAD - 1]["loss"] is None, "the bad step has a loss")
    for ending in ("json", "safetensors"):
        runs.at(f"taken.jsonl.flight-record.txt.bad-step.{ending}").mkdir()
    runs.run(program, "--on-nan=skip", "--log", runs.at("taken.jsonl"), steps=9,
             says=("note: the bad step was not written: cannot write", "note: the inputs of the bad step were not written: cannot write"))


def killed_before_and_after_a_rollback(runs, program):
    """A restart takes the position in the data from the checkpoint, with what was passed over before that was saved."""
    steps, bad = 1000, 302
    long = Runs(runs.folder, data(runs.at("long.safetensors"), bad=(bad,), samples=11000))
    without = data(runs.at("long-without.safetensors"), without=(bad - 1, bad), samples=11000)
    log, root, out = runs.at("killed.jsonl"), runs.at("killed"), runs.at("killed.safetensors")
    whole, weights = reference(runs, program, "--plan=fsdp=2", steps=steps, without=without)

    def attempt(lines):
        log.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        command = long.command(program, "--plan=fsdp=2", "--log", log, "--save", root, "--save-every", SAVES, "--keep", 1, "--max-restarts", 1,
                               "--on-nan=rollback", "--export", out, steps=steps)
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while run.poll() is None and lines_of(log) < lines:
            time.sleep(0.002)
        children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children")
        try:
            os.kill(int(children.read_text().split()[-1]), signal.SIGKILL)
        except (OSError, IndexError):
            pass  # it has ended
        said = run.communicate(timeout=LIMIT)[0]
        expect(run.returncode == 0, said)
        return said if "restart 1 of 1" in said else None

    for lines in (bad - 50, bad + 20):
        until_hit(lambda: attempt(lines))
        same(out, weights, "killed")
        expect(steps_of(log) == steps_of(whole), "another log after a kill")


def goes_back_with_what_is_kept_between_steps(runs, _):
    """Copies of all parameters in bf16 that each rank keeps, and updates that are deferred to the next step."""
    program = compile_model("linear", runs.at("kept-program"), "--in=8", "--out=3", f"--batch={BATCH}", "--lr=0.05", "--strategy=zero1",
                            "--precision=bf16", mesh="fsdp=2")
    whole, weights = reference(runs, program)
    out = runs.at("kept.safetensors")
    runs.run(program, "--save", runs.at("kept"), "--save-every", SAVES, "--on-nan=rollback", "--export", out, steps=9, says="rollback 1 to step 4")
    same(out, weights, "copies")
    program = mlp(runs.at("deferred-program"), "fsdp=2", "--defer-updates=on")
    init = ("--init", GOLDEN / "mlp" / "init.safetensors")
    bad, good = (Runs(runs.folder, twice(runs.at(f"twice-{name}"), **options))
                 for name, options in (("bad", {"bad": 3e38}), ("good", {"without": range(40, 60)})))
    good.run(program, *init, "--export", runs.at("twice.safetensors"), steps=9)
    bad.run(program, *init, "--save", runs.at("deferred"), "--save-every", SAVES, "--on-nan=rollback", "--export", out, steps=9,
            says=("rollback 1 to step 4, past 20 samples", "the first gradient that is not finite is that of '"))
    same(out, runs.at("twice.safetensors"), "deferred updates")


def ranks_agree_on_it(runs, program):
    """Else one would go back, and the others wait for it in the next step."""
    for option, ways in (("--on-nan", ("skip", "rollback")), ("--on-spike", ("skip", "rollback")), ("--spike-window", ("128", "8"))):
        port = free_port()
        words = [] if option == "--on-nan" else ["--on-spike=skip"]
        ranks = [subprocess.Popen(runs.command(program, "--save", runs.at("agreed"), *words, f"{option}={way}", steps=3), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True,
                                  env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
                                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}) for rank, way in enumerate(ways)]
        said = "".join(rank.communicate(timeout=LIMIT)[0] for rank in ranks)
        expect(f"rank 1 was started with {option} {ways[1]}, rank 0 with {option} {ways[0]}" in said, said)
        expect(all(rank.returncode for rank in ranks), said)


def main():
    os.environ.update(unoptimized())
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    program = compile_model("linear", folder / "programs", "--in=8", "--out=3", f"--batch={BATCH}", "--lr=0.05", mesh="fsdp=1|fsdp=2|fsdp=4")
    runs = Runs(folder / "runs", data(folder / "bad.safetensors", bad=(BAD,)))
    runs.without = data(folder / "without.safetensors", without=(5, 6))
    run_cases([goes_back_and_ends_as_without_the_samples, goes_back_to_what_it_began_with, seconds_and_samples_go_on,
               stops_skips_and_gives_up, killed_before_and_after_a_rollback, goes_back_with_what_is_kept_between_steps, ranks_agree_on_it], runs, program)


if __name__ == "__main__":
    main()
