#!/usr/bin/env python3
"""check_system_faults.py SCRATCH LIBRARY: disks that do not answer, ranks that do not end, files that are cut, threads that do not start.

Whatever the system does, a run ends: with its cause first, then what could not be done, and an exit status. LIBRARY is test/faults.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import faulty
from checkpoints import Runs, Wrong, expect, folders, lines_of, mlp, run_cases
from ports import free_port
from training import GOLDEN, unoptimized

DATA = GOLDEN / "mlp" / "data.safetensors"
BOUND = 100  # seconds within which a run ends that something keeps waiting, on a machine that is busy
FOREVER = 10**8  # steps


def ended(runs, program, library, *words, faults=(), status=1, says=(), **named):
    """What a run says that must end by itself."""
    run = subprocess.Popen(runs.command(program, *words, **named), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=runs.folder,
                           env=faulty.environment(library, *faults))
    try:
        said = run.communicate(timeout=BOUND)[0]
    except subprocess.TimeoutExpired:
        run.kill()
        raise Wrong(f"{faults}: still runs after {BOUND} s") from None
    expect(run.returncode == status, f"{faults}: got status {run.returncode}, expected {status}: {said}")
    for text in [says] if isinstance(says, str) else says:
        expect(text in said, f"{faults}: lacking '{text}' in: {said}")
    return said


def a_flight_record_that_hangs_is_given_up(runs, programs, library):
    """The cause is printed before anything is written."""
    for call in ("open", "fsync"):
        said = ended(
            runs, programs["two"], library, "--log", runs.at("hangs.jsonl"), faults=("1 pthread_create 2 kill", f"* {call} 1+ hang flight-record"), steps=FOREVER,
            says=("error: rank 1: was killed by signal 9 (Killed)", "warning: the last actions of each rank are lost: '", "flight-record.txt' was not written within 5 s"))
        expect(said.index("error: rank 1") < said.index("warning: the last actions"), said)
        expect(not [name for name in folders(runs.folder) if name.endswith("flight-record.txt")], f"{folders(runs.folder)}")


def a_rank_that_does_not_end_is_left(runs, programs, library):
    """As in the uninterruptible sleep of a disk that does not answer: here, waitpid never returns it."""
    for words, more in (((), ""), (("--save", runs.at("left"), "--max-restarts=3"), "; not restarted, as a rank of this attempt may still write")):
        said = ended(runs, programs["two"], library, "--timeout=1", "--flight-record=none", *words, faults=("1 pthread_create 2 kill", "parent waitpid 1+ nothing"), steps=FOREVER,
                     says=("error: rank ", "note: rank 0 (process ", ") has not ended 5 s after it was killed: it waits in the system, as for a disk that does not answer",
                           more))
        # Rank 1 reports that it was killed, or rank 0, on a loaded machine, that it waits for rank 1.
        expect("error: rank 1: " in said or re.search("error: rank 0: timed out .* waiting for rank 1;", said), said)
        expect(": restart " not in said and said.count("error: ") == 1, said)


def a_disk_that_hangs_at_a_restart_is_named(runs, programs, library):
    root = runs.at("silent")
    # The parent opens the folder to lock it: before the first attempt, when it is not there, and before the next one.
    for call in ("opendir 1+", "open 2+"):
        shutil.rmtree(root, ignore_errors=True)
        said = ended(runs, programs["two"], library, "--save", root, "--save-every", 20, "--timeout=4", "--max-restarts=3", "--flight-record=none",
                     faults=("1 fsync 3 kill", f"parent {call} hang silent", "2 opendir 1+ hang silent"), steps=FOREVER,
                     says=(": restart 1 of 3", f"error: '{root}' does not answer: its checkpoints were not listed within 3 s"))
        expect(said.index("was killed by signal 9") < said.index("does not answer"), said)


def a_save_that_hangs_ends_the_run(runs, programs, library):
    ended(runs, programs["two"], library, "--save", runs.at("stuck"), "--timeout=3", "--save-every", 5, faults=("0 fsync 1+ hang step-0000",), steps=FOREVER,
          says=("error: rank ", "timed out after 3 s"))


def repeat(path, to, times):
    """The samples of a safetensors file so often."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + size]), b""
    for tensor in header.values():
        begin, end = tensor["data_offsets"]
        tensor["shape"][0] *= times
        tensor["data_offsets"] = [len(data), len(data) + times * (end - begin)]
        data += content[8 + size + begin : 8 + size + end] * times
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    to.write_bytes(len(text).to_bytes(8, "little") + text + data)


