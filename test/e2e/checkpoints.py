"""Runs of a training program that save and go on."""

import json
import pathlib
import subprocess
import sys

import training
import weights
from check_refusals import write

LIMIT = training.HANGS


class Wrong(Exception):
    """What a case found."""


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def until_hit(run):
    """What `run` returns; None is a run that ended before a signal reached it, as this process may wait long for a processor: another one is made."""
    for _ in range(50):
        result = run()
        if result is not None:
            return result
    raise Wrong("fifty runs ended before a signal reached them")


class Runs:
    """Runs of programs on one data set, in a folder of their own."""

    def __init__(self, folder, data, *options):
        self.folder, self.data, self.options = folder, data, options
        folder.mkdir(parents=True, exist_ok=True)

    def at(self, name):
        return self.folder / name

    def command(self, program, *words, steps=8):
        return [str(word) for word in (program, "--data", self.data, "--steps", steps, *self.options, *words)]

    def run(self, program, *words, status=0, says=(), steps=8, before=(), **options):
        """Standard output and error of a run, which must end with `status` and say every text of `says`."""
        command = [*map(str, before), *self.command(program, *words, steps=steps)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options)
        except subprocess.TimeoutExpired:
            raise Wrong(f"still runs after {LIMIT} s: {command}") from None
        said = done.stdout + done.stderr
        expect(done.returncode == status, f"{words}: got status {done.returncode}, expected {status}: {said}")
        for text in [says] if isinstance(says, str) else says:
            expect(text in said, f"{words}: lacking '{text}' in: {said}")
        return said


def lines_of(path):
    """How many whole lines a log has that is being written."""
    return path.read_text().count("\n") if path.exists() else 0


def logged(path):
    """What a log says of each step, without what depends on the clock."""
    steps = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    steps = [step for step in steps if "restart" not in step]
    for step in steps:
        for name in ("tokens_per_s", "step_ms", "peak_bytes", "seconds", "tflops", "mfu"):
            step.pop(name, None)
    return steps


def folders(root):
    return sorted(path.name for path in pathlib.Path(root).iterdir())


def run_cases(cases, *arguments):
    """Runs all cases; lists those that found something."""
    wrong = []
    for case in cases:
        try:
            case(*arguments)
            print(f"ok: {case.__name__}", flush=True)
        except Wrong as found:
            wrong.append(f"{case.__name__}: {found}")
    if wrong:
        sys.exit("\n".join(wrong))


def same(a, b, what):
    if pathlib.Path(a).read_bytes() != pathlib.Path(b).read_bytes():
        raise Wrong(f"{what}: {a} and {b} differ")


def same_checkpoint(a, b, what):
    """Every file bit for bit; the manifests but for the records of the runs, which have their command lines."""

    def manifest_of(folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        del manifest["runs"], manifest["checksum"]
        return manifest

    expect(folders(a) == folders(b), f"{what}: {folders(a)} in {a}, {folders(b)} in {b}")
    for file in folders(a):
        if file != "manifest.json":
            same(a / file, b / file, what)
    expect(manifest_of(a) == manifest_of(b), f"{what}: the manifests of {a} and {b} differ")


def close(a, b, allowed, what):
    """Losses of two logs from the first step of `b` on."""
    losses = {step["step"]: step["loss"] for step in a}
    for step in b:
        expect(abs(step["loss"] - losses[step["step"]]) <= allowed * max(1, abs(losses[step["step"]])),
               f"{what}: step {step['step']}: got loss {step['loss']}, expected {losses[step['step']]}")


def mlp(folder, mesh, *options, hidden=17, optimizer=("--optimizer=adamw",)):
    """An mlp on the data of test/golden/mlp, with a schedule in which a wrong step shows."""
    return training.compile_model("mlp", folder, "--in=12", f"--hidden={hidden}", "--classes=10", "--batch=10", "--lr=0.05",
                                  *optimizer, "--warmup=3", "--schedule=cosine", *options, mesh=mesh)


def twice(path, bad=None, without=()):
    """The data of test/golden/mlp two times over, without the samples `without`; sample 53 has the values `bad`."""
    data = {}
    for name, (dtype, shape, values) in weights.read(training.GOLDEN / "mlp" / "data.safetensors").items():
        size = len(values) // shape[0]
        rows = [values[i * size:(i + 1) * size] for i in range(shape[0])] * 2
        if bad and name == "x":
            rows[53] = (bad,) * size
        kept = [row for i, row in enumerate(rows) if i not in without]
        data[name] = (dtype, (len(kept), *shape[1:]), [value for row in kept for value in row])
    return write(path, data)
