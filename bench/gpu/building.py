"""Compiles the programs: for the GPU at hand, or for the emulator."""

import concurrent.futures
import os
import shlex
import shutil
import time

from gpu.cases import program_of
from gpu.report import Budget, OutOfTime, run, said


def project(manifest):
    """All programs in one project: the runtime is compiled once."""
    programs = " ".join(f"{name}/{mesh}" for name, case in manifest["cases"].items() for mesh in case["meshes"])
    text = f"""# Builds the programs of gpu_check.
cmake_minimum_required(VERSION 3.18)
project(gpu_check LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(FSDP_TARGETS cuda CACHE STRING "" FORCE)
add_subdirectory(runtime)
foreach(place {programs})
  string(REPLACE / - name train-${{place}})
  file(GLOB kernels cases/${{place}}/*.cu)
  add_executable(${{name}} cases/${{place}}/train.cpp)
  if(kernels)
    fsdp_add_kernels(${{name}} ${{kernels}})
  endif()
  target_compile_features(${{name}} PRIVATE cxx_std_17)
  target_include_directories(${{name}} PRIVATE cases/${{place}})
  target_link_libraries(${{name}} PRIVATE fsdp_runtime_cuda)
endforeach()
"""
    if "kernel tests" in manifest["left_out"]:
        return text
    return text + """
add_library(googletest STATIC googletest/src/gtest-all.cc googletest/src/gtest_main.cc)
target_compile_options(googletest PRIVATE -O1 -w)
target_compile_features(googletest PUBLIC cxx_std_17)
target_include_directories(googletest SYSTEM PUBLIC googletest/include PRIVATE googletest)
include(test/unit/cuda/DeviceTests.cmake)
fsdp_add_device_tests(device-tests ${CMAKE_CURRENT_SOURCE_DIR} googletest)
fsdp_add_device_ranks(device-ranks ${CMAKE_CURRENT_SOURCE_DIR})
"""


def build_cuda(folder, manifest, architecture, toolkit, budget, report):
    """The folder of the programs. What does not compile is said, and stops nothing else."""
    start = time.monotonic()
    (folder / "CMakeLists.txt").write_text(project(manifest))
    build = folder / "build"
    shutil.rmtree(build, ignore_errors=True)
    ninja = shutil.which("ninja")
    settings = {"FSDP_CUDA_ARCHITECTURES": architecture, "FSDP_WITH_MPI": "OFF", **toolkit.settings}
    if (folder / "include").exists():
        settings.update(CLI11_INCLUDE_DIR=folder / "include", NLOHMANN_JSON_INCLUDE_DIR=folder / "include")
    if toolkit.includes:
        settings["CMAKE_CXX_FLAGS"] = " ".join(f"-I{path}" for path in toolkit.includes)
    options = [f"-D{key}={value}" for key, value in settings.items() if value]
    part = Budget(240, budget)
    for command in (["cmake", "-S", folder, "-B", build, *(["-G", "Ninja"] if ninja else []), *options],
                    ["cmake", "--build", build, "-j", str(os.cpu_count()), "--", *(["-k", "0"] if ninja else ["-k"])]):
        status, text = run(command, budget=part)
        report.details(" ".join(map(str, command)), text)
        if status:
            errors = [line for line in text.splitlines() if "error" in line.lower()][:12]
            report.fail(f"{' '.join(map(str, command))}: status {status}\n" + said("\n".join(errors) + "\n" + text, 30))
            if command[1] == "-S":
                break
    programs = [program_of(name, mesh) for name, case in manifest["cases"].items() for mesh in case["meshes"]]
    built = [name for name in programs if (build / name).exists()]
    report(f"built {len(built)} of {len(programs)} programs in {time.monotonic() - start:.0f} s "
           f"on {os.cpu_count()} cores")
    return build


def build_emulated(folder, emulator, cases, budget, report):
    words = {}
    for line in (emulator / "test" / "emulator" / "build.txt").read_text().splitlines():
        key, _, text = line.partition(": ")
        words[key] = shlex.split(text)
    build = folder / "build"
    build.mkdir(exist_ok=True)

    def one(place):
        name, mesh = place
        sources, objects = folder / "cases" / name / mesh, []
        try:
            for source in sorted(sources.glob("*.c[pu]*")):
                objects.append(build / f"{name}-{mesh}.{source.name}.o")
                status, text = run([*words["compiler"], *words["flags"],
                                    *(words["kernel-flags"] if source.suffix == ".cu" else []), f"-I{folder}",
                                    f"-I{sources}", "-c", source, "-o", objects[-1]], budget=budget)
                if status:
                    return f"{source}: {said(text, 30)}"
            status, text = run([*words["compiler"], *objects, *words["link"], "-o", build / program_of(name, mesh)],
                               budget=budget)
        except OutOfTime as error:
            return report.left_out(f"building {name} on {mesh} ranks", str(error))
        return f"{name}: {said(text, 30)}" if status else None

    places = [(name, mesh) for name, case in cases.items() for mesh in case["meshes"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for error in pool.map(one, places):
            if error:
                report.fail(error)
    return build
