"""Rung 7: ranks that share the GPU: as threads by loopback, through NCCL, as processes under MPS."""

import concurrent.futures
import contextlib
import ctypes
import os
import re
import shutil
import tempfile

from gpu.cases import NCCL, RANKS, between_meshes, data_of, program_of
from gpu.checking import compare, read_log
from gpu.ladder import Job
from gpu.report import cause, last, run, said

MPS = "nvidia-cuda-mps-control"
# A communicator of all ranks is split for each of the program's.
OPENED = re.compile(r"ncclCommSplit\b.* nranks (\d+) .*Init COMPLETE")
CREATED = re.compile(r"ncclComm(?:InitRankConfig|Split)\b.* nranks (\d+) .*Init COMPLETE")


def version_of(library):
    """NCCL's version as NCCL_VERSION_CODE has it; 0 where the library does not say."""
    version = ctypes.c_int(0)
    try:
        ctypes.CDLL(library).ncclGetVersion(ctypes.byref(version))
    except (OSError, AttributeError, TypeError):
        return 0
    return version.value


def sharing(version):
    """(what NCCL is told so that it takes ranks that share a GPU, the variables of rank r): NCCL 2.30 has a setting for it;
    before, it refuses ranks with one GPU and one host, so that each rank says it is a host of its own."""
    if version >= 23000:
        return "NCCL_MULTI_RANK_GPU_ENABLE=1", lambda rank: {"NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_MAX_CTAS": "2"}
    return "NCCL_HOSTID", lambda rank: {"NCCL_HOSTID": f"fsdp-gpu-check-{rank}", "NCCL_SOCKET_IFNAME": "lo",
                                        "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0"}


def start(machine, name, ranks, steps, budget, variables, tag):
    """The ranks of a job, each a process on the first GPU: (log of rank 0, 0 or the first other exit status, all that was said)."""
    folder, program = machine.folder, machine.build.path(program_of(name, str(ranks)))
    log = folder / "logs" / f"{name}-{ranks}-{tag}.jsonl"
    if log.exists():
        log.unlink()

    def one(rank):
        environment = {"FSDP_TIMEOUT": "45", "NCCL_DEBUG": "INFO", "CUDA_VISIBLE_DEVICES": "0", **variables(rank)}
        if ranks > 1:
            environment.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
                               LOCAL_WORLD_SIZE=str(ranks), MASTER_PORT=str(20000 + os.getpid() % 20000))
        return run([program, "--data", folder / data_of(name), "--steps", steps, "--communicator=nccl", "--log", log],
                   90, budget, environment)

    with concurrent.futures.ThreadPoolExecutor(ranks) as pool:
        ended = list(pool.map(one, range(ranks)))
    return read_log(log), next((status for status, _ in ended if status), 0), "\n".join(text for _, text in ended)


def refusal(text):
    """The line that says best that NCCL itself did not take the ranks; None where nothing does."""
    for sign in ("Duplicate GPU", "Multiple Ranks", "NCCL WARN", "invalid usage", "unhandled system error"):
        for line in text.splitlines():
            if sign in line:
                return line.strip()[-160:]
    return None


def losses_of_one(machine, name, steps, budget):
    """Those of the program without NCCL; [] after saying why there are none."""
    return machine.train(name, "1", steps, budget, "-alone")


def check_one_rank(machine, name, case, budget):
    """A rank by itself creates no communicator of NCCL; told to, it creates that of all ranks. Its program reduces nothing over one rank:
    windows and collectives of one are those of device-ranks."""
    report, steps, what = machine.report, machine.steps(case), f"{name} on 1 rank through NCCL"
    expected = losses_of_one(machine, name, steps, budget)
    if not expected:
        return
    log, status, text = start(machine, name, 1, steps, budget, lambda rank: {"FSDP_NCCL_ALWAYS": "1"}, "nccl")
    report.details(what, text)
    opened = len(CREATED.findall(text))
    if status or len(log) != steps:
        report.fail(what, f"status {status} and {len(log)} steps, '{cause(text)}'", f"status 0 and {steps} steps", said(text))
    elif not opened:
        report.fail(f"{what}: communicators", 0, "at least one", said(text))
    else:
        compare(report, f"{what}, {opened} communicators", "those without", log, expected, 0.0)


