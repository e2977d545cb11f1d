"""Tests of what a program does with the files of its command line: cases, each in a folder of its own (docs/files.md)."""

import os
import select
import subprocess
import sys
import threading

CASES = []


def case(function):
    CASES.append(function)
    return function


class Wrong(Exception):
    """What a case found."""


def expect(condition, what):
    if not condition:
        raise Wrong(what)


class Folder:
    """A case's folder, and runs of programs in it."""

    def __init__(self, path, limit):
        self.folder, self.limit = path, limit
        path.mkdir()

    def at(self, name):
        return self.folder / name

    def left(self):
        return sorted(os.listdir(self.folder))

    def run_command(self, command, status=0, says=(), **options):
        """The ended process. Its status has to be `status`, and its output has to have the text, or all texts, `says`."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        try:
            done = subprocess.run(command, timeout=self.limit, **options)
        except subprocess.TimeoutExpired:
            raise Wrong(f"still runs after {self.limit} s: {command}") from None
        said = ((done.stderr or b"") + (done.stdout or b"")).decode(errors="replace")
        expect(done.returncode == status, f"{command}: got status {done.returncode}, expected {status}: {said}")
        for word in [says] if isinstance(says, str) else says:
            expect(word in said, f"{command}: lacking '{word}' in: {said}")
        return done


def read_fifo(path, got):
    """A thread that reads a FIFO which has a reader from now on."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read():
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        waiting.poll()  # for a writer
        os.set_blocking(descriptor, True)
        with open(descriptor, "rb") as file:
            got.append(file.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return reader


def run_cases(scratch, start):
    """Runs all cases, each with start(a new folder in `scratch`); lists those that fail, and ends with their number."""
    failed = 0
    for function in CASES:
        try:
            function(start(scratch / function.__name__))
            print(f"shown: {function.__name__}", flush=True)
        except Wrong as wrong:
            failed += 1
            print(f"FAILED: {function.__name__}: {wrong}", flush=True)
    sys.exit(f"{failed} of {len(CASES)} cases failed" if failed else 0)
