#!/usr/bin/env python3
"""check_transformers_double.py SCRATCH [SEED...]: training steps in double, interpreted and in transformers. Run by a Python that
has torch and transformers.

`fsdp-run --numerics=exact` on the global IR of tiny random gpt2 and llama models against `.double()` models of transformers with
torch's optimizers. As they are, the two differ by some 1e-6 in norms and weights, for two reasons:

- transformers computes parts of a double model in f32: the logits of the loss, LlamaRMSNorm, the tables of RoPE, and the softmax of
  Llama's eager attention;
- the constants of our module are numbers of its type, f32, in any arithmetic: those of GELU and the 1e-6 of clipping.

With the former computed in double and the latter rounded to f32 in transformers too, what is left is rounding of doubles. For each
model one line has both differences; the test fails where the second one is not tiny, and where the first one is not, which would mean
that the replacements replace nothing.
"""

import math
import os
import pathlib
import random
import sys

import training

os.environ["HF_HUB_OFFLINE"] = "1"
# The first reasons show in the first three, f32 constants in the last three (clipping in the last one).
SEEDS = (25, 96, 0, 46, 1, 2)
LEFT = 1e-9  # relative, where both compute the same; measured: 3e-15 to 5e-12


def f32(x):
    import numpy

    return float(numpy.float32(x))


def draw(seed):
    """Sizes, optimizer and data of a case."""
    import numpy

    r = random.Random(seed)
    case = {"model": r.choice(["gpt2", "llama"]), "layers": r.choice([1, 2])}
    divisors = lambda n, fits=lambda d: True: [d for d in range(1, n + 1) if n % d == 0 and fits(n // d)]
    if case["model"] == "gpt2":
        case["width"] = r.choice([2, 3, 4, 5, 6])
        case["heads"] = r.choice(divisors(case["width"]))
    else:
        case["width"] = r.choice([2, 4, 6])
        case["heads"] = r.choice(divisors(case["width"], lambda size: size % 2 == 0))
        case["kv"], case["ffn"] = r.choice(divisors(case["heads"])), r.choice([2, 3, 5, 8])
    case["context"], case["vocab"], case["batch"] = r.choice([2, 3, 4, 5, 8]), r.choice([3, 5, 7, 11]), r.choice([1, 2, 3, 4, 6])
    case["optimizer"] = r.choice(["adamw", "adam", "sgd"])
    case["lr"] = r.choice([1e-3, 1e-2, 3e-4, 0.1 if case["optimizer"] == "sgd" else 1e-3])
    case["momentum"] = r.choice([0, 0.9]) if case["optimizer"] == "sgd" else 0
    case["betas"], case["eps"] = (r.choice([0.9, 0.8]), r.choice([0.999, 0.95])), r.choice([1e-8, 1e-8, 1e-6])
    r.choice([0, 0.01, 0.1])
    case["clip"], case["steps"], case["attention"] = r.choice([0, 0, 1.0]), r.choice([1, 2, 3, 4, 5]), r.choice(["eager", "sdpa"])
    case["scale"] = r.choice([0.02, 0.02, 0.3])
    rng = numpy.random.default_rng(seed)
    shape = (case["batch"] * case["steps"], case["context"])
    case["tokens"], case["targets"] = (rng.integers(0, case["vocab"], shape).astype("int32") for _ in range(2))
    return case, rng


def build(case):
    """The model of transformers."""
    import transformers

    sizes = {"vocab_size": case["vocab"], "bos_token_id": None, "eos_token_id": None, "attn_implementation": case["attention"]}
    if case["model"] == "gpt2":
        config = transformers.GPT2Config(n_layer=case["layers"], n_embd=case["width"], n_head=case["heads"], n_positions=case["context"],
                                         attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, **sizes)
        return transformers.GPT2LMHeadModel(config).double()
    config = transformers.LlamaConfig(num_hidden_layers=case["layers"], hidden_size=case["width"], num_attention_heads=case["heads"],
                                      num_key_value_heads=case["kv"], intermediate_size=case["ffn"],
                                      max_position_embeddings=case["context"], **sizes)
    return transformers.LlamaForCausalLM(config).double()


def norm_in_double(self, x):
    import torch

    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def rope_in_double(self, x, position_ids):
    import torch

    size = 2 * self.inv_freq.shape[0]
    theta = self.config.rope_parameters["rope_theta"]
    angles = position_ids[..., None].double() / theta ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def gelu_of_f32_constants(self, x):
    import torch

    return 0.5 * x * (1 + torch.tanh(f32(math.sqrt(2 / math.pi)) * (x + f32(0.044715) * x**3)))


def replaced(same):
    """Replaces parts of transformers, or puts its own back; returns the 1e-6 of clipping."""
    import transformers.activations as activations
    import transformers.models.llama.modeling_llama as llama

    for owner, replacement in ((llama.LlamaRMSNorm, norm_in_double), (llama.LlamaRotaryEmbedding, rope_in_double),
                               (activations.NewGELUActivation, gelu_of_f32_constants)):
        if not hasattr(owner, "original"):
            owner.original = owner.forward
        owner.forward = replacement if same else owner.original
    return f32(1e-6) if same else 1e-6


def train_reference(case, weights, same):
    """Loss and gradient norm of the last step, and the weights after it. `same`: with the parts replaced."""
    import torch

    added = replaced(same)
    model = build(case)
    if same:
        model.config._attn_implementation = "sdpa"
    model.load_state_dict({name: torch.tensor(value, dtype=torch.float64) for name, value in weights.items()}, strict=False)
    parameters = list(model.parameters())
    if case["optimizer"] == "sgd":
        optimizer = torch.optim.SGD(parameters, lr=case["lr"], momentum=case["momentum"])
    else:
        kind = torch.optim.Adam if case["optimizer"] == "adam" else torch.optim.AdamW
        optimizer = kind(parameters, lr=case["lr"], betas=case["betas"], eps=case["eps"], weight_decay=0)
    for step in range(case["steps"]):
        tokens, targets = (torch.tensor(case[name][step * case["batch"] : (step + 1) * case["batch"]], dtype=torch.long)
                           for name in ("tokens", "targets"))
        if same:
            logits = model(tokens).logits
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, case["vocab"]), targets.reshape(-1))
        else:
            loss = model(tokens, labels=targets, shift_labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in parameters))
        if case["clip"]:
            for p in parameters:
                p.grad.mul_(min(1.0, case["clip"] / (norm + added)))
        optimizer.step()
    return loss.item(), norm, {name: p.detach().numpy() for name, p in model.named_parameters()}


