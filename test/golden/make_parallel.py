"""Twenty AdamW steps of tiny language models over two processes, by PyTorch's kinds of parallelism: see README.md. usage: make_parallel.py

tensor: blocks are split by `parallelize_module` (columns, then rows), the rest is whole on each process. sequence: besides, norms and residual
sums are split along the sequence (`SequenceParallel`), embedding and head by the vocabulary. context: tokens are split along the sequence, and
attention is a ring (bench/peers/torch_ring.py). Weights, tokens and options are those of `MODEL/adamw.json`, and the losses must be its
losses, Hugging Face's, to 1e-5; they are written to `MODEL/{tensor,sequence,context}.json`.
"""

import functools
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
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench" / "peers"))
import torch_ring  # noqa: E402

STEPS, RANKS, CLIP, LR, DECAY, THETA = 20, 2, 1.0, 3e-4, 0.01, 10000.0


def linear(weight, bias=None):
    """A product with weight (out, in)."""
    result = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    result.weight = nn.Parameter(weight.contiguous())
    if bias is not None:
        result.bias = nn.Parameter(bias.contiguous())
    return result


def norm(weight, bias=None):
    result = nn.RMSNorm(len(weight), 1e-6) if bias is None else nn.LayerNorm(len(weight), 1e-5)
    result.weight = nn.Parameter(weight)
    if bias is not None:
        result.bias = nn.Parameter(bias)
    return result


