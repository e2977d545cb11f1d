"""Programs whose calls of the system fail: test/faults/FaultyCalls.cpp says how faults are written."""

import os


def environment(library, *faults, calls=None):
    """That of a program in which these faults happen; `calls`: a file that lists its calls."""
    values = {**os.environ, "LD_PRELOAD": str(library), "FSDP_TEST_FAULTS": ";".join(faults)}
    if calls:
        values["FSDP_TEST_CALLS"] = str(calls)
    return values


def calls_of(path):
    """What a program has called: for each process ("parent", "0", ...) the paths of its calls in their order, (function, path)."""
    processes = {}
    for line in path.read_text(errors="replace").splitlines():
        process, _, call, file = line.split(" ", 3)
        processes.setdefault(process, []).append((call, file))
    return processes
