#!/usr/bin/env python3
"""check_hangs.py SCRATCH: a rank that is stopped (SIGSTOP) ends the job within --timeout and a few seconds, says who waits for it in
which collective, leaves the last actions of each rank in the flight record, and is restarted with --max-restarts. A stopped
stage of a pipeline ends the job with its name, although ranks wait for one another along it; one that computes without end is named too, with the
microbatches for which others wait.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from check_restarts import children
from checkpoints import LIMIT, Runs, Wrong, expect, lines_of, logged, mlp, run_cases, same, until_hit
from ports import free_port
from training import GOLDEN, compile_model, unoptimized

DATA = GOLDEN / "mlp" / "data.safetensors"
TIMEOUT = 8  # seconds, of --timeout
BOUND = 100  # seconds within which all processes of a job are gone: the timeout and the grace, on a machine that is busy
FOREVER = 10**8  # steps
STAGES = ("--layers=2", "--width=32", "--heads=4", "--context=12", "--vocab=61", "--batch=6", "--accumulate=3")
# The messages of a job whose rank 1 is stopped: the parent, or another rank, misses the rank's
# heartbeat, or first another rank times out in its collective. Over TCP rank 0 receives heartbeats
# from another process, which shares no memory with it, so it has no latest action.
HEARTBEAT = re.compile(r"(?:error|warning): rank 1: not responding: no heartbeat for \d+(?:\.\d)? s\b")
WAITING = re.compile(r"; waiting in '[^']*', (collective \d+ over '[^']*'): rank ([02](?:, [02])?)")
TIMED_OUT = re.compile(r"(?:error|warning): rank ([02]), '.*': timed out after 8 s in '.*', (collective \d+ over '.*'), waiting for rank 1\b.*; --timeout sets")
ENDLESS = "endless stage 2 microbatch 1"
ACTION = re.compile(r" *-\d+\.\d{6}  rank \d+ +(host|\S+) +(under way|took \d+\.\d{6} s) +\S.*")


def begun(log, run, steps=5):
    """Waits until a run has logged that many steps."""
    while lines_of(log) < steps:
        if run.poll() is not None and lines_of(log) < steps:
            raise Wrong(f"ended after {lines_of(log)} steps: {run.communicate()[0]}")
        time.sleep(0.01)


def stopped(runs, program, *words, steps=FOREVER, launched=0, name="log.jsonl", stops=True):
    """A run of which rank 1 is stopped after some steps: what it says, its status, and how long it took to end; None where it had ended before.
    Without `stops` a rank hangs by itself."""
    log, port = runs.at(name), free_port()
    log.unlink(missing_ok=True)
    command = runs.command(program, "--log", log, "--timeout", TIMEOUT, *words, steps=steps)
    ranks = []
    for rank in range(launched or 1):
        environment = {"RANK": str(rank), "WORLD_SIZE": str(launched), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(launched),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} if launched else {}
        ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=runs.folder,
                                      env={**os.environ, **environment}))
    begun(log, ranks[0])
    victim, hit = None, True
    try:
        if stops:
            victim = ranks[1].pid if launched else children(ranks[0])[1]  # in the order in which they were made
            os.kill(victim, signal.SIGSTOP)
            hit = lines_of(log) < steps
    except (IndexError, ProcessLookupError):
        hit = False
    began = time.monotonic()
    try:
        said = "".join(rank.communicate(timeout=LIMIT)[0] for rank in ranks if rank.pid != victim)
    finally:
        if launched and stops:
            ranks[1].kill()
            ranks[1].communicate()
    return (said, ranks[0].returncode, time.monotonic() - began) if hit or ranks[0].returncode else None


def waited_in(said):
    """For ranks that wait for rank 1 the collective in which they do, by what the error says."""
    timed_out = TIMED_OUT.findall(said)
    expect(timed_out or HEARTBEAT.search(said), said)
    waiting = {int(rank): collective for rank, collective in timed_out}
    for collective, ranks in WAITING.findall(said):
        waiting.update((int(rank), collective) for rank in ranks.split(", "))
    return waiting


def recorded(path, ranks):
    """The flight record's text, each line of which has its form, with actions of those ranks."""
    lines = path.read_text().splitlines()
    actions = [line for line in lines if not line.startswith("# ")]
    heads = len(lines) - len(actions)
    expect(len(lines) > 20 and lines[0].startswith("# rank ") and heads >= 2 and lines[heads:] == actions, f"{lines[:heads + 1]}")
    for line in actions:
        expect(ACTION.fullmatch(line), f"no action: {line}")
    for rank in ranks:
        expect(sum(f"rank {rank} " in line for line in actions) > 5, f"no actions of rank {rank}")
    expect([float(line.split()[0]) for line in actions] == sorted(float(line.split()[0]) for line in actions), "out of order")
    return "\n".join(lines)


