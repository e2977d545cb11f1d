#!/usr/bin/env python3
"""check_logs.py SCRATCH: the fields of a log, and `fsdpc-log --command`.

A run, a run that resumed it and one under mpirun are repeated by the commands that the tool prints for their logs and for a checkpoint, from
another folder: losses, norms and weights are equal bit for bit.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from checkpoints import LIMIT, expect, logged, mlp, run_cases, same
from training import GOLDEN, tool, unoptimized

DATA = GOLDEN / "mlp" / "data.safetensors"
ORDER = ["step", "loss", "accuracy", "grad_norm", "lr", "tokens_per_s", "step_ms", "peak_bytes", "workspace", "seconds", "tokens", "epoch",
         "tflops", "mfu", "val_loss", "val_accuracy"]


def shell(command, folder, status=0, **variables):
    """Runs a line of a shell in `folder`; its standard output."""
    environment = {**os.environ, **variables}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder, env=environment, timeout=LIMIT)
    expect(done.returncode == status, f"{command}: got status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def steps_in(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line.startswith('{"step"')]


def command_of(folder, *words):
    return shell(" ".join([tool("fsdpc-log"), "--command", *words]), folder)


def fields(folder, program):
    shell(f"{program} --data {DATA} --val-data {DATA} --eval-every 3 --steps 6 --log fields.jsonl", folder)
    lines = steps_in(folder / "fields.jsonl")
    expect(list(lines[2]) == ORDER, f"{list(lines[2])}")
    expect(list(lines[0]) == ORDER[:-2], f"{list(lines[0])}")
    seconds = [line["seconds"] for line in lines]
    expect(seconds == sorted(seconds) and 0 < seconds[0], f"{seconds}")
    expect([line["tokens"] for line in lines] == [10, 20, 30, 40, 50, 60], f"{lines}")
    expect([line["epoch"] for line in lines] == [10 * step / 64 for step in range(1, 7)], f"{lines}")
    for line in lines:
        # A rank has 5 of the 10 samples. Products of forward, times three: 12 x 17, 17 x 17 and 17 x 10, two flops each.
        flops = 3 * 2 * 5 * (12 * 17 + 17 * 17 + 17 * 10)
        expect(abs(line["tflops"] * 1e9 * line["step_ms"] / flops - 1) < 1e-9, f"{line}: expected {flops} flops")
        # 2.53e11 flop/s are the peak of --machine=host.
        expect(abs(line["mfu"] / (line["tflops"] * 1e12 / 2.53e11) - 1) < 1e-9, f"{line}")


def repeats(folder, text, log, out, original):
    """Runs the command in `text` with other outputs: a later option counts."""
    line = text.splitlines()[-1]
    shell(f"{line} --log {folder / log} --export {folder / out} --save {folder / (log + '-root')}", "/")
    expect(logged_steps(folder / log) == logged_steps(original), f"another log: {line}")


def logged_steps(path):
    return [line for line in logged(path) if "step" in line]


def command_repeats_a_run(folder, program):
    place = folder / "a run"
    place.mkdir()
    shutil.copy(program, place / "train")
    shutil.copy(DATA, place / "data of it")
    arguments = "--data 'data of it' --seed 7 --lr 0.02 --save ck --save-every 3 --log-header --log a.jsonl"
    shell(f"./train {arguments} --steps 6 --export a.safetensors --resume=latest", place, OMP_NUM_THREADS="1", FSDP_JOB_TOKEN="secret")
    text = command_of(place, "a.jsonl")
    expect("secret" not in (place / "a.jsonl").read_text(), "the token of the job is in the log")
    for part in ("# run 1 of 1 in 'a.jsonl': mlp, mesh fsdp=2, seed 7", "# compiled with: mlp ", "--in=12", f"reads --data data of it: {DATA.stat().st_size} bytes, digest ",
                 "# without --resume, which found no checkpoint then", f"cd '{place}' && env ", "OMP_NUM_THREADS=1 ./train --data 'data of it'"):
        expect(part in text, f"lacking '{part}' in: {text}")
    repeats(folder, text, "again.jsonl", "again.safetensors", place / "a.jsonl")
    same(folder / "again.safetensors", place / "a.safetensors", "the run")
    expect(text.splitlines()[-1] == command_of(place, "ck/step-00000006").splitlines()[-1], "a checkpoint has another command")
    # For a folder of checkpoints it is the record of the latest, regardless of other files; a step
    # without a manifest is not a checkpoint.
    (place / "ck" / "step-00000009").mkdir()
    shutil.copytree(place / "ck" / "step-00000006", place / "ck" / "step-00000008.1")
    expect(command_of(place, "ck") == command_of(place, "ck/step-00000006"), "the folder of checkpoints has another command")
    for left in ("step-00000009", "step-00000008.1"):
        shutil.rmtree(place / "ck" / left)

    # One that continues: its command resumes from the same checkpoint, whatever is later than it by now.
    shell(f"./train {arguments.replace('--lr 0.02', '')} --steps 9 --export b.safetensors --resume=latest", place)
    text = command_of(place, "a.jsonl")
    expect("# run 2 of 2" in text and "--resume=ck/step-00000006" in text and "continues from step 6, digest " in text, text)
    shutil.copy(place / "a.jsonl", place / "whole.jsonl")
    line = text.splitlines()[-1]
    shell(f"{line} --log {folder}/b.jsonl --export {folder}/b.safetensors --save {folder}/b-root", "/")
    same(folder / "b.safetensors", place / "b.safetensors", "the run that continues")
    expect(logged_steps(folder / "b.jsonl") == logged_steps(place / "whole.jsonl")[6:], "another log of the run that continues")
    expect("# run 1 of 2" in command_of(place, "a.jsonl", "--run", "1"), "--run")
    expect("expected 1 to 2, the runs of" in fails(place, 2, "--command a.jsonl --run 3"), "--run 3")


def fails(folder, status, words):
    done = subprocess.run(["bash", "-c", f"{tool('fsdpc-log')} {words}"], capture_output=True, text=True, cwd=folder, timeout=LIMIT)
    expect(done.returncode == status, f"{words}: got status {done.returncode}: {done.stderr}")
    return done.stderr


def command_under_a_launcher(folder, program):
    if not shutil.which("mpirun"):
        return
    shell(f"mpirun --allow-run-as-root --oversubscribe -n 2 {program} --data {DATA} --steps 4 --log-header --log mpi.jsonl --export mpi.safetensors", folder)
    text = command_of(folder, "mpi.jsonl")
    expect("# started by Open MPI as 2 ranks" in text and "mpirun -n 2 " in text, text)
    line = text.splitlines()[-1].replace("mpirun", "mpirun --allow-run-as-root --oversubscribe")
    shell(f"{line} --log {folder}/mpi-again.jsonl --export {folder}/mpi-again.safetensors", "/")
    same(folder / "mpi-again.safetensors", folder / "mpi.safetensors", "under mpirun")


def refuses_what_has_no_record(folder, program):
    shell(f"{program} --data {DATA} --steps 2 --log plain.jsonl", folder)
    expect("'plain.jsonl' has no record of a run: train with --log-header, or name a checkpoint of the run" in
           fails(folder, 1, "--command plain.jsonl"), "a log without a header")
    (folder / "manifest.json").write_text('{"runs": []}')
    expect("'manifest.json' has no record of a run: an earlier version wrote it" in fails(folder, 1, "--command manifest.json"), "no runs")
    (folder / "manifest.json").write_text("{")
    expect("'manifest.json' is not a JSON object (line 1, column 2: unexpected end of input; expected string literal), expected the manifest of a checkpoint" in fails(folder, 1, "--command manifest.json"), "bad")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    os.environ.update(unoptimized())
    program = mlp(folder / "programs", "fsdp=2", "--machine=host")
    run_cases([fields, command_repeats_a_run, command_under_a_launcher, refuses_what_has_no_record], folder, program)


main()
