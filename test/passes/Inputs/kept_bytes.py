"""kept_bytes.py WORK: what a block keeps from forward to backward, against a formula.

Compares, for models and rematerializations, the activations that the reports of two blocks more have more, with the terms of
docs/memory.md#what-a-block-keeps. Prints the formula of each with its bytes."""

import json
import pathlib
import subprocess
import sys

FEW, MORE = 6, 8
GPT2 = {"width": 64, "heads": 8, "context": 16, "vocab": 61, "batch": 8}
LLAMA = {**GPT2, "kv-heads": 4, "ffn": 96}
CASES = (  # model, sizes, ranks of `tensor`, further options, bytes of an element
    ("gpt2", GPT2, 4, ["--dropout=0.1", "--precision=bf16"], 2),
    ("llama", LLAMA, 2, [], 4),
    ("llama", LLAMA, 8, ["--precision=bf16"], 2),  # more than the 4 heads of keys and values
)


def activations(work, model, layers, sizes, options):
    report = work / "report.json"
    subprocess.run([model, f"--layers={layers}", *(f"--{name}={size}" for name, size in sizes.items()), *options, f"--report={report}"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads(report.read_text())["activations"]


def terms(model, remat, sizes, ranks):
    """name -> elements of a token that a rank keeps of a block, and f32 numbers of statistics."""
    h, a = sizes["width"], sizes["heads"]
    if remat == "full":
        return {"h/t": h / ranks}, 0
    if remat == "every:2":
        return {"h/2t": h / 2 / ranks}, 0
    kept = {"4h/t": 4 * h / ranks}  # the block's result, attention's, its projection or the sum with it, queries
    if model == "gpt2":
        groups, f, norms = h, 4 * h, 4  # a mean and a deviation for each norm
        kept["2h/t"] = 2 * groups / ranks
    else:
        groups, f, norms = sizes["kv-heads"] * h // a, sizes["ffn"], 2
        kept["2g/min(t,k)"] = 2 * groups / min(ranks, sizes["kv-heads"])
    products = 1 if model == "gpt2" else 2
    if remat == "selective":
        kept[f"{products}f/t"] = products * f / ranks
        return kept, a / ranks
    kept[f"{products + 1}f/t"] = (products + 1) * f / ranks
    kept["2h"] = 2 * h
    return kept, (a + norms) / ranks


def main(work):
    work = pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    for model, sizes, ranks, further, size in CASES:
        tokens = sizes["batch"] * sizes["context"]
        for remat in ("none", "selective", "full", "every:2"):
            options = [f"--mesh=tensor={ranks}", f"--remat={remat}", *further]
            few, more = (activations(work, model, layers, sizes, options) for layers in (FEW, MORE))
            elements, statistics = terms(model, remat, sizes, ranks)
            expected = tokens * (size * sum(elements.values()) + 4 * statistics)
            formula = " + ".join(elements)
            if more - few != 2 * expected:
                sys.exit(f"{model} --mesh=tensor={ranks} --remat={remat}: a block keeps {(more - few) / 2:.0f} bytes, "
                         f"expected {expected:.0f}: {formula}, and {statistics:g} statistics of each of {tokens} tokens")
            print(f"{model} t={ranks} {remat}: {expected:.0f} bytes, {formula}")


main(sys.argv[1])
