"""What has to be true of every trace: what Perfetto and chrome://tracing need, and what the plan says."""

import collections
import json
import pathlib

SLACK = 0.002  # microseconds: times are printed with three digits
PERSISTENT = ("parameters", "optimizer", "accumulators", "step_state")


class Trace:
    """The events of a file by phase; `streams[pid, tid]`; `actions[pid, stream]`, `host[pid]`: complete events in order."""

    def __init__(self, path):
        self.path = path
        self.events = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["traceEvents"]
        self.streams = {(e["pid"], e["tid"]): e["args"]["name"] for e in self.events if e["name"] == "thread_name"}
        self.host, self.actions = collections.defaultdict(list), collections.defaultdict(list)
        for event in self.of("X"):
            stream = self.streams[event["pid"], event["tid"]]
            (self.host[event["pid"]] if stream == "host" else self.actions[event["pid"], stream]).append(event)
        self.ranks = len(self.host)

    def of(self, phase):
        return [event for event in self.events if event["ph"] == phase]

    def fail(self, message):
        raise SystemExit(f"{self.path}: {message}")

    def around(self, event):
        """The action in which a flow begins or ends."""
        stream = self.streams[event["pid"], event["tid"]]
        for action in self.actions[event["pid"], stream]:
            if action["ts"] <= event["ts"] <= action["ts"] + action["dur"] and action["cat"] != "wait":
                return stream, action
        return self.fail(f"{event} lies in no action of '{stream}'")


def check_waits(trace):
    """Waits are named after a launch of another stream, without the variant of its kernel. Returns how many there are."""
    waits = 0
    for (rank, stream), actions in trace.actions.items():
        for event in (event for event in actions if event["cat"] == "wait"):
            waits += 1
            other, _, launch = event["name"].removeprefix("wait for ").partition(": ")
            known = {action["name"].partition(" (")[0] for action in trace.actions[rank, other]}
            if other == stream or not event["name"].startswith("wait for ") or launch not in known:
                trace.fail(f"rank {rank} waits on '{stream}' as '{event['name']}', expected a launch of another stream")
    return waits


def check_arrows(trace):
    """Each gather has one arrow, from it to an action of another stream that begins when it has ended."""
    gathers = sum(event["cat"] == "all_gather" for actions in trace.actions.values() for event in actions)
    begins = {event["id"]: event for event in trace.of("s")}
    ends = {event["id"]: event for event in trace.of("f")}
    if not len(begins) == len(trace.of("s")) == len(trace.of("f")) == gathers or begins.keys() != ends.keys():
        trace.fail(f"got {len(trace.of('s'))} begins and {len(trace.of('f'))} ends of {len(begins)} arrows "
                   f"for {gathers} gathers")
    for number, begin in begins.items():
        end = ends[number]
        (source, gather), (target, use) = trace.around(begin), trace.around(end)
        if gather["cat"] != "all_gather" or source == target or begin["pid"] != end["pid"]:
            trace.fail(f"an arrow leads from {gather} of '{source}' to {use} of '{target}'")
        if begin["ts"] > end["ts"] or end.get("bp") != "e" or begin["cat"] != end["cat"] or begin["name"] != end["name"]:
            trace.fail(f"{begin} and {end} are no arrow")
    return gathers


def check_counter(trace, report):
    """The bytes that are alive grow and shrink between what is kept and the lower bound. Returns the most."""
    least = sum(report[f"peak_{kind}"] for kind in PERSISTENT)
    most = 0
    for rank in range(trace.ranks):
        counts = [event for event in trace.of("C") if event["pid"] == rank]
        if not counts or {event["name"] for event in counts} != {"arena bytes alive"}:
            trace.fail(f"rank {rank} has the counters {sorted({event['name'] for event in counts})}")
        if any(a["ts"] >= b["ts"] + SLACK for a, b in zip(counts, counts[1:])):
            trace.fail(f"the counter of rank {rank} goes back in time")
        values = [event["args"]["bytes"] for event in counts]
        if min(values) != least or values[-1] != least or max(values) > report["lower_bound"]:
            trace.fail(f"rank {rank} counts {min(values)} to {max(values)} and ends with {values[-1]} bytes, expected to "
                       f"start and end with {least} and at most {report['lower_bound']}")
        most = max(most, *values)
    return most


def check_spans(trace, expected):
    """The host's spans are `expected` on every rank, those of a thread lie one after the other, or one in another."""
    for rank, events in trace.host.items():
        names = [event["name"] for event in events if event["cat"] != "enqueue"]
        if names != expected:
            trace.fail(f"rank {rank} has {names}, expected {expected}")
        for event in events:
            if event["cat"] not in (event["name"], event["name"].split()[0]):
                trace.fail(f"{event} has another kind than its name")
    for (rank, stream), actions in trace.actions.items():
        last = -1e9
        for event in actions:
            if event["ts"] < last - SLACK or event["dur"] < 0:
                trace.fail(f"rank {rank}, {stream}: {event} begins before {last}")
            last = event["ts"] + event["dur"]


def check(path, report, expected):
    """Ends the test unless the trace at `path` fits the memory report; `expected` are its steps and evaluations."""
    trace = Trace(path)
    check_spans(trace, expected)
    waits, gathers, most = check_waits(trace), check_arrows(trace), check_counter(trace, report)
    if not waits or not gathers and trace.ranks > 1:  # one rank reads what it stores in place
        trace.fail(f"got {waits} waits and {gathers} gathers, expected some of both")
    print(f"{pathlib.Path(path).name}: {trace.ranks} rank(s), {len(trace.events)} events, {waits} waits, {gathers} gathers, "
          f"at most {most} of {report['lower_bound']} bytes alive")
    return trace, most
