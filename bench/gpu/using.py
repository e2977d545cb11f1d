"""What programs do besides training, on the GPU as on the CPU: evaluate, continue from a checkpoint, generate (rung 2)."""

import json
import pathlib
import shutil
import struct

from gpu.cases import GENERATED, USED, data_of, program_of
from gpu.checking import compare
from gpu.ladder import Job
from gpu.report import cause, run, said

TOLERANCE = 1e-4  # of scores, which are of the order of 1


def tensor_of(path):
    """Shape and numbers of the only F32 tensor of a safetensors file that has several numbers."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    name, tensor = next((name, one) for name, one in header.items() if name != "__metadata__" and one["dtype"] == "F32")
    begin, end = tensor["data_offsets"]
    return tensor["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])


class Use:
    """A program, with the CPU's trained weights of its case."""

    def __init__(self, machine, name, mesh, budget):
        self.machine, self.name, self.mesh, self.budget = machine, name, mesh, budget
        self.place, self.scratch = machine.folder / "cases" / name, machine.folder / "logs"
        self.what = f"{name} on {mesh} ranks"

    def run(self, word, *options):
        """Its output, or None after saying that it failed."""
        command = [self.machine.build.path(program_of(self.name, self.mesh)), word, "--init", self.place / "trained.safetensors", *options,
                   *(["--communicator=loopback"] if self.mesh != "1" else [])]
        status, text = run(command, 90, self.budget)
        self.machine.report.details(f"{word} of {self.what}", text)
        if status:
            self.machine.report.fail(f"{word} of {self.what}", f"status {status}, '{cause(text)}'", "status 0", said(text))
            return None
        return text

    def evaluate(self):
        log = self.scratch / f"{self.name}-{self.mesh}-eval.json"
        if self.run("eval", "--val-data", self.machine.folder / data_of(self.name), "--log", log) is None:
            return
        got, expected = (json.loads(path.read_text()) for path in (log, self.place / "eval.json"))
        text = f"evaluation of {self.what}: loss {got['val_loss']:.6g} of {got['samples']} samples"
        if got["samples"] == expected["samples"] and abs(got["val_loss"] - expected["val_loss"]) <= TOLERANCE * expected["val_loss"]:
            self.machine.report.ok(text)
        else:
            self.machine.report.fail(text, got, expected)

    def generate(self):
        scores = self.scratch / f"{self.name}-{self.mesh}-scores.safetensors"
        if self.run("generate", *GENERATED, "--scores", scores) is None:
            return
        (shape, got), (wanted, expected) = tensor_of(scores), tensor_of(self.place / "scores.safetensors")
        difference = max(abs(a - b) for a, b in zip(got, expected)) if shape == wanted else float("inf")
        text = f"generation of {self.what}: scores {shape} within {difference:.2g} of the CPU"
        if difference <= TOLERANCE:
            self.machine.report.ok(f"{text} (allowed {TOLERANCE:g})")
        else:
            self.machine.report.fail(text, f"{shape}, {difference:.3g}", f"{wanted}, {TOLERANCE:g}")

    def resume(self, case):
        """Steps from a checkpoint on have the losses of the run without a break."""
        steps = self.machine.steps(case)
        half, folder = max(steps // 2, 1), self.scratch / f"{self.name}-{self.mesh}-checkpoints"
        shutil.rmtree(folder, ignore_errors=True)

        def train(tag, last_step, first_step, *options):
            return self.machine.train(self.name, self.mesh, last_step, self.budget, tag, options=[*case["run"], *options],
                                      logged=last_step - first_step)
        whole = train("-whole", steps, 0)
        if whole and train("-half", half, 0, "--save", folder):
            rest = train("-rest", steps, half, "--resume", folder)
            if rest:
                compare(self.machine.report, f"{self.what}, from a checkpoint", "the run without a break", rest, whole[half:], 0.0)
        shutil.rmtree(folder, ignore_errors=True)


def use_jobs(machine, cases, after):
    jobs = []
    for name in USED:
        for mesh in cases[name]["meshes"] if name in cases else ():
            def perform(budget, name=name, mesh=mesh):
                use = Use(machine, name, mesh, budget)
                use.evaluate()
                if "--generate" in cases[name]["options"]:
                    use.generate()
                use.resume(cases[name])
            jobs.append(Job(f"uses of {name} on {mesh} ranks", perform, after, [program_of(name, mesh)]))
    return jobs
