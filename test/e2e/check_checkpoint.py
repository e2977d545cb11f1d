#!/usr/bin/env python3
"""check_checkpoint.py SCRATCH: what checkpoints of a generated program hold, and that runs go on from them.

A run in parts is bit for bit the run in one piece: log and weights, with shuffling and a schedule, on every placement. Another
mesh, strategy or precision goes on to rounding. Damaged checkpoints are named and passed over.
"""

import json
import os
import pathlib
import re
import shutil
import sys

import training
import weights
from checkpoints import Runs, close, expect, folders, logged, mlp, run_cases, same, same_checkpoint
from training import GOLDEN

DATA = GOLDEN / "mlp" / "data.safetensors"
MESHES = {
    "fsdp": ("fsdp=2", []), "hsdp": ("data=2,fsdp=2", ["--strategy=hsdp"]), "ddp": ("data=3", ["--strategy=ddp"]),
    "one": ("fsdp=1", []), "bf16": ("fsdp=2", ["--precision=bf16"]),
    "parts": ("fsdp=3", ["--shard=*.weight:1", "--accumulate=5"]),
    # Parameters as copies on every rank: in f32 there is no shard besides the copy, in bf16 the f32
    # shard is saved.
    "zero1": ("fsdp=2", ["--strategy=zero1"]), "zero2": ("fsdp=2", ["--strategy=zero2", "--precision=bf16"]),
    # Drained before a checkpoint.
    "defer": ("fsdp=2", ["--defer-updates=on"]),
}
STEPS, HALF = 8, 3


def in_one_piece(runs, programs):
    """Log, weights and checkpoints of every placement, without an interruption."""
    for name, program in programs.items():
        runs.run(program, "--shuffle", "--seed", 5, "--save", runs.at(name), "--save-every", HALF, "--log",
                 runs.at(f"{name}.jsonl"), "--export", runs.at(f"{name}.safetensors"), says="saved '")
        expect(folders(runs.at(name)) == ["step-00000003", "step-00000006", "step-00000008"],
               f"{name}: {folders(runs.at(name))}")


def a_checkpoint_holds_whole_tensors(runs, programs):
    expected = weights.read(runs.at("fsdp.safetensors"))
    for name in programs:
        folder = runs.at(name) / "step-00000008"
        expect(folders(folder) == ["exp_avg.safetensors", "exp_avg_sq.safetensors", "manifest.json", "model.safetensors"],
               f"{name}: {folders(folder)}")
        model = weights.read(folder / "model.safetensors")
        expect(model == weights.read(runs.at(f"{name}.safetensors")), f"{name}: other weights than its export")
        for file in ("model", "exp_avg", "exp_avg_sq"):
            tensors = weights.read(folder / f"{file}.safetensors")
            expect([(key, value[:2]) for key, value in tensors.items()] ==
                   [(key, value[:2]) for key, value in expected.items()], f"{name}: other tensors in {file}")
            expect(any(tensors[key][2] != model[key][2] for key in tensors) or file == "model", f"{name}: {file} holds weights")
        manifest = json.loads((folder / "manifest.json").read_text())
        expect((manifest["step"], manifest["updates"], manifest["samples"], manifest["seed"], manifest["shuffle"],
                manifest["total_steps"]) == (8, 8, 80, 5, True, 8), f"{name}: {manifest}")


def a_run_in_parts_is_the_run_in_one_piece(runs, programs):
    for name, program in programs.items():
        root, log, out = runs.at(f"{name}-parts"), runs.at(f"{name}-parts.jsonl"), runs.at(f"{name}-parts.safetensors")
        root.mkdir()
        shutil.copytree(runs.at(name) / "step-00000003", root / "step-00000003")
        shutil.copy(runs.at(f"{name}.jsonl"), log)  # steps 4 to 8 of it are dropped
        with open(log, "a") as file:
            file.write('{"step": 9, "lo')
        runs.run(program, "--shuffle", "--resume", root, "--log", log, "--export", out,
                 says=f"resumed from '{root}/step-00000003', step 3")
        same(out, runs.at(f"{name}.safetensors"), name)
        expect(logged(log) == logged(runs.at(f"{name}.jsonl")), f"{name}: {logged(log)}")


