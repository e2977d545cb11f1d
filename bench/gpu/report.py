"""What is printed, what failed, what was left out; and running commands within the time there is."""

import contextlib
import os
import pathlib
import signal
import subprocess
import threading
import time
import traceback


class OutOfTime(Exception):
    """There is no time left for what was about to start."""


class Budget:
    """Seconds that may still be used."""

    def __init__(self, seconds, whole=None):
        self.end = time.monotonic() + seconds
        if whole:
            self.end = min(self.end, whole.end)

    def left(self):
        return self.end - time.monotonic()


class Report:
    """Prints to the screen and to `out`, at once. A folder gets report.txt, and in details.txt all that commands said."""

    def __init__(self, out):
        out = pathlib.Path(out)
        self.folder = out if out.is_dir() else None
        self.file = open(out / "report.txt" if self.folder else out, "w", encoding="utf-8")
        self.more = open(out / "details.txt", "w", encoding="utf-8") if self.folder else None
        self.failures, self.missing, self.agreed = [], [], 0
        self.lock = threading.Lock()

    def __call__(self, text=""):
        with self.lock:
            print(text, flush=True)
            print(text, file=self.file, flush=True)

    def details(self, title, text):
        if self.more:
            with self.lock:
                print(f"==== {title}\n{text}\n", file=self.more, flush=True)

    def ok(self, text):
        self.agreed += 1
        self(f"ok      {text}")

    def fail(self, text):
        self.failures.append(text)
        self(f"FAILED  {text}")

    def left_out(self, what, reason):
        self.missing.append(f"{what}: {reason}")
        self(f"left out {what}: {reason}")

    @contextlib.contextmanager
    def phase(self, name):
        """Whatever goes wrong in a phase is noted, and the next one follows."""
        start = time.monotonic()
        try:
            yield
        except OutOfTime as error:
            self.left_out(f"the rest of '{name}'", str(error))
        except Exception as error:  # pylint: disable=broad-except
            self.details(name, traceback.format_exc())
            self.fail(f"{name}: {type(error).__name__}: {error}")
        self(f"-- {name}: {time.monotonic() - start:.0f} s\n")

    def finish(self):
        """Says what there was, and returns the exit status."""
        if not self.agreed:
            self.failures.append("nothing was found to agree with anything")
        for title, lines in (("left out", self.missing), ("failed", self.failures)):
            if lines:
                self(f"{len(lines)} {title}:")
                for text in lines:
                    self("  " + text.splitlines()[0])
        self(f"{self.agreed} agreed, {len(self.missing)} left out, {len(self.failures)} failed")
        return 1 if self.failures else 0


def run(command, most=600, budget=None, environment=None):
    """(exit status, all that was printed); 124 after `most` seconds, 127 where there is no such program. Raises OutOfTime
    when the budget has not a second left. What the command has started ends with it."""
    if budget:
        if budget.left() < 1:
            raise OutOfTime("no time is left")
        most = min(most, budget.left())
    try:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, universal_newlines=True, errors="replace",
                                   start_new_session=True, env={**os.environ, **(environment or {})})
    except OSError as error:
        return 127, str(error)
    try:
        text, _ = process.communicate(timeout=most)
        return process.returncode, text
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the session that was started above
        text, _ = process.communicate()
        return 124, f"{text}\nended after {most:.0f} s"


def said(output, lines=12):
    return "\n".join("    " + line for line in output.strip().splitlines()[-lines:])
