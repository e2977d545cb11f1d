#!/usr/bin/env python3
"""check_hangs.py SCRATCH: a rank that is stopped (SIGSTOP) ends the job within --timeout and a few seconds, says who waits for it in
which collective, leaves the last actions of each rank in the flight record, and is restarted where --max-restarts says so.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from check_restarts import children
from checkpoints import LIMIT, Runs, expect, logged, mlp, run_cases, same
from training import GOLDEN

DATA = GOLDEN / "mlp" / "data.safetensors"
TIMEOUT = 2  # seconds, of --timeout
BOUND = 10  # seconds within which all processes of a job are gone: the timeout, the grace, and a machine that is busy
FOREVER = 10**8  # steps
ACTION = re.compile(r" *-\d+\.\d{6}  rank \d+ +(host|\S+) +(under way|took \d+\.\d{6} s) +\S.*")


def begun(log, run, steps=5):
    """Waits until a run has logged that many steps."""
    end = time.monotonic() + LIMIT
    while not log.exists() or log.read_text().count("\n") < steps:
        expect(run.poll() is None and time.monotonic() < end, "no step")
        time.sleep(0.01)


def stopped(runs, program, *words, steps=FOREVER, launched=0, name="log.jsonl"):
    """A run of which rank 1 is stopped after some steps: what it says, its status, and how long it took to end."""
    log = runs.at(name)
    log.unlink(missing_ok=True)
    command = runs.command(program, "--log", log, "--timeout", TIMEOUT, *words, steps=steps)
    ranks = []
    for rank in range(launched or 1):
        environment = {"RANK": str(rank), "WORLD_SIZE": str(launched), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(launched),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 20000)} if launched else {}
        ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=runs.folder,
                                      env={**os.environ, **environment}))
    begun(log, ranks[0])
    victim = ranks[1].pid if launched else sorted(children(ranks[0]))[1]
    os.kill(victim, signal.SIGSTOP)
    began = time.monotonic()
    try:
        said = "".join(rank.communicate(timeout=LIMIT)[0] for rank in ranks if rank.pid != victim)
    finally:
        if launched:
            ranks[1].kill()
            ranks[1].communicate()
    return said, ranks[0].returncode, time.monotonic() - began


def recorded(path, ranks):
    """The flight record's text, each line of which has its form, with actions of those ranks."""
    lines = path.read_text().splitlines()
    expect(len(lines) > 20 and lines[0].startswith("# rank ") and lines[1].startswith("# "), f"{lines[:3]}")
    for line in lines[2:]:
        expect(ACTION.fullmatch(line), f"no action: {line}")
    for rank in ranks:
        expect(sum(f"rank {rank} " in line for line in lines[2:]) > 5, f"no actions of rank {rank}")
    expect([float(line.split()[0]) for line in lines[2:]] == sorted(float(line.split()[0]) for line in lines[2:]), "out of order")
    return "\n".join(lines)


def a_stopped_rank_ends_the_job(runs, programs):
    said, status, seconds = stopped(runs, programs["three"])
    expect(status == 1 and said.count("error: ") == 1, f"got status {status}: {said}")
    expect(seconds < BOUND, f"took {seconds} s")
    found = re.search(r"error: rank 1: not responding: no heartbeat for \d\.\d s; its latest action: (.*); waiting in "
                      r"('.*', collective \d+ over '.*'): rank 0, 2\n", said)
    expect(found, said)
    path = runs.at("log.jsonl.flight-record.txt")  # beside --log
    expect(f"note: wrote the last actions of each rank to '{path}'\n" in said, said)
    text = recorded(path, range(3))
    expect(all(re.search(rf"rank {rank} .*under way +{re.escape(found[2])}", text) for rank in (0, 2)), f"{found[2]}: {text[-2000:]}")
    expect(re.search(r"rank 1 .*under way +step \d+", text), text[-2000:])


def a_stopped_rank_of_a_launcher_ends_the_others(runs, programs):
    record = runs.at("launched.txt")
    said, status, seconds = stopped(runs, programs["three"], "--flight-record", record, launched=3)
    expect(status == 1 and said.count("error: ") == 1, f"got status {status}: {said}")
    expect(seconds < BOUND, f"took {seconds} s")
    expect(re.search(r"error: rank 1: not responding: no heartbeat for \d s; its latest action: .*; waiting in '.*', collective \d+ over "
                     r"'.*': rank 0, 2\n|error: rank \d.*: timed out after 2 s in '.*', collective \d+ over '.*', waiting for rank 1 "
                     r"\(latest action: .*\); --timeout sets the timeout in seconds\n", said), said)
    recorded(record, range(3))