def any_mesh_goes_on_from_any_other(runs, programs):
    for name in ("fsdp", "hsdp", "ddp", "parts", "one", "zero1"):
        for other in ("hsdp", "parts", "one", "zero1"):
            log = runs.at(f"{name}-to-{other}.jsonl")
            runs.run(programs[other], "--shuffle", "--resume", runs.at(name) / "step-00000003", "--log", log)
            got = logged(log)
            expect([step["step"] for step in got] == [4, 5, 6, 7, 8], f"{name} to {other}: {got}")
            close(logged(runs.at("fsdp.jsonl")), got, 2e-6, f"{name} to {other}")
    log = runs.at("to-bf16.jsonl")
    runs.run(programs["bf16"], "--shuffle", "--resume", runs.at("fsdp") / "step-00000003", "--log", log)
    close(logged(runs.at("fsdp.jsonl")), logged(log), 0.05, "f32 to bf16")


def a_save_behind_training_has_the_same_bytes(runs, programs):
    for name in ("fsdp", "hsdp", "zero1"):
        root = runs.at(f"{name}-async")
        said = runs.run(programs[name], "--shuffle", "--seed", 5, "--save", root, "--save-every", HALF, "--save-async")
        expect(said.count("saved '") == 3, said)
        for step in folders(root):
            same_checkpoint(root / step, runs.at(name) / step, f"{name}, {step}")


def the_latest_are_kept(runs, programs):
    root = runs.at("kept")
    runs.run(programs["fsdp"], "--save", root, "--save-every", 1, "--keep", 2)
    expect(folders(root) == ["step-00000007", "step-00000008"], folders(root))
    # An earlier step starts another course: later checkpoints no longer belong to the run.
    said = runs.run(programs["fsdp"], "--save", root, "--resume", root / "step-00000007", says="nothing to train", steps=7)
    expect("kept the checkpoint of a later step as" in said, said)
    expect(folders(root) == ["step-00000007", "step-00000008.1"], folders(root))
    runs.run(programs["fsdp"], "--save", root, says=f"as '{root}/step-00000007.1'", steps=2)
    expect(folders(root) == ["step-00000002", "step-00000007.1", "step-00000008.1"], folders(root))


def checkpoints_of_another_run_are_set_aside(runs, programs):
    """A run that begins with a checkpoint from elsewhere leaves none of another course for --resume=latest, of no step."""
    root, other = runs.at("mixed"), runs.at("elsewhere")
    runs.run(programs["fsdp"], "--seed", 5, "--save", other, "--save-every", HALF)
    runs.run(programs["fsdp"], "--seed", 6, "--save", root, "--save-every", HALF)
    said = runs.run(programs["fsdp"], "--save", root, "--resume", other / "step-00000006")
    for step in (3, 6, 8):
        expect(f"kept the checkpoint of another run as '{root}/step-{step:08}.1'" in said, said)
    expect([name for name in folders(root) if not name.endswith(".1")] == ["step-00000008"], folders(root))
    # In the folder where it began, those of earlier steps are its own; one that was set aside is of another course.
    runs.run(programs["fsdp"], "--save", root, "--resume", root / "step-00000006.1", says=f"as '{root}/step-00000008.2'")


def a_log_that_goes_on_says_what_it_drops(runs, programs):
    root, log = runs.at("dropped"), runs.at("dropped.jsonl")
    runs.run(programs["fsdp"], "--save", root, "--save-every", HALF, "--log", log)
    runs.run(programs["fsdp"], "--save", root, "--resume", root / "step-00000006", "--log", log,
             says=f"dropped 2 steps after step 6 from the log '{log}'")
    with open(log, "a") as file:
        file.write("notes of my own\n")
    text = log.read_text()
    runs.run(programs["fsdp"], "--save", root, "--resume", root / "step-00000006", "--log", log, says=f"kept the existing log as '{log}.1'")
    expect(pathlib.Path(f"{log}.1").read_text() == text, "the file with other lines is not whole")