def a_stopped_rank_ends_the_job(runs, programs):
    said, status, seconds = stopped(runs, programs["three"])
    expect(status == 1 and said.count("error: ") == 1, f"got status {status}: {said}")
    expect(seconds < BOUND, f"took {seconds} s")
    waiting = waited_in(said)
    expect(waiting, said)
    path = runs.at("log.jsonl.flight-record.txt")  # beside --log
    expect(f"note: wrote the last actions of each rank to '{path}'\n" in said, said)
    text = recorded(path, range(3))
    for rank, collective in waiting.items():
        expect(re.search(rf"rank {rank} .*under way .*{re.escape(collective)}\n", text + "\n"), f"{waiting}: {text[-2000:]}")
    expect(re.search(r"rank 1 .* step \d+", text), text[-2000:])


def a_stopped_rank_of_a_launcher_ends_the_others(runs, programs):
    record = runs.at("launched.txt")
    said, status, seconds = stopped(runs, programs["three"], "--flight-record", record, launched=3)
    expect(status == 1 and said.count("error: ") == 1, f"got status {status}: {said}")
    expect(seconds < BOUND, f"took {seconds} s")
    waited_in(said)
    recorded(record, range(3))


def so_over_tcp(runs, programs):
    record = runs.at("tcp.txt")
    said, status, seconds = stopped(runs, programs["three"], "--flight-record", record, "--communicator=tcp", launched=3)
    # A rank to which rank 0 does not say in time that it has printed the cause does so too.
    expect(status == 1 and 1 <= said.count("error: ") <= 2, f"got status {status}: {said}")
    expect(seconds < BOUND, f"took {seconds} s")
    waiting = waited_in(said)
    for rank in (0, 2):
        text = recorded(runs.at(f"tcp.txt.rank-{rank}"), [rank])
        expect(rank not in waiting or re.search(rf"under way +'.*', {re.escape(waiting[rank])}\n", text + "\n"), f"{waiting}: {text[-2000:]}")


def a_stopped_stage_ends_the_others(runs, programs):
    """The first and the last stage, which have a tied weight, wait for one another too: the error names the rank that is stopped."""
    runs = Runs(runs.folder, GOLDEN / "gpt2" / "tokens.bin")
    for name, words, launched in (("stages", (), 0), ("stages-tcp", ("--communicator=tcp",), 3)):
        record = runs.at(f"{name}.txt")
        said, status, seconds = stopped(runs, programs["stages"], "--flight-record", record, *words, launched=launched, name=f"{name}.jsonl")
        expect(status == 1 and HEARTBEAT.search(said), f"{name}: got status {status}: {said}")
        expect(words or "; its role: pipeline1; its latest action: " in said, said)
        expect(seconds < BOUND, f"took {seconds} s")
        for rank in (0, 2) if words else (0,):
            text = recorded(runs.at(f"{name}.txt.rank-{rank}") if words else record, [rank] if words else range(3))
            expect(re.search(r"'receive of f32 .*', collective \d+ over 'pipeline", text), text[-2000:])
            expect(re.search(rf"rank {rank} .* launch '\S+.* stage {rank} microbatch [012]'\n", text), text[-2000:])
            expect(f"\n# pipeline{rank}: rank {rank}\n" in text, text[:500])