def so_over_tcp(runs, programs):
    record = runs.at("tcp.txt")
    said, status, seconds = stopped(runs, programs["three"], "--flight-record", record, "--communicator=tcp", launched=3)
    expect(status == 1 and said.count("error: ") == 1, f"got status {status}: {said}")
    expect(seconds < BOUND, f"took {seconds} s")
    expect(re.search(r"error: rank 1: not responding: no heartbeat for|collective \d+ over '.*', waiting for rank 1", said), said)
    for rank in (0, 2):
        text = recorded(runs.at(f"tcp.txt.rank-{rank}"), [rank])
        expect(re.search(r"under way +'.*', collective \d+ over '", text), text[-2000:])


def a_stopped_rank_is_restarted(runs, programs):
    program, record = programs["three"], runs.at("restarted.txt")
    runs.run(program, "--log", runs.at("whole.jsonl"), "--export", runs.at("whole.safetensors"), steps=2000)
    said, status, _ = stopped(runs, program, "--save", runs.at("root"), "--save-every", 50, "--max-restarts", 1, "--flight-record", record,
                              "--export", runs.at("out.safetensors"), steps=2000, name="restarted.jsonl")
    found = re.search("rank 1: not responding: no heartbeat for|waiting for rank 1 [(]latest action: ", said)  # whichever is first
    expect(status == 0 and found and "restart 1 of 1" in said, f"got status {status}: {said}")
    recorded(record, range(3))
    expect(not runs.at("restarted.txt.restart-1").exists(), "a record of a run that did not fail")
    same(runs.at("out.safetensors"), runs.at("whole.safetensors"), "weights")
    expect(logged(runs.at("restarted.jsonl")) == logged(runs.at("whole.jsonl")), "another log")


def no_record_where_none_is_asked_for(runs, programs):
    before = sorted(path.name for path in runs.folder.glob("*flight*"))
    said, status, _ = stopped(runs, programs["three"], "--flight-record=none")
    expect(status == 1 and "wrote the last actions" not in said, f"got status {status}: {said}")
    expect(sorted(path.name for path in runs.folder.glob("*flight*")) == before, "a record")
    runs.run(programs["three"], cwd=runs.folder)
    expect(sorted(path.name for path in runs.folder.glob("*flight*")) == before, "a record of a run that did not fail")


def records_have_their_places(runs, programs):
    """Beside --save, whether there is a log or not; else, without a log, in a folder of this user's own. The next failure's replaces it."""
    folder = runs.at("places")
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    own = temporary / f"fsdp-{os.geteuid()}"
    # Ten steps whose loss is not finite end a run.
    fails = lambda *words, says: runs.run(programs["three"], "--lr=1e30", *words, steps=200, status=1, cwd=folder, says=says,
                                          env={**os.environ, "TMPDIR": str(temporary)})
    for again in range(2):
        fails(says=f"note: wrote the last actions of each rank to '{own}/mlp.flight-record.txt'\n")
        fails("--save", "root", "--log", "log.jsonl", says="note: wrote the last actions of each rank to 'root.flight-record.txt'\n")
        fails("--log", "/dev/null", says=f"note: wrote the last actions of each rank to '{own}/mlp.flight-record.txt'\n")
    expect(sorted(path.name for path in folder.iterdir()) == ["log.jsonl", "log.jsonl.1", "root", "root.flight-record.txt", "tmp"], f"{list(folder.iterdir())}")
    expect([path.name for path in own.iterdir()] == ["mlp.flight-record.txt"] and own.stat().st_mode & 0o77 == 0, f"{list(own.iterdir())}")
    recorded(own / "mlp.flight-record.txt", range(3))
    own.chmod(0o777)
    fails(says=f"warning: the last actions of each rank are lost: '{own}' is not a folder of this user alone: remove it, or name a file with --flight-record")


def senseless_timeouts_are_refused(runs, programs):
    for text in ("0", "-1", "soon", "1e10"):
        runs.run(programs["three"], f"--timeout={text}", status=2, says="--timeout")


def main():
    folder = pathlib.Path(sys.argv[1])
    programs = {"three": mlp(folder / "three", "fsdp=3").resolve()}
    run_cases((a_stopped_rank_ends_the_job, a_stopped_rank_of_a_launcher_ends_the_others, so_over_tcp, a_stopped_rank_is_restarted,
               no_record_where_none_is_asked_for, records_have_their_places, senseless_timeouts_are_refused), Runs(folder / "runs", DATA), programs)


if __name__ == "__main__":
    main()
