"""Starts one run of one form, waits for it, and returns what it measured."""

import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# This build of the project; the same with deferred updates; where one is given, another build.
OURS = ("fsdpc", "deferred", "before")


@dataclasses.dataclass(frozen=True)
class Cores:
    """The ranks of a form, and the threads of each: the same for this project and for the peers."""
    ranks: int
    threads: int

    def __str__(self):
        return f"{self.ranks} x {self.threads}"

    def pin(self):
        """Lets the calling process, and what it starts, run on as many cores."""
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:self.ranks * self.threads])


@dataclasses.dataclass(frozen=True)
class Form:
    """Who computes (`fsdpc`, `deferred`, `before`, `torch`, `torch.compile`, `jax`), how, in which precision, with each
    block of the model computed again in backward or not, and in how many microbatches."""
    who: str
    how: str  # "one": one process; "ddp", "fsdp", "tensor", "sequence", "context" and, of ours, "ring": on `ranks`
    precision: str = "f32"
    remat: bool = False
    accumulate: int = 1

    def __str__(self):
        return (f"{self.who} {self.how}" + (" remat" if self.remat else "")
                + (f" accumulate={self.accumulate}" if self.accumulate > 1 else "")
                + ("" if self.precision == "f32" else f" {self.precision}"))


    def cores(self, ranks, threads):
        """One rank has the threads of all others."""
        return Cores(1, ranks * threads) if self.how == "one" else Cores(ranks, threads)


@dataclasses.dataclass
class Run:
    """The loss of each step, its seconds, processor time over all cores; seconds from the start to
    the end of the first step; bytes of memory of all ranks, the most after the first step, less
    that of the bare imports."""
    losses: list
    seconds: list
    core_seconds: list
    first_step: float
    memory: int


class Failed(Exception):
    pass


