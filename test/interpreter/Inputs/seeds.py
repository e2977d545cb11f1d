"""Runs a command with --seed=0, 1, ...: `seeds.py all|some N COMMAND...`, `seeds.py like N MODULE COMMAND...`.

all: every run succeeds and prints the same, which is printed once.
some: at least one run fails with status 1, and the message of the first that does is printed.
like: every run succeeds and prints what it prints with MODULE in place of the command's second word.
Without ./check --all a third of the seeds for all and like.
"""
import os
import subprocess
import sys

mode, count, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
if mode != "some" and not os.environ.get("FSDP_TEST_ALL"):
    count = -(-count // 3)
expected = command.pop(0) if mode == "like" else None
program = sys.stdin.read() if "-" in command else None
printed, refused = set(), []
for seed in range(count):
    run = subprocess.run(command + [f"--seed={seed}"], input=program, capture_output=True, text=True)
    if mode == "like":
        other = subprocess.run([command[0], expected, *command[2:], f"--seed={seed}"], capture_output=True, text=True)
        if run.returncode or other.returncode or run.stdout != other.stdout:
            sys.exit(f"seed {seed}: got status {run.returncode}\n{run.stdout}{run.stderr}expected status "
                     f"{other.returncode}\n{other.stdout}{other.stderr}")
    elif run.returncode == 0:
        printed.add(run.stdout)
    elif run.returncode == 1:
        refused.append(run.stderr)
    else:
        sys.exit(f"seed {seed}: status {run.returncode}\n{run.stderr}")
if mode == "all":
    if refused or len(printed) != 1:
        sys.exit(f"{len(refused)} refused, {len(printed)} different results\n{''.join(refused[:1])}")
    print(printed.pop(), end="")
elif mode == "some":
    if not refused:
        sys.exit(f"none of {count} seeds is refused")
    print(f"refused with {len(refused)} of {count} seeds\n{refused[0]}", end="")
