"""Writes a folder with everything that `check` needs, where the compiler is built."""

import datetime
import json
import pathlib
import random
import re
import shutil
import struct
import sys
import tempfile

from gpu.cases import CASES, GENERATED, USED, axes_of, data_of, number
from gpu.report import run

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
MOST_BYTES = 60 << 20


def write_tensors(path, tensors):
    """safetensors of {name: (dtype, shape, bytes)}."""
    header, blob = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


def write_data(folder, small):
    """Data of every case: numbers that a model can learn something from, the same on every machine."""
    draw = random.Random(1)
    floats = lambda n: struct.pack(f"<{n}f", *(draw.gauss(0, 1) for _ in range(n)))
    labels = struct.pack("<240i", *(draw.randrange(10) for _ in range(240)))
    write_tensors(folder / "linear.data", {"x": ("F32", [240, 32], floats(240 * 32)), "y": ("F32", [240, 8], floats(240 * 8))})
    write_tensors(folder / "mlp.data", {"x": ("F32", [240, 32], floats(240 * 32)), "label": ("I32", [240], labels)})
    fifths = struct.pack("<240i", *(draw.randrange(5) for _ in range(240)))
    write_tensors(folder / "prints.data", {"x": ("F32", [240, 3, 7], floats(240 * 21)), "label": ("I32", [240], fifths)})
    shutil.copy(ROOT / "test/golden/biases/data.safetensors", folder / "biases.data")
    for name, vocabulary, count in (("tiny", 256, 20000), ("124m", 61, 2000) if small else ("124m", 50257, 300000)):
        # Each token is most often a function of the last: losses fall.
        tokens = [1]
        while len(tokens) < count:
            tokens.append((tokens[-1] * 31 + 7) % vocabulary if draw.random() < 0.8
                          else int(vocabulary * draw.random() ** 3))
        head = struct.pack("<256i", 20240520, 1, count, *[0] * 253)
        (folder / f"{name}.data").write_bytes(head + struct.pack(f"<{count}H", *tokens))


def git(*words):
    status, text = run(["git", "-C", ROOT, *words])
    return text.strip() if status == 0 else "unknown"


def write_uses(program, folder, place, name, options):
    """What the CPU program says of its weights: the loss of all samples, and a text. (status, output) of what failed, or of the last."""
    if name not in USED:
        return 0, ""
    weights = ["--init", place / "trained.safetensors"]
    status, text = run([program, "eval", *weights, "--val-data", folder / data_of(name), "--log", place / "eval.json"])
    if status == 0 and "--generate" in options:
        status, text = run([program, "generate", *weights, *GENERATED, "--scores", place / "scores.safetensors"])
    return status, text


def write_case(folder, name, tools, small):
    """(what the manifest says of the case, why it cannot be), one of them None."""
    case = CASES[name]
    options = case.small if small and case.small else case.options
    place = folder / "cases" / name
    place.mkdir(parents=True)
    if case.config:
        (place / "config.json").write_text(json.dumps(case.config))
        options = [f"--from={place}", *options]
    for mesh in case.meshes:
        status, text = run([tools / case.model, *options, f"--mesh={axes_of(mesh)}", "--target=cuda", "--emit=source",
                            f"--report={place / 'report.json'}", "-o", place / mesh])
        if status:
            return None, text.strip() or f"status {status}"
        shared = ("runtime", "base", "tokenizer", "version.txt")  # the same for every program
        if not (folder / "runtime").exists():
            for part in shared:
                (place / mesh / part).rename(folder / part)
        for part in shared:
            shutil.rmtree(place / mesh / part, ignore_errors=True)
            (place / mesh / part).unlink(missing_ok=True)
        if mesh == "1":
            arena = json.loads((place / "report.json").read_text())["arena"]
        (place / "report.json").unlink()
    found = {"model": case.model, "options": options, "meshes": case.meshes, "steps": case.steps, "tolerance": case.tolerance,
             "rung": case.rung, "run": case.run, "arena": arena}
    if case.rung == "large":
        found["logits"] = number(options, "batch") * number(options, "context") * number(options, "vocab")
    if case.tolerance is None:
        return found, None
    with tempfile.TemporaryDirectory() as scratch:
        status, text = run([tools / case.model, *options, "--mesh=fsdp=1", "-o", f"{scratch}/train"])
        if status == 0:
            status, text = run([f"{scratch}/train", "--data", folder / data_of(name), "--steps", case.steps, *case.run,
                                "--log", place / "cpu.jsonl", "--export", place / "trained.safetensors"])
        if status == 0:
            status, text = write_uses(f"{scratch}/train", folder, place, name, options)
        if name not in USED:
            (place / "trained.safetensors").unlink(missing_ok=True)
    return (None, text.strip() or f"status {status}") if status else (found, None)