def an_endless_stage_is_named(runs, programs):
    """The last stage computes for ever. The others wait for it, or for one that does, and whichever gives up first names it."""
    runs = Runs(runs.folder, GOLDEN / "gpt2" / "tokens.bin")
    for name, words, launched in (("endless", (), 0), ("endless-tcp", ("--communicator=tcp",), 3)):
        record = runs.at(f"{name}.txt")
        said, status, seconds = stopped(runs, programs["endless"], "--flight-record", record, *words, launched=launched, name=f"{name}.jsonl", stops=False)
        expect(status == 1 and re.search(r"error: rank [012], '\S+ (?:send|receive) stage [012] microbatch [012]': timed out after 8 s", said),
               f"{name}: got status {status}: {said}")
        expect(seconds < BOUND, f"took {seconds} s")
        action = rf"launch '{ENDLESS}' of stream 'compute', under way for \d+\.\d s"
        expect(re.search(rf"note: rank 2 \(pipeline2\) waits for no other rank: {action}\n" if launched else
                         rf"rank 2 \(pipeline2(?:; latest action|\) waits for no other rank): {action}", said), said)
        text = recorded(runs.at(f"{name}.txt.rank-2") if launched else record, [2])
        expect(re.search(rf"rank 2 +compute +under way +launch '{ENDLESS}'\n", text + "\n"), text[-2000:])


def compile_endless(folder):
    """A pipeline whose last stage, from its sixth step on, has a launch that does not end."""
    folder.mkdir(parents=True)
    compiler = folder / "compiler"
    launch = (f'static int runs; if (++runs > 5) launch(c, kCompute, "{ENDLESS}", reads(), writes(), '
              '[] { for (volatile bool ever = true; ever;) usleep(1000); });')
    compiler.write_text("#!/bin/sh\nfor word; do\n  case $word in\n  *pipeline2*.cpp)\n"
                        f"    sed -i -e '1i #include <unistd.h>' -e 's/^void run(Context &c) {{$/&{launch.replace('&', chr(92) + '&')}/' \"$word\" ;;\n"
                        f"  esac\ndone\nexec {os.environ.get('CXX', 'clang++-22')} \"$@\"\n")
    compiler.chmod(0o755)
    before = dict(os.environ)
    os.environ.update(CXX=str(compiler), CCACHE_DISABLE="1")  # which would not look at what the compiler inserts
    try:
        return compile_model("gpt2", folder / "program", *STAGES, mesh="pipeline=3").resolve()
    finally:
        os.environ.clear()
        os.environ.update(before)


def a_stopped_rank_is_restarted(runs, programs):
    program, record = programs["three"], runs.at("restarted.txt")
    runs.run(program, "--log", runs.at("whole.jsonl"), "--export", runs.at("whole.safetensors"), steps=2000)

    def run():
        shutil.rmtree(runs.at("root"), ignore_errors=True)
        record.unlink(missing_ok=True)
        return stopped(runs, program, "--save", runs.at("root"), "--save-every", 50, "--max-restarts", 1, "--flight-record", record,
                       "--export", runs.at("out.safetensors"), steps=2000, name="restarted.jsonl")

    said, status, _ = until_hit(run)
    expect(status == 0 and "restart 1 of 1" in said, f"got status {status}: {said}")
    waited_in(said)
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
    os.environ.update(unoptimized())
    programs = {"three": mlp(folder / "three", "fsdp=3").resolve(),
                "stages": compile_model("gpt2", folder / "stages", *STAGES, mesh="pipeline=3").resolve(), "endless": compile_endless(folder / "endless")}
    run_cases((a_stopped_rank_ends_the_job, a_stopped_rank_of_a_launcher_ends_the_others, so_over_tcp, a_stopped_stage_ends_the_others, an_endless_stage_is_named,
               a_stopped_rank_is_restarted, no_record_where_none_is_asked_for, records_have_their_places, senseless_timeouts_are_refused),
              Runs(folder / "runs", DATA), programs)


if __name__ == "__main__":
    main()
