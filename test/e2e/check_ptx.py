#!/usr/bin/env python3
"""check_ptx.py SCRATCH NVCC BUILD MODEL...: the CUDA programs of models with their kernels as nvcc made them, interpreted.

The golden's inputs and options on one rank, two steps. The program is the emulator's; each launch, of the runtime's kernels and of the emitted ones,
runs the PTX (test/emulator/ptx), with the check of unordered accesses. Losses are to 1e-5, weights to 1e-5, those of the same program with its
kernels as C++. In bf16 as far as two targets agree. Kernels compute what cuBLASLt may compute with a product (--all: both).

Where a model has passed in this build folder with the same PTX of the runtime and of the model, the same sources of the program, interpreter, runtime,
inputs and scripts, it is not run again; ./check --fresh and --all run it.
"""

import hashlib
import os
import pathlib
import shlex
import sys

import check_cuda
import emulated
import training

STEPS = 2
OF_EACH_CHECK = (("gpt2", "bf16"), ("llama", "f32"))


def compile_ptx(sources, nvcc, build, folder):
    """The modules of the runtime, which the build made, and of the emitted kernels."""
    folder.mkdir()
    for module in (build / "test/unit/cuda/ptx").glob("*.ptx"):
        (folder / module.name).symlink_to(module)
    kernels = sorted(sources.glob("*.cu"))
    if not kernels or not any(folder.iterdir()):
        sys.exit(f"{sources}: got {len(kernels)} files of kernels, expected some, and the runtime's PTX in {build}")
    launcher = shlex.split(emulated.settings()["compiler"])[:-1]  # ccache, where the build has it
    for kernel in kernels:
        training.run([sys.executable, "-S", "-B", emulated.ROOT / "test/unit/cuda/compile_ptx.py", folder / f"{kernel.name}.o", folder / f"emitted-{kernel.stem}.ptx",
                      *launcher, nvcc, "-std=c++17", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-lineinfo", "-w",
                      "-gencode=arch=compute_90a,code=compute_90a", "-I", sources, "-I", emulated.ROOT, "-c", kernel])


def kept_at(build, name, options, *inputs):
    """The file that is there once the test has passed on these inputs: files, or folders of them."""
    words = emulated.settings()
    libraries = [path for path in map(pathlib.Path, shlex.split(words["link"])) if path.is_file()]
    if not libraries:
        sys.exit(f"got '{words['link']}', expected the runtime and the emulator")
    scripts = [pathlib.Path(module.__file__) for module in (check_cuda, emulated, training)]
    digest = hashlib.sha256(" ".join(options).encode())
    for path in [pathlib.Path(__file__), *scripts, *libraries, *inputs]:
        for file in sorted(filter(pathlib.Path.is_file, path.rglob("*"))) if path.is_dir() else [path]:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(path.parent)}\0{len(content)}\0".encode() + content)
    digest.update("".join(words[name] for name in sorted(words) if name.endswith(("flags", "compiler"))).encode())
    return build / "test/cached" / f"e2e-ptx-kernels-{name}-{digest.hexdigest()}"


def check(model, precision, nvcc, build, folder):
    options, init, data = check_cuda.inputs(model)
    options.append(f"--precision={precision}")
    sources, modules = emulated.emit(model, folder, *options), folder / "ptx"
    compile_ptx(sources, nvcc, build, modules)
    kept = kept_at(build, f"{model}-{precision}", options, sources, *sorted(modules.glob("*.ptx")), init, data)
    if kept.exists() and not (training.WHOLE or "FSDP_TEST_FRESH" in os.environ):
        print(f"{model} {precision}: as C++ and as PTX, passed before on the same inputs")
        return
    program = emulated.build(sources, folder / "train-cuda-1")
    losses, weight, _ = check_cuda.TOLERANCES[precision]
    # Without epilogues of cuBLASLt all that follows a product is a kernel.
    for epilogues in (False, True) if training.WHOLE else (False,):
        expected, expected_weights = emulated.train(program, f"as-cpp-{epilogues}", STEPS, init, data, epilogues=epilogues)
        log, weights = emulated.train(program, f"as-ptx-{epilogues}", STEPS, init, data, mode=f"ptx={modules},races,shuffle", epilogues=epilogues)
        training.compare_log(log, expected, *losses)
        training.compare_weights(weights, expected_weights, weight)
    print(f"{model} {precision}: as C++ and as PTX")
    kept.parent.mkdir(exist_ok=True)
    kept.touch()


def main(scratch, nvcc, build, *models):
    cases = [(model, precision) for model in models for precision in (("f32", "bf16") if model in ("gpt2", "llama") else ("f32",))]
    for model, precision in cases if training.WHOLE else OF_EACH_CHECK:
        check(model, precision, nvcc, pathlib.Path(build), pathlib.Path(scratch) / f"{model}-{precision}")


if __name__ == "__main__":
    main(*sys.argv[1:])