def train_interpreted(case, weights, folder):
    from safetensors.numpy import load_file, save_file

    options = [f"--{name}={case[name]}" for name in ("layers", "width", "heads", "context", "vocab", "batch", "optimizer", "lr", "clip")]
    options += ["--weight-decay=0"]
    if case["model"] == "llama":
        options += [f"--kv-heads={case['kv']}", f"--ffn={case['ffn']}"]
    if case["optimizer"] == "sgd":
        options += [f"--momentum={case['momentum']}"]
    else:
        options += [f"--beta1={case['betas'][0]}", f"--beta2={case['betas'][1]}", f"--eps={case['eps']}"]
    folder.mkdir(parents=True, exist_ok=True)
    training.run([training.tool(case["model"]), *options, "--emit=global", "-o", folder / "step.mlir"])
    save_file({name: value.astype("float32") for name, value in weights.items()}, folder / "weights.safetensors")
    save_file({name: case[name] for name in ("tokens", "targets")}, folder / "data.safetensors")
    training.run([training.tool("fsdp-run"), folder / "step.mlir", f"--params={folder / 'weights.safetensors'}",
                  f"--inputs={folder / 'data.safetensors'}", f"--outputs={folder / 'out.safetensors'}", "--numerics=exact",
                  f"--steps={case['steps']}"])
    out = load_file(folder / "out.safetensors")
    return float(out["output.loss"]), float(out["output.grad_norm"]), out


def difference(reference, ours):
    """The largest relative difference of loss, norm, and weights by their tensor's largest element."""
    import numpy

    relative = lambda a, b: abs(a - b) / max(abs(a), abs(b), 1e-30)
    found = [relative(reference[0], ours[0]), relative(reference[1], ours[1])]
    for name, value in reference[2].items():
        mine = numpy.asarray(ours[2][name], dtype="float64").reshape(value.shape)
        found.append(float(numpy.abs(value - mine).max() / max(numpy.abs(value).max(), 1e-30)))
    return max(found)


def main():
    import numpy
    import torch

    folder = pathlib.Path(sys.argv[1])
    for seed in map(int, sys.argv[2:] or SEEDS):
        torch.manual_seed(seed)
        case, rng = draw(seed)
        weights = {}
        for name, p in build(case).named_parameters():
            value = p.detach().numpy() + rng.standard_normal(p.shape) * (case["scale"] if p.dim() > 1 else 0.02)
            weights[name] = value.astype("float32").astype("float64")
        ours = train_interpreted(case, weights, folder / str(seed))
        apart, left = (difference(train_reference(case, weights, same), ours) for same in (False, True))
        print(f"{seed}: {case['model']}, width {case['width']}, {case['steps']} steps of {case['optimizer']}: differs by {apart:.1e}, "
              f"by {left:.1e} where both compute the same", flush=True)
        if not left < LEFT:
            sys.exit(f"seed {seed}: differs by {left:.1e} where both compute the same, expected less than {LEFT:.0e}")
        if not sys.argv[2:] and not apart > LEFT:
            sys.exit(f"seed {seed}: differs by {apart:.1e} as they are, expected more than {LEFT:.0e}: nothing was replaced")


if __name__ == "__main__":
    main()
