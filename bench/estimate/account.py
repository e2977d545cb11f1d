"""The account of a step: what the compiler predicts of each launch, what the program enqueues for it, and what its instructions take."""

import collections
import json
import re
import subprocess

import sass

ROWS_OF_COLUMNS = "_total_kernel"  # the second kernel of a sum over rows (codegen/CudaColumnPrinter.cpp)
LOOPS = ("fused", "addf", "mulf", "truncf", "extf", "reduce", "repeat")  # of which the compiler writes kernels
# What a kernel computes for each flop that counts: seven products of tiles for five (runtime/kernels/cuda/AttentionGrad.cu).
EXECUTED = {"attention_grad": 7 / 5}


class Row:
    """Some launches of a step: sums; of each launch the kernel with most blocks, and the fewest and most blocks of these."""

    def __init__(self):
        self.launches = self.kernels = self.calls = 0
        self.flops = self.bytes = self.ms = self.table_ms = self.instructions_ms = 0.0
        self.least = self.most = None
        self.bounds = collections.Counter()

    def blocks(self):
        return "" if self.least is None else f"{self.least}" if self.least == self.most else f"{self.least}-{self.most}"

    def bound(self):
        return max(self.bounds, key=self.bounds.get) if self.bounds else ""


def read_timeline(path):
    """{(stream, name): event} of the predicted step, and its milliseconds."""
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"
             and event["pid"] == 0}
    found, step = {}, 0.0
    for event in events:
        if event["ph"] != "X" or event["pid"] != 0:
            continue
        if event["cat"] == "step":
            step = event["dur"] / 1e3
        else:
            found[names[event["tid"]], event["name"]] = event
    return found, step


def kind_of(event, actions):
    """The kind of work of a launch: the op's, but products with loops, in one kernel or two, and sums over rows, which are kinds of fused launches, apart."""
    kind = event["cat"]
    if event["args"]["flops"] and not kind.startswith("attention"):
        if kind == "einsum":
            return "product"
        is_one = actions and not any(action.kernels for action in actions)
        return "product with its epilogue" if is_one else "product, then a loop"
    if any(ROWS_OF_COLUMNS in kernel.name for action in actions for kernel in action.kernels):
        return "sum over rows"
    return "loop" if kind in LOOPS else kind or "constant"


def readable(names):
    """{mangled: demangled}, without parameters and without what nvcc and clang name differently."""
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    short = [re.sub(r"^\S*void ", "", line.replace("(anonymous namespace)::", "")).split("(")[0].strip() for line in done.stdout.splitlines()]
    return dict(zip(names, short))


def bodies_of(objects, table):
    """{readable name: the body that bounds the kernel} of all kernels of some objects."""
    found = {}
    for path in objects:
        kernels = sass.listing(path)
        for mangled, name in readable(list(kernels)).items():
            if body := sass.main_body(kernels[mangled], table):
                found[name] = body
    return found


def instructions(event, actions, names, bodies, table):
    """(bound, seconds) that the instructions of a launch's kernels take; (None, 0) where they are not known."""
    launched = [(kernel, bodies[names[kernel.name]]) for action in actions for kernel in action.kernels if names[kernel.name] in bodies]
    flops = sum(body.flops for _, body in launched) if event["cat"].startswith("attention") else 0
    most = max((kernel.blocks for kernel, _ in launched), default=0)
    total, bounds = 0.0, collections.Counter()
    for kernel, body in launched:
        if flops:
            runs = event["args"]["flops"] * EXECUTED.get(event["cat"], 1) / flops if body.flops else 0
        elif not body.loop:
            runs = kernel.blocks * -(-kernel.threads // sass.WARP)
        elif kernel.blocks == most:
            runs = event["args"]["bytes"] / (body.bytes * sass.WARP)
        else:
            continue  # the second stage of a sum
        bound, seconds = sass.seconds(body, table, runs)
        bounds[bound] += seconds
        total += seconds
    return max(bounds, key=bounds.get, default=None), total


def account(timeline, other, calls, bodies, table, key):
    """{(stream, key): Row}. `timeline`, `other`: of read_timeline; `calls`: of recording.match, `bodies`: of bodies_of, or None.
    `key(event, actions)`."""
    rows = collections.defaultdict(Row)
    by_launch = collections.defaultdict(list)
    for (stream, name, kind), actions in (calls or {}).items():
        if kind != "wait":
            by_launch[stream, name] += actions
    names = readable(sorted({kernel.name for actions in by_launch.values() for action in actions for kernel in action.kernels}))
    for (stream, name), event in timeline.items():
        actions, args = by_launch[stream, name], event["args"]
        row = rows[stream, key(event, actions)]
        row.launches += 1
        row.flops += args["flops"]
        row.bytes += args["bytes"]
        row.ms += event["dur"] / 1e3
        row.table_ms += other[stream, name]["dur"] / 1e3
        if args.get("algorithm"):  # a call of NCCL: what the ranks of the recorded program do instead is not counted
            row.calls += 1
            row.kernels += 1
            continue
        row.calls += sum(action.calls for action in actions)
        row.kernels += sum(len(action.kernels) + action.products for action in actions)
        kernels = [kernel for action in actions for kernel in action.kernels]
        if kernels:
            blocks = max(kernel.blocks for kernel in kernels)
            row.least, row.most = min(row.least or blocks, blocks), max(row.most or 0, blocks)
        if bodies:
            bound, seconds = instructions(event, actions, names, bodies, table)
            row.instructions_ms += seconds * 1e3
            if bound:
                row.bounds[bound] += seconds
    return rows
