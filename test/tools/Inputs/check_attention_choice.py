"""check_attention_choice.py: --context-attention=auto takes the kind that is fastest on a named machine.

Compiles gpt2 with each kind and without the option, whose predicted step must be the smallest.
"""

import json
import subprocess

SLOW = {
    "name": "slow", "memory": 100000000, "peak": {"f32": 1e9}, "products": [{"kind": "matrix", "type": "f32", "rates": [[1, 1e9]]}],
    "loop_flops": 1e9, "memory_rates": [[1, 1e9]], "launch_seconds": 1e-6, "collective_share": 0.1, "algorithms": ["ring"],
    "links": [{"name": "string", "ranks": 0, "bandwidth": 1e8, "latency": 1e-4}],
}


def predict(heads, machine, *options):
    command = ["gpt2", "--layers=1", "--width=32", f"--heads={heads}", "--context=64", "--vocab=61", "--batch=2", "--mesh=context=4",
               f"--machine={machine}", "--report=attention.json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        return None, done.stderr
    with open("attention.json") as file:
        return json.load(file), done.stderr


def main():
    with open("slow.json", "w") as file:
        json.dump(SLOW, file)
    for heads, machine in ((4, "h100x8"), (4, "slow.json"), (1, "h100x8"), (1, "slow.json")):
        steps = {}
        for kind in ("all-to-all", "ring", "gather"):
            report, _ = predict(heads, machine, f"--context-attention={kind}")
            if report:
                steps[kind] = report["predicted_step_ms"]
        report, notes = predict(heads, machine)
        kind = report["context_attention"]
        assert f"note: chose context-attention {kind}: " in notes, notes
        assert report["predicted_step_ms"] == min(steps.values()) == steps[kind], (kind, steps)
        print(f"{heads} heads on {machine}: {kind} of {len(steps)}")


main()
