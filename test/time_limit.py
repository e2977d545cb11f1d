#!/usr/bin/env python3
"""time_limit.py --seconds S [--name NAME] [--cost FILE] COMMAND...: runs a command that may not take longer than S seconds of its own.

A second in which more threads want to run than there are cores counts as the share of it that one thread gets: with
eight threads on two cores, a quarter. So the limit means the same on a busy machine, and what hangs still ends.
Past it, every process below the command is listed and killed, and the status is 124; else it is the command's.

Interrupted by SIGINT, SIGTERM or SIGHUP, or when the process that runs it ends, it kills the same processes: programs that a test has started do
not go on without it, whatever session they are in.

--cost FILE: appends a line "NAME CLOCK PROCESSOR" with the seconds by the clock and of processor time, of user and system, that the
command and the processes below it took. Processor time depends little on what else the machine does.

The command has a folder of its own for temporary files: tests that run at the same time must not meet in one (mpirun removes what it
takes for its last folder there), and what they leave is removed.
"""

import argparse
import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

TICK = 0.5  # seconds
STATUS_PAST_LIMIT = 124
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)


class Interrupted(Exception):
    """A signal that ends this process has come."""


def interrupt(number, _):
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(number)


def keep_hold_of_descendants():
    """Those whose parent ends become children of this process, which ends with its own parent."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as set by nohup and for background jobs
            signal.signal(number, interrupt)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def share_of_a_thread():
    """The part of a core that a thread gets now, at most 1."""
    with open("/proc/loadavg", encoding="ascii") as load:
        running = int(load.read().split()[3].split("/")[0]) - 1  # this process reads
    return min(1.0, len(os.sched_getaffinity(0)) / max(running, 1))


def kill_descendants(ancestor, itself):
    """Lists the process `ancestor`, where `itself` is true, and those below it, and kills them, the first made last, so that none sees its
    child's death."""
    import site  # Debian's packages, which python3 -S leaves out: most tests end without this

    site.main()
    import psutil

    try:
        process = psutil.Process(ancestor)
        processes = [*([process] if itself else []), *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        processes = []
    for process in processes:
        try:
            line = " ".join(process.cmdline())
            print(f"  running: {line[:400]}", file=sys.stderr)
        except psutil.Error:
            pass
    for process in processes:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.Error:
            pass


def reap_adopted(own):
    """Ended children of this process but its own, whose parents have ended: a test that waits until a process is gone would wait for ever."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if not ended or ended.si_pid == own:
            return
        os.waitpid(ended.si_pid, 0)


def run(command, seconds, name):
    child = subprocess.Popen(command)
    start = before = time.monotonic()
    charged = 0.0
    while True:
        try:
            return child.wait(timeout=TICK)
        except subprocess.TimeoutExpired:
            pass
        reap_adopted(child.pid)
        now = time.monotonic()
        charged += (now - before) * share_of_a_thread()
        before = now
        if charged > seconds:
            print(
                f"time limit: {name} ran for {charged:.0f} s of its own time, {now - start:.0f} s by the clock; "
                f"expected at most {seconds:.0f} s; it was ended",
                file=sys.stderr,
            )
            kill_descendants(child.pid, itself=True)
            child.wait()
            return STATUS_PAST_LIMIT


def note_cost(path, name, clock):
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{name} {clock:.2f} {taken.ru_utime + taken.ru_stime:.2f}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--name")
    parser.add_argument("--cost")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    with tempfile.TemporaryDirectory(prefix="test-", ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = folder
        start = time.monotonic()
        try:
            keep_hold_of_descendants()
            status = run(command, options.seconds, options.name or command[0])
        except Interrupted as signalled:
            print(f"{options.name or command[0]} interrupted by signal {signalled.args[0]}; what runs is ended", file=sys.stderr)
            kill_descendants(os.getpid(), itself=False)
            status = 128 + signalled.args[0]
        if options.cost:
            note_cost(options.cost, options.name or command[0], time.monotonic() - start)
    if status < 0:  # ended by a signal, as a shell would say it
        print(f"{options.name or command[0]} ended by signal {-status}", file=sys.stderr)
        status = 128 - status
    sys.stdout.flush()
    sys.exit(status)


if __name__ == "__main__":
    main()
