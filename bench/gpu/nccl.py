"""NCCL itself on one GPU: one rank that goes through all of it, and several ranks as processes of their own."""

import concurrent.futures
import ctypes
import os
import re

from gpu.cases import between_meshes, data_of, program_of
from gpu.checking import read_log, worst
from gpu.report import Budget, OutOfTime, run, said

CASES = ("linear", "gpt2-tiny", "gpt2-tiny-bf16")
# A communicator of all ranks is split for each of the program's.
OPENED = re.compile(r"ncclCommSplit\b.* nranks (\d+) .*Init COMPLETE")


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


def start(program, folder, name, ranks, steps, budget, variables, tag):
    """The ranks of a job, each a process on the first GPU: (log of rank 0, worst exit status, all that was said)."""
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
    return read_log(log), max(status for status, _ in ended), "\n".join(text for _, text in ended)


def why(text):
    """The line that says best why NCCL did not take the ranks."""
    lines = [line.strip() for line in text.splitlines()]
    for sign in ("Duplicate GPU", "Multiple Ranks", "error:", "NCCL WARN"):
        for line in lines:
            if sign in line:
                return line[-160:]
    return lines[-1][-160:] if lines else "nothing was said"


def check_one_rank(build, folder, name, steps, expected, budget, report):
    """A rank by itself copies; told to, it goes through NCCL: communicators, a window, collectives."""
    what = f"{name} on 1 rank through NCCL"
    log, status, text = start(build / program_of(name, "1"), folder, name, 1, steps, budget,
                              lambda rank: {"FSDP_NCCL_ALWAYS": "1"}, "nccl")
    report.details(what, text)
    opened = len(OPENED.findall(text))
    if status or len(log) != steps:
        report.fail(f"{what}: status {status}, {len(log)} of {steps} steps\n{said(text)}")
    elif not opened:
        report.fail(f"{what}: no communicator was made\n{said(text)}")
    else:
        difference = worst(log, expected)
        line = f"{what}: {opened} communicators, losses within {difference:.2g} of those without (allowed 0)"
        report.ok(line) if difference == 0 else report.fail(line)


def check_several(build, folder, name, ranks, steps, expected, how, allowed, budget, report):
    """True where NCCL took them."""
    words, variables = how
    what = f"{name} on {ranks} ranks of one GPU by NCCL ({words})"
    log, status, text = start(build / program_of(name, str(ranks)), folder, name, ranks, steps, budget, variables, "nccl")
    report.details(what, text)
    if not OPENED.search(text):
        report.left_out(what, f"NCCL did not take them: {why(text)}; loopback ran instead")
        return False
    if status or len(log) != steps:
        report.fail(f"{what}: status {status}, {len(log)} of {steps} steps\n{said(text)}")
    else:
        difference = worst(log, expected)
        line = f"{what}: losses within {difference:.2g} of 1 rank (allowed {allowed:g})"
        report.ok(line) if difference <= allowed else report.fail(line)
    return True


def check_nccl(build, folder, cases, library, most_steps, budget, report):
    """Every case of CASES that was prepared; its losses on one rank are in the logs of check_cases."""
    part, version = Budget(150, budget), version_of(library)
    report(f"NCCL {version // 10000}.{version // 100 % 100}.{version % 100}" if version else "NCCL of an unknown version")
    how, taken = sharing(version), []
    for name in (name for name in CASES if name in cases):
        steps = min(cases[name]["steps"], most_steps)
        expected = read_log(folder / "logs" / f"{name}-1.jsonl")
        several = sorted(int(mesh) for mesh in cases[name]["meshes"] if mesh != "1")
        if not expected:
            report.left_out(f"{name} through NCCL", "it has no losses on 1 rank to compare with")
            continue
        try:
            check_one_rank(build, folder, name, steps, expected, part, report)
            # Where NCCL did not take the ranks of one case it takes none.
            if several and False not in taken:
                allowed = between_meshes(cases[name]["options"])
                taken.append(check_several(build, folder, name, several[0], steps, expected, how, allowed, part, report))
        except OutOfTime as error:
            report.left_out(f"{name} through NCCL", str(error))
    if taken:
        report(f"ranks that share the GPU: by {'NCCL, with ' + how[0] if all(taken) else 'loopback'}")
