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

from gpu.cases import CASES, data_of
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


def write_data(folder):
    """Data of every case: numbers that a model can learn something from, the same on every machine."""
    draw = random.Random(1)
    floats = lambda n: struct.pack(f"<{n}f", *(draw.gauss(0, 1) for _ in range(n)))
    labels = struct.pack("<240i", *(draw.randrange(10) for _ in range(240)))
    write_tensors(folder / "linear.data", {"x": ("F32", [240, 32], floats(240 * 32)), "y": ("F32", [240, 8], floats(240 * 8))})
    write_tensors(folder / "mlp.data", {"x": ("F32", [240, 32], floats(240 * 32)), "label": ("I32", [240], labels)})
    for name, vocabulary, count in (("tiny", 256, 20000), ("124m", 50257, 300000)):
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


def write_case(folder, name, tools):
    """None, or why it cannot be."""
    model, options, meshes, steps, tolerance, _ = CASES[name]
    place = folder / "cases" / name
    place.mkdir(parents=True)
    for mesh in meshes:
        status, text = run([tools / model, *options, f"--mesh=fsdp={mesh}", "--target=cuda", "--emit=source",
                            "-o", place / mesh])
        if status:
            return text.strip() or f"status {status}"
        for part in ("runtime", "base"):  # the same for every program
            if (folder / part).exists():
                shutil.rmtree(place / mesh / part)
            else:
                (place / mesh / part).rename(folder / part)
    if tolerance is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        status, text = run([tools / model, *options, "--mesh=fsdp=1", "-o", f"{scratch}/train"])
        if status == 0:
            status, text = run([f"{scratch}/train", "--data", folder / data_of(name), "--steps", steps,
                                "--log", place / "cpu.jsonl"])
    return (text.strip() or f"status {status}") if status else None


def copy_tests(folder):
    """The kernels' tests and GoogleTest's sources; None, or why there are none."""
    googletest = pathlib.Path("/usr/src/googletest/googletest")
    if not (googletest / "src" / "gtest-all.cc").exists():
        return f"no GoogleTest in {googletest}"
    for part in ("include", "src"):
        shutil.copytree(googletest / part, folder / "googletest" / part)
    waiting = [*ROOT.glob("test/unit/cuda/*.*"), *ROOT.glob("test/unit/cuda/*/*.hpp"),
               *(ROOT / "test/unit" / name for name in ("emulator/MatmulTest.cpp", "runtime/CudaRanksMain.cpp",
                                                        "runtime/Conformance.cpp"))]
    while waiting:
        source = waiting.pop()
        target = folder / source.relative_to(ROOT)
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        # What it includes of test/, from the root or from beside it; runtime/ and base/ are there already.
        for include in re.findall(r'#include "([^"]+)"', source.read_text()):
            waiting += [path for path in (source.parent / include, ROOT / include)
                        if path.exists() and include.split("/")[0] not in ("runtime", "base")]
    return None


def copy_headers(folder):
    for header, include in (("CLI/CLI.hpp", "CLI"), ("nlohmann/json.hpp", "nlohmann")):
        for root in ("/usr/include", "/usr/local/include"):
            if pathlib.Path(root, header).exists():
                shutil.copytree(pathlib.Path(root, include), folder / "include" / include)
                break


def copy_scripts(folder):
    shutil.copy(BENCH / "gpu_check", folder)
    shutil.copy(BENCH / "trace_sums.py", folder)
    shutil.copytree(BENCH / "gpu", folder / "gpu", ignore=shutil.ignore_patterns("__pycache__"))


def prepare(folder, tools, names):
    """Ends the script where the compiler is not built."""
    if not (tools / "fsdpc").exists():
        sys.exit(f"gpu_check: no fsdpc in '{tools}': build the project first, or say --bin")
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "manifest.json").exists():
            sys.exit(f"gpu_check: '{folder}' is not empty and was not written by this script")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    write_data(folder)
    manifest = {"commit": git("rev-parse", "HEAD") + ("" if not git("status", "--porcelain") else " and changes"),
                "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "cases": {},
                "left_out": {name: "not asked for" for name in CASES if name not in names}}
    for name in names:
        print(f"preparing {name}", flush=True)
        wrong = write_case(folder, name, tools)
        if wrong:
            shutil.rmtree(folder / "cases" / name)
            manifest["left_out"][name] = wrong.splitlines()[-1]
            print(f"  left out: {manifest['left_out'][name]}")
            continue
        model, options, meshes, steps, tolerance, timed = CASES[name]
        manifest["cases"][name] = {"model": model, "options": options, "meshes": meshes, "steps": steps,
                                   "tolerance": tolerance, "timed": timed}
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
