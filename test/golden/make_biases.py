"""Ten AdamW steps of language models whose attention has a bias, by PyTorch: see README.md. usage: make_biases.py

The models of test/e2e/models/biases.cpp. ALiBi's slopes are those of transformers' `build_alibi_tensor` (BLOOM), T5's buckets those of its
`_relative_position_bucket`, attention is `scaled_dot_product_attention` with the bias as its mask, but where scores are capped, which that has not.
All in double, from weights and data in single precision, which are written too.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

OUT = pathlib.Path(__file__).resolve().parent / "biases"
CLASSES, LENGTH, WIDTH, HEADS, GROUPS, BUCKETS, FURTHEST = 13, 10, 24, 6, 3, 8, 8
SIZE, BATCH, SAMPLES, STEPS = WIDTH // HEADS, 6, 18, 10
ADAMW = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-3}
CAUSAL = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()


def parameters(kind):
    draw = torch.Generator().manual_seed(7)
    shapes = {"table.weight": (CLASSES, WIDTH)}
    if kind == "relative":
        shapes |= {"positions.relative": (BUCKETS, HEADS), "positions.places": (1, LENGTH, LENGTH)}
    for layer in range(3 if kind == "relative" else 2):
        shapes |= {f"layer{layer}.out": (HEADS, SIZE, WIDTH), f"layer{layer}.norm": (WIDTH,)}
        if layer == 0:
            shapes[f"layer{layer}.in"] = (WIDTH, 3, HEADS, SIZE)
        else:
            shapes |= {f"layer{layer}.{part}": (WIDTH, heads, SIZE) for part, heads in (("q", HEADS), ("k", GROUPS), ("v", GROUPS))}
    return {name: torch.randn(shape, generator=draw) * 0.3 + name.endswith("norm") for name, shape in shapes.items()}


def biases_of(kind, p):
    if kind == "alibi":
        # By the position of the key alone: what a row has in common does not change its softmax.
        alibi = build_alibi_tensor(torch.ones(1, LENGTH), HEADS, torch.float64)
        return [alibi.expand(HEADS, LENGTH, LENGTH)] * 2
    if kind == "mask":
        mask = torch.zeros(1, LENGTH, LENGTH, dtype=torch.float64)
        mask[:, 0, :] = mask[:, :, 4] = mask[:, :, 7] = -torch.inf
        padding = torch.zeros_like(mask)
        padding[:, :, :2] = -1e9
        return [mask, padding]
    at = torch.arange(LENGTH)
    bucket = T5Attention._relative_position_bucket(at[None, :] - at[:, None], bidirectional=False, num_buckets=BUCKETS,
                                                   max_distance=FURTHEST)
    relative = p["positions.relative"][bucket].permute(2, 0, 1)
    return [relative, p["positions.places"], relative]


def attend(q, k, v, bias, scale, softcap):
    """q (batch, heads, positions, size); groups repeated."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    mask = torch.where(CAUSAL, bias, -torch.inf)
    if softcap is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    scores = torch.tanh(q @ k.transpose(2, 3) * scale / softcap) * softcap
    return (scores + mask).softmax(-1) @ v


def loss_of(kind, p, tokens, following):
    x = p["table.weight"][tokens]
    for layer, bias in enumerate(biases_of(kind, p)):
        h = F.rms_norm(x, (WIDTH,), p[f"layer{layer}.norm"], 1e-6)
        if layer == 0:
            q, k, v = torch.einsum("btc,cnhd->nbhtd", h, p["layer0.in"])
        else:
            q, k, v = (torch.einsum("btc,chd->bhtd", h, p[f"layer{layer}.{part}"]) for part in "qkv")
        learned = kind == "relative"
        seen = attend(q, k, v, bias, 1.0 if learned and layer == 0 else SIZE**-0.5, 2.0 if learned and layer > 0 else None)
        x = x + torch.einsum("bhtd,hdc->btc", seen, p[f"layer{layer}.out"])
    return F.cross_entropy((x @ p["table.weight"].T).flatten(0, 1), following.flatten())


def main():
    OUT.mkdir(exist_ok=True)
    draw = torch.Generator().manual_seed(8)
    tokens = torch.randint(CLASSES, (SAMPLES, LENGTH), generator=draw, dtype=torch.int32)
    following = (tokens.roll(1, 1) + 1) % CLASSES
    save_file({"tokens": tokens, "next": following}, OUT / "data.safetensors")
    results = {}
    for kind in ("alibi", "relative", "mask"):
        start = parameters(kind)
        save_file(start, OUT / f"{kind}.init.safetensors")
        p = {name: value.double().requires_grad_() for name, value in start.items()}
        optimizer = torch.optim.AdamW([{"params": [v for v in p.values() if v.dim() >= 2], "weight_decay": 0.01},
                                       {"params": [v for v in p.values() if v.dim() < 2], "weight_decay": 0.0}], **ADAMW)
        steps = []
        for step in range(STEPS):
            first = step * BATCH % SAMPLES
            optimizer.zero_grad()
            loss = loss_of(kind, p, tokens[first:first + BATCH].long(), following[first:first + BATCH].long())
            loss.backward()
            norm = torch.stack([v.grad.norm() for v in p.values()]).norm().item()
            steps.append({"step": step + 1, "loss": loss.item(), "grad_norm": norm})
            optimizer.step()
        save_file({name: value.detach().float() for name, value in p.items()}, OUT / f"{kind}.expected.safetensors")
        results[kind] = steps
        print(kind, steps[0], steps[-1])
    (OUT / "steps.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
