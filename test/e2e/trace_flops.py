"""The flops that a trace names are those of the scheduled IR, and of the compiler's costs (`work` of the report)."""

import collections
import math
import re

LAUNCH = re.compile(r'fsdp\.launch "([^"]*)"')
SEGMENT = re.compile(r"fsdp\.segment @\S+ (\w+)")
EINSUM = re.compile(r'nn\.einsum "([^"]*)" [^:]*: \(([^)]*)\)')
OP = re.compile(r"^\s*(?:%\S.* = )?((?:nn|fsdp|arith|math)\.\w+)")
EQUAL = {"attention": "nn.attention", "attention_grad": "nn.attention_grad"}


def einsum_flops(notation, types):
    """Two for each combination of the names' values."""
    sizes = {}
    for names, shape in zip(notation.split("->")[0].split(","), re.findall(r"tensor<([^>]*)x\w+>", types)):
        sizes |= zip(names.split() if " " in names.strip() else names.strip(), map(int, shape.split("x")))
    return 2 * math.prod(sizes.values())


def products(module):
    """({launch: flops of its products}, flops of the training step's launches that are one product)"""
    found, alone = collections.defaultdict(int), 0
    kind = launch = first = None
    seen = set()
    for line in module.splitlines():
        if match := SEGMENT.search(line):
            kind = match[1]
        if match := LAUNCH.search(line):
            launch, first = match[1], None
            seen.discard(launch)
            continue
        if launch and first is None and (match := OP.match(line)) and match[1] != "arith.constant":
            first = match[1]
        if launch and (match := EINSUM.search(line)):
            flops = einsum_flops(match[1], match[2])
            # Evaluation has launches of training's names, which compute the same.
            found[launch] = flops if launch not in seen else found[launch] + flops
            seen.add(launch)
            alone += flops * (kind == "train" and first == "nn.einsum")
    return found, alone


def check(trace, module, report):
    """Ends the test unless each product and each attention of `trace` names the flops that the compiler counts."""
    expected, alone = products(module)
    work = collections.defaultdict(lambda: (0, 0))
    for launches in report["work"]:
        count, flops = work[launches["kind"]]
        work[launches["kind"]] = count + launches["count"], flops + launches["flops"]
    if work["nn.einsum"][1] != alone or not alone:
        trace.fail(f"got {work['nn.einsum'][1]} flops of 'nn.einsum' in the report, expected {alone} of the schedule")
    seen = set()
    for actions in trace.actions.values():
        for event in actions:
            flops, name, kind = event["args"]["flops"], event["name"], event["cat"]
            if kind == "gemm":
                want = expected.get(name)
            elif kind in EQUAL:
                count, total = work[EQUAL[kind]]
                want = total / max(count, 1)
            else:
                want = 0
            if flops != want:
                trace.fail(f"got {flops} flops of '{name}' ({kind}), expected {want}")
            seen |= {name if kind == "gemm" else kind} if flops else set()
    if missing := {*expected, *EQUAL} - seen:
        trace.fail(f"got no flops of {sorted(missing)}")
