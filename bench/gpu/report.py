"""What is printed, what failed, what was left out, from one part to the next; and running commands within the time there is."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import traceback

KINDS = ("ok", "failed", "left out")


class OutOfTime(Exception):
    """The time of this part is over: the next part continues."""


class JobTooLong(Exception):
    """A job has used all the seconds that it may take: something hangs. The next job follows."""


class Budget:
    """Seconds that may still be used: of a part, or of a job within the `whole` of its part."""

    def __init__(self, seconds, whole=None):
        self.seconds, self.whole = seconds, whole
        self.end = time.monotonic() + seconds

    def left(self):
        own = self.end - time.monotonic()
        return min(own, self.whole.left()) if self.whole else own

    def over(self):
        """What to raise where nothing is left."""
        if self.whole and self.whole.left() > self.end - time.monotonic():
            return JobTooLong(f"it did not end within the {self.seconds:.0f} s that it may take")
        return OutOfTime("the time of this part was over")

    @contextlib.contextmanager
    def paused(self):
        """A job that waits in here for something else uses the time of its part, not its own: a Budget."""
        begin = time.monotonic()
        try:
            yield self.whole or self
        finally:
            if self.whole:
                self.end += time.monotonic() - begin


class State:
    """What is done, kept in a file: `done[job]` has the seconds that it took and lines (kind, text); `figures` by name."""

    def __init__(self, path, fresh):
        self.path, self.done, self.figures, self.parts = path, {}, {}, 0
        if path.exists() and not fresh:
            kept = json.loads(path.read_text())
            self.done, self.figures, self.parts = kept["done"], kept["figures"], kept["parts"]
        self.parts += 1
        self.save()

    def save(self):
        written = self.path.with_suffix(".new")
        written.write_text(json.dumps({"done": self.done, "figures": self.figures, "parts": self.parts}, indent=1))
        written.replace(self.path)

    def lines(self, kind):
        return [text for job in self.done.values() for of, text in job["lines"] if of == kind]

    def count(self, kind, rung=None):
        return sum(of == kind for name, job in self.done.items() if rung is None or name.startswith(f"{rung}. ")
                   for of, _ in job["lines"])

    def failed(self, job):
        """Whether a job found a failure, or nothing that it could look at."""
        kinds = [of for of, _ in self.done.get(job, {"lines": []})["lines"]]
        return "failed" in kinds or ("ok" not in kinds and "left out" in kinds)


def together(lines):
    """Lines "what: reason" with those of one reason in one line, so that the list stays short."""
    reasons = {}
    for text in lines:
        what, _, reason = text.partition(": ")
        reasons.setdefault(reason, []).append(what)
    return [f"{', '.join(all_of)}: {reason}" if len(all_of) < 4 else f"{all_of[0]}, {all_of[1]} and {len(all_of) - 2} more: {reason}"
            for reason, all_of in reasons.items()]


class Report:
    """Prints to the screen and to `out`, at once. A folder gets report.txt, and in details.txt all that commands said."""

    def __init__(self, out, state):
        out = pathlib.Path(out)
        self.folder = out if out.is_dir() else None
        self.file = open(out / "report.txt" if self.folder else out, "w", encoding="utf-8")
        self.more = open(out / "details.txt", "w", encoding="utf-8") if self.folder else None
        self.state, self.noted = state, []
        self.lock = threading.Lock()

    def __call__(self, text=""):
        with self.lock:
            print(text, flush=True)
            print(text, file=self.file, flush=True)

    def details(self, title, text):
        if self.more:
            with self.lock:
                print(f"==== {title}\n{text}\n", file=self.more, flush=True)

    def note(self, kind, text):
        with self.lock:
            self.noted.append((kind, text))

    def ok(self, text):
        self.note("ok", text)
        self(f"ok      {text}")

    def fail(self, what, got=None, expected=None, said=""):
        """`what` is wrong: what was got, what was expected, and what the program said."""
        text = what if got is None else f"{what}: got {got}, expected {expected}"
        self.note("failed", text)
        self(f"FAILED  {text}" + (f"\n{said}" if said else ""))

    def left_out(self, what, reason):
        self.note("left out", f"{what}: {reason}")
        self(f"left out {what}: {reason}")

    def figure(self, name, value, text):
        """A number that later rungs compare with, and the summary shows."""
        self.state.figures[name] = {"value": value, "text": text}

    @contextlib.contextmanager
    def job(self, name):
        """Whatever goes wrong in a job is noted, and the next one follows; so is that it says nothing. One that the part has no time for is not done,
        unless it has found a failure: the rest of it is left out then."""
        start, self.noted = time.monotonic(), []
        try:
            yield
            if not self.noted:
                self.fail(f"{name}: what it found", "nothing", "something that agrees, or a reason")
        except OutOfTime as error:
            if all(kind != "failed" for kind, _ in self.noted):
                raise
            self.left_out(f"the rest of {name}", str(error))
        except JobTooLong as error:
            self.fail(f"{name}: {error}")
        except Exception as error:  # pylint: disable=broad-except
            self.details(name, traceback.format_exc())
            self.fail(f"{name}: the check itself", f"{type(error).__name__}: {error}", "no exception")
        self.state.done[name] = {"seconds": time.monotonic() - start, "lines": self.noted}
        self.state.save()

    def finish(self, rungs, unfinished, next_part):
        """Says on one page what there was, and returns the exit status. `unfinished`: names of jobs."""
        state = self.state
        self(f"\n{'rung':62} {'agree':>6} {'failed':>6} {'left out':>8} {'to do':>6} {'s':>6}")
        for rung in rungs:
            seconds = sum(job["seconds"] for name, job in state.done.items() if name.startswith(f"{rung.number}. "))
            waiting = sum(name.startswith(f"{rung.number}. ") for name in unfinished)
            self(f"{rung.number}. {rung.title[:58]:59} " + "".join(
                f"{state.count(kind, rung.number):{width}}" for kind, width in zip(KINDS, (7, 7, 9)))
                 + f"{waiting:7}{seconds:7.0f}")
        for figure in state.figures.values():
            if figure["text"]:
                self(f"figure: {figure['text']}")
        missing, failures = state.lines("left out"), state.lines("failed")
        agreed = state.count("ok")
        if not next_part:
            missing = missing + [f"{name}: no time was left" for name in unfinished]
        if not agreed and not (unfinished and next_part):
            failures = failures + ["nothing was found to agree with anything"]
        for title, lines in (("left out", together(missing)), ("failed", failures)):
            if lines:
                self(f"{len(missing) if title == 'left out' else len(lines)} {title}:")
                for text in lines:
                    self("  " + text.splitlines()[0][:240])
        self(f"{agreed} agreed, {len(missing)} left out, {len(failures)} failed")
        if unfinished and next_part:
            self(f"{len(unfinished)} jobs are to be continued: the part's time is over, first '{unfinished[0]}'; run --part={next_part}")
        return 1 if failures or (unfinished and not next_part) else 0


def run(command, most=600, budget=None, environment=None, running=None):
    """(exit status, all that was printed); 124 after `most` seconds, 127 where there is no such program. Raises what
    Budget.over says when the budget ends first. What the command has started ends with it. `running`: a set that has the process meanwhile."""
    limit = most
    if budget:
        if budget.left() < 1:
            raise budget.over()
        limit = min(most, budget.left())
    try:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, universal_newlines=True, errors="replace",
                                   start_new_session=True, env={**os.environ, **(environment or {})})
    except OSError as error:
        return 127, str(error)
    running = set() if running is None else running
    running.add(process)
    try:
        text, _ = process.communicate(timeout=limit)
        return process.returncode, text
    except subprocess.TimeoutExpired:
        end(process)
        text, _ = process.communicate()
        if limit < most:
            raise budget.over() from None
        return 124, f"{text}\nended after {limit:.0f} s"
    finally:
        running.discard(process)


def end(process):
    """Ends a process and what it has started: the session that `run` began for it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def said(output, lines=12):
    return "\n".join("    " + line for line in output.strip().splitlines()[-lines:])


def cause(output):
    """The line that says why a program failed: the last with an error in it, else the last."""
    errors = [line for line in output.splitlines() if "error" in line.lower()]
    return errors[-1].strip()[:200] if errors else last(output)


def last(output):
    """The last line that was said, for a line of the report."""
    lines = output.strip().splitlines()
    return lines[-1][-160:] if lines else "nothing said"
