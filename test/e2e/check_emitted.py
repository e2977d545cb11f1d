#!/usr/bin/env python3
"""check_emitted.py FOLDER BUILD PRECISION [--cases=N] [--seed=S] [--targets=cpu,cuda] [--optimize=0] [--stages=30]: random
models, emitted for the CPU and for CUDA, beside the scheduled interpreter (test/emitted; docs/design/tests.md says within
what).

Many models stand in one source file and run from one binary. A case that differs is tried against many more runs of
the interpreter with noise before it counts. --optimize is the level of the compiler; 3 is fsdpc's own. --stages is the
share of models, in percent, that are divided into stages of a pipeline where they can be.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import training

ROOT = training.HERE.parent.parent
MOST_PER_FILE = 25
NOISE, NOISE_OF_SECOND_TRY = 4, 48
# Of all cases of a run, how many per cent may need the loose tolerance, that of 16-bit floats that are off by a unit in the last place.
MOST_LOOSE = {"f32": 5, "bf16": 25}


def words(path):
    """The lines `name: words` of a build.txt."""
    return {name: shlex.split(text) for name, text in
            (line.split(": ", 1) for line in path.read_text().splitlines() if ": " in line)}


def generate(arguments, folder, seeds, *options):
    said = training.run([arguments.build / "test/emitted/emitted-cases", f"--precision={arguments.precision}",
                         f"--stages={arguments.stages}", *seeds, *options, "-o", folder])
    return said.stdout


def compile_all(arguments, folder):
    """The binary of each target."""
    emitted = words(arguments.build / "test/emitted/build.txt")
    emulator = words(arguments.build / "test/emulator/build.txt")
    level = f"-O{arguments.optimize}"
    rules = {
        "cpu": (emitted["compiler"], [*emitted["flags"], level], emitted["link"]),
        "cuda": (emulator["compiler"], [*emulator["flags"], f"-I{ROOT}", level, *emulator["kernel-flags"]], emulator["link"]),
    }
    if arguments.optimize == "0":  # with the headers that are precompiled for it
        settings = training.unoptimized()
        os.environ.update(settings)
        chain = json.loads((arguments.build / "runtime/toolchain.json").read_text())
        numerics = [flag for flag in emitted["flags"] if not flag.startswith("-m")]
        rules["cpu"] = ([*emitted["compiler"][:-1], settings["CXX"]], [*numerics, "-march=native", *chain["hardening"]], emitted["link"])
        # A call in the place of an instruction for an explicit fma, as in these headers.
        kernels = [flag for flag in emulator["kernel-flags"] if flag != "-mfma"]
        rules["cuda"] = (emulator["compiler"], [*emulator["host-headers"], *rules["cuda"][1][:-len(emulator["kernel-flags"])], *kernels],
                         emulator["link"])

    def compile_one(source):
        compiler, flags, _ = rules[source.name.split("-")[0]]
        target = source.with_suffix(".o")
        training.run([*compiler, *flags, "-w", "-MD", "-c", source, "-o", target])
        return target

    sources = sorted(path for target in arguments.targets for path in folder.glob(f"{target}-*.c[pu]*"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    programs = {}
    for target in arguments.targets:
        compiler, _, link = rules[target]
        programs[target] = folder / f"{target}-cases"
        training.run([*compiler, *(o for o in objects if o.name.startswith(f"{target}-")), *emitted["runner"], *link,
                      "-o", programs[target]])
    return programs


def run(program, cases):
    """What the programs of a binary said: lines that differ by seed, and the last line."""
    done = subprocess.run([program, cases], capture_output=True, text=True, env={**os.environ, "FSDP_TIMEOUT": "60"}, check=False)
    differs = {}
    for line in done.stdout.splitlines():
        if match := re.match(r"differs (\d+)", line):
            differs.setdefault(int(match[1]), []).append(line)
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    counted = re.match(r"cases (\d+): tight (\d+), loose (\d+), differ (\d+)$", last)
    if not counted or (done.returncode != 0) != bool(differs):
        sys.exit(f"{program} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
    return differs, [int(number) for number in counted.groups()], done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("precision", choices=["f32", "bf16"])
    parser.add_argument("--cases", type=int, default=60 if training.WHOLE else 14)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=["cpu", "cuda"])
    parser.add_argument("--optimize", default="0")
    parser.add_argument("--stages", type=int, default=30)
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    files = max(1, -(-arguments.cases // MOST_PER_FILE))
    print(generate(arguments, folder, [f"--seed={arguments.seed}", f"--cases={arguments.cases}"], f"--files={files}",
                   f"--noise={NOISE}"))
    wrong = []
    for target, program in compile_all(arguments, folder).items():
        differs, (cases, tight, loose, _), stderr = run(program, folder / "cases")
        if differs:
            again = folder / f"again-{target}"
            again.mkdir(exist_ok=True)
            generate(arguments, again, [f"--seeds={','.join(map(str, differs))}"], f"--noise={NOISE_OF_SECOND_TRY}",
                     "--cases-only")
            first = len(differs)
            differs, _, stderr = run(program, again / "cases")
            loose += first - len(differs)
        print(f"{arguments.precision} {target}: {cases} cases, {tight} tight, {loose} loose, {len(differs)} differ")
        for seed, lines in differs.items():
            wrong += [*lines, f"  again: python3 -B test/e2e/check_emitted.py FOLDER {arguments.build} {arguments.precision} "
                      f"--targets={target} --seed={seed} --cases=1 --optimize={arguments.optimize} --stages={arguments.stages}"]
        if differs:
            wrong.append(stderr[-3000:])
        if cases >= 20 and loose * 100 > MOST_LOOSE[arguments.precision] * cases:
            wrong.append(f"{target}: {loose} of {cases} cases need the loose tolerance, expected at most "
                         f"{MOST_LOOSE[arguments.precision]} %")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
