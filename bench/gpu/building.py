"""Compiles the programs: for the GPU at hand, or for the emulator."""

import concurrent.futures
import os
import shlex
import shutil
import threading
import time

from gpu.report import Budget, OutOfTime, end, run, said


def project(manifest, stages):
    """All programs in one project: the runtime is compiled once. A target `stage-N` for each stage."""
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
  target_compile_features(${{name}} PRIVATE cxx_std_20)
  target_include_directories(${{name}} PRIVATE cases/${{place}})
  target_link_libraries(${{name}} PRIVATE fsdp_runtime_cuda)
endforeach()
# One file of kernels, and nothing else of the runtime: built within seconds.
add_executable(device-first gpu/First.cpp)
fsdp_add_kernels(device-first runtime/kernels/cuda/StepControl.cu runtime/kernels/cuda/IndexShard.cu)
add_executable(device-bench gpu/KernelBench.cpp gpu/ProductBench.cpp)
fsdp_add_kernels(device-bench test/unit/cuda/TestRules.cu)
target_link_libraries(device-bench PRIVATE fsdp_runtime_cuda)
foreach(program device-first device-bench)
  target_compile_features(${{program}} PRIVATE cxx_std_17)
  target_include_directories(${{program}} PRIVATE ${{CMAKE_CURRENT_SOURCE_DIR}})
endforeach()
target_include_directories(device-first SYSTEM PRIVATE ${{FSDP_CUDA_INCLUDE_DIR}} ${{FSDP_NCCL_INCLUDE_DIR}})
target_link_libraries(device-first PRIVATE ${{FSDP_CUDART_LIBRARY}})
"""
    if "kernel tests" not in manifest["left_out"]:
        text += """