def environment(form, cores, caches):
    """The settings that make each peer fastest; see bench/README.md for what was tried."""
    caches.mkdir(parents=True, exist_ok=True)
    settings = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": str(cores.threads)}
    if form.who.startswith("torch"):
        settings |= {
            # Memory of a step is kept for the next one instead of being faulted in again.
            "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_MAX_": "0",
            "THP_MEM_ALLOC_ENABLE": "1",
            "TMPDIR": str(caches), "TORCHINDUCTOR_CACHE_DIR": str(caches / f"inductor-{form.how}-{form.precision}")}
    elif form.who == "jax":
        settings |= {
            "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": str(caches / "xla"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        if cores.ranks > 1:
            settings["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={cores.ranks}"
    return settings


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def peer(form, job, cores, caches):
    """A run of PyTorch or JAX. JAX has its ranks as devices of one process, which share its threads: those of the cores that it may run on."""
    script = HERE / ("jax_gpt2.py" if form.who == "jax" else "torch_gpt2.py")
    processes = cores.ranks if form.who != "jax" else 1
    job = {**job, "form": form.how, "precision": form.precision, "ranks": cores.ranks,
           "remat": form.remat, "accumulate": form.accumulate,
           "threads": cores.threads, "compiled": {"torch.compile": "blocks", "torch.compile-whole": "whole"}.get(form.who, "")}
    settings = environment(form, cores, caches)
    if processes > 1:
        settings |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                     "WORLD_SIZE": str(processes)}
    begin = time.monotonic()
    started = [subprocess.Popen([sys.executable, str(script), json.dumps(job)],
                                env={**settings, "RANK": str(rank)} if processes > 1 else settings,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=cores.pin)
               for rank in range(processes)]
    texts = [process.communicate() for process in started]
    said = {}
    steps, core_seconds = [], [0.0] * job["steps"]
    memory = 0
    for process, (out, err) in zip(started, texts):
        if process.returncode != 0:
            raise Failed(f"{form}: exit status {process.returncode}\n{err[-3000:]}")
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        for line in lines:
            said |= line
            if "step" in line:
                core_seconds[line["step"] - 1] += line["core_seconds"]
                if process is started[0]:
                    steps.append(line)
        memory += said["peak_after_first"] - said["imports"]
    return Run([s["loss"] for s in steps], [s["seconds"] for s in steps], core_seconds,
               steps[0]["at"] - begin, memory)


def children(pid):
    found = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            found |= {int(word) for word in (task / "children").read_text().split()}
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that ended just now has no children
    return found


def shared_out(pids):
    """Bytes that the processes hold, what they share counted once (proportional set sizes)."""
    total = 0
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def processor_time(pid):
    """Seconds that the process and its children have computed, user and system."""
    ticks = 0
    for member in (pid, *children(pid)):
        try:
            fields = pathlib.Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return processor_time(pid)  # it ended just now, and its time is its parent's
        ticks += sum(int(field) for field in fields[11:13 if member != pid else 15])
    return ticks / os.sysconf("SC_CLK_TCK")


def takes_threads(program):
    """Programs of early builds compute on one thread of each rank, and do not have the option."""
    return "--threads" in subprocess.run([program, "--help"], capture_output=True, text=True).stdout


def ours(form, job, program, folder, cores):
    """A run of a compiled program. Nothing is taken off its memory: it imports nothing."""
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)
    begin = time.monotonic()
    process = subprocess.Popen(
        [program, "--data", job["data"], "--init", job["init"], "--steps", str(job["steps"]),
         "--log", log, *([f"--threads={cores.threads}"] if form.who != "before" or takes_threads(program) else [])],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=cores.pin)
    first_step, memory, used = None, 0, []
    while process.poll() is None and len(used) < job["steps"]:
        time.sleep(0.005)
        done = log.read_text().count("\n") if log.exists() else 0
        if done == len(used):
            continue
        # A line is written when its step is done; after the first nothing is allocated any more.
        used += [processor_time(process.pid)] * (done - len(used))
        if first_step is None:
            first_step = time.monotonic() - begin
            try:
                memory = shared_out({process.pid} | children(process.pid))
            except (FileNotFoundError, ProcessLookupError):
                raise Failed(f"{form}: the program ended before its memory was read; give it more --steps") from None
    _, err = process.communicate()
    if process.returncode != 0:
        raise Failed(f"{form}: exit status {process.returncode}\n{err[-3000:]}")
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    core_seconds = [after - before for before, after in zip([0.0] + used, used)]
    return Run([s["loss"] for s in steps], [s["step_ms"] / 1e3 for s in steps], core_seconds, first_step, memory)


def compile_ours(form, compiler, model, job, ranks, folder, more=()):
    """(the program, seconds from the model to it); `more`: options of the compiler"""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [f"--{name}={value}" for name, value in model.items()]
    mesh = {"one": [], "ddp": [f"--mesh=data={ranks}", "--strategy=ddp"], "fsdp": [f"--mesh=fsdp={ranks}"],
            "tensor": [f"--mesh=tensor={ranks}", "--sequence-parallel=off"],
            "sequence": [f"--mesh=tensor={ranks}", "--sequence-parallel=on"],
            "context": [f"--mesh=context={ranks}", "--context-attention=all-to-all"],
            "ring": [f"--mesh=context={ranks}", "--context-attention=ring"]}
    command = [compiler, *sizes, f"--batch={job['batch']}", "--optimizer=adamw", f"--lr={job['lr']}",
               f"--eps={job['eps']}", f"--weight-decay={job['decay']}", f"--clip={job['clip']}",
               *mesh[form.how], *more, "-o", folder / "train"]
    if form.precision != "f32":
        command.append(f"--precision={form.precision}")
    if form.who == "deferred":
        command.append("--defer-updates=on")
    if form.remat:
        command.append("--remat=full")
    if form.accumulate > 1:
        command.append(f"--accumulate={form.accumulate}")
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{form}: {done.stderr[-3000:]}")
    return folder / "train", time.monotonic() - begin
