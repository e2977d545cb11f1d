#!/usr/bin/env python3
"""check_cluster.py SCRATCH: examples/cluster/train.sbatch runs, with srun and scontrol replaced.

The batch script gets the variables of a job of two machines with a task each. The replaced srun starts the tasks with the variables of a
step, as ranks of two machines; the first time, in the cases below, it ends as a job whose time is up, or fails. The log is that of
ranks that the program starts itself. The manifest for Kubernetes gives each pod what a rank needs, and its arguments are options of the
program.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import ports
import training
from checkpoints import expect

SBATCH = training.HERE.parents[1] / "examples" / "cluster" / "train.sbatch"
MANIFEST = SBATCH.with_name("kubernetes.yaml")
SRUN = """#!/bin/bash
test "$1" = --kill-on-bad-exit=1 || exit 9
shift
echo "$*" >> "$MOCK/srun"
calls=$(wc -l < "$MOCK/srun")
if [ "$CASE" = fails ] && [ "$calls" = 1 ]; then exit 1; fi
more=()
if [ "$CASE" = time ] && [ "$calls" = 1 ]; then more=(--steps 3); fi
pids=()
for r in 0 1; do
  SLURM_PROCID=$r SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 SLURM_STEP_NUM_NODES=2 FSDP_MACHINE=node$r \\
    "$@" "${more[@]}" & pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
if [ ${#more[@]} -gt 0 ]; then exit 143; fi
exit $status
"""
SCONTROL = """#!/bin/bash
echo "$*" >> "$MOCK/scontrol"
if [ "$1 $2" = "show hostnames" ]; then printf 'localhost\\nother\\n'; fi
"""


def submit(folder, case, program, data, job):
    """The batch script's process; `folder/case` has what srun and scontrol were asked for."""
    mock = folder / case
    (mock / "bin").mkdir(parents=True, exist_ok=True)
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (mock / "bin" / name).write_text(text)
        (mock / "bin" / name).chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    environment |= {"PATH": f"{mock}/bin:{os.environ['PATH']}", "MOCK": str(mock), "CASE": case, "SLURM_JOB_ID": str(job), "SLURM_NTASKS": "2",
                    "SLURM_JOB_NODELIST": "node[0-1]", "SLURM_NNODES": "2", "PROGRAM": str(program), "RUN": str(mock / "run"), "PAUSE": "0"}
    return subprocess.run(["bash", SBATCH, "--data", data, "--steps", "6"], cwd=mock, env=environment, capture_output=True, text=True)


def job_number():
    """One for which the script chooses a port that is free."""
    return next(port for port in iter(ports.free_port, None) if 20000 <= port < 40000) - 20000


def losses(log):
    return [line["loss"] for line in map(json.loads, log.read_text().splitlines()) if "loss" in line]


def lines(path):
    return path.read_text().splitlines()


def main():
    folder = pathlib.Path(sys.argv[1])
    golden = training.GOLDEN / "linear"
    case = next(golden.glob("*.data.safetensors"))
    batch, inside, outside = case.name.split(".")[0].split("-")
    os.environ.update(training.unoptimized())
    program = training.compile_model("linear", folder, f"--in={inside}", f"--out={outside}", f"--batch={batch}", "--lr=0.01", ranks=2)
    alone = folder / "alone.jsonl"
    training.run([program, "--data", case, "--steps", 6, "--log", alone])
    for name, calls in (("plain", 1), ("fails", 2)):
        done = submit(folder, name, program, case, job_number())
        expect(done.returncode == 0, f"{name}: status {done.returncode}: {done.stdout}{done.stderr}")
        expect(len(lines(folder / name / "srun")) == calls, f"{name}: srun was called {lines(folder / name / 'srun')}")
        expect(losses(folder / name / "run" / "log.jsonl") == losses(alone), f"{name}: other losses than the ranks of one machine")
    number = job_number()
    done = submit(folder, "time", program, case, number)
    asked = lines(folder / "time" / "scontrol")
    expect(done.returncode == 0 and asked[-1] == f"requeue {number}", f"time: status {done.returncode}, {asked}: {done.stdout}{done.stderr}")
    expect(len(losses(folder / "time" / "run" / "log.jsonl")) == 3, "time: trained on")
    done = submit(folder, "time", program, case, job_number())
    expect(done.returncode == 0 and losses(folder / "time" / "run" / "log.jsonl") == losses(alone), f"time: not continued: {done.stdout}{done.stderr}")
    manifest = MANIFEST.read_text()
    help_text = training.run([program, "--help"]).stdout
    for option in re.findall(r'"(--[a-z-]+)', manifest):
        expect(re.search(rf"{option}\b", help_text), f"kubernetes.yaml: {option} is no option of programs")
    for variable in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "FSDP_TIMEOUT", "FSDP_JOB_TOKEN"):
        expect(f"name: {variable}" in manifest, f"kubernetes.yaml: no {variable}")


if __name__ == "__main__":
    main()
