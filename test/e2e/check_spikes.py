#!/usr/bin/env python3
"""check_spikes.py SCRATCH: --on-spike of programs.

Limits are those of the rule, computed here by `statistics`, on 1 and 3 ranks. A skipped update is one of a step whose loss is infinite, which is
skipped without the option: the same weights, bit for bit, also with deferred updates and microbatches. A run that continues from a checkpoint
decides as one in one piece.
"""

import json
import math
import os
import pathlib
import random
import statistics
import struct
import sys

from check_bad_steps import rollbacks, steps_of
from check_refusals import write
from checkpoints import Runs, expect, mlp, run_cases, same, twice
from training import compile_model, GOLDEN, unoptimized

BATCH, STEPS, SPIKE = 10, 40, 30
WINDOW, DEVIATIONS = 16, 5
RULE = (f"--spike-window={WINDOW}", f"--spike-deviations={DEVIATIONS}")
FIELDS = ("loss_limit", "grad_norm_limit", "spike")


def data(path, targets, without=()):
    """Samples of `linear`; one of each step in `targets` has that target. `without`: steps whose samples are left out."""
    draw = random.Random(2)
    x, y = [], []
    for sample in range(BATCH * (STEPS + 10)):
        row = [draw.gauss(0, 1) for _ in range(11)]
        step = sample // BATCH + 1
        if step in targets and sample % BATCH == 4:
            row[9] = targets[step]
        if step not in without:
            x += row[:8]
            y += row[8:]
    return write(path, {"x": ("F32", (len(x) // 8, 8), x), "y": ("F32", (len(y) // 3, 3), y)})


def run_on(runs, targets, program, *words, name=None, without=(), steps=STEPS, **options):
    """(said, log, weights) of a run on data with `targets`."""
    name = name or "run"
    log, out = runs.at(f"{name}.jsonl"), runs.at(f"{name}.safetensors")
    if "--resume" not in words:
        log.unlink(missing_ok=True)
    said = Runs(runs.folder, data(runs.at(f"{name}.data"), targets, without)).run(program, "--log", log, "--export", out, *words, steps=steps, **options)
    return said, log, out


def limit_of(values):
    recent = values[-WINDOW:]
    if len(recent) < WINDOW // 2:
        return None
    return statistics.mean(recent) + DEVIATIONS * statistics.stdev(recent)


def spikes_of(log):
    """The steps that a log says are spikes, after a look at all limits of it."""
    losses, norms, spikes = [], [], []
    for step in steps_of(log):
        limits = limit_of(losses), limit_of(norms)
        expect((limits[0] is not None) == all(name in step for name in FIELDS), f"{step}")
        if limits[0] is not None:
            expect(math.isclose(step["loss_limit"], limits[0], rel_tol=1e-6) and math.isclose(step["grad_norm_limit"], limits[1], rel_tol=1e-6),
                   f"expected the limits {limits}: {step}")
        if step["loss"] is None or step["grad_norm"] is None:
            continue
        if limits[0] is not None:
            expect(step["spike"] == (step["loss"] > limits[0] or step["grad_norm"] > limits[1]), f"{step}")
            spikes += [step["step"]] * step["spike"]
        losses.append(step["loss"])
        norms.append(step["grad_norm"])
    return spikes


def judges_by_the_rule(runs, program):
    for plan in ("fsdp=1", "fsdp=3"):
        said, log, out = run_on(runs, {SPIKE: 30}, program, f"--plan={plan}", "--on-spike=warn", *RULE, name=f"warn-{plan}")
        expect(spikes_of(log) == [SPIKE], f"{plan}: {spikes_of(log)}")
        expect(f"in step {SPIKE}, a spike of more than 5 standard deviations over 16 steps\n" in said, said)
        expect(said.count("a spike of") == 1 and "linear: warning: got loss " in said and " and gradient norm " in said, said)
        _, plain, whole = run_on(runs, {SPIKE: 30}, program, f"--plan={plan}", name=f"without-{plan}")
        same(out, whole, f"{plan}: a warning")
        expect([{name: value for name, value in step.items() if name not in FIELDS} for step in steps_of(log)] == steps_of(plain), "another log")
        note = json.loads(pathlib.Path(f"{log}.flight-record.txt.bad-step.json").read_text())
        step = steps_of(log)[SPIKE - 1]
        expect([note[name] for name in ("step", "loss", "loss_limit", "grad_norm_limit", "parameter", "samples")] ==
               [SPIKE, note["loss"], note["loss_limit"], note["grad_norm_limit"], None, list(range(290, 300))], f"{note}")
        for name in ("loss", "loss_limit", "grad_norm_limit"):
            expect(math.isclose(note[name], step[name], rel_tol=1e-6), f"{note}")
    said, log, _ = run_on(runs, {SPIKE: 30}, program, "--on-spike=warn", name="defaults")
    expect("a spike" not in said and "loss_limit" not in log.read_text(), "limits before half a window of 128 steps")


def skips_the_update(runs, program):
    for plan in ("fsdp=1", "fsdp=3"):
        said, log, out = run_on(runs, {SPIKE: 30}, program, f"--plan={plan}", "--on-spike=skip", *RULE, name=f"skip-{plan}")
        expect(spikes_of(log) == [SPIKE] and "over 16 steps: its update was skipped\n" in said, said)
        _, _, infinite = run_on(runs, {SPIKE: 1e30}, program, f"--plan={plan}", name=f"infinite-{plan}")
        same(out, infinite, f"{plan}: a skipped update")


def skips_among_steps_that_are_not_finite(runs, program):
    """Five in a row are left out, of which no three in a row are not finite; each spike is above what the ones before it have made of the limits."""
    rest = {31: 1e30, 33: 1e30, 34: 1e30}
    said, log, out = run_on(runs, {30: 30, 32: 3e4, **rest}, program, "--on-spike=skip", *RULE, name="row")
    expect(spikes_of(log) == [30, 32] and "wrote the bad step" in said and said.count("its update was skipped") == 2, said)
    # The same steps are skipped in a run without a limit: the gradients of skipped steps belong to
    # no step.
    _, saved, infinite = run_on(runs, {30: 1e30, 31: 1e30}, program, "--save", runs.at("row-root"), name="row-a", steps=31)
    manifest = runs.at("row-root") / "step-00000031" / "manifest.json"
    expect(json.loads(manifest.read_text())["bad_steps"] == 2, "other bad steps")
    _, _, spiked = run_on(runs, {30: 1e30, 31: 30}, program, "--on-spike=skip", *RULE, "--save", runs.at("row-spike"), name="row-b", steps=31)
    same(infinite, spiked, "an infinite loss and a spike")
    expect(json.loads((runs.at("row-spike") / "step-00000031" / "manifest.json").read_text())["bad_steps"] == 0, "a spike is counted as infinite")


def goes_back_and_ends_as_without_the_samples(runs, program):
    for plan in ("fsdp=1", "fsdp=3"):
        words = (f"--plan={plan}", "--on-spike=rollback", *RULE, "--save-every", 8)
        said, log, out = run_on(runs, {SPIKE: 30}, program, *words, "--save", runs.at(f"back-{plan}"), name=f"back-{plan}")
        expect("over 16 steps: rollback 1 to step 24, past 60 samples" in said, said)
        _, whole, weights = run_on(runs, {}, program, *words, "--save", runs.at(f"whole-{plan}"), name=f"whole-{plan}", without=range(25, SPIKE + 1))
        same(out, weights, plan)
        expect(steps_of(log) == steps_of(whole), f"{plan}: another log")
        expect(rollbacks(log)[0]["skipped"] == [240, 300] and "a spike of more than" in rollbacks(log)[0]["cause"], f"{rollbacks(log)}")
    # The fourth to one checkpoint is one too many.
    targets = {step: 10.0**(step - 28) for step in range(30, 36)}
    run_on(runs, targets, program, "--on-spike=rollback", *RULE, "--save", runs.at("many"), "--save-every", 29, name="many", status=1,
           says=("rollback 3 to step 29", "over 16 steps, after 3 rollbacks to step 29; lower the learning rate"))


def a_run_in_parts_decides_as_one(runs, program):
    words = ("--on-spike=skip", *RULE)
    for first, then in (("fsdp=3", "fsdp=3"), ("fsdp=1", "fsdp=3"), ("fsdp=3", "fsdp=1")):
        _, whole, weights = run_on(runs, {SPIKE: 30}, program, f"--plan={first}", *words, name="one")
        for watched in ((), words):  # the first part need not watch
            root = runs.at(f"{first}-{then}-{len(watched)}")
            run_on(runs, {SPIKE: 30}, program, f"--plan={first}", *watched, "--save", root, name="parts", steps=29)
            said, log, out = run_on(runs, {SPIKE: 30}, program, f"--plan={then}", *words, "--save", root, "--resume", "latest", name="parts")
            expect(said.count("its update was skipped") == 1, said)
            if first == then:
                same(out, weights, "in parts")
                expect(steps_of(log)[29:] == steps_of(whole)[29:], "another log")
                history = json.loads((root / "step-00000029" / "manifest.json").read_text())["history"]
                expect([struct.pack("f", float(word)) for word in history["loss"].split()] ==
                       [struct.pack("f", step["loss"]) for step in steps_of(whole)[:29]], f"{history}")
            else:
                one, other = (steps_of(path)[SPIKE - 1]["loss_limit"] for path in (log, whole))
                expect(math.isclose(one, other, rel_tol=1e-4), f"{one}, {other}")


def stops_and_refuses(runs, program):
    root = runs.at("stopped")
    said, *_ = run_on(runs, {SPIKE: 30}, program, "--on-spike=stop", *RULE, "--save", root, "--save-every", 20, "--max-restarts", 2, name="stop",
                      status=1, says=f"in step {SPIKE}, a spike of more than 5 standard deviations over 16 steps (--on-spike=stop); lower the")
    expect("restart" not in said.split("error:")[1] and [path.name for path in root.iterdir()] == ["step-00000020"], f"it was restarted: {said}")
    for words, text in (
            (("--on-spike=rollback",), f"got --on-spike=rollback without --save: name the folder of checkpoints to go back to; see {program} --help"),
            (("--on-spike=none",), "--on-spike: got 'none', expected warn, stop, skip or rollback"),
            (("--spike-window=8",), "got --spike-window without --on-spike: say what a step with a spike does"),
            (("--spike-deviations=8",), "got --spike-deviations without --on-spike: say what"),
            (("--on-spike=skip", "--spike-window=3"), "--spike-window: got '3', expected an integer from 4 to 1048576"),
            (("--on-spike=skip", "--spike-deviations=0"), "--spike-deviations: got '0', expected a finite f32 number > 0")):
        runs.run(program, *words, status=2, says=text)


def with_deferred_updates_and_microbatches(runs, _):
    rule = ("--on-spike=skip", "--spike-window=8", "--spike-deviations=6")
    init = ("--init", GOLDEN / "mlp" / "init.safetensors")
    for name, *options in (("deferred", "--defer-updates=on"), ("parts", "--accumulate=2")):
        program = mlp(runs.at(f"{name}-program"), "fsdp=2", *options)
        ends = []
        for bad, words in ((1e3, rule), (3e38, ())):
            end = runs.at(f"{name}-{len(words)}.safetensors")
            said = Runs(runs.folder, twice(runs.at(f"{name}-{len(words)}"), bad=bad)).run(program, *init, *words, "--export", end, steps=9)
            expect(("its update was skipped" in said) == bool(words) and said.count("a spike of") == bool(words), said)
            ends.append(end)
        same(*ends, name)


def main():
    os.environ.update(unoptimized())
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    program = compile_model("linear", folder / "programs", "--in=8", "--out=3", f"--batch={BATCH}", "--lr=0.05", mesh="fsdp=1|fsdp=3")
    runs = Runs(folder / "runs", data(folder / "data", {}))
    run_cases([judges_by_the_rule, skips_the_update, skips_among_steps_that_are_not_finite, goes_back_and_ends_as_without_the_samples,
               a_run_in_parts_decides_as_one, stops_and_refuses, with_deferred_updates_and_microbatches], runs, program)


if __name__ == "__main__":
    main()
