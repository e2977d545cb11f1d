"""What the machine has: the GPU, the toolkit, the libraries."""

import datetime
import glob
import os
import pathlib
import re
import shutil
import sys

from gpu.report import run


def describe(report, manifest):
    report(f"gpu_check of commit {manifest['commit']}, prepared {manifest['date']}, run "
           + datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    report(f"CPU: {cpu.group(1) if cpu else 'unknown'}, {os.cpu_count()} cores")


def find_gpu(report):
    """(name, architecture to compile for, as '90a') of the first GPU, or None after saying why there is none."""
    fields = "name,driver_version,memory.total,compute_cap,clocks.max.sm,power.limit"
    status, text = run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], 60)
    if status or not text.strip():
        report(f"no usable GPU: nvidia-smi: {text.strip() or f'status {status}'}")
        return None
    for number, line in enumerate(text.strip().splitlines()):
        report(f"GPU {number}: " + ", ".join(f"{key} {value.strip()}" for key, value in zip(fields.split(","), line.split(","))))
    first = [value.strip() for value in text.splitlines()[0].split(",")]
    architecture = first[3].replace(".", "")
    # Code for later architectures cannot contain Hopper's specific instructions, which attention
    # uses.
    return first[0], architecture + "a" if architecture == "90" else architecture


class Toolkit:
    """nvcc, and where headers and libraries are: in the toolkit, in the system, or beside Python's packages.

    `settings` are those of runtime/Cuda.cmake, `includes` what the compilers need beyond them.
    """

    def __init__(self, report):
        self.nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        status, version = run([self.nvcc, "--version"])
        self.usable = status == 0
        if not self.usable:
            report(f"no usable CUDA toolkit: {self.nvcc}: {version.strip()}")
            return
        report("toolkit: " + next((l.strip() for l in version.splitlines() if "release" in l), "unknown"))
        self.root = pathlib.Path(self.nvcc).resolve().parent.parent
        packages = [f"{path}/nvidia/*" for path in sys.path if path]
        roots = [str(self.root), str(self.root / "targets/x86_64-linux"), "/usr", "/usr/local", *packages]
        self.settings, self.includes = {"FSDP_NVCC": self.nvcc}, []
        for name, library in (("CUDART", "cudart"), ("CUBLASLT", "cublasLt"), ("NCCL", "nccl")):
            found = self.first(roots, [f"{folder}/lib{library}.so{version}" for version in ("", ".[0-9]*")
                                       for folder in ("lib64", "lib/x86_64-linux-gnu", "lib")])
            self.settings[f"FSDP_{name}_LIBRARY"] = found
        for setting, header in (("FSDP_CUDA_INCLUDE_DIR", "cuda_runtime.h"), ("FSDP_NCCL_INCLUDE_DIR", "nccl.h"),
                                (None, "cublasLt.h")):
            found = self.first(roots, [f"include/{header}"])
            folder = str(pathlib.Path(found).parent) if found else None
            if setting:
                self.settings[setting] = folder
            elif folder and folder not in self.settings.values():
                self.includes.append(folder)
        for key, value in self.settings.items():
            report.details(key, value)
        missing = [key for key, value in self.settings.items() if not value]
        if missing:
            report(f"not found: {', '.join(missing)}")

    @staticmethod
    def first(roots, patterns):
        for root in roots:
            for pattern in patterns:
                found = sorted(glob.glob(f"{root}/{pattern}"))
                if found:
                    return found[0]
        return None

    def tool(self, name):
        """Path of a program of the toolkit, or None."""
        beside = self.root / "bin" / name
        return shutil.which(name) or (str(beside) if beside.exists() else None)
