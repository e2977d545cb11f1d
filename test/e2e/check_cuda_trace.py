#!/usr/bin/env python3
"""check_cuda_trace.py SCRATCH: what --trace says of a CUDA program, emulated, beside the CPU program's.

gpt2 on two ranks, three steps. For each rank, stream and kind of work, both targets name as many launches, bytes
and flops, where a product with a kernel in its wake counts as one launch, whose bytes are the CPU's own
business, as do the copies of one output; each action lies in its step and after the one before it on its stream, whatever order
streams run in; waits are named, gathers have arrows to their uses, bytes are counted and evaluations marked as on the CPU
(trace_events.py); numbers are those of a run that is not traced; ranges of NVTX have the names of the trace; bench/trace-summary sums it.
"""

import collections
import json
import os
import pathlib
import sys

import check_cuda
import emulated
import trace_events
import training

STEPS, RANKS = 3, 2
SLACK = 2.0  # microseconds: times are sums of two clocks, one of them in float


def read(path):
    """(steps by rank, actions by rank and stream, both in the order of the file)"""
    events = json.loads(path.read_text())["traceEvents"]
    streams = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    steps, actions = collections.defaultdict(list), collections.defaultdict(list)
    for event in events:
        if event["ph"] != "X" or event["cat"] == "enqueue":
            continue
        if event["cat"] in ("step", "evaluate"):
            steps[event["pid"]].append(event)
        else:
            actions[event["pid"], streams[event["pid"], event["tid"]]].append(event)
    return steps, actions


def begun_by_products(actions):
    """Names of the products that a kernel follows under the same name."""
    return {first["name"] for events in actions.values() for first, second in zip(events, events[1:])
            if (first["cat"], second["cat"]) == ("gemm", "fused") and first["name"] == second["name"]}


def sums(actions, begun):
    """{(rank, stream, kind): (calls, bytes, flops)}; waits, which a stream may pass over, apart. Of the names `begun`
    products alone count, without their bytes."""
    found = collections.defaultdict(lambda: [0, 0, 0.0])
    for (rank, stream), events in actions.items():
        for before, event in zip([None, *events], events):
            if event["cat"] == "wait" or (event["name"] in begun and event["cat"] == "fused"):
                continue
            row = found[rank, stream, event["cat"]]
            # A sum and its weight are two copies of one launch.
            row[0] += not (before and before["name"] == event["name"] and before["cat"] == event["cat"] == "output")
            row[1] += event["args"]["bytes"] if event["name"] not in begun else 0
            row[2] += event["args"]["flops"]
    return {key: tuple(row) for key, row in found.items()}


def check(path, cpu_actions, expected_steps):
    steps, actions = read(path)
    begun = begun_by_products(actions)
    expected = sums(cpu_actions, begun)
    for rank in range(RANKS):
        if [s["name"] for s in steps[rank]] != expected_steps:
            raise SystemExit(f"{path}: rank {rank} has {[s['name'] for s in steps[rank]]}")
    got = sums(actions, begun)
    for key in sorted(expected.keys() | got.keys()):
        if got.get(key) != expected.get(key):
            raise SystemExit(f"{path}: {key}: got (calls, bytes, flops) {got.get(key)}, expected {expected.get(key)}")
    waits = worked = 0
    for (rank, stream), events in actions.items():
        last = 0.0
        for event in events:
            begin, end = event["ts"], event["ts"] + event["dur"]
            if begin < last - SLACK or event["dur"] < 0:
                raise SystemExit(f"{path}: rank {rank}, {stream}: {event} begins before {last}")
            if not any(s["ts"] - SLACK <= begin and end <= s["ts"] + s["dur"] + SLACK for s in steps[rank]):
                raise SystemExit(f"{path}: rank {rank}, {stream}: {event} is in no step")
            if event["tdur"] != (0 if event["cat"] == "wait" else event["dur"]):
                raise SystemExit(f"{path}: {event} says another time of work than its own")
            last = end
            waits += event["cat"] == "wait"
            worked += event["tdur"]
    if not waits or not worked:
        raise SystemExit(f"{path}: got {waits} waits and {worked} us of work, expected some of both")