def latest_begins_anew_where_there_is_none(runs, programs):
    root, log = runs.at("new"), runs.at("new.jsonl")
    runs.run(programs["fsdp"], "--save", root, "--resume=latest", "--log", log, steps=4,
             says=f"no checkpoint in '{root}': training begins anew")
    runs.run(programs["fsdp"], "--save", root, "--resume=latest", "--log", log, says="step-00000004', step 4")
    expect([step["step"] for step in logged(log)] == list(range(1, 9)), logged(log))
    runs.run(programs["fsdp"], "--resume", runs.at("nowhere"), status=1, says="nowhere' holds no checkpoint: expected")


def damaged_checkpoints_are_passed_over(runs, programs):
    def damage(name, change, says):
        root = runs.at("damaged")
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(runs.at("fsdp"), root)
        change(root / "step-00000008" / name)
        runs.run(programs["fsdp"], "--shuffle", "--resume", root / "step-00000008", status=1, says=says)
        said = runs.run(programs["fsdp"], "--shuffle", "--resume=latest", "--save", root, says=(says, ": continuing from an earlier checkpoint"))
        expect(f"resumed from '{root}/step-00000006'" in said, said)

    def flip(path):
        content = bytearray(path.read_bytes())
        content[-3] ^= 16
        path.write_bytes(content)

    damage("model.safetensors", flip, "have been altered since they were written: got checksum")
    damage("exp_avg.safetensors", lambda path: os.truncate(path, 1000), "exp_avg.safetensors': got 1000 bytes, expected ")
    damage("exp_avg_sq.safetensors", os.unlink, "exp_avg_sq.safetensors': No such file or directory")
    damage("manifest.json", lambda path: path.write_text(path.read_text().replace('"updates": 8', '"updates": 9')),
           "manifest.json' has been altered since it was written: got checksum")
    damage("manifest.json", lambda path: path.write_text(path.read_text() + " \n"),
           "manifest.json' has been altered since it was written: got ")
    # Without a manifest it is no checkpoint at all, and so it is not mentioned.
    root = runs.at("damaged")
    (root / "step-00000008" / "manifest.json").rename(root / "step-00000008" / "manifest.json.tmp")
    runs.run(programs["fsdp"], "--init", root / "step-00000008", status=1, says="holds a checkpoint that was never finished")
    runs.run(programs["fsdp"], "--shuffle", "--resume", root, says="resumed from")


def a_gap_in_the_log_is_a_warning(runs, programs):
    """A log that begins with the run that goes on has none."""
    saved, log = runs.at("fsdp") / "step-00000006", runs.at("gap.jsonl")
    said = runs.run(programs["fsdp"], "--shuffle", "--resume", saved, "--log", log)
    expect("warning" not in said and [step["step"] for step in logged(log)] == [7, 8], said)
    log.write_text("".join(runs.at("fsdp.jsonl").read_text().splitlines(keepends=True)[:4]))
    runs.run(programs["fsdp"], "--shuffle", "--resume", saved, "--log", log,
             says=f"warning: the log '{log}' has no step 6, after which training continues")


def init_takes_the_weights_alone(runs, programs):
    for place, file in ((runs.at("fsdp"), "fsdp.safetensors"), (runs.at("fsdp") / "step-00000008", "fsdp.safetensors")):
        for source in (place, runs.at(file)):
            runs.run(programs["one"], "--init", source, "--log", runs.at(f"init-{source.name}.jsonl"))
        expect(logged(runs.at(f"init-{place.name}.jsonl")) == logged(runs.at(f"init-{file}.jsonl")), "other losses")


