"""check_pipeline_lives.py: live microbatches and idle shares of compiled pipelines are those of the textbooks.

For 2 and 4 ranks p along the axis, K microbatches and each schedule. Stage s counts from 0; a forward, the cotangents and
the weight gradients of a microbatch take one unit of time each in a stage of a rank that has one.
"""

import json
import pathlib
import subprocess
import sys
import tempfile


def expect(schedule, ranks, count):
    """The live pairs of stage and microbatch of each rank, and the idle time of each; None where there is no formula."""
    if schedule == "gpipe":
        return [count] * ranks, 3 * (ranks - 1)
    if schedule == "1f1b":
        return [min(ranks - rank, count) for rank in range(ranks)], 3 * (ranks - 1)
    if schedule == "zb":
        return [min(ranks, count)] * ranks, ranks - 1 if count >= ranks else None
    chunks = int(schedule.removeprefix("interleaved:"))
    alive = [min(count * chunks, 2 * (ranks - rank - 1) + (chunks - 1) * ranks + 1) for rank in range(ranks)]
    return alive, 3 * (ranks - 1) / chunks


def main():
    faults, cases = [], 0
    for ranks in (2, 4):
        for schedule in ("gpipe", "1f1b", "zb", "interleaved:2", "interleaved:3"):
            for count in (ranks // 2, ranks, 2 * ranks):
                if schedule.startswith("interleaved") and count % ranks:
                    continue
                layers = ranks * int(schedule.partition(":")[2] or 1)
                with tempfile.TemporaryDirectory() as folder:
                    path = pathlib.Path(folder, "report.json")
                    subprocess.run(["gpt2", f"--layers={layers}", "--width=8", "--heads=1", "--context=4", "--vocab=16",
                                    "--batch=8", f"--mesh=pipeline={ranks}", f"--accumulate={count}",
                                    f"--pipeline-schedule={schedule}", f"--report={path}"],
                                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    report = json.loads(path.read_text(encoding="utf-8"))
                alive, idle = expect(schedule, ranks, count)
                case = f"{schedule}, {ranks} ranks, {count} microbatches"
                got = [role["alive_microbatches"] for role in report["roles"]]
                if got != alive:
                    faults.append(f"{case}: got {got} alive, expected {alive}")
                if report["microbatches"] != count or report["pipeline_axis"] != "pipeline":
                    faults.append(f"{case}: the report says {report['microbatches']} along {report['pipeline_axis']}")
                shares = [role["idle"] for role in report["roles"]]
                if idle is not None and any(abs(share - idle / (idle + 3 * count)) > 1e-9 for share in shares):
                    faults.append(f"{case}: got idle shares {shares}, expected {idle / (idle + 3 * count)}")
                if report["pipeline_idle"] != max(shares):
                    faults.append(f"{case}: got an idle share of {report['pipeline_idle']}, the largest is {max(shares)}")
                cases += 1
    if faults:
        sys.exit("\n".join(faults))
    print(f"{cases} pipelines")


main()
