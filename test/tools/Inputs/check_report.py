"""check_report.py REPORT.json TABLE: the numbers of a report fit together, and its table fits a terminal."""

import json
import pathlib
import re
import sys

KINDS = ("parameters", "optimizer", "accumulators", "step_state", "gathered", "gradients", "inputs", "logits",
         "recomputed", "saved", "messages", "temporaries")
WIDTH = 100


def check(report, table):
    """Yields what is wrong."""
    peak = report["peak"]
    if sum(report[f"peak_{kind}"] for kind in KINDS) + report["peak_alignment"] != report["lower_bound"]:
        yield "the kinds and the alignment do not add up to the lower bound"
    if peak["bytes"] != report["lower_bound"] or report["arena"] < report["lower_bound"]:
        yield f"the peak has {peak['bytes']} bytes, the lower bound {report['lower_bound']}, the arena {report['arena']}"
    for kind in KINDS:
        total = sum(buffer["bytes"] for buffer in peak["buffers"] if buffer["kind"] == kind)
        if total != report[f"peak_{kind}"]:
            yield f"buffers of kind '{kind}' have {total} bytes, expected {report[f'peak_{kind}']}"
    sizes = [buffer["bytes"] for buffer in peak["buffers"]]
    if sizes != sorted(sizes, reverse=True):
        yield "the buffers are not the largest first"
    for kind in ("parameters", "optimizer"):
        if report[f"peak_{kind}"] != report[kind]:
            yield f"{kind}: got {report[f'peak_{kind}']} at the peak, expected {report[kind]}"
    if not 0 <= report["peak_alignment"] < 64 * len(sizes) or report["peak_gathered"] > report["gathered"]:
        yield f"got an alignment of {report['peak_alignment']} bytes and {report['peak_gathered']} gathered"
    others = sum(report[f"peak_{kind}"] for kind in ("inputs", "logits", "recomputed", "saved", "temporaries"))
    if others > report["activations"]:
        yield f"got {others} bytes of activations at the peak, expected at most {report['activations']}"
    if report["peak_messages"] > report["messages"]:
        yield f"got {report['peak_messages']} bytes of messages at the peak, expected at most {report['messages']}"
    for role in report.get("roles", []):
        for key in ("parameters", "gradients", "optimizer", "gathered", "activations", "messages", "arena"):
            if role[key] > report[key]:
                yield f"{key}: role '{role['role']}' has {role[key]} bytes, expected at most {report[key]}"
    for key in ("parameters", "activations", "messages", "arena") if "roles" in report else ():
        if max(role[key] for role in report["roles"]) != report[key]:
            yield f"{key}: got {report[key]}, expected that of the role that has most"
    for line in table.splitlines():
        if len(line) > WIDTH:
            yield f"a line of the table has {len(line)} columns: {line}"
    if f"at the start of '{peak['launch']}'" not in table:
        yield f"the table does not name the launch '{peak['launch']}'"
    for kind in KINDS:
        shown = re.search(rf"^  {kind.replace('_', ' ')} +([\d,]+) .*%", table, re.M)
        if int(shown[1].replace(",", "")) if shown else 0:
            if int(shown[1].replace(",", "")) != report[f"peak_{kind}"]:
                yield f"the table shows {shown[1]} bytes of '{kind}', expected {report[f'peak_{kind}']}"
        elif report[f"peak_{kind}"]:
            yield f"the table shows no '{kind}', expected {report[f'peak_{kind}']}"


def main(report, table):
    report = json.loads(pathlib.Path(report).read_text())
    faults = list(check(report, pathlib.Path(table).read_text()))
    if faults:
        sys.exit("\n".join(faults))
    peak = report["peak"]
    print(f"{len(peak['buffers'])} buffers at '{peak['launch']}' of {peak['unit']}, {peak['direction']}, on {peak['stream']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
