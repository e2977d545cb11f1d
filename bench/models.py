"""The models that are compared, their data and their initial weights."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "bench"

# nanoGPT's small GPT on bytes, and GPT-2 at a context that a CPU trains.
MODELS = {
    "10m": {"model": {"layers": 6, "width": 384, "heads": 6, "context": 256, "vocab": 256},
            "batch": 16, "data": "bible/train.txt"},
    # Measured only on request, to try the script.
    "tiny": {"model": {"layers": 2, "width": 64, "heads": 2, "context": 64, "vocab": 256},
             "batch": 4, "data": "bible/train.txt"},
    "124m": {"model": {"layers": 12, "width": 768, "heads": 12, "context": 512, "vocab": 50257},
             "batch": 2, "data": "pieces.bin"},
    # Longer sequences, for context and sequence parallelism.
    "10m-2048": {"model": {"layers": 6, "width": 384, "heads": 6, "context": 2048, "vocab": 256},
                 "batch": 1, "data": "bible/train.txt"},
    "long": {"model": {"layers": 2, "width": 256, "heads": 4, "context": 8192, "vocab": 256},
             "batch": 1, "data": "bible/train.txt"},
    # GPT-2's own context, for memory: with --remat and --accumulate.
    "124m-1024": {"model": {"layers": 12, "width": 768, "heads": 12, "context": 1024, "vocab": 50257},
                  "batch": 8, "data": "pieces.bin"},
}
OPTIMIZER = {"lr": 3e-4, "eps": 1e-8, "decay": 0.01, "clip": 1.0}
PIECES = 8192


def prepare(names):
    """The text, and its tokens where one of the models `names` reads them."""
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run([ROOT / "scripts/bible", WORK / "bible"], check=True)
    if any(MODELS[name]["data"] == "pieces.bin" for name in names) and not (WORK / "pieces.bin").exists():
        subprocess.run(["spm_train", f"--input={WORK}/bible/train.txt", f"--model_prefix={WORK}/pieces",
                        f"--vocab_size={PIECES}"], check=True, capture_output=True)
        subprocess.run([ROOT / "scripts/tokens", WORK / "bible/train.txt", "-o", WORK / "pieces.bin",
                        "--model", WORK / "pieces.model"], check=True)


def initial_weights(path, layers, width, heads, context, vocab):
    """GPT-2's initial values, under Hugging Face's names. Returns the number of parameters."""
    import numpy as np
    from safetensors.numpy import save_file
    random = np.random.default_rng(1)
    weights = {}

    def normal(name, *shape, scale=0.02):
        weights["transformer." + name] = random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def norm(name):
        weights[f"transformer.{name}.weight"] = np.ones(width, np.float32)
        weights[f"transformer.{name}.bias"] = np.zeros(width, np.float32)

    def product(name, inputs, outputs, scale=0.02):
        normal(name + ".weight", inputs, outputs, scale=scale)
        weights[f"transformer.{name}.bias"] = np.zeros(outputs, np.float32)

    normal("wte.weight", vocab, width)
    normal("wpe.weight", context, width)
    residual = 0.02 / (2 * layers) ** 0.5
    for layer in range(layers):
        norm(f"h.{layer}.ln_1")
        product(f"h.{layer}.attn.c_attn", width, 3 * width)
        product(f"h.{layer}.attn.c_proj", width, width, residual)
        norm(f"h.{layer}.ln_2")
        product(f"h.{layer}.mlp.c_fc", width, 4 * width)
        product(f"h.{layer}.mlp.c_proj", 4 * width, width, residual)
    norm("ln_f")
    save_file(weights, path, metadata={"format": "pt"})
    return sum(w.size for w in weights.values())
