"""The calls that the host enqueues in a step, recorded from the program of the plan: the program is compiled for the emulator of CUDA
(test/emulator), which writes down calls and performs none of their work, and runs two steps of the model at its real size."""

import collections
import json
import os
import pathlib
import shlex
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
Kernel = collections.namedtuple("Kernel", "name blocks threads shared")
STEPS = 2  # the first one waits for no event of a step before
TOKENS_OF_32_BITS = 20240801, 7  # magic number and version of such a file
MEMORY = 2 ** 47  # bytes of a device, of which none is touched


class Action:
    """The calls of one launch of the plan: its kernels, its products, and how many calls of the host there are in all."""

    def __init__(self):
        self.kernels, self.products, self.calls = [], 0, 0


def compile_emulated(sources, build):
    """The program of the folder that --emit=source wrote. Its kernels are compiled as C++ without optimization: none runs."""
    words = {}
    for line in (build / "test" / "emulator" / "build.txt").read_text(encoding="utf-8").splitlines():
        name, text = line.split(": ", 1)
        words[name] = shlex.split(text)
    objects, place = [], sources / "recorded"
    place.mkdir(exist_ok=True)
    for source in [sources / "kernels.cu", sources / "train.cpp"]:
        part = "kernel" if source.suffix == ".cu" else "host"
        objects.append(place / f"{source.name}.o")
        subprocess.run([*words["compiler"], *words[f"{part}-headers"], *words["flags"], *words[f"{part}-flags"], f"-I{ROOT}", f"-I{sources}", "-c",
                        source, "-o", objects[-1]], check=True)
    program = place / "train"
    subprocess.run([*words["compiler"], *objects, *words["link"], "-o", program], check=True)
    return program


def run(program, tokens, ranks):
    """Paths of what the emulator wrote down, and of the trace, of two steps on `tokens` tokens."""
    data, calls, trace = (program.parent / name for name in ("data.bin", "calls.txt", "trace.json"))
    data.write_bytes(struct.pack("<3i", *TOKENS_OF_32_BITS, tokens).ljust(1024, b"\0") + bytes(4 * tokens))
    environment = {**os.environ, "FSDP_EMULATOR": f"calls={calls},memory={MEMORY}"}
    words = ["--communicator=loopback"] if ranks > 1 else []
    subprocess.run([program, "--data", data, "--steps", str(STEPS), "--trace", trace, *words], check=True, env=environment,
                   stdout=subprocess.DEVNULL)
    return calls, trace


def threads_of(path):
    """{thread: [[stream, what, detail...]]} of what the emulator wrote down."""
    found = collections.defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        thread, _, stream, *words = line.split("\t")
        found[int(thread)].append([int(stream), *words])
    return found


def read_calls(lines):
    """[(stream, Action)] of the last step of a thread, in order, and the calls between its launches: {what: count}.

    A trace records an event with a time before and after each launch; where a launch is none (a record of an event), the one before it
    is recorded again. A step begins with one more, for which the host waits."""
    steps = []
    opened = stream_of_opened = None
    last = None
    for stream, what, *details in lines:
        if what == "cudaEventSynchronize" and details[0] == last:
            steps.append(([], collections.Counter()))
            opened = None
        last = details[0] if what == "a time" else None
        if not steps:
            continue
        actions, between = steps[-1]
        if last:
            if opened is None or opened[0] == last:
                if opened is not None:
                    between["cudaEventRecord"] += opened[1].calls
                opened, stream_of_opened = (last, Action()), stream
            else:
                actions.append((stream_of_opened, opened[1]))
                opened = None
            continue
        if opened is None:
            between[what] += 1
            continue
        opened[1].calls += 1
        opened[1].products += what == "a product"
        if what == "a kernel":
            name, blocks, threads, shared = details
            opened[1].kernels.append(Kernel(name, int(blocks), int(threads), int(shared)))
    return steps[-1] if steps else ([], collections.Counter())


def last_step(trace, rank=0):
    """{stream: [event]} of the last step of a rank, in the order of each stream; the streams in the program's order."""
    events = [event for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"] if event["pid"] == rank]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    begin = max(event["ts"] for event in events if event["ph"] == "X" and event["cat"] == "step")
    streams = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["cat"] not in ("step", "enqueue") and event["ts"] >= begin:
            streams[event["tid"]].append(event)
    return {names[thread]: streams[thread] for thread in sorted(streams)}


def match(calls, trace):
    """({(stream, launch, kind): [Action]}, {what: calls between launches}) of the last step of rank 0. Ranks are threads, which have no
    numbers: the first whose streams have as many launches as the trace says. Raises ValueError where there is none."""
    named = {name: events for name, events in last_step(trace).items() if events}
    expected, got = [len(events) for events in named.values()], []
    for lines in threads_of(calls).values():
        actions, between = read_calls(lines)
        of_stream = collections.defaultdict(list)
        for stream, action in actions:
            of_stream[stream].append(action)
        got.append([len(of_stream[stream]) for stream in sorted(of_stream)])
        if got[-1] == expected:
            break
    else:
        raise ValueError(f"launches on the streams of each thread: got {got} in '{calls}', expected {expected} as in '{trace}'")
    found = collections.defaultdict(list)
    for stream, (name, events) in zip(sorted(of_stream), named.items()):
        for action, event in zip(of_stream[stream], events):
            found[name, event["name"].partition(" (")[0], event["cat"]].append(action)
    return found, between
