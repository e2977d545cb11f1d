"""Rung 6: one program gives the same bits in two processes, and with launches that block."""

import hashlib

from gpu.cases import SAME_BITS, program_of
from gpu.ladder import Job

RUNS = (("-one", {}, "the first process"), ("-two", {}, "another process"),
        ("-blocking", {"CUDA_LAUNCH_BLOCKING": "1"}, "CUDA_LAUNCH_BLOCKING=1"))
STEPS = 3


def digest(path):
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            found.update(block)
    return found.hexdigest()[:16]


def check(machine, name, mesh, budget):
    """Losses and norms as the log prints them, and every bit of the weights after the last step."""
    report, found = machine.report, []
    for tag, environment, how in RUNS:
        weights = machine.folder / "logs" / f"{name}-{mesh}{tag}.safetensors"
        log = machine.train(name, mesh, min(STEPS, machine.most_steps), budget, tag, options=["--export", weights], most=120,
                            environment=environment)
        if not log:
            return
        numbers = [(line["loss"], line.get("grad_norm")) for line in log]
        found.append((how, numbers, digest(weights)))
        weights.unlink()
    _, numbers, bits = found[0]
    for how, others, other in found[1:]:
        what = f"{name} on {mesh} ranks, {how}"
        step = next((n for n, pair in enumerate(zip(numbers, others), 1) if pair[0] != pair[1]), None)
        if step:
            report.fail(f"{what}: loss and norm of step {step}", others[step - 1], numbers[step - 1])
        elif other != bits:
            report.fail(f"{what}: SHA-256 of the weights", other, bits)
        else:
            report.ok(f"{what}: the same {len(numbers)} losses and weights ({bits})")


def same_bits_jobs(machine, cases, after):
    jobs = []
    for name in SAME_BITS:
        for mesh in cases[name]["meshes"][:2] if name in cases else ():
            jobs.append(Job(f"bits of {name} on {mesh} ranks",
                            lambda budget, name=name, mesh=mesh: check(machine, name, mesh, budget), after, [program_of(name, mesh)]))
    return jobs