def check_several(machine, name, case, how, budget, mps=None):
    """Two or more processes on one GPU, each a rank."""
    report, steps = machine.report, machine.steps(case)
    words, variables = how
    ranks = min(int(mesh) for mesh in case["meshes"] if mesh != "1")
    what = f"{name} on {ranks} ranks of one GPU by NCCL ({words}{', under MPS' if mps else ''})"
    expected = losses_of_one(machine, name, steps, budget)
    if not expected:
        return
    log, status, text = start(machine, name, ranks, steps, budget, lambda rank: {**variables(rank), **(mps or {})},
                              "mps" if mps else "nccl")
    report.details(what, text)
    refused = refusal(text)
    if status and refused and not OPENED.search(text):
        report.left_out(what, f"NCCL did not take them: {refused}; loopback ran instead")
    elif status or len(log) != steps:
        report.fail(what, f"status {status} and {len(log)} steps, '{cause(text)}'", f"status 0 and {steps} steps", said(text))
    elif not OPENED.search(text):
        report.fail(f"{what}: communicators", 0, "at least one", said(text))
    else:
        compare(report, what, "1 rank", log, expected, between_meshes(case["options"]))


@contextlib.contextmanager
def mps_server(machine, budget):
    """The variables of clients of an MPS server of our own, or None after saying why there is none."""
    report, control = machine.report, shutil.which(MPS)
    if not control:
        report.left_out("MPS", f"no {MPS} on this machine")
        yield None
        return
    with tempfile.TemporaryDirectory() as place:
        variables = {"CUDA_MPS_PIPE_DIRECTORY": place, "CUDA_MPS_LOG_DIRECTORY": place, "CUDA_VISIBLE_DEVICES": "0"}
        # The daemon keeps its output descriptors open, so it does not inherit ours.
        status, text = run(["bash", "-c", f"'{control}' -d > '{place}/said' 2>&1 < /dev/null; status=$?; cat '{place}/said'; exit $status"],
                           30, budget, variables)
        report.details(f"{MPS} -d", text)
        if status:
            report.left_out("MPS", f"the machine refuses it: {MPS} -d: status {status}, {last(text)}")
            yield None
            return
        try:
            yield variables
        finally:
            run(["bash", "-c", f"echo quit | '{control}'"], 15, None, variables)


def check_mps(machine, name, case, how, budget):
    with mps_server(machine, budget) as variables:
        if not variables:
            return
        # If a program cannot reach the server, it finds no GPU: then the machine refuses MPS.
        status, text = run([machine.build.path("device-first")], 60, budget, variables)
        if status:
            machine.report.left_out("MPS", f"the machine refuses it: device-first: status {status}, {last(text)}")
            return
        check_several(machine, name, case, how, budget, variables)


def check_ranks(machine, program, jobs, budget):
    """Collectives between ranks that share the GPU, against those of the host; and that faults reach every rank."""
    report = machine.report
    for mesh, mode, how, expected, says in jobs:
        patience = "5" if mode == "leave" else "60"
        always = {"FSDP_NCCL_ALWAYS": "1"} if how == "nccl-always" else {}
        status, text = run([machine.build.path(program), mesh, mode, how.split("-")[0]], 45, budget,
                           {"FSDP_TIMEOUT": patience, **always})
        what = f"{mode} over {mesh} by {how}"
        report.details(what, text)
        if status == expected and re.search(says, text):
            report.ok(f"{what}: {last(text)}")
        else:
            report.fail(what, f"status {status} and '{last(text)}'", f"status {expected} and '{says}'", said(text))


def rank_jobs(machine, cases, program, library, has_tests, after):
    report, version = machine.report, version_of(library)
    how, jobs = sharing(version), []
    if has_tests:
        # Under the emulator the unit tests do the rest.
        some = [job for job in RANKS if job[1] in ("steps", "throw")] if machine.emulator else RANKS
        jobs.append(Job("ranks as threads on one GPU", lambda budget: check_ranks(machine, program, some, budget), after, [program]))
    known = [name for name in NCCL if name in cases]
    for name in known:
        jobs.append(Job(f"{name} on one rank through NCCL",
                        lambda budget, name=name: check_one_rank(machine, name, cases[name], budget), after, [program_of(name, "1")]))
    for name in known[:1]:
        several = str(min(int(mesh) for mesh in cases[name]["meshes"] if mesh != "1"))
        programs = [program_of(name, "1"), program_of(name, several)]
        jobs.append(Job(f"{name} as processes under MPS", lambda budget: check_mps(machine, name, cases[name], how, budget), after, programs))
        jobs.append(Job(f"{name} as processes without MPS", lambda budget: check_several(machine, name, cases[name], how, budget), after,
                        programs))
    return jobs