def check_variants(path):
    """The names of launches say which of a kernel's variants ran: with this model's widths, vectors."""
    events = [event for events in read(path)[1].values() for event in events]
    for kind in ("layer_norm", "layer_norm_grad", "embedding", "optimizer_step"):
        found = {event["name"].rpartition(" (")[2] for event in events if event["cat"] == kind}
        if found != {"vectors)"}:
            raise SystemExit(f"{path}: launches of '{kind}' are named (..., got {sorted(found)}, expected (vectors)")
    plain = [event["name"] for event in events if event["cat"] in ("gemm", "fused", "attention") and "(" in event["name"]]
    if plain:
        raise SystemExit(f"{path}: got '{plain[0]}', expected no variant of a kernel that has none")


def check_ranges(path, trace, names):
    """What NVTX got: for each rank a range for each run of a plan, in it those of its segments, and in these its actions, by the names of the trace."""
    open_ranges, runs, segments, inside = collections.defaultdict(list), collections.defaultdict(list), set(), set()
    for line in path.read_text().splitlines():
        rank, _, what = line.partition(" ")
        ranges = open_ranges[rank]
        if what == "pop":
            ranges.pop()
            continue
        ranges.append(what.removeprefix("push "))
        if len(ranges) > 3:
            raise SystemExit(f"{path}: got {ranges}, expected a run, a segment and an action at most")
        if len(ranges) == 1:
            runs[rank].append(ranges[0])
        elif len(ranges) == 3:
            segments.add(ranges[1])
            inside.add(ranges[2])
    if any(open_ranges.values()) or list(runs.values()) != RANKS * [names]:
        raise SystemExit(f"{path}: got the runs {dict(runs)} and {dict(open_ranges)} open at the end, expected {names} of {RANKS} ranks and none")
    if segments != {"train", "evaluate"}:
        raise SystemExit(f"{path}: got the segments {segments}")
    actions = {event["name"].partition(" (")[0] for events in read(trace)[1].values() for event in events if event["cat"] != "wait"}
    if not actions or inside - {"record", "wait"} != actions:
        raise SystemExit(f"{path}: got ranges of actions that differ from the trace: {sorted(actions ^ inside)}")


def main(scratch):
    folder = pathlib.Path(scratch)
    options, init, data = check_cuda.inputs("gpt2")
    os.environ.update(training.unoptimized())
    cpu = training.compile_model("gpt2", folder, *options, f"--report={folder / 'report.json'}", ranks=RANKS)
    report = json.loads((folder / "report.json").read_text())
    evaluate = ["--val-data", data, "--eval-every", 2]
    training.train(cpu, "cpu", STEPS, init, data, *evaluate, "--trace", folder / "cpu.trace")
    cpu_steps, cpu_actions = read(folder / "cpu.trace")
    names = [event["name"] for event in cpu_steps[0]]
    if [name for name in names if name.startswith("step")] != [f"step {n}" for n in range(1, STEPS + 1)] \
            or {name for name in names if not name.startswith("step")} != {"evaluate 2", f"evaluate {STEPS}"}:
        raise SystemExit(f"the CPU's trace has the steps {names}")
    for kind in ("gemm", "attention", "attention_grad"):
        if not any(key[2] == kind and row[2] > 0 for key, row in sums(cpu_actions, ()).items()):
            raise SystemExit(f"the CPU's trace has no flops of '{kind}'")
    program = emulated.compile_model("gpt2", folder, *options, ranks=RANKS)
    log, weights = emulated.train(program, "plain", STEPS, init, data, *evaluate, ranks=RANKS)
    for mode in ("guard", "deferred,seed=3"):
        path = folder / f"{mode}.trace"
        traced, traced_weights = emulated.train(program, "traced", STEPS, init, data, *evaluate, "--trace", path,
                                                mode=mode, ranks=RANKS)
        training.compare_log(traced, log, "--loss=0", "--grad_norm=0")
        training.same_bytes(traced_weights, weights)
        check(path, cpu_actions, names)
        check_variants(path)
        trace_events.check(path, report, names)
    os.environ["NVTX_INJECTION64_PATH"] = str(folder / "ranges")
    emulated.train(program, "ranges", STEPS, init, data, *evaluate, "--trace", path, ranks=RANKS)
    check_ranges(folder / "ranges", path, names)
    summary = training.run([sys.executable, "-B", training.HERE.parent.parent / "bench" / "trace-summary", path]).stdout
    print(summary)


if __name__ == "__main__":
    main(*sys.argv[1:])
