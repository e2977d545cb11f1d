"""Twenty AdamW steps of tiny language models over two processes, by PyTorch's tensor parallelism: see README.md. usage: make_tensor.py

Blocks are split by `parallelize_module` (columns, then rows), the rest is whole on each process. Weights, tokens and options are those
of `MODEL/adamw.json`, and the losses must be its losses, Hugging Face's, to 1e-5; they are written to `MODEL/tensor.json`.
"""

import json
import os
import pathlib
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

HERE = pathlib.Path(__file__).resolve().parent
STEPS, RANKS, CLIP, LR, DECAY, THETA = 20, 2, 1.0, 3e-4, 0.01, 10000.0


def linear(weight, bias=None):
    """A product with weight (out, in)."""
    result = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    result.weight = nn.Parameter(weight.contiguous())
    if bias is not None:
        result.bias = nn.Parameter(bias.contiguous())
    return result


class Gpt2Block(nn.Module):
    COLUMNS, ROWS = ("q", "k", "v", "up"), ("out", "down")

    def __init__(self, w, sizes):
        super().__init__()
        self.head = sizes["width"] // sizes["heads"]
        norms = [nn.LayerNorm(sizes["width"]) for _ in range(2)]
        for number, norm in enumerate(norms, 1):
            norm.weight, norm.bias = (nn.Parameter(w[f"ln_{number}.{part}"]) for part in ("weight", "bias"))
        self.norm1, self.norm2 = norms
        weights, biases = w["attn.c_attn.weight"].t().chunk(3), w["attn.c_attn.bias"].chunk(3)
        self.q, self.k, self.v = (linear(*pair) for pair in zip(weights, biases))
        self.out, self.up, self.down = (linear(w[f"{name}.weight"].t(), w[f"{name}.bias"])
                                        for name in ("attn.c_proj", "mlp.c_fc", "mlp.c_proj"))

    def forward(self, x):
        b, s, _ = x.shape
        n = self.norm1(x)
        q, k, v = (part(n).view(b, s, -1, self.head).transpose(1, 2) for part in (self.q, self.k, self.v))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, -1))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    COLUMNS, ROWS = ("q", "k", "v", "gate", "up"), ("out", "down")

    def __init__(self, w, sizes):
        super().__init__()
        self.head = sizes["width"] // sizes["heads"]
        self.norm1, self.norm2 = (nn.Parameter(w[f"{name}_layernorm.weight"]) for name in ("input", "post_attention"))
        self.q, self.k, self.v, self.out = (linear(w[f"self_attn.{name}_proj.weight"]) for name in "qkvo")
        self.gate, self.up, self.down = (linear(w[f"mlp.{name}_proj.weight"]) for name in ("gate", "up", "down"))

    def turn(self, x):
        """Positions: the halves of a head are the two coordinates that are turned."""
        half = self.head // 2
        angles = torch.arange(x.shape[2])[:, None] * THETA ** (-torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def forward(self, x):
        b, s, d = x.shape
        n = F.rms_norm(x, (d,), self.norm1, 1e-6)
        q, k, v = (part(n).view(b, s, -1, self.head).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, s, -1))
        n = F.rms_norm(x, (d,), self.norm2, 1e-6)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Model(nn.Module):
    def __init__(self, kind, w, sizes):
        super().__init__()
        self.gpt2 = kind == "gpt2"
        prefix = "transformer.h." if self.gpt2 else "model.layers."
        self.blocks = nn.ModuleList()
        for layer in range(sizes["layers"]):
            own = {name.removeprefix(f"{prefix}{layer}."): value for name, value in w.items() if name.startswith(f"{prefix}{layer}.")}
            self.blocks.append((Gpt2Block if self.gpt2 else LlamaBlock)(own, sizes))
        whole = ("transformer.wte.weight", "transformer.wpe.weight", "transformer.ln_f.weight", "transformer.ln_f.bias") if self.gpt2 \
            else ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight")
        self.whole = nn.ParameterList(w[name] for name in whole)

    def forward(self, tokens):
        x = F.embedding(tokens, self.whole[0])
        x = x + self.whole[1][:tokens.shape[1]] if self.gpt2 else x
        for block in self.blocks:
            x = block(x)
        if self.gpt2:
            return F.layer_norm(x, x.shape[-1:], self.whole[2], self.whole[3], 1e-5) @ self.whole[0].t()
        return F.rms_norm(x, x.shape[-1:], self.whole[1], 1e-6) @ self.whole[2].t()


def train(kind):
    """Loss and gradient norm before clipping of each step."""
    golden = json.loads((HERE / kind / "adamw.json").read_text())
    sizes, batch, context = golden["sizes"], golden["batch"], golden["sizes"]["context"]
    tokens = np.fromfile(HERE / kind / "tokens.bin", np.uint16)[512:].astype(np.int64)
    samples = (len(tokens) - 1) // context
    model = Model(kind, load_file(HERE / kind / "init.safetensors"), sizes)
    mesh = dist.init_device_mesh("cpu", (RANKS,))
    for block in model.blocks:
        parallelize_module(block, mesh, {**{name: ColwiseParallel() for name in block.COLUMNS},
                                         **{name: RowwiseParallel() for name in block.ROWS}})
    parameters = list(model.parameters())
    # Tensors and DTensors cannot be updated by one call.
    optimizers = [torch.optim.AdamW([p], lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=DECAY if p.dim() >= 2 else 0.0)
                  for p in parameters]
    log = {"loss": [], "grad_norm": []}
    for step in range(STEPS):
        starts = [context * ((step * batch + i) % samples) for i in range(batch)]
        rows = torch.tensor(np.stack([tokens[s:s + context + 1] for s in starts]))
        loss = F.cross_entropy(model(rows[:, :-1]).reshape(-1, sizes["vocab"]), rows[:, 1:].reshape(-1))
        loss.backward()
        whole = [p.grad.full_tensor() if isinstance(p, DTensor) else p.grad for p in parameters]
        norm = torch.stack([g.norm() for g in whole]).norm().item()
        for p, optimizer in zip(parameters, optimizers):
            p.grad.mul_(min(1.0, CLIP / (norm + 1e-6)))
            optimizer.step()
            optimizer.zero_grad()
        log["loss"].append(loss.item())
        log["grad_norm"].append(norm)
    for name, values in log.items():
        worst = max(abs(a / b - 1) for a, b in zip(values, golden["f32"][name]))
        if not worst <= 1e-5:
            sys.exit(f"{kind}: {name} differs by {worst:.2g} from {kind}/adamw.json, expected at most 1e-5")
        if dist.get_rank() == 0:
            print(f"{kind}: {name} is that of adamw.json to {worst:.2g}")
    return {"steps": STEPS, "ranks": RANKS, "f32": log}


def process(rank):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29653", "RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for kind in ("gpt2", "llama"):
        golden = train(kind)
        if rank == 0:
            (HERE / kind / "tensor.json").write_text(json.dumps(golden, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(process, nprocs=RANKS)
