#!/usr/bin/env python3
"""check_plans.py SCRATCH: programs that have a plan for each of several meshes.

A plan is bit for bit the program of its mesh alone. The number of ranks that a launcher starts picks one, --plan another. With
--elastic a job that loses ranks goes on with fewer. A run that goes from 8 to 4 to 16 to 3 ranks has the losses of the run on 8.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import training
from checkpoints import LIMIT, Runs, close, expect, folders, lines_of, logged, mlp, run_cases, same, until_hit
from training import GOLDEN

DATA = GOLDEN / "mlp" / "data.safetensors"
PLANS = ("fsdp=3", "data=3", "data=2,fsdp=2", "fsdp=2", "fsdp=1")
ALONE = PLANS[:3]
# Meshes and their ranks: fsdp, hybrid, with tensor parallelism where the model splits its parameters, ddp.
LEGS = {
    "mlp": (("fsdp=8", 8), ("data=2,fsdp=2", 4), ("data=4,fsdp=4", 16), ("data=3", 3)),
    "gpt2": (("fsdp=8", 8), ("data=2,fsdp=2", 4), ("fsdp=4,tensor=4", 16), ("data=3", 3)),
}
LEG = 20  # steps


def each_plan_is_the_program_of_its_mesh(runs, programs):
    for mesh in ALONE:
        for program, name in ((programs["all"], "plan"), (programs[mesh], "alone")):
            words = ["--plan", mesh] if name == "plan" else []
            runs.run(program, "--shuffle", "--val-data", DATA, "--log", runs.at(f"{name}.jsonl"), "--export",
                     runs.at(f"{name}.safetensors"), *words, says=f"mesh {mesh}, arena")
        same(runs.at("plan.safetensors"), runs.at("alone.safetensors"), mesh)
        expect(logged(runs.at("plan.jsonl")) == logged(runs.at("alone.jsonl")), f"{mesh}: another log")


def started_alone_it_takes_the_first(runs, programs):
    runs.run(programs["all"], says="3 ranks, mesh fsdp=3")
    said = subprocess.run([programs["all"], "--report"], capture_output=True, text=True, timeout=LIMIT).stdout
    for mesh in PLANS:
        expect(f"({mesh}), in bytes" in said, f"lacking the report of {mesh}: {said}")
    said = subprocess.run([programs["all"], "--report", "--plan=data=3"], capture_output=True, text=True, timeout=LIMIT).stdout
    expect("(data=3), in bytes" in said and "(fsdp=3)" not in said, said)
    runs.run(programs["all"], "--plan=fsdp=5", status=2, says="--plan: got 'fsdp=5', expected fsdp=3 (3 ranks), data=3 (3 ranks), ")


def launched(runs, program, ranks, *words, steps=8):
    """Standard output and errors of all ranks, and their statuses, started as torchrun would."""
    started = []
    for rank in range(ranks):
        names = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1"}
        environment = {**os.environ, **{name: str(value) for name, value in names.items()}}
        started.append(subprocess.Popen(runs.command(program, *words, steps=steps), env=environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True))
    return "".join(process.communicate(timeout=LIMIT)[0] for process in started), [process.returncode for process in started]


def the_number_of_ranks_picks(runs, programs):
    for ranks, words, mesh in ((4, (), "data=2,fsdp=2"), (2, (), "fsdp=2"), (3, ("--plan=data=3",), "data=3")):
        said, statuses = launched(runs, programs["all"], ranks, *words)
        expect(statuses == [0] * ranks and f"{ranks} ranks, mesh {mesh}, arena" in said, f"{ranks} ranks: {statuses}: {said}")
    said, statuses = launched(runs, programs["all"], 5)
    expect(statuses == [1] * 5 and said.count("error: ") == 1, f"{statuses}: {said}")
    expect("the launcher started 5 ranks, but this program has plans for fsdp=3 (3 ranks), data=3 (3 ranks), data=2,fsdp=2 (4 ranks), "
           "fsdp=2 (2 ranks) and fsdp=1 (1 rank): start as many as one of them has, or compile with one more for 5" in said, said)
    said, statuses = launched(runs, programs["all"], 2, "--plan=data=3")
    expect(statuses == [1] * 2 and "the mesh 'data=3' has 3 ranks, but the launcher started 2" in said, f"{statuses}: {said}")


def children(process):
    path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def kill_last(run):
    """Whether there was a rank."""
    ranks = children(run)
    try:
        os.kill(ranks[-1], signal.SIGKILL)
    except (IndexError, ProcessLookupError):
        return False
    return True


def lost_ranks_leave_a_smaller_job(runs, programs):
    """A rank is killed in the jobs of four and three ranks; two ranks end the run."""
    steps, root, log = 600, runs.at("elastic"), runs.at("elastic.jsonl")
    runs.run(programs["all"], "--plan=data=2,fsdp=2", "--log", runs.at("whole.jsonl"), steps=steps)
    said, status = until_hit(lambda: lose_ranks(runs, programs["all"], steps, root, log))
    expect(status == 0, f"got status {status}: {said}")
    for text in ("was killed by signal 9 (Killed)", "restart 1 of 3, on the mesh fsdp=3", "restart 2 of 3, on the mesh fsdp=2"):
        expect(text in said, f"lacking '{text}' in: {said}")
    restarts = [json.loads(line)["restart"] for line in log.read_text().splitlines() if '"restart"' in line]
    expect([restart["mesh"] for restart in restarts] == ["fsdp=3", "fsdp=2"], f"{restarts}")
    expect(all("was killed by signal 9" in restart["cause"] for restart in restarts), f"{restarts}")
    got = logged(log)
    expect([step["step"] for step in got] == list(range(1, steps + 1)), "steps are missing or stand twice")
    first = restarts[0]["after_step"]
    close(logged(runs.at("whole.jsonl")), got[:first + LEG], 2e-6, "the first restart")


def lose_ranks(runs, program, steps, root, log):
    """Kills a rank when a checkpoint is there; what the run says and its status, or None where it had ended before."""
    log.unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    run = subprocess.Popen(runs.command(program, "--plan=data=2,fsdp=2", "--save", root, "--save-every", 50, "--keep", 2,
                                        "--max-restarts", 3, "--elastic", "--log", log, steps=steps),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    hits = 0
    for ranks, after in ((4, 100), (3, 250)):
        while run.poll() is None:
            ready = root.exists() and max((int(name[5:13]) for name in folders(root)), default=0) >= after
            if ready and len(children(run)) == ranks:
                hits += kill_last(run) and lines_of(log) < steps
                break
            time.sleep(0.002)
    said = run.communicate(timeout=LIMIT)[0]
    return (said, run.returncode) if hits == 2 or run.returncode else None


def without_fewer_ranks_it_says_so(runs, programs):
    runs.run(programs["fsdp=3"], "--save", runs.at("none"), "--max-restarts", 1, "--elastic", status=2,
             says="got --elastic, but no plan of this program has fewer ranks than fsdp=3 (its plans: fsdp=3 (3 ranks)): compile it with more")
    runs.run(programs["all"], "--save", runs.at("none"), "--elastic", status=2, says="got --elastic without --max-restarts")


def from_8_to_4_to_16_to_3_ranks(runs, programs, model="mlp"):
    """Each leg begins at the checkpoint of the one before, after 20 steps more, and its 20 steps are those of the run on 8 ranks."""
    legs, program = LEGS[model], programs[f"{model}-legs"]
    steps, whole, start = LEG * len(legs), runs.at("legs-whole.jsonl"), ()
    runs.run(program, "--shuffle", "--log", whole, steps=steps)
    for leg, (mesh, ranks) in enumerate(legs):
        root, log = runs.at(f"legs-{ranks}"), runs.at(f"legs-{ranks}.jsonl")
        # The number of ranks alone picks the plan.
        said, statuses = launched(runs, program, ranks, "--shuffle", "--save", root, "--save-every", LEG, "--log", log, *start, steps=steps)
        expect(statuses == [0] * ranks and f"{ranks} ranks, mesh {mesh}, arena" in said, f"{ranks} ranks: {statuses}: {said}")
        got = logged(log)
        expect([step["step"] for step in got] == list(range(LEG * leg + 1, steps + 1)), f"{ranks} ranks: other steps")
        close(logged(whole), got[:LEG], 2e-6, f"{ranks} ranks")
        start = ("--resume", root / f"step-{LEG * (leg + 1):08}")


def so_with_tensor_parallelism(runs, programs):
    from_8_to_4_to_16_to_3_ranks(Runs(runs.folder / "gpt2", GOLDEN / "gpt2" / "tokens.bin"), programs, "gpt2")


def main():
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(sys.argv[1])
    programs = {mesh: mlp(folder / f"program-{number}", mesh) for number, mesh in enumerate(ALONE)}
    programs["all"] = mlp(folder / "all", "|".join(PLANS))
    legs = {model: "|".join(mesh for mesh, _ in of) for model, of in LEGS.items()}
    programs["mlp-legs"] = mlp(folder / "mlp-legs", legs["mlp"])
    programs["gpt2-legs"] = training.compile_model("gpt2", folder / "gpt2-legs", "--layers=1", "--width=16", "--heads=4", "--context=8",
                                                   "--vocab=61", "--batch=12", "--lr=0.01", "--eps=1e-4", "--clip=0.5", "--warmup=2",
                                                   "--schedule=cosine", mesh=legs["gpt2"])
    cases = [each_plan_is_the_program_of_its_mesh, started_alone_it_takes_the_first, the_number_of_ranks_picks,
             lost_ranks_leave_a_smaller_job, without_fewer_ranks_it_says_so, from_8_to_4_to_16_to_3_ranks]
    run_cases(cases + [so_with_tensor_parallelism] * training.WHOLE, Runs(folder / "runs", DATA), programs)


if __name__ == "__main__":
    main()