class Gpt2Block(nn.Module):
    COLUMNS, ROWS = ("q", "k", "v", "up"), ("out", "down")

    def __init__(self, w, sizes):
        super().__init__()
        self.head = sizes["width"] // sizes["heads"]
        self.norm1, self.norm2 = (norm(w[f"ln_{number}.weight"], w[f"ln_{number}.bias"]) for number in (1, 2))
        weights, biases = w["attn.c_attn.weight"].t().chunk(3), w["attn.c_attn.bias"].chunk(3)
        self.q, self.k, self.v = (linear(*pair) for pair in zip(weights, biases))
        self.out, self.up, self.down = (linear(w[f"{name}.weight"].t(), w[f"{name}.bias"])
                                        for name in ("attn.c_proj", "mlp.c_fc", "mlp.c_proj"))

    def forward(self, x, attention, positions):
        n = self.norm1(x)
        q, k, v = (part(n).unflatten(-1, (-1, self.head)).transpose(1, 2) for part in (self.q, self.k, self.v))
        x = x + self.out(attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    COLUMNS, ROWS = ("q", "k", "v", "gate", "up"), ("out", "down")

    def __init__(self, w, sizes):
        super().__init__()
        self.head = sizes["width"] // sizes["heads"]
        self.norm1, self.norm2 = (norm(w[f"{name}_layernorm.weight"]) for name in ("input", "post_attention"))
        self.q, self.k, self.v, self.out = (linear(w[f"self_attn.{name}_proj.weight"]) for name in "qkvo")
        self.gate, self.up, self.down = (linear(w[f"mlp.{name}_proj.weight"]) for name in ("gate", "up", "down"))

    def turn(self, x, positions):
        """Positions: the halves of a head are the two coordinates that are turned."""
        half = self.head // 2
        angles = positions[:, None] * THETA ** (-torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def forward(self, x, attention, positions):
        n = self.norm1(x)
        q, k, v = (part(n).unflatten(-1, (-1, self.head)).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = attention(self.turn(q, positions), self.turn(k, positions), v)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        n = self.norm2(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])


class Model(nn.Module):
    def __init__(self, kind, w, sizes, split):
        super().__init__()
        gpt2 = kind == "gpt2"
        prefix = "transformer.h." if gpt2 else "model.layers."
        self.blocks = nn.ModuleList()
        for layer in range(sizes["layers"]):
            own = {name.removeprefix(f"{prefix}{layer}."): value for name, value in w.items() if name.startswith(f"{prefix}{layer}.")}
            self.blocks.append((Gpt2Block if gpt2 else LlamaBlock)(own, sizes))
        names = ("transformer.wte.weight", "transformer.wpe.weight", "transformer.ln_f.weight", "transformer.ln_f.bias") if gpt2 \
            else ("model.embed_tokens.weight", "model.norm.weight")
        self.table = nn.Embedding(*w[names[0]].shape)
        self.table.weight = nn.Parameter(w[names[0]])
        self.positions = nn.Parameter(w[names[1]]) if gpt2 else None
        self.norm = norm(*(w[name] for name in names[1 + gpt2:]))
        self.head = None if gpt2 else nn.Parameter(w["lm_head.weight"])  # else the embedding's
        self.split = split
        if split in ("tensor", "sequence"):
            self.parallelize(dist.init_device_mesh("cpu", (RANKS,)))

    def parallelize(self, mesh):
        whole = self.split == "tensor"
        columns = {} if whole else {"input_layouts": Shard(1)}
        rows = {} if whole else {"output_layouts": Shard(1)}
        for block in self.blocks:
            parallelize_module(block, mesh, {**{name: ColwiseParallel(**columns) for name in block.COLUMNS},
                                             **{name: RowwiseParallel(**rows) for name in block.ROWS},
                                             **({} if whole else {"norm1": SequenceParallel(), "norm2": SequenceParallel()})})
        if not whole:
            parallelize_module(self, mesh, {"table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
                                            "norm": SequenceParallel()})
            for name in ("positions", "head"):
                if getattr(self, name) is not None:
                    setattr(self, name, nn.Parameter(distribute_tensor(getattr(self, name).detach(), mesh, [Shard(0)])))

    def forward(self, tokens):
        """The logits of a rank's positions, or of all."""
        positions = torch.arange(tokens.shape[1])
        if self.split == "context":
            tokens, positions = (torch_ring.balanced(t, dist.get_rank(), RANKS, t.dim() - 1) for t in (tokens, positions))
        x = self.table(tokens)
        if self.positions is not None:
            x = x + (self.positions.to_local() if self.split == "sequence" else self.positions[positions])
        for block in self.blocks:
            x = block(x, torch_ring.attention if self.split == "context" else attend, positions)
        x, head = self.norm(x), self.table.weight if self.head is None else self.head
        return (x.redistribute(placements=[Replicate()]) @ head.t()).full_tensor() if self.split == "sequence" else x @ head.t()


def train(kind, way, parameters, gradients):
    """Loss and gradient norm before clipping of each step. `gradients(rows, tokens)`: sets the gradients of `parameters` for rows of a token
    more than a sample has, `tokens` targets in all, and returns both."""
    golden = json.loads((HERE / kind / "adamw.json").read_text())
    batch, context = golden["batch"], golden["sizes"]["context"]
    tokens = np.fromfile(HERE / kind / "tokens.bin", np.uint16)[512:].astype(np.int64)
    samples = (len(tokens) - 1) // context
    # Tensors and DTensors cannot be updated by one call.
    optimizers = [torch.optim.AdamW([p], lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=DECAY if p.dim() >= 2 else 0.0)
                  for p in parameters]
    log = {"loss": [], "grad_norm": []}
    for step in range(STEPS):
        starts = [context * ((step * batch + i) % samples) for i in range(batch)]
        loss, norm = gradients(torch.tensor(np.stack([tokens[s:s + context + 1] for s in starts])), batch * context)
        for p, optimizer in zip(parameters, optimizers):
            p.grad.mul_(min(1.0, CLIP / (norm + 1e-6)))
            optimizer.step()
            optimizer.zero_grad()
        log["loss"].append(loss)
        log["grad_norm"].append(norm)
    for name, values in log.items():
        worst = max(abs(a / b - 1) for a, b in zip(values, golden["f32"][name]))
        if not worst <= 1e-5:
            sys.exit(f"{kind}, {way}: {name} differs by {worst:.2g} from {kind}/adamw.json, expected at most 1e-5")
        if dist.get_rank() == 0:
            print(f"{kind}, {way}: {name} is that of adamw.json to {worst:.2g}")
    return {"steps": STEPS, "ranks": RANKS, "f32": log}


def model_of(kind, split):
    return Model(kind, load_file(HERE / kind / "init.safetensors"), json.loads((HERE / kind / "adamw.json").read_text())["sizes"], split)


def train_split(kind, split):
    model = model_of(kind, split)
    parameters = list(model.parameters())

    def gradients(rows, tokens):
        targets = rows[:, 1:]
        if split == "context":
            targets = torch_ring.balanced(targets, dist.get_rank(), RANKS, 1)
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), targets.flatten(), reduction="sum") / tokens
        loss.backward()
        if split == "context":
            for sum_ in (loss.detach(), *(p.grad for p in parameters)):
                dist.all_reduce(sum_)
        whole = [p.grad.full_tensor() if isinstance(p, DTensor) else p.grad for p in parameters]
        return loss.item(), torch.stack([g.norm() for g in whole]).norm().item()

    return train(kind, split, parameters, gradients)


def process(rank, port, ways):
    """Writes what `ways[name](kind)` returns to `name`.json of each model."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for kind in ("gpt2", "llama"):
        for name, way in ways.items():
            golden = way(kind)
            if rank == 0:
                (HERE / kind / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    splits = {split: functools.partial(train_split, split=split) for split in ("tensor", "sequence", "context")}
    torch.multiprocessing.spawn(process, (29653, splits), nprocs=RANKS)