def options_that_do_not_go_with_a_checkpoint_are_refused(runs, programs):
    saved = runs.at("fsdp") / "step-00000008"
    for words, says in (
            (("--resume", saved), "got no --shuffle, but"),
            (("--resume", saved, "--shuffle", "--seed", 4), "has: leave the option out, as order and dropout continue from there"),
    ):
        runs.run(programs["fsdp"], *words, status=1, says=says)
    runs.run(programs["fsdp"], "--resume", saved, "--shuffle", status=1, steps=4, says=("got --steps 4, but ",
             "is of step 8: request more steps, or resume from an earlier checkpoint"))
    for words, says in ((("--keep", 2), "got --keep without --save"), (("--resume=latest",), "got --resume=latest without --save"),
                        (("--save-every", 2), "got --save-every without --save"),
                        (("--save-async",), "got --save-async without --save"),
                        (("--save-errors=warn",), "got --save-errors without --save"),
                        (("--resume", saved, "--init", saved), "got both --resume and --init")):
        runs.run(programs["fsdp"], *words, status=2, says=says)
    # No rank is at fault, nothing would change with the next attempt, and a failure's flight record stays.
    for words, steps, says in ((("--seed", 4), 12, "as order and dropout continue from there"), ((), 4, "request more steps")):
        copied = runs.at(f"refused-{steps}")
        shutil.copytree(runs.at("fsdp"), copied)
        said = runs.run(programs["fsdp"], "--save", copied, "--resume=latest", "--shuffle", "--max-restarts", 2, *words, status=1, steps=steps, says=says)
        expect("rank" not in said and "restart" not in said and said.count("error: ") == 1, said)
        expect(not copied.with_name(copied.name + ".flight-record.txt").exists(), "a flight record of a refused run")
    other = mlp(runs.at("momentum"), "fsdp=1", optimizer=("--optimizer=sgd", "--momentum=0.9"))
    runs.run(other, "--resume", saved, "--shuffle", status=1, says="has no 'momentum.safetensors', which this program's optimizer")
    plain = mlp(runs.at("plain"), "fsdp=1", optimizer=("--optimizer=sgd",))
    said = runs.run(plain, "--resume", saved, "--shuffle", steps=9)
    expect(all(f"has '{state}.safetensors', and no parameter of this program keeps such a state" in said for state in ("exp_avg", "exp_avg_sq")), said)
    wide = mlp(runs.at("wide"), "fsdp=1", hidden=18)
    runs.run(wide, "--resume", saved, "--shuffle", status=1, says=("got shape ", ": resume with the model that wrote it"))


def changed_files_and_data_are_warnings(runs, programs):
    gpt2 = training.compile_model("gpt2", runs.at("gpt2"), "--layers=1", "--width=16", "--heads=2", "--context=8", "--vocab=256",
                                  "--batch=2", ranks=1)
    texts = Runs(runs.at("texts"), training.HERE.parent.parent / "LICENSE")
    texts.run(gpt2, "--save", texts.at("root"), steps=1)
    said = texts.run(gpt2, "--save", texts.at("root"), "--resume=latest", steps=2)
    expect("warning" not in said, said)
    config = texts.at("root") / "step-00000002" / "config.json"
    config.write_text(config.read_text().replace('"n_layer": 1', '"n_layer": 2'))
    size = config.stat().st_size
    texts.run(gpt2, "--save", texts.at("root"), "--resume=latest", steps=3,
              says=(f"warning: '{config}' has been altered since it was written: got {size} bytes, digest ",
                    "; training continues without it, but programs that load the checkpoint read it", "resumed from"))
    others = Runs(runs.at("other-texts"), training.HERE.parent.parent / "CONTRIBUTING.md")
    said = others.run(gpt2, "--resume", texts.at("root") / "step-00000001", steps=2, says="resumed from")
    expect(re.search(r"warning: got \d+ samples in --data, and '.*step-00000001' was written with \d+: the position in the data counts them", said), said)


def main():
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(sys.argv[1])
    programs = {name: mlp(folder / "programs" / name, mesh, *options) for name, (mesh, options) in MESHES.items()}
    run_cases((in_one_piece, a_checkpoint_holds_whole_tensors, a_run_in_parts_is_the_run_in_one_piece,
               any_mesh_goes_on_from_any_other, a_save_behind_training_has_the_same_bytes, the_latest_are_kept,
               checkpoints_of_another_run_are_set_aside, a_log_that_goes_on_says_what_it_drops,
               latest_begins_anew_where_there_is_none, damaged_checkpoints_are_passed_over, a_gap_in_the_log_is_a_warning, init_takes_the_weights_alone,
               changed_files_and_data_are_warnings, options_that_do_not_go_with_a_checkpoint_are_refused), Runs(folder / "runs", DATA), programs)


if __name__ == "__main__":
    main()
