#!/usr/bin/env python3
"""cached_result.py --store FOLDER --name NAME --noted FILE [--reads PATH]... --writes FILE... [--starts-programs] [--works-in PATH]... [--unless-all ARGUMENT] -- PROGRAM ARGUMENT...

Runs a test program; or, where it has passed before on the same inputs, restores the files that it wrote then and adds the line NAME to
the file --noted. docs/design/tests.md, "Cached results", says what the key has and how Landlock enforces that nothing else is read.
--starts-programs: it may start those of --reads and of Debian's packages, whose versions are then part of the key.
--unless-all: an argument of the program that FSDP_TEST_ALL takes away.
--works-in: a folder in which it may read and write what it likes, or a file; no result depends on what is in it.
"""

import argparse
import ctypes
import hashlib
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

CREATE_RULESET, ADD_RULE, RESTRICT_SELF, SET_NO_NEW_PRIVILEGES = 444, 445, 446, 38  # system calls, and an option of prctl
EXECUTE, WRITE, READ, LIST, EVERYTHING = 1, 2, 4, 8, (1 << 13) - 1  # rights of Landlock's first version
PACKAGES = pathlib.Path("/var/lib/dpkg/status")  # the packages that are installed, and their versions
OF_PACKAGES = ("/usr/bin", "/usr/include", "/usr/lib", "/usr/libexec", "/usr/share", "/etc", "/bin", "/lib", "/lib64")
LIBC = ctypes.CDLL(None, use_errno=True)


def loaded_by(program):
    """The libraries that the loader maps, and the loader."""
    said = subprocess.run([program], env={"LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True, check=True).stdout
    return sorted({word for line in said.splitlines() for word in line.split() if word.startswith("/")})


def key_of(options, environment):
    digest = hashlib.sha256()

    def add(name, content):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)

    for file in (__file__, options.command[0], *loaded_by(options.command[0])):
        add(os.path.basename(file), pathlib.Path(file).read_bytes())
    for word in options.command[1:]:
        add("argument", word.encode())
    for name, value in sorted(environment.items()):
        for root in ("FSDP_BINARY_DIR", "FSDP_SOURCE_DIR"):  # what is in a tree matters, not where it is
            value = value.replace(environment[root], root)
        add(name, value.encode())
    if options.starts_programs:
        add("packages", PACKAGES.read_bytes())
    for number, path in enumerate(options.reads):
        # Python's bytecode is a function of the sources, which are read here too.
        for file in sorted(p for p in path.rglob("*") if p.is_file() and p.parent.name != "__pycache__") if path.is_dir() else [path]:
            add(f"{number} {file.relative_to(path)}", file.read_bytes())
    processor = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    add("processor", "\n".join(line for line in processor if line.startswith(("model", "stepping", "flags", "cache size"))).encode())
    add("cores", str(len(os.sched_getaffinity(0))).encode())
    return digest.hexdigest()


def ruleset_of(rules):
    """A descriptor of the (path, rights) that Landlock allows; None where the kernel has none."""
    ruleset = LIBC.syscall(CREATE_RULESET, struct.pack("Q", EVERYTHING), 8, 0)
    if ruleset < 0:
        return None
    for path, rights in rules:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if LIBC.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0):
            raise OSError(ctypes.get_errno(), f"cannot allow '{path}'")
        os.close(opened)
    return ruleset


def run(options, environment, folder):
    """The status of the program, and whether Landlock enclosed it."""
    program = options.command[0]
    rules = [(path, READ | (LIST if os.path.isdir(path) else EXECUTE)) for path in ("/proc", "/sys", program, *loaded_by(program), *options.reads)]
    if options.starts_programs:
        rules = [(path, READ | EXECUTE | (LIST if os.path.isdir(path) else 0)) for path in (*options.reads, *filter(os.path.exists, OF_PACKAGES), "/proc", "/sys")]
        environment = {**environment, "PATH": "/usr/bin:/bin", "HOME": folder}
        options.works_in.append("/dev/shm") # of Python's locks
    ruleset = ruleset_of([*rules, ("/dev", READ | LIST | WRITE), *((path, EVERYTHING if os.path.isdir(path) else READ | WRITE) for path in (folder, *options.works_in))])

    def enclose():
        if ruleset is not None and (LIBC.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or LIBC.syscall(RESTRICT_SELF, ruleset, 0)):
            raise OSError(ctypes.get_errno(), "cannot restrict the program")

    command = options.command
    for file in options.writes:
        environment = {name: value.replace(str(file), f"{folder}/{file.name}") for name, value in environment.items()}
        command = [word.replace(str(file), f"{folder}/{file.name}") for word in command]
    done = subprocess.run(command, env={**environment, "TMPDIR": folder}, preexec_fn=enclose, check=False)
    return done.returncode, ruleset is not None


def copy(pairs):
    for origin, destination in pairs:
        if origin.exists():
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin, destination)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True)
    parser.add_argument("--store", type=pathlib.Path, required=True)
    parser.add_argument("--noted", type=pathlib.Path, required=True)
    parser.add_argument("--reads", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--writes", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--starts-programs", action="store_true")
    parser.add_argument("--works-in", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--unless-all")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    options.command = options.command[1:]
    if options.unless_all and "FSDP_TEST_ALL" not in os.environ:
        options.command.append(options.unless_all)
    runs = "FSDP_TEST_ALL" in os.environ or os.environ.pop("FSDP_TEST_FRESH", None)
    environment = {name: value for name, value in os.environ.items() if name.startswith(("GTEST_", "FSDP_", "ONEDNN_"))}
    kept = options.store / f"{options.name.replace('/', '-')}-{key_of(options, environment)}"
    if kept.is_dir() and not runs:
        copy((kept / file.name, file) for file in options.writes)
        with open(options.noted, "a", encoding="utf-8") as noted:
            noted.write(f"{options.name}\n")
        print(f"{options.name}: passed before on the same inputs, not run (./check --fresh runs it)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        status, enclosed = run(options, environment, folder)
        copy((pathlib.Path(folder) / file.name, file) for file in options.writes)
        if status == 0 and enclosed:
            part = options.store / f"part-{os.getpid()}"
            part.mkdir(parents=True)
            copy((pathlib.Path(folder) / file.name, part / file.name) for file in options.writes)
            shutil.rmtree(kept, ignore_errors=True)
            part.rename(kept)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
