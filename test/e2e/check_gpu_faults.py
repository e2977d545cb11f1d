#!/usr/bin/env python3
"""check_gpu_faults.py SCRATCH BUILD: each rung of bench/gpu_check finds a fault, says what failed, what was got and what was
expected, and stops none of the others. Everything runs under the emulator of the folder BUILD.
"""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

import training

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CASES = "linear,gpt2-124m-bf16,llama-wide,llama-wide-chunks"


class Folder:
    """What `--prepare` wrote, and the reports of runs there."""

    def __init__(self, scratch, build):
        self.place, self.build, self.scratch = scratch / "prepared", build, scratch
        self.call(["--bin", build / "bin", "--prepare", self.place, "--cases", CASES, "--emulator", build], {}, ROOT / "bench")

    def call(self, words, environment, script=None):
        """(status, what was said)"""
        found = subprocess.run([sys.executable, "-B", (script or self.place) / "gpu_check", *map(str, words)], text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment})
        return found.returncode, found.stdout

    def expect(self, what, status, lines, *options, environment=None, absent=()):
        """What a run says: `lines`, in this order, and none of `absent`, all of them patterns."""
        got, text = self.call(["--run", self.place, self.scratch / "report", "--emulator", self.build, *options], environment or {})
        at = 0
        for line in lines:
            match = re.compile(line).search(text, at)
            if not match:
                raise SystemExit(f"{what}: got\n{text}\nexpected '{line}' after position {at}")
            at = match.end()
        for line in absent:
            if re.search(line, text):
                raise SystemExit(f"{what}: got\n{text}\nexpected no '{line}'")
        if got != status:
            raise SystemExit(f"{what}: got status {got}, expected {status}:\n{text}")
        print(f"{what}: found", flush=True)
        return text

    def program(self, name):
        return self.place / "build-emulated" / name


class Replaced:
    """Another program in the place of one, for a while; `$1` in its text is the true one."""

    def __init__(self, folder, name, text):
        self.path, self.kept = folder.program(name), folder.program(f"{name}.kept")
        self.text = f"#!/bin/bash\ntrue_one={self.kept}\n{text}\n"

    def __enter__(self):
        self.path.rename(self.kept)
        executable(self.path, self.text)

    def __exit__(self, *error):
        self.kept.rename(self.path)