def copy_tests(folder):
    """The kernels' tests and GoogleTest's sources; None, or why there are none."""
    googletest = pathlib.Path("/usr/src/googletest/googletest")
    if not (googletest / "src" / "gtest-all.cc").exists():
        return f"no GoogleTest in {googletest}"
    for part in ("include", "src"):
        shutil.copytree(googletest / part, folder / "googletest" / part)
    waiting = [*ROOT.glob("test/unit/cuda/*.*"), *ROOT.glob("test/unit/cuda/*/*.hpp"),
               *(ROOT / "test/unit" / name for name in ("emulator/MatmulTest.cpp", "emulator/ProductEpilogueTest.cpp", "runtime/comm/cuda/CudaRanksMain.cpp",
                                                        "runtime/comm/Conformance.cpp"))]
    while waiting:
        source = waiting.pop()
        target = folder / source.relative_to(ROOT)
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        # The files of test/ that it includes, from the root or from its folder; runtime/, base/ and
        # tokenizer/ are already there.
        for include in re.findall(r'#include "([^"]+)"', source.read_text()):
            waiting += [path for path in (source.parent / include, ROOT / include)
                        if path.exists() and include.split("/")[0] not in ("runtime", "base", "tokenizer")]
    return None


def copy_headers(folder):
    for header, include in (("CLI/CLI.hpp", "CLI"), ("nlohmann/json.hpp", "nlohmann"), ("toml++/toml.h", "toml++")):
        for root in ("/usr/include", "/usr/local/include"):
            if pathlib.Path(root, header).exists():
                shutil.copytree(pathlib.Path(root, include), folder / "include" / include)
                break


def copy_scripts(folder):
    shutil.copy(BENCH / "gpu_check", folder)
    shutil.copy(BENCH / "trace_sums.py", folder)
    shutil.copytree(BENCH / "gpu", folder / "gpu", ignore=shutil.ignore_patterns("__pycache__"))


def prepare(folder, tools, names, small):
    """Ends the script where the compiler is not built. `small`: sizes for the emulator."""
    if not (tools / "fsdpc").exists():
        sys.exit(f"gpu_check: no fsdpc in '{tools}': build the project first, or say --bin")
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "manifest.json").exists():
            sys.exit(f"gpu_check: '{folder}' is not empty and was not written by this script")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    write_data(folder, small)
    manifest = {"commit": git("rev-parse", "HEAD") + ("" if not git("status", "--porcelain") else " and changes"),
                "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "cases": {}, "small": small,
                "left_out": {name: "not asked for" for name in CASES if name not in names}}
    for name in names:
        print(f"preparing {name}", flush=True)
        found, wrong = write_case(folder, name, tools, small)
        if wrong:
            shutil.rmtree(folder / "cases" / name)
            manifest["left_out"][name] = wrong.splitlines()[-1]
            print(f"  left out: {manifest['left_out'][name]}")
            continue
        manifest["cases"][name] = found
    if not manifest["cases"]:
        sys.exit("gpu_check: no case could be prepared")
    wrong = copy_tests(folder)
    if wrong:
        manifest["left_out"]["kernel tests"] = wrong
    copy_headers(folder)
    copy_scripts(folder)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        sys.exit(f"gpu_check: '{folder}' has {size >> 20} MiB, expected at most {MOST_BYTES >> 20}: it has to travel")
    print(f"prepared {len(manifest['cases'])} cases in {folder}, {size / 2**20:.1f} MiB, "
          f"left out {len(manifest['left_out'])}")