def a_data_file_that_is_cut_is_named(runs, programs, library):
    """Also where the pages that are left hold what is read next: what was there reads as zero."""
    for name, size, times in (("one", 4096, 40), ("two", 4096, 40), ("two", 100, 1)):
        data, log = runs.at("cut.safetensors"), runs.at("cut.jsonl")
        repeat(DATA, data, times)
        whole = data.stat().st_size
        log.unlink(missing_ok=True)
        run = subprocess.Popen([*map(str, (programs[name], "--data", data, "--steps", FOREVER, "--log", log))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while lines_of(log) < 20:
            expect(run.poll() is None, "it has ended")
            time.sleep(0.01)
        os.truncate(data, size)
        try:
            said = run.communicate(timeout=BOUND)[0]
        except subprocess.TimeoutExpired:
            run.kill()
            raise Wrong(f"{name}: trains on with a file that was cut to {size} bytes") from None
        expect(run.returncode == 1 and said.count("error: ") == 1 and f"error: rank " in said and
               f"'{data}': got {size} bytes, expected {whole}: it was truncated while it was read; do not change the files of a run before it ends" in said, f"{run.returncode}: {said}")


def a_log_that_cannot_be_renamed_stays(runs, programs, library):
    log = runs.at("stays.jsonl")
    log.write_text("of an older run\n")
    for name, program in programs.items():
        said = ended(runs, program, library, "--log", log, faults=("* renameat2 1+ EACCES stays",), says=f"cannot rename '{log}' to '{log}.1': Permission denied")
        expect(said.count("error: ") == 1 and log.read_text() == "of an older run\n", said)


def a_log_that_is_lost_is_no_cause_of_a_restart(runs, programs, library):
    """All is trained: a restart would find nothing to do, and end with status 0."""
    for words in ((), ("--max-restarts=2",)):
        root, log = runs.at("lost-root"), runs.at("lost.jsonl")
        shutil.rmtree(root, ignore_errors=True)
        log.unlink(missing_ok=True)
        said = ended(runs, programs["two"], library, "--save", root, "--log", log, *words, faults=("0 write 4 ENOSPC lost.jsonl",),
                     says=f"error: cannot write '{log}': No space left on device; training is done, but the log lacks the steps from ")
        expect(": restart " not in said and "given up" not in said and said.count("error: ") == 1 and "done: " in said, said)


def threads_that_cannot_start_are_said(runs, programs, library):
    for process, number, what in (("0", 1, "the watchdog"), ("0", 2, "stream '"), ("1", 1, "the watchdog")):
        said = ended(runs, programs["two"], library, "--save", runs.at("threads"), faults=(f"{process} pthread_create {number} EAGAIN",),
                     says=(f"error: rank {process}: cannot start the thread of {what}", ": Resource temporarily unavailable: ",
                           "'ulimit -u', or pids.max of its cgroup, must leave room for more threads"))
        expect(said.count("error: ") == 1 and "terminate" not in said, said)
    ended(runs, programs["one"], library, faults=("parent pthread_create 1 EAGAIN",), says="error: rank 0: cannot start the thread of the watchdog: ")
    ended(runs, programs["two"], library, "--save", runs.at("threads"), "--save-async", faults=("0 pthread_create 3 EAGAIN",), says=": cannot start the thread of ")


def ranks_without_rank_0_say_why_they_end(runs, programs, library):
    for variables, text in (({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}, "timed out after 1 s waiting for rank 0 at 127.0.0.1:"),
                            ({"LOCAL_WORLD_SIZE": "1"}, "connect to the address in MASTER_ADDR, which is not set"),
                            ({"WORLD_SIZE": "3"}, " has 2 ranks, but the launcher started 3")):
        said = runs.run(programs["two"], status=1, env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", "FSDP_TIMEOUT": "1", "MASTER_PORT": str(free_port()), **variables})
        expect("note: rank 1 ends: " in said and text in said, f"{variables}: {said}")
    plans = mlp(runs.at("plans"), "fsdp=2|fsdp=4")
    runs.run(plans, status=1, env={**os.environ, "RANK": "1", "WORLD_SIZE": "3"}, says="note: rank 1 ends: ")


def names_as_long_as_the_system_allows(runs, programs, library):
    """What a name of 255 bytes would not have room for is found before the first step, and does not happen."""
    folder = runs.at("long")
    program = programs["two"]
    for length in (240, 246, 250, 255):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        names = {option: letter * length for option, letter in (("--export", "e"), ("--trace", "t"), ("--log", "l"), ("--save", "s"))}
        runs.run(program, *(word for option, name in names.items() for word in (option, folder / name)))
        expect(folders(folder) == sorted(names.values()), f"{length}: {folders(folder)}")
        accented = folder / ("é" * (length // 2))
        runs.run(program, "--export", accented)
        expect(accented.exists(), f"{folders(folder)}")
        # A failure leaves its record, with a name that has room for all that is added to it.
        said = ended(runs, program, library, "--save", folder / names["--save"], faults=("1 pthread_create 2 kill",), says="note: wrote the last actions of each rank to '")
        expect("lost" not in said, said)
    for option in ("--export", "--trace", "--log", "--save"):
        said = runs.run(program, option, folder / ("x" * 256), status=1, says=("cannot ", "': File name too long"))
        expect("step 1" not in said and "rank" not in said, said)
    deep = folder
    while len(str(deep)) + 205 < 4080:
        deep = deep / ("d" * 200)
    deep.mkdir(parents=True)
    for option in ("--export", "--save"):
        path = deep / ("x" * (4090 - len(str(deep)) - 1))
        said = runs.run(program, option, path, status=1, says=("': its path has 4090 bytes, expected at most ",))
        expect("step 1" not in said and "rank" not in said, said)
    for length in (246, 255):
        path = folder / ("c" * length)
        for what, at in (("local", path), ("source", folder / ("f" * length)), ("source", folder / ("f" * length))):
            subprocess.run([shutil.which("mlp"), "--in=12", "--hidden=17", "--classes=10", "--batch=10", f"--emit={what}", "-o", str(at)], check=True)
            expect(at.exists() and not [name for name in folders(folder) if name.startswith(".")], f"{folders(folder)}")
    refused = subprocess.run([shutil.which("mlp"), "--in=12", "--hidden=17", "--classes=10", "--batch=10", "--emit=local", "-o", str(folder / ("c" * 256))],
                             capture_output=True, text=True)
    expect(refused.returncode == 1 and "File name too long" in refused.stderr, refused.stderr)


def main():
    folder, library = map(pathlib.Path, sys.argv[1:])
    os.environ.update(unoptimized())
    programs = {"one": mlp(folder / "one", "fsdp=1"), "two": mlp(folder / "two", "fsdp=2")}
    run_cases((a_flight_record_that_hangs_is_given_up, a_rank_that_does_not_end_is_left, a_disk_that_hangs_at_a_restart_is_named, a_save_that_hangs_ends_the_run,
               a_data_file_that_is_cut_is_named, a_log_that_cannot_be_renamed_stays, a_log_that_is_lost_is_no_cause_of_a_restart, threads_that_cannot_start_are_said, ranks_without_rank_0_say_why_they_end,
               names_as_long_as_the_system_allows), Runs(folder / "runs", DATA), programs, library)


if __name__ == "__main__":
    main()
