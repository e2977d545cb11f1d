#!/usr/bin/env python3
"""check_bench.py SCRATCH BUILD: each program of bench/ compiles with the runtime as it is, what measured rounds are made of
(bench/steps.py) and the floor of a step (bench/machine_rates.py, bench/report.py) are what their comments say; the compiler takes a quarter of the plans that bench/prediction compares, and of those that
bench/plan-choice gets, with --all all of them. With --all this machine is calibrated, and steps are predicted on it.
"""

import argparse
import json
import pathlib
import runpy
import sys

import training

ROOT = training.HERE.parent.parent


def check_programs(scratch, build):
    tools = json.loads((build / "share/fsdpc/toolchain.json").read_text(encoding="utf-8"))
    checked = 0
    for source in sorted((ROOT / "bench").glob("*.cpp")):
        if "gloo/" in source.read_text(encoding="utf-8") and not pathlib.Path("/usr/include/gloo").exists():
            continue
        # An object, which ccache keeps.
        launcher = ["env", f"CCACHE_BASEDIR={ROOT}", "CCACHE_NOHASHDIR=1", tools["launcher"]] if tools.get("launcher") else []
        training.run([*launcher, tools["compiler"], "-std=c++20", f"-I{ROOT}", *tools["flags"], "-O0", "-c", source,
                      "-o", scratch / f"{source.stem}.o"])
        checked += 1
    if checked < 5:
        sys.exit(f"got {checked} programs in bench/, expected at least 5")


def check_rounds():
    sys.path.insert(0, str(ROOT / "bench"))
    import steps  # pylint: disable=import-outside-toplevel,import-error

    def machine(rate):
        return {"name": "a", "cores": 2, "products": [{"kind": "matrix", "rates": [[16, rate], [64, 2 * rate]]}], "loop_flops": rate,
                "memory_rates": [[1024, rate]], "links": [{"bandwidth": rate}]}
    for got, expected in ((steps.drift(machine(100.0), machine(100.0)), 0.0), (steps.drift(machine(100.0), machine(108.0)), 0.08),
                          (steps.median_machine([machine(rate) for rate in (3.0, 1.0, 2.0)]), machine(2.0))):
        if got != expected and not (isinstance(expected, float) and abs(got - expected) < 1e-9):
            sys.exit(f"got {got}, expected {expected}")


def check_floor(scratch):
    import machine_rates  # pylint: disable=import-outside-toplevel,import-error
    import report  # pylint: disable=import-outside-toplevel,import-error

    # One weight of each kind at 100 GFLOP/s but for the gradients of the head, which is half of all flops, at 50; attention at the fastest.
    sizes = {"layers": 1, "width": 64, "heads": 1, "context": 32, "vocab": 12 * 64, "batch": 2}
    shapes = [{"library": 100.0, "own": 90.0}] * 12 + [{"library": 90.0, "own": 100.0}, {"library": 50.0, "own": 1.0}, {"library": 50.0, "own": 50.0},
                                                        {"library": 200.0, "own": 1.0}]
    program = scratch / "peak"
    program.write_text(f"#!/bin/sh\n[ \"$OMP_NUM_THREADS $*\" = '1 2 f32 32 64 192 64 64 64 256 256 64 64 768' ] || exit 1\necho '"
                       + json.dumps({"arithmetic": 400.0, "products": shapes, "copy": 3.0, "update": 7.0}) + "'\n", encoding="utf-8")
    program.chmod(0o755)
    rates = machine_rates.Rates(program, 2, "f32", sizes)
    # Of six equal parts four take 1 / 100, two 1 / 50.
    products, attention = 3 * 64 * 2 * 24 * 64 * 64, 3 * 64 * 4 * 64 * 16
    floor = rates.floor(1000, 2)
    for got, expected in ((rates.products, 75.0), (rates.best, 200.0), (floor.products, products / 75e9), (floor.attention, attention / 200e9),
                          (floor.update, 2 * 28000 / 7e9), (floor.arithmetic, (products + attention) / 400e9)):
        if abs(got / expected - 1) > 1e-9:
            sys.exit(f"got {got}, expected {expected}")

    # Two rounds, of which the peer ran in the first: 6 / 4 and 6 / 3 are 1.75 in the middle.
    def form(*seconds):
        return {"seconds": [[second] for second in seconds], "core_seconds": [[second] for second in seconds], "step": sum(seconds) / len(seconds)}
    for attained, most, verdict in ((1.75, 2.5, "reached"), (1.2, 1.3, "more than the floor permits"), (1.2, 3.0, "missed")):
        peer = 6.0
        floors = [{"products": peer / most - 1.0, "attention": 0.5, "update": 0.5, "arithmetic": 0.0}] * 2
        ours = form(4.0, 3.0) if attained == 1.75 else form(5.0, 5.0)
        text = report.permitted("m", {"forms": {"fsdpc one": ours, "torch one": form(peer)}, "floors": {"fsdpc one": floors, "torch one": floors}}, "step", 2)
        cells = [cell.strip() for cell in text[-1].split("|")]
        if len(text) != 5 or cells[5:10] != [f"{attained:.2f}", f"{most:.2f}", "-", "1.4", verdict]:
            sys.exit(f"got {text}, expected {attained}, {most}, {verdict}")


def check_plans(scratch, build):
    prediction, choice = (runpy.run_path(str(ROOT / "bench" / name)) for name in ("prediction", "plan-choice"))
    some = 1 if training.WHOLE else 4
    for plan in list(dict.fromkeys(prediction["PLANS"] + prediction["LINKED"]))[::some]:
        training.run([build / "bin/gpt2", *prediction["MODEL"].split(), *plan.split(), "--report"])
    for model, limit in choice["CASES"][::some]:
        rows = choice["plans_of"](model, limit, "host", scratch, argparse.Namespace(build=build))
        training.run([build / "bin" / model.split()[0], *choice["words_of"](rows[0]), "--report"])


def check_calibration(scratch, build):
    machine, report = scratch / "machine.json", scratch / "report.json"
    training.run([ROOT / "bench/calibrate", "--build", build, "-o", machine])
    training.run([build / "bin/gpt2", "--layers=2", "--width=64", "--heads=2", "--context=32", "--vocab=256", "--batch=8", "--mesh=fsdp=2",
                  f"--machine={machine}", f"--report={report}", "--emit=source", "-o", scratch / "source"])
    found = json.loads(report.read_text(encoding="utf-8"))
    if found["predicted_machine"] != "machine" or not 0.05 < found["predicted_step_ms"] < 5000:
        sys.exit(f"got {found['predicted_step_ms']} ms on '{found['predicted_machine']}'")


def main(scratch, build):
    check_programs(pathlib.Path(scratch), pathlib.Path(build))
    check_rounds()
    check_floor(pathlib.Path(scratch))
    check_plans(pathlib.Path(scratch), pathlib.Path(build))
    if training.WHOLE:
        check_calibration(pathlib.Path(scratch), pathlib.Path(build))


if __name__ == "__main__":
    main(*sys.argv[1:])
