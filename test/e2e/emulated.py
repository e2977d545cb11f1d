"""Builds the CUDA program of a model against the emulator (test/emulator) and runs it, as a GPU would."""

import os
import pathlib
import shlex

import training

ROOT = training.HERE.parent.parent
# What starts ranks, for which programs with NCCL between threads link Inputs/NcclThreads.cpp.
RUN_RANKS = "_ZN4fsdp2rt8runRanksERKNS0_4MeshERKNS0_10JobOptionsERKSt8functionIFiRNS0_3JobEEE"


def settings():
    """What the build left in build/.../test/emulator/build.txt: a line `name: words` for each name."""
    path = pathlib.Path(training.tool("fsdpc")).parent.parent / "test" / "emulator" / "build.txt"
    return dict(line.split(": ", 1) for line in path.read_text().splitlines())


def build(sources, program, races=False, nccl=False):
    """Compiles the folder that --emit=source wrote, kernels as C++, and links `program`. `races`: its kernels, not
    those of the runtime, tell their accesses, for the setting of that name. `nccl`: its ranks are threads, each on a device, with NCCL between them."""
    words = {name: shlex.split(text) for name, text in settings().items()}
    includes, objects = [f"-I{ROOT}"], []
    mutant = os.environ.get("FSDP_CUDA_MUTANT")
    if mutant:  # scripts/barrier-mutations: headers and objects that are used first
        includes.insert(0, f"-I{mutant}")
        objects += sorted(pathlib.Path(mutant).glob("*.o"))
    threads = [training.HERE / "Inputs" / "NcclThreads.cpp"] if nccl else []
    for source in (*sorted(sources.glob("*.c[pu]*")), *threads):
        target = program.parent / f"{program.name}.{source.name}.o"
        part = "kernel" if source.suffix == ".cu" else "host"
        flags = words[f"{part}-flags"]
        if races and part == "kernel":
            flags = flags + words["race-flags"]
        elif not mutant:
            flags = words[f"{part}-headers"] + flags
        training.run([*words["compiler"], *words["flags"], *flags, *includes, f"-I{sources}", "-MD", "-MF", f"{target}.d", "-c", source, "-o", target])
        objects.append(target)
    if len(objects) < 2:
        raise SystemExit(f"{sources}: got {[o.name for o in objects]}, expected host and kernel sources")
    training.run([*words["compiler"], *objects, *words["link"], *([f"-Wl,--wrap={RUN_RANKS}"] if nccl else []), "-o", program])
    return program


def emit(model, folder, *options, ranks=1, mesh=None):
    """The folder with the CUDA sources of `model` for a mesh of `ranks` shards, or `mesh`."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = folder / f"cuda-{ranks}"
    training.run([training.tool(model), *options, f"--mesh={mesh or f'fsdp={ranks}'}", "--target=cuda",
                  "--emit=source", "-o", sources])
    return sources


def compile_model(model, folder, *options, ranks=1, mesh=None, races=False, nccl=False):
    """Path of the emulated CUDA program of `model`."""
    return build(emit(model, folder, *options, ranks=ranks, mesh=mesh), folder / f"train-cuda-{ranks}", races, nccl)


def train(program, name, steps, init, data, *options, mode="inline", ranks=1, epilogues=True):
    """As training.train, under the emulator's settings `mode`. Without `epilogues` kernels compute what follows a product."""
    os.environ.update(FSDP_EMULATOR=mode, FSDP_EPILOGUES=str(int(epilogues)))
    try:
        loopback = ["--communicator=loopback"] if ranks > 1 else []
        return training.train(program, name, steps, init, data, *loopback, *options)
    finally:
        del os.environ["FSDP_EMULATOR"], os.environ["FSDP_EPILOGUES"]
