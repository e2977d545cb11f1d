"""Programs whose steps are measured beside predictions: compiled once, run in turns, between calibrations of the machine."""

import json
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = "FSDP_LINK_BANDWIDTH"


def add_options(parser):
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4, help="steps of a run that count, after two that do not")
    parser.add_argument("--link", type=float, help=f"bytes/s that a rank sends ({LINK}); default: no limit")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("-o", dest="output", type=pathlib.Path, help="also write the tables there")


def environment(options):
    return {**os.environ, **({LINK: str(options.link)} if options.link else {})}


def corpus(place):
    """A file of text for the programs: this project's documents."""
    path = place / "data.txt"
    path.write_bytes(b"".join(page.read_bytes() for page in sorted((ROOT / "docs").rglob("*.md"))))
    return path


def measure(program, data, steps, options):
    """Milliseconds of a step: by the clock, the median; and worked, as processor time, the mean of the ranks."""
    trace = data.with_name("trace.json")
    subprocess.run([program, "--data", data, "--steps", str(steps + 2), "--trace", trace, "--threads", "1"], check=True, capture_output=True,
                   env=environment(options))
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    marks = sorted((e for e in events if e.get("cat") == "step" and e["ph"] == "X" and e["pid"] == 0), key=lambda e: e["ts"])[2:]
    begin, end = marks[0]["ts"], marks[-1]["ts"] + marks[-1]["dur"]
    ranks = len({e["pid"] for e in events})
    worked = sum(e["tdur"] for e in events if e["ph"] == "X" and "tdur" in e and e["cat"] != "wait" and begin <= e["ts"] < end)
    return statistics.median(m["dur"] for m in marks) / 1e3, worked / ranks / len(marks) / 1e3


def calibrate(place, options):
    """A machine file of now, as data."""
    path = place / "calibration.json"
    subprocess.run([ROOT / "bench/calibrate", "--build", options.build, "-o", path], check=True, env=environment(options))
    return json.loads(path.read_text(encoding="utf-8"))


def rates(machine):
    """The figures of a machine file that time decides, in one order."""
    for product in machine["products"]:
        yield from (rate for _, rate in product["rates"])
    yield machine["loop_flops"]
    yield from (rate for _, rate in machine["memory_rates"])
    yield machine["links"][0]["bandwidth"]


def drift(before, after):
    """By how much two calibrations differ: the median over their figures of the relative difference."""
    return statistics.median(abs(a / b - 1) for a, b in zip(rates(after), rates(before)))


def median_machine(machines):
    """Each figure the median of those of `machines`."""
    def merge(values):
        if isinstance(values[0], dict):
            return {key: merge([value[key] for value in values]) for key in values[0]}
        if isinstance(values[0], list):
            return [merge(list(group)) for group in zip(*values)]
        return statistics.median(values) if isinstance(values[0], float) else values[0]
    return merge(machines)


def in_turns(programs, data, place, options):
    """Runs `programs` in each round, forth and back by turns, between two calibrations; a round in which these differ by more than 5 % is
    repeated, at most as often as there are rounds. Returns (clock, worked) of each program, the median machine, and lines
    that say how the rounds went."""
    found, machines, notes = [[] for _ in programs], [], []
    rounds = repeated = 0
    before = calibrate(place, options)
    while rounds < options.rounds:
        order = range(len(programs)) if rounds % 2 == 0 else reversed(range(len(programs)))
        now = {number: measure(programs[number], data, options.steps, options) for number in order}
        after = calibrate(place, options)
        changed = drift(before, after)
        kept = changed <= 0.05 or repeated == options.rounds
        notes.append(f"{100 * changed:.1f} %{'' if kept else ' (repeated)'}, load {os.getloadavg()[0]:.1f}")
        if kept:
            rounds += 1
            machines += [before, after]
            for number, seen in now.items():
                found[number].append(seen)
        else:
            repeated += 1
        before = after
    medians = [tuple(statistics.median(column) for column in zip(*seen)) for seen in found]
    return medians, median_machine(machines), f"Calibrations around each round differ by (median of all rates): {'; '.join(notes)}."


def write(text, options):
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