add_library(googletest STATIC googletest/src/gtest-all.cc googletest/src/gtest_main.cc)
target_compile_options(googletest PRIVATE -O1 -w)
target_compile_features(googletest PUBLIC cxx_std_17)
target_include_directories(googletest SYSTEM PUBLIC googletest/include PRIVATE googletest)
include(test/unit/cuda/DeviceTests.cmake)
fsdp_add_device_tests(device-tests ${CMAKE_CURRENT_SOURCE_DIR} googletest)
fsdp_add_device_ranks(device-ranks ${CMAKE_CURRENT_SOURCE_DIR})
"""
    for number, stage in enumerate(stages):
        text += f"add_custom_target(stage-{number} DEPENDS {' '.join(stage)})\n"
    return text


class Build:
    """Compiles programs stage by stage on a thread of its own, those of the first rungs first.

    `stages`: lists of programs. What does not compile is said by the job of its stage, and stops nothing else."""

    def __init__(self, folder, stages, budget, report):
        self.folder, self.stages, self.report = folder, stages, report
        self.budget, self.running = Budget(budget.left()), set()
        self.ready = [threading.Event() for _ in stages]
        self.seconds, self.errors = [0.0] * len(stages), [[] for _ in stages]
        self.late = False  # the part's time was over before the last stage ended
        self.folder.mkdir(exist_ok=True)
        self.thread = threading.Thread(target=self.work, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def path(self, program):
        return self.folder / program

    def work(self):
        begin = time.monotonic()
        try:
            for stage, programs in enumerate(self.stages):
                self.compile(stage, programs)
                self.seconds[stage] = time.monotonic() - begin
                self.ready[stage].set()
        except OutOfTime:
            self.late = True
        except Exception as error:  # pylint: disable=broad-except
            self.errors[stage].append(f"{type(error).__name__}: {error}")
        for event in self.ready:
            event.set()

    def wait(self, program, budget):
        """Whether the program was built, once its stage is done. Raises OutOfTime where there is no time for that."""
        stage = next(i for i, programs in enumerate(self.stages) if program in programs)
        self.until(stage, budget)
        return self.path(program).exists()

    def until(self, stage, budget):
        with budget.paused() as part:
            ready = self.ready[stage].wait(max(part.left(), 0))
        if not ready or (self.late and not self.seconds[stage]):
            raise OutOfTime("the part's time ended before the build did")

    def quiet(self, budget):
        """Returns when nothing is compiled any more, so that times are those of an idle machine."""
        self.until(len(self.stages) - 1, budget)

    def stop(self):
        """Ends the build with what it has started."""
        self.budget.end = 0
        for process in list(self.running):
            end(process)
        self.thread.join(10)

    def check(self, stage, what, budget):
        """The job of a stage: says what did not compile."""
        self.until(stage, budget)
        missing = [program for program in self.stages[stage] if not self.path(program).exists()]
        for text in self.errors[stage]:
            self.report(text)
        if missing:
            self.report.fail(f"{what}: built programs", f"none for {', '.join(missing)}", f"{len(self.stages[stage])} programs")
        else:
            self.report.ok(f"{what}: {len(self.stages[stage])} programs, {self.seconds[stage]:.0f} s after the build began, "
                           f"on {os.cpu_count()} cores")


class CudaBuild(Build):
    """All programs in one project for CMake: the runtime is compiled once."""

    def __init__(self, folder, manifest, stages, architecture, toolkit, budget, report):
        super().__init__(folder / "build", stages, budget, report)
        self.source, self.manifest, self.architecture, self.toolkit = folder, manifest, architecture, toolkit
        self.ninja = shutil.which("ninja")

    def compile(self, stage, programs):
        if stage == 0:
            self.configure()
        keep = ["-k", "0"] if self.ninja else ["-k"]
        command = ["cmake", "--build", self.folder, "-j", str(os.cpu_count()), "--target", f"stage-{stage}", "--", *keep]
        self.execute(stage, command)

    def configure(self):
        (self.source / "CMakeLists.txt").write_text(project(self.manifest, self.stages))
        settings = {"FSDP_CUDA_ARCHITECTURES": self.architecture, "FSDP_WITH_MPI": "OFF", **self.toolkit.settings}
        if (self.source / "include").exists():
            settings.update(dict.fromkeys(("CLI11_INCLUDE_DIR", "NLOHMANN_JSON_INCLUDE_DIR", "TOMLPLUSPLUS_INCLUDE_DIR"), self.source / "include"))
        if self.toolkit.includes:
            settings["CMAKE_CXX_FLAGS"] = " ".join(f"-I{path}" for path in self.toolkit.includes)
        options = [f"-D{key}={value}" for key, value in settings.items() if value]
        self.execute(0, ["cmake", "-S", self.source, "-B", self.folder, *(["-G", "Ninja"] if self.ninja else []), *options])

    def execute(self, stage, command):
        status, text = run(command, 600, self.budget, running=self.running)
        self.report.details(" ".join(map(str, command)), text)
        if status:
            errors = [line for line in text.splitlines() if "error" in line.lower()][:12]
            self.errors[stage].append(f"{' '.join(map(str, command))}: status {status}\n" + said("\n".join(errors) + "\n" + text, 30))


class EmulatedBuild(Build):
    """The programs of the cases for the emulator; those that its own build has are linked to."""

    def __init__(self, folder, emulator, stages, budget, report):
        super().__init__(folder / "build-emulated", stages, budget, report)
        self.sources, self.emulator = folder, emulator
        self.words = {}
        for line in (emulator / "test" / "emulator" / "build.txt").read_text().splitlines():
            key, _, text = line.partition(": ")
            self.words[key] = shlex.split(text)

    def compile(self, stage, programs):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for error in pool.map(self.one, programs):
                if error:
                    self.errors[stage].append(error)

    def one(self, program):
        made, words = self.path(program), self.words
        if made.exists():
            return None
        if not program.startswith("train-"):
            existing = self.emulator / "test" / "unit" / program
            if existing.exists():
                made.symlink_to(existing)
                return None
            return f"no {existing}"
        name, mesh = program[len("train-"):].rpartition("-")[::2]
        folder, objects = self.sources / "cases" / name / mesh, []
        for source in sorted(folder.glob("*.c[pu]*")):
            objects.append(self.folder / f"{program}.{source.name}.o")
            status, text = run([*words["compiler"], *words["flags"],
                                *words["kernel-flags" if source.suffix == ".cu" else "host-flags"], f"-I{self.sources}",
                                f"-I{folder}", "-c", source, "-o", objects[-1]], budget=self.budget, running=self.running)
            if status:
                return f"{source}: {said(text, 30)}"
        status, text = run([*words["compiler"], *objects, *words["link"], "-o", made], budget=self.budget, running=self.running)
        return f"{program}: {said(text, 30)}" if status else None
