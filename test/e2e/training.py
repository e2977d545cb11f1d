"""Compiles a model of examples/ and runs the training program, as a user would."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import compare_log as log_comparison
import compare_weights as weight_comparison
from ports import free_port

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
# Seconds after which a process that a test waits for hangs. The limit of the test itself, which
# depends on the load of the machine (test/time_limit.py), applies first and lists what runs: this
# one is for tests that are run by hand.
HANGS = 1200
WHOLE = bool(os.environ.get("FSDP_TEST_ALL"))  # ./check --all


def chosen(cases, *which):
    """The cases of each check, those with the names (or, in a list, the numbers) `which`; all of them under ./check --all."""
    if WHOLE:
        return cases
    picked = [(key, cases[key]) for key in which]
    return dict(picked) if isinstance(cases, dict) else [case for _, case in picked]


def descendants(process):
    found = []
    for children in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
        try:
            for child in children.read_text().split():
                found += [int(child), *descendants(child)]
        except OSError:
            pass  # it has ended
    return found


def interrupt(number, _):
    for process in descendants(os.getpid()):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(128 + number)


# A test that is run by hand and interrupted leaves no program running, as one below test/time_limit.py does not.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) != signal.SIG_IGN:
        signal.signal(_number, interrupt)


def run(command):
    """Runs `command`; ends this test with all it said if it fails. The time limit is the test's: see test/time_limit.py."""
    start = time.monotonic()
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed with {done.returncode}: {' '.join(command)}\n{done.stdout}{done.stderr}")
    print(f"{time.monotonic() - start:6.2f} s  {' '.join(command)}", flush=True)
    return done


def tool(name):
    """Path of a tool or a model of this build; lit puts its folder first."""
    path = shutil.which(name)
    if not path:
        sys.exit(f"'{name}' is not built")
    return path


def unoptimized():
    """Environment in which programs are compiled without optimization, for tests of what does not depend on it."""
    build = pathlib.Path(tool("fsdpc")).parent.parent
    compiler, headers = build / "test" / "unoptimized", build / "Unoptimized.pch.sum"
    # ccache does not detect headers that the compiler adds, and could mistake a newer one for
    # another. CCACHE_DEPEND: it need not preprocess, a fifth of the time.
    return {"CXX": str(compiler), "CCACHE_DEPEND": "1",
            "CCACHE_COMPILERCHECK": f"string:{headers.read_text().split()[0]}" if headers.exists() else "%compiler% --version"}


def update_rules():
    """The update rules that the compiler's --help lists."""
    return re.search(r"--optimizer[ =]+(\S+)", run([tool("mlp"), "--help"]).stdout).group(1).split("|")


def unoptimized_in_each_check():
    """As unoptimized(), but for ./check --all, which compiles as users do: for tests whose numbers others compare with optimization."""
    return {} if WHOLE else unoptimized()


def build_unoptimized(sources, program, *flags, record=False, compiler=None):
    """Compiles `sources`, which fsdp-translate wrote, without optimization, as fsdpc compiles programs, and links `program`. `record`: it
    writes its actions down in the place of training; `compiler` is then another one than the build's. Objects come from ccache where
    nothing has changed."""
    build = pathlib.Path(tool("fsdpc")).parent.parent
    chain = json.loads((build / "runtime" / "toolchain.json").read_text())
    settings, objects = unoptimized(), []
    if record:
        headers = build / "Record.pch"
        words = [compiler or chain["compiler"], "-O0", "-w", "-DFSDP_RECORD"]
        settings["CCACHE_COMPILERCHECK"] = "mtime"  # not the checksum of headers that are precompiled for other programs
        if not compiler and headers.exists():
            words += ["-include-pch", headers, "-Xclang", "-fno-pch-timestamp"]
            settings.update(CCACHE_SLOPPINESS="time_macros,pch_defines", CCACHE_PCH_EXTSUM="1")
            del settings["CCACHE_DEPEND"]  # the list of files has the paths of this clone
    else:  # for this processor as the headers of test/unoptimized
        words = [settings["CXX"], *(flag for flag in chain["flags"] if not flag.startswith("-m")), "-march=native", *chain["hardening"]]
    launcher = [chain["launcher"]] if chain.get("launcher") else []
    for source in sources:
        objects.append(program.parent / f"{program.name}.{source.stem}.o")
        run(["env", *(f"{name}={value}" for name, value in settings.items()), *launcher, *words, "-std=c++20", f"-I{HERE.parent.parent}",
             *flags, "-MD", "-c", source, "-o", objects[-1]])
    run([compiler or chain["compiler"], *objects, "-o", program, *([] if record else chain["libraries"])])
    return program


def compile_model(model, folder, *options, ranks=1, mesh=None):
    """Path of the training program of `model` for a mesh of `ranks` shards, or `mesh`, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"train-{ranks}"
    run([tool(model), *options, f"--mesh={mesh or f'fsdp={ranks}'}", "-o", program])
    return program


def train(program, name, steps, init, data, *options, launcher=()):
    """Runs `steps` steps; returns (log, weights) written beside the program."""
    log = program.parent / f"{name}.jsonl"
    weights = program.parent / f"{name}.safetensors"
    run([*launcher, program, "--data", data, "--steps", steps, "--init", init,
         "--export", weights, "--log", log, *options])
    return log, weights


def run_over_tcp(command, ranks):
    """Starts `command` on each rank as torchrun would, connected by TCP alone."""
    port = free_port()
    command = [*map(str, command), "--communicator=tcp"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
                                     "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
               for rank in range(ranks)]
    said = "".join(process.communicate()[0] for process in started)
    if any(process.returncode for process in started):
        sys.exit(f"{command[0]} over TCP failed\n{said}")


def compare_log(log, expected, *options):
    """As the command compare_log.py."""
    log_comparison.main([str(log), str(expected), *options])


def compare_weights(weights, expected, *options):
    """As the command compare_weights.py."""
    weight_comparison.main([str(weights), str(expected), *options])


def same_bytes(a, b):
    if a.read_bytes() != b.read_bytes():
        sys.exit(f"{a} and {b} differ, expected them to be bitwise equal")