def executable(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def with_tools(scratch, **tools):
    """An environment whose PATH begins with a folder of these programs, texts of bash."""
    place = scratch / "tools"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, text in tools.items():
        executable(place / name.replace("_", "-"), f"#!/bin/bash\n{text}\n")
    return {"PATH": f"{place}:{os.environ['PATH']}"}


def check_first_rungs(folder):
    # Without code for the device no other result is available: all of them depend on it.
    folder.expect("no kernels for the device", 1, [
        r"FAILED  kernels found: find a kernel's code for this device: got cudaErrorNoKernelImageForDevice .*, expected success",
        r"left out 1\. one step of linear: depends on '1\. kernels found', which failed or was left out",
        r"left out 1\. one product: depends on",
        r"left out 2\. losses of linear: depends on", r"left out 3\. gpt2-124m-bf16 on one rank: depends on",
        r"left out 4\. products of gpt2-124m: depends on", r"left out 5\. llama-wide against llama-wide-chunks: depends on",
        r"left out 6\. bits of linear on 1 ranks: depends on", r"left out 7\. ranks as threads on one GPU: depends on",
        r"0 agreed|[1-9] agreed"], environment={"FSDP_EMULATOR": "noimage"}, absent=[r"ok      linear", "ok      one "])
    recorded = folder.place / "cases" / "linear" / "cpu.jsonl"
    kept = recorded.read_text()
    recorded.write_text(re.sub(r'"loss": [0-9]', '"loss": 9', kept))
    folder.expect("losses that are not the CPU's", 1, [
        r"FAILED  one step of linear: losses within .* of the CPU \(allowed 0.0001\): got loss [0-9.]+ at step 1, expected 9",
        r"FAILED  linear on 1 ranks: losses within .* of the CPU .*: got loss .* at step \d, expected 9",
        r"ok      linear on 1 ranks: losses within 0 of itself, traced",
        r"FAILED  linear on 3 ranks: losses within .* of the CPU", r"ok      linear on 3 ranks: losses within .* of 1 rank",
        r"3 failed:"], "--rungs=1,2")
    recorded.write_text(kept)
    with Replaced(folder, "cuda-kernel-tests", "echo '[  FAILED  ] RowKernels/0.RmsNormIsTheCpus'; exit 1"):
        folder.expect("a test that fails", 1, [
            r"FAILED  one test of RowKernelsTest.cpp: status 1, failed tests RowKernels/0.RmsNormIsTheCpus: got 0 tests passed, "
            r"expected all of at least one", r"ok      one product: 1 tests agree",
            r"FAILED  one test of AttentionKernelsTest.cpp: status 1"], "--rungs=1")
    source = folder.place / "cases" / "linear" / "3" / "train.cpp"
    kept = source.read_text()
    source.write_text("#error planted\n" + kept)
    folder.program("train-linear-3").unlink()
    folder.expect("a program that does not compile", 1, [
        r"left out 2\. losses of linear: depends on the program train-linear-3, which was not built", r"error: planted",
        r"FAILED  the build of small models: built programs: got none for train-linear-3, expected 1 programs"], "--rungs=2")
    source.write_text(kept)


def check_sizes(folder):
    """Rungs 3 to 6."""
    folder.expect("memory that is too small", 1, [
        r"FAILED  gpt2-124m-bf16 on 1 ranks: the program: got status \d+, '.*arena.*', expected status 0"],
        "--rungs=3", environment={"FSDP_EMULATOR": "memory=300000"})
    manifest = folder.place / "manifest.json"
    kept = manifest.read_text()
    planned = json.loads(kept)
    planned["cases"]["gpt2-124m-bf16"]["arena"] += 64
    arena = planned["cases"]["gpt2-124m-bf16"]["arena"]
    manifest.write_text(json.dumps(planned))
    folder.expect("an arena that is not as planned", 1, [
        rf"FAILED  gpt2-124m-bf16: bytes of the arena that were used: got {arena - 64}, expected {arena}, the plan",
        r"ok      gpt2-124m-bf16: libraries took \d+ MiB beside", r"ok      gpt2-124m-bf16: losses within 0 of itself, traced"],
        "--rungs=3")
    manifest.write_text(kept)
    with Replaced(folder, "train-gpt2-124m-bf16-1", """[ "$FSDP_GRAPH" ] && exec "$true_one" "$@" --seed 5
[ "$FSDP_TUNE" ] && [ -d "$FSDP_TUNE_CACHE" ] && exec "$true_one" "$@" --lr 0.5
[ "$NVTX_INJECTION64_PATH" ] && exec env FSDP_NVTX=0 "$true_one" "$@"
exec "$true_one" "$@\""""):
        folder.expect("graphs, choices and ranges that are not what they should be", 1, [
            r"FAILED  gpt2-124m-bf16, as graphs: loss and norm of step 1: got \([0-9.]+, .*, expected \([0-9.]+, ",
            r"ok      gpt2-124m-bf16, measured algorithms: losses within .* of the first ones",
            r"FAILED  gpt2-124m-bf16, \d+ choices that were kept: loss and norm of step 2: got \([0-9.]+, ",
            r"ok      gpt2-124m-bf16, in ranges: losses within 0 of a run without",
            r"FAILED  gpt2-124m-bf16: ranges for profilers: got none for 3 names, the first 'step 1', expected"], "--rungs=3")
    folder.expect("a product without an algorithm", 1, [
        r"FAILED  products of gpt2-124m: attention in bf16 32 x 192 x 64: got cuBLASLt status \d+, expected a time",
        r"ok      kernels of gpt2-124m: \d\d measured"], "--rungs=4", environment={"FSDP_EMULATOR": "products=none:1"})
    with Replaced(folder, "train-llama-wide-chunks-1", 'exec "$true_one" "$@" --seed 5'):
        folder.expect("logits at a time that give another loss", 1, [
            r"FAILED  llama-wide: losses within .* of llama-wide-chunks \(allowed 0.0005\): got loss [0-9.]+ at step \d, expected [0-9.]+",
            r"ok      llama-wide: the first loss is"], "--rungs=5")
    with Replaced(folder, "train-linear-1", '[ "$CUDA_LAUNCH_BLOCKING" ] && exec "$true_one" "$@" --seed 5; exec "$true_one" "$@"'):
        folder.expect("other bits with launches that block", 1, [
            r"ok      linear on 1 ranks, another process: the same 3 losses and weights",
            r"FAILED  linear on 1 ranks, CUDA_LAUNCH_BLOCKING=1: loss and norm of step 1: got \([0-9.]+, .*, expected \([0-9.]+, ",
            r"ok      linear on 3 ranks, CUDA_LAUNCH_BLOCKING=1: the same 3 losses"], "--rungs=6")


def check_last_rungs(folder):
    scratch = folder.scratch
    refuses = with_tools(scratch, nvidia_cuda_mps_control="echo 'An instance of this daemon cannot run here'; exit 1")
    with Replaced(folder, "cuda-ranks", "echo nothing"):
        folder.expect("ranks that do something else, and MPS that the machine refuses", 1, [
            r"FAILED  steps over fsdp=7 by loopback: got status 0 and 'nothing', expected status 0 and 'done'",
            r"ok      linear on 1 rank through NCCL",
            r"left out MPS: the machine refuses it: nvidia-cuda-mps-control -d: status 1, An instance of this daemon cannot run here",
            r"left out linear on 3 ranks of one GPU by NCCL \(NCCL_HOSTID\): NCCL did not take them"], "--rungs=7", environment=refuses)
    quits = scratch / "quit"
    takes = with_tools(scratch, nvidia_cuda_mps_control=f'[ "$1" = -d ] || cat > {quits}')
    folder.expect("MPS that runs", 0, [
        r"left out linear on 3 ranks of one GPU by NCCL \(NCCL_HOSTID, under MPS\): NCCL did not take them"], "--rungs=7", environment=takes)
    if quits.read_text() != "quit\n":
        raise SystemExit(f"MPS was told '{quits.read_text()}' in the end, expected 'quit'")
    sanitizer = with_tools(scratch, compute_sanitizer="""case $2 in
memcheck) echo '========= ERROR SUMMARY: 0 errors';;
racecheck) echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'; exit 99;;
initcheck) echo '========= Error: Device not supported'; exit 1;;
*) exit 3;;
esac""")
    folder.expect("what sanitizers find, and what the machine refuses", 1, [
        r"ok      memcheck of RowKernelsTest.cpp: ERROR SUMMARY: 0 errors",
        r"FAILED  racecheck of \w+KernelsTest.cpp: got status 99, RACECHECK SUMMARY: 1 hazard .*, expected status 0 and no errors",
        r"left out initcheck of \w+KernelsTest.cpp: the machine refuses it: ========= Error: Device not supported",
        r"FAILED  synccheck of \w+KernelsTest.cpp: got status 3, nothing said"], "--rungs=8", environment=sanitizer)
    fails, prints = scratch / "fails", scratch / "prints"
    executable(fails, "#!/bin/bash\necho 'CUDA error: planted'; exit 1\n")
    executable(prints, '#!/bin/bash\necho \'{"name": "step gpt2-124m", "ms": 50.0}\'\n')
    folder.expect("PyTorch that fails", 1, [
        r"FAILED  PyTorch's sdpa: torch_peer.py: got status 1 and 0 figures, expected status 0 and some", r"    CUDA error: planted"],
        "--rungs=9", environment={"GPU_CHECK_PYTHON": str(fails)})
    folder.expect("PyTorch's figures beside ours", 0, [
        r"ok      PyTorch's step gpt2-124m: 50.000 ms, ours [0-9.]+ ms \([0-9.]+ of it\)", r"figure: gpt2-124m-bf16: .* ms a step"],
        "--rungs=3,9", environment={"GPU_CHECK_PYTHON": str(prints)})


def check_parts(folder):
    """What a part has no time for is done by the next one, and nothing twice."""
    with Replaced(folder, "device-bench", 'sleep 2; exec "$true_one" "$@"'):
        said = folder.expect("a part that is over", 0, [
            r"part 1 of 4", r"not done: 4\. .*: (no time is left|the time of this part was over|the part's time ended before)",
            r"jobs are to be continued: the part's time is over, first '4\. .*'; run --part=2"],
            "--part=1", "--rungs=4", "--time-limit=6")
    said += folder.expect("the next part", 0, [r"part 2 of 4, \d+ jobs are done", r"== 4\.", r"6 agreed, 0 left out, 0 failed"],
                          "--part=2", "--rungs=4", absent=["to be continued"])
    done = re.findall(r"^ok      (.*): \d+ measured", said, re.M)
    if len(done) != 6 or len(set(done)) != 6:
        raise SystemExit(f"both parts did {done}, expected six jobs once each")
    folder.expect("no time at all", 1, [r"not done: 1\. kernels found: no time is left", r"0 agreed, \d\d left out, 1 failed"],
                  "--time-limit=0.1")


def check_floors():
    """A time below the floor is a mistake of the measurement."""
    sys.path.insert(0, str(ROOT / "bench"))
    from gpu.bench import show  # pylint: disable=import-outside-toplevel
    row = {"name": "adamw", "type": "f32", "shape": "1", "bytes": 4.8e9, "flops": 0, "ms": 2.0}
    lines = []
    if show(row, "NVIDIA H200", lines.append) or "50 % bytes" not in lines[-1]:
        raise SystemExit(f"got '{lines[-1]}', expected 50 % of the floor")
    found = show({**row, "ms": 0.5}, "NVIDIA H200", lines.append)
    if found != ("adamw f32 1: ms of a launch", "0.5000", "at least its floor of 1.0000"):
        raise SystemExit(f"got {found}, expected a launch that is faster than its floor")
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        found = show({**row, "ms": wrong}, "NVIDIA H200", lines.append)
        if found is None or found[2] != "more than 0":
            raise SystemExit(f"got {found} for a launch of {wrong} ms, expected that it is no time")


def check_limits(scratch):
    """A job that hangs has failed, and the next one follows; one that the part has no time for has not, unless it has found a
    failure. Nothing that failed is repeated; jobs that nobody did are a failure in the end."""
    from gpu.ladder import Job, Rung, climb  # pylint: disable=import-outside-toplevel
    from gpu.report import Budget, Report, State, run  # pylint: disable=import-outside-toplevel

    def hang(report, name, finds, budget):
        for text in finds:
            report.fail(text)
        run(["true" if name == "is silent" else "sleep", "1000"], 600, budget)

    def part(number, seconds, jobs, last):
        state = State(scratch / "limits.json", number == 1)
        report = Report(scratch / "limits.txt", state)
        made = [Job(name, lambda budget, name=name, finds=finds: report.ok(name) if finds is None else hang(report, name, finds, budget),
                    (), (), most)
                for name, finds, most in jobs]
        rungs = [Rung(1, "limits", made)]
        status = report.finish(rungs, climb(rungs, None, None, Budget(seconds), state, report), None if last else number + 1)
        return status, (scratch / "limits.txt").read_text(), list(state.done)

    def require(got, status, lines, done):
        if got[0] != status or got[2] != done or any(line not in got[1] for line in lines):
            raise SystemExit(f"got {got}, expected status {status}, {lines} and {done}")
    hangs = "FAILED  1. hangs: it did not end within the 3 s that it may take"
    jobs = [("hangs", [], 3), ("follows", None, 600), ("found something", ["a fault"], 600), ("waits", [], 600)]
    require(part(1, 8, jobs, False), 1, [hangs, "ok      ", "FAILED  a fault", "left out the rest of 1. found something: the time of this part",
                                         "not done: 1. waits: no time is left"], ["1. hangs", "1. follows", "1. found something"])
    require(part(2, 3, jobs, True), 1, ["not done: 1. waits: the time of this part was over", "2 failed"],
            ["1. hangs", "1. follows", "1. found something"])
    require(part(1, 3, jobs[3:], True), 1, ["1 left out"], [])
    require(part(1, 3, [("is silent", [], 600)], True), 1, ["FAILED  1. is silent: what it found: got nothing"], ["1. is silent"])
    require(part(1, 3, jobs[1:2] + jobs[3:], True), 1, ["1 agreed, 1 left out, 0 failed"], ["1. follows"])
    require(part(1, 3, jobs[1:2] + jobs[3:], False), 0, ["run --part=2"], ["1. follows"])
    print("a job that hangs: found", flush=True)


def check_sanitizers():
    """What is not the sanitizer's own refusal is a failure, and so is a hang."""
    from gpu import sanitizing  # pylint: disable=import-outside-toplevel
    for status, text, kind in ((1, "========= Error: Device not supported", "left out"), (124, "\nended after 150 s", "failed"),
                               (1, "error: rank 0: operation not supported", "failed"),
                               (0, "========= ERROR SUMMARY: 0 errors", "ok")):
        noted = []

        class Machine:
            """Notes what is reported."""
            class report:  # pylint: disable=invalid-name
                details = staticmethod(lambda *_: None)
                ok = staticmethod(lambda *_, **__: noted.append("ok"))
                fail = staticmethod(lambda *_, **__: noted.append("failed"))
                left_out = staticmethod(lambda *_, **__: noted.append("left out"))
        kept, sanitizing.run = sanitizing.run, lambda *_, status=status, text=text: (status, text)
        sanitizing.sanitize(Machine, "tool", "memcheck", "a test", [], None)
        sanitizing.run = kept
        if noted != [kind]:
            raise SystemExit(f"status {status} and '{text}' got {noted}, expected {kind}")


def check_processes(scratch):
    """Ranks that share a GPU are left out only where NCCL refuses them; a rank that dies is a failure, whichever it is."""
    from gpu import nccl  # pylint: disable=import-outside-toplevel
    from gpu.report import Report, State  # pylint: disable=import-outside-toplevel
    opened = "a:1:2 [0] NCCL INFO ncclCommSplit comm 0x5 rank 0 nranks 2 cudaDev 0 - Init COMPLETE\n"
    crossing = "a:1:2 [0] NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000\n"
    (scratch / "logs").mkdir(exist_ok=True)
    for what, statuses, text, kind in (("agrees", (0, 0), opened, "ok"), ("dies in the end", (0, -11), opened, "failed"),
                                       ("dies before NCCL", (-11, -11), "", "failed"),
                                       ("our own error", (3, 3), "error: got a driver of CUDA 12.2", "failed"),
                                       ("no communicator", (0, 0), "", "failed"),
                                       ("refused", (1, 1), crossing + "error: rank 0: lost", "left out")):
        state = State(scratch / "processes.json", True)

        class Machine:
            """Two ranks that log three losses."""
            report, folder = Report(scratch / "processes.txt", state), scratch
            steps = staticmethod(lambda case: 3)
            train = staticmethod(lambda *_: [{"step": step, "loss": 1.0} for step in (1, 2, 3)])
            class build:  # pylint: disable=invalid-name
                path = staticmethod(lambda name: scratch / name)

        def run(command, _limit, _budget, environment, statuses=statuses, text=text):
            if environment["RANK"] == "0":
                command[-1].write_text("".join(f'{{"step": {step}, "loss": 1.0}}\n' for step in (1, 2, 3)))
            return statuses[int(environment["RANK"])], text
        kept, nccl.run = nccl.run, run
        nccl.check_several(Machine, "linear", {"meshes": ["1", "2"], "options": ""}, ("NCCL_HOSTID", lambda rank: {}), None)
        nccl.run = kept
        found = [of for of, _ in Machine.report.noted]
        if found != [kind]:
            raise SystemExit(f"ranks of which one {what}: got {found}, expected {kind}: {Machine.report.noted}")
    print("ranks that die: found", flush=True)


def check_options():
    """Options that a run would not look at are refused."""
    for words, says in ((["--run", "d", "out", "--cases=linear"], "--cases has no effect with --run"),
                        (["--run", "d", "out", "--quick"], "--quick has no effect with --run"),
                        (["--run", "d", "out", "--bin=b"], "--bin has no effect with --run"),
                        (["--prepare", "d", "--part=1"], "--part has no effect with --prepare"),
                        (["--prepare", "d", "--rungs=1"], "--rungs has no effect with --prepare"),
                        (["--prepare", "d", "--time-limit=9"], "--time-limit has no effect with --prepare"),
                        (["out", "--part=2"], "--part has no effect with OUT"),
                        (["--run", "d", "out", "--time-limit=0"], "--time-limit got 0, expected seconds, more than 0"),
                        (["--run", "d", "out", "--time-limit=nan"], "--time-limit got nan, expected seconds, more than 0")):
        got = subprocess.run([sys.executable, "-B", ROOT / "bench" / "gpu_check", *words], text=True, capture_output=True, check=False)
        if got.returncode != 2 or says not in got.stderr:
            raise SystemExit(f"{words}: got status {got.returncode} and '{got.stderr}', expected 2 and '{says}'")
    print("options without effect: found", flush=True)


def main(scratch, build):
    scratch = pathlib.Path(scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    check_floors()
    check_sanitizers()
    check_processes(scratch)
    check_options()
    check_limits(scratch)
    folder = Folder(scratch, pathlib.Path(build))
    folder.expect("no fault", 0, [r"ok      kernels found", r"0 failed"], "--rungs=1,2")
    check_parts(folder)
    if training.WHOLE:
        check_sizes(folder)
        check_last_rungs(folder)
    check_first_rungs(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
