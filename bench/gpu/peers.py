"""Rung 9: what PyTorch reaches on the same GPU."""

import os
import pathlib
import sys

from gpu.bench import parse
from gpu.ladder import Job
from gpu.report import last, run, said

SCRIPT = pathlib.Path(__file__).resolve().parent / "torch_peer.py"
NO_TORCH = 3


def compare(machine, which, budget):
    """Times beside ours of rungs 3 and 4, as far as those ran. No figure is a failure; a script that fails is one."""
    report = machine.report
    machine.build.quiet(budget)
    python = os.environ.get("GPU_CHECK_PYTHON", sys.executable)
    status, text = run([python, "-B", SCRIPT, which, *(["cpu", "eager"] if machine.emulator else [])], 240, budget)
    report.details(f"torch_peer.py {which}", text)
    if status == NO_TORCH:
        report.left_out(f"PyTorch's {which}", last(text))
        return
    rows, other = parse(text)
    if status or not rows:
        report.fail(f"PyTorch's {which}: torch_peer.py", f"status {status} and {len(rows)} figures", "status 0 and some", said(other, 20))
        return
    ours = {"step gpt2-124m": "gpt2-124m-bf16", "step llama-1b": "llama-1b-bf16"}
    for row in rows:
        figure = machine.report.state.figures.get(ours.get(row["name"], row["name"]))
        text = f"PyTorch's {row['name']}: {row['ms']:.3f} ms"
        text += f", ours {figure['value']:.3f} ms ({figure['value'] / row['ms']:.2f} of it)" if figure else "; ours was not measured"
        report.ok(text)
        report.figure(f"torch {row['name']}", row["ms"], text)


def peer_jobs(machine):
    return [Job(f"PyTorch's {what}", lambda budget, which=which: compare(machine, which, budget), (), (), 280)
            for which, what in (("sdpa", "scaled_dot_product_attention"), ("gpt2", "compiled step of 124M"), ("llama", "compiled step of Llama 1B"))]
