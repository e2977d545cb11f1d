#!/usr/bin/env python3
"""check_data.py SCRATCH: --data and --val-data of several files, patterns and weights.

A mixture has the same samples in each step on 1, 2 and 4 ranks, in a run that continues from a checkpoint and in one that loses ranks.
Which samples these are says the reference of test/golden/make_mixture.py: a run on one file that has them in this order has the
same losses, bit for bit.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))

import make_mixture
import ports
import weights as safetensors
from check_evaluation import part
from check_plans import kill_last
from check_refusals import write
from check_restarts import children
from checkpoints import LIMIT, Runs, close, expect, lines_of, logged, mlp, run_cases, until_hit
from training import GOLDEN, unoptimized

BATCH, SEED = 10, 5
# On the last one ranks along 'tensor' load the same samples.
MESHES = ("fsdp=1", "fsdp=2", "data=2,tensor=2")
WEB, CODE = (20, 9), (35,)  # samples of each file
WEIGHTS = (0.7, 0.3)


def tensors():
    return safetensors.read(GOLDEN / "mlp" / "data.safetensors")


def make_files(folder):
    """The 64 samples of the golden data: web/a and web/b, and code."""
    (folder / "web").mkdir(parents=True)
    first = 0
    for name, count in (("web/a", WEB[0]), ("web/b", WEB[1]), ("code", CODE[0])):
        write(folder / f"{name}.safetensors", part(tensors(), first, count))
        first += count


def in_order(path, steps, shuffle):
    """One file with the samples of a mixture in the order in which the reference draws them."""
    starts = ((0, WEB[0]), (sum(WEB),))
    drawn = [starts[source][file] + sample
             for source, file, sample in make_mixture.draws([WEB, CODE], WEIGHTS, SEED, shuffle, 0, steps * BATCH)]
    ordered = {}
    for name, (dtype, shape, values) in tensors().items():
        width = len(values) // shape[0]
        ordered[name] = (dtype, (len(drawn), *shape[1:]),
                         [value for sample in drawn for value in values[sample * width:(sample + 1) * width]])
    return write(path, ordered)


def mixed(runs, words=("web/*.safetensors:0.7", "code.safetensors:0.3")):
    """Words of the command line: the files are in the folder of the runs."""
    return ["--data", *(f"{runs.folder}/{word}" for word in words)]


def run(runs, program, *words, data=None, steps=12, log=None, status=0, says=(), **options):
    """What a run says; a log has the digests of samples."""
    log = ["--log", log, "--log-data"] if log else []
    steps = ["--steps", steps] if steps else []
    command = [str(word) for word in (program, *words, *(mixed(runs) if data is None else data), *steps, *log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options)
    said = done.stdout + done.stderr
    expect(done.returncode == status, f"{words}: got status {done.returncode}, expected {status}: {said}")
    for text in [says] if isinstance(says, str) else says:
        expect(text in said, f"{words}: lacking '{text}' in: {said}")
    return said


def digests(log):
    return [(step["step"], step["samples_digest"]) for step in logged(log)]


def meshes_draw_the_same_samples(runs, program):
    for shuffle in (["--shuffle"], []):
        log = {mesh: runs.at(f"{mesh}.jsonl") for mesh in MESHES}
        for mesh in MESHES:
            run(runs, program, f"--plan={mesh}", f"--seed={SEED}", *shuffle, log=log[mesh])
            expect(digests(log[mesh]) == digests(log["fsdp=1"]), f"{mesh}: other samples")
            close(logged(log["fsdp=1"]), logged(log[mesh]), 2e-6, mesh)
        expect(len(set(digests(log["fsdp=1"]))) == 12, "steps with the same samples")
        one = runs.at("one.jsonl")
        run(runs, program, f"--seed={SEED}", data=["--data", in_order(runs.at("ordered"), 12, bool(shuffle))], log=one)
        losses = [[step["loss"] for step in logged(path)] for path in (one, log["fsdp=1"])]
        expect(losses[0] == losses[1], f"shuffle {shuffle}: got the losses {losses[1]}, expected {losses[0]}")


def a_run_goes_on_with_its_samples(runs, program):
    whole, log, root = runs.at("whole.jsonl"), runs.at("parts.jsonl"), runs.at("root")
    options = (f"--seed={SEED}", "--shuffle", "--schedule-steps=20")
    said = run(runs, program, *options, log=whole, steps=20)
    expect(f"data: 70% from '{runs.folder}/web/*.safetensors', 2 files, 29 samples, 4.9 epochs\n" in said, said)
    expect(f"data: 30% from '{runs.folder}/code.safetensors', 1 file, 35 samples, 1.66 epochs\n" in said, said)
    run(runs, program, *options, "--save", root, log=log, steps=9)
    run(runs, program, *options, "--save", root, "--resume=latest", "--log-header", log=log, steps=20)
    expect([step for step in logged(log) if "run" not in step] == logged(whole), "another log")
    run(runs, program, *options, "--resume", root / "step-00000009", "--plan=data=2,tensor=2", log=runs.at("wide.jsonl"),
        steps=20)
    expect(digests(runs.at("wide.jsonl")) == digests(whole)[9:], "other samples on another mesh")
    manifest = json.loads((root / "step-00000020" / "manifest.json").read_text())
    expect([source["samples"] for source in manifest["sources"]] == [29, 35], f"{manifest['sources']}")
    record = manifest["runs"][-1]
    expect([source["weight"] for source in record["sources"]] == [0.7, 0.3] and len(record["files"]["data"]) == 3
           and len(record["data"]) == 2, f"{record}")
    # The same samples under other names are no other data.
    moved = runs.at("moved")
    shutil.copytree(runs.at("web"), moved)
    said = run(runs, program, "--shuffle", "--resume", root, data=mixed(runs, ("moved/*:7", "code.safetensors:3")), steps=21)
    expect("warning" not in said, said)
    for words, got in ((("web/*.safetensors:0.6", "code.safetensors:0.4"), "got 2 sources: 60% of 29 samples '"),
                       (("web/a.safetensors:0.7", "code.safetensors:0.3"), "got 2 sources: 70% of 20 samples '"),
                       (("web/*.safetensors", "code.safetensors"), "got one source of 64 samples in --data, and '")):
        run(runs, program, "--shuffle", "--resume", root, data=mixed(runs, words), steps=21,
            says=(got, "was written with 2 sources: 70% of 29 samples '",
                  ": training continues at the position where these sources with these weights would be"))


def lost_ranks_change_no_sample(runs, program):
    steps, log, root = 600, runs.at("lost.jsonl"), runs.at("lost")
    run(runs, program, "--shuffle", log=runs.at("kept.jsonl"), steps=steps)

    def lose():
        log.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        job = subprocess.Popen([str(word) for word in (
            program, *mixed(runs), "--shuffle", "--plan=data=2,tensor=2", "--steps", steps, "--save", root, "--save-every=50",
            "--keep=2", "--max-restarts=3", "--elastic", "--log", log, "--log-data")],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        hit = False
        while job.poll() is None and not hit:
            if any(root.glob("step-*/manifest.json")) and len(children(job)) == 4:
                hit = kill_last(job) and lines_of(log) < steps
            time.sleep(0.002)
        said = job.communicate(timeout=LIMIT)[0]
        return (said, job.returncode) if hit or job.returncode else None

    said, status = until_hit(lose)
    expect(status == 0 and "restart 1 of 3, on the mesh fsdp=2" in said, f"{status}: {said}")
    restarts = [json.loads(line)["restart"] for line in log.read_text().splitlines() if '"restart"' in line]
    expect([restart["after_step"] >= 50 for restart in restarts] == [True], f"{restarts}")
    expect(digests(log) == digests(runs.at("kept.jsonl")), "other samples")


def files_without_weights_are_one(runs, program):
    logs = [runs.at("whole-file.jsonl"), runs.at("files.jsonl")]
    evaluated = []
    write(runs.at("whole.safetensors"), tensors())
    for log, names in zip(logs, (("whole.safetensors",), ("web/*.safetensors", "code.safetensors"))):
        data = mixed(runs, names)
        root = runs.at(f"of-{len(names)}")
        said = run(runs, program, "--epochs=2", "--shuffle", "--save", root, "--val-data", *data[1:], data=data, log=log, steps=None)
        expect(("data: 3 files, 64 samples\n" in said) == (len(names) > 1), said)
        said = run(runs, program, "eval", "--resume", root, "--val-data", *data[1:], data=(), steps=None, says="evaluated 64 samples\n")
        evaluated.append(next(line for line in said.splitlines() if line.startswith("val_loss")))
    expect(logged(logs[0]) == logged(logs[1]) and "val_loss" in logged(logs[0])[-1], "another log")
    expect(evaluated[0] == evaluated[1], f"{evaluated}")


def ranks_compare_their_data(runs, program):
    """Two ranks that a launcher has started with other weights."""
    env = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports.free_port())}
    jobs = []
    for rank, weight in enumerate(("0.7", "0.6")):
        command = [program, *mixed(runs, (f"web/*.safetensors:{weight}", "code.safetensors:0.3")), "--steps=1", "--timeout=60"]
        jobs.append(subprocess.Popen([str(word) for word in command], env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    said = "".join(job.communicate(timeout=LIMIT)[0] for job in jobs)
    expect("rank 1 was started with the weights of --data 0.666666666667 (2 files, 29 samples), 0.333333333333 (1 file, 35 samples), "
           "rank 0 with the weights of --data 0.7 (" in said, said)


def what_is_not_taken_is_refused(runs, program):
    empty = runs.at("empty")
    empty.write_bytes(b"")
    runs.at("text").write_text("no tensors, and longer than the header of a file")
    web, code = "web/*.safetensors", "code.safetensors"
    at = f"{runs.folder}/"
    for status, words, why in (
            (1, ("none/*.safetensors:1", f"{code}:2"), f"--data: no file matches '{at}none/*.safetensors'"),
            (2, (f"{web}:0", f"{code}:2"), f"--data: got the weight '0' in '{at}{web}:0', expected a finite number > 0"),
            (2, (f"{web}:x", f"{code}:2"), f"--data: got the weight 'x' in '{at}{web}:x', expected a finite number > 0"),
            (2, (f"{web}:1", f"{code}:1e-13"), f"--data: got the weight 1e-13 for '{at}{code}', which is less than 2^-40 of the largest, 1:"),
            (2, (web, f"{code}:2"), f"--data: got a weight for '{at}{code}' and none for '{at}{web}': give every file and pattern one"),
            (2, (f"{web}:1", "web/a.safetensors:2"), f"--data: got one file as '{at}web/a.safetensors' and as '{at}web/a.safetensors'"),
            (1, (f"{web}:1", "empty:2"), f"'{at}empty'"),
            (1, (web, "text"), f"'{at}text'"),
            (1, (web, "web"), f"cannot read '{at}web': got a folder"),
            (1, (f"{web}:1", "gone.safetensors:2"), f"cannot open '{at}gone.safetensors'")):
        run(runs, program, data=mixed(runs, words), status=status, says=why)
    run(runs, program, data=mixed(runs, (f"{code}:1e-9", f"{web}:1")),
        says=f"mlp: warning: no sample of '{at}{code}' is drawn by the end of this run, as its weight is 1e-09 of all: train longer")
    run(runs, program, "--val-data", f"{at}{code}:2", status=2, says=f"--val-data: got a weight for '{at}{code}', expected none")
    run(runs, program, "--epochs=1", steps=None, status=2,
        says="got --epochs with 2 sources in --data, each of which has epochs of its own: give the number of steps (--steps); about so "
             f"many are one epoch: 5 of '{at}{web}', 12 of '{at}{code}'")
    run(runs, program, "--export", f"{at}{code}", status=2, says=f"got one file for --data '{at}{code}' and --export '{at}{code}'")


def main():
    os.environ.update(unoptimized())
    folder = pathlib.Path(sys.argv[1])
    program = mlp(folder / "program", "|".join(MESHES), "--shard=fc1.weight:_,tensor", hidden=18)
    runs = Runs(folder / "runs", None)
    make_files(runs.folder)
    run_cases((meshes_draw_the_same_samples, a_run_goes_on_with_its_samples, lost_ranks_change_no_sample, files_without_weights_are_one,
               ranks_compare_their_data, what_is_not_taken_is_refused), runs, program)


if __name__ == "__main__":
    main()
