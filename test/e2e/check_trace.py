#!/usr/bin/env python3
"""check_trace.py SCRATCH: what --trace says of a CPU program is what the compiler planned.

gpt2 and llama, with evaluation, on several meshes and prefetches. The structure is what Perfetto needs (trace_events.py); steps and
evaluations are told apart; waits are named; each gather has an arrow to its first use; the bytes that are alive stay
between those that persist and the lower bound, and come near it. Flops of products and attention are those
that the compiler counts.
"""

import json
import os
import pathlib
import sys

import check_cuda
import trace_events
import trace_flops
import training

STEPS = 3
SHARE = 0.8


def main(scratch):
    os.environ.update(training.unoptimized())
    for number, (model, mesh, options) in enumerate((
            ("gpt2", "fsdp=2", ["--prefetch=0"]), ("gpt2", "fsdp=1", ["--precision=bf16"]),
            ("llama", "data=2,fsdp=2", ["--prefetch=2"]))):
        folder = pathlib.Path(scratch) / str(number)
        sizes, init, data = check_cuda.inputs(model)
        program = training.compile_model(model, folder, *sizes, *options, f"--report={folder / 'report.json'}", mesh=mesh)
        report = json.loads((folder / "report.json").read_text())
        _, weights = training.train(program, "plain", STEPS, init, data)
        _, traced = training.train(program, "traced", STEPS, init, data, "--trace", folder / "trace", "--val-data", data,
                                   "--eval-every", 2)
        training.same_bytes(traced, weights)
        names = [event["name"] for event in trace_events.Trace(folder / "trace").host[0]]
        batches = names.count("evaluate 2")
        if not batches:
            raise SystemExit(f"got no evaluation among {names}")
        expected = ["step 1", "step 2", *["evaluate 2"] * batches, "step 3", *["evaluate 3"] * batches]
        trace, most = trace_events.check(folder / "trace", report, expected)
        training.run([training.tool(model), *sizes, *options, f"--mesh={mesh}", "--emit=scheduled", "-o",
                      folder / "scheduled.mlir"])
        trace_flops.check(trace, (folder / "scheduled.mlir").read_text(), report)
        # A reduction that ends before the next launch begins does not count; all else is alive at the peak.
        if most < SHARE * report["lower_bound"]:
            raise SystemExit(f"got at most {most} bytes alive, expected most of {report['lower_bound']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
