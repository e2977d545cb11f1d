"""Twenty AdamW steps of tiny language models as pipelines of two processes, by PyTorch's `torch.distributed.pipelining`: see README.md.
usage: make_pipeline.py

The first stage has embedding and first block, the second one the other block, norm and head; `Schedule1F1B` runs three microbatches of a
step. gpt2's table is in both stages, whose gradients are added. Weights, tokens and options are those of `MODEL/adamw.json`, and the losses
must be its losses, Hugging Face's, to 1e-5; they are written to `MODEL/pipeline.json`.
"""

import json
import os
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F
from make_parallel import CLIP, DECAY, HERE, LR, STEPS, Model, attend
from safetensors.torch import load_file
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

RANKS, MICROBATCHES = 2, 3


class Stage(nn.Module):
    def __init__(self, model, rank):
        super().__init__()
        self.first, self.tied = rank == 0, model.head is None
        self.block = model.blocks[rank]
        self.table = model.table if self.first or self.tied else None
        self.positions = model.positions if self.first else None
        self.norm = None if self.first else model.norm
        self.head = None if self.first else model.head

    def forward(self, x):
        """The first stage has tokens, the second one what the first returns; it returns logits."""
        if self.first:
            x = self.table(x)
            if self.positions is not None:
                x = x + self.positions
        x = self.block(x, attend, torch.arange(x.shape[1]))
        return x if self.first else self.norm(x) @ (self.table.weight if self.tied else self.head).t()


def train(kind, rank):
    """Loss and gradient norm before clipping of each step."""
    golden = json.loads((HERE / kind / "adamw.json").read_text())
    sizes, batch, context = golden["sizes"], golden["batch"], golden["sizes"]["context"]
    tokens = np.fromfile(HERE / kind / "tokens.bin", np.uint16)[512:].astype(np.int64)
    samples = (len(tokens) - 1) // context
    module = Stage(Model(kind, load_file(HERE / kind / "init.safetensors"), sizes, None), rank)
    parameters = list(module.parameters())
    tied = module.table.weight if module.tied else None
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": DECAY},
                                   {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}], lr=LR, betas=(0.9, 0.999), eps=1e-8)
    schedule = Schedule1F1B(PipelineStage(module, rank, RANKS, torch.device("cpu")), MICROBATCHES, scale_grads=False,
                            loss_fn=lambda logits, targets: F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum") / (batch * context))
    log = {"loss": [], "grad_norm": []}
    for step in range(STEPS):
        starts = [context * ((step * batch + i) % samples) for i in range(batch)]
        rows = torch.tensor(np.stack([tokens[s:s + context + 1] for s in starts]))
        losses = []
        if rank == 0:
            schedule.step(rows[:, :-1])
        else:
            schedule.step(target=rows[:, 1:], losses=losses)
        loss = torch.stack(losses).sum().detach() if losses else torch.zeros(())
        dist.all_reduce(loss)
        if tied is not None:
            dist.all_reduce(tied.grad)
        squares = sum(p.grad.double().square().sum() for p in parameters if rank == 0 or p is not tied)
        dist.all_reduce(squares)
        norm = squares.sqrt().item()
        for p in parameters:
            p.grad.mul_(min(1.0, CLIP / (norm + 1e-6)))
        optimizer.step()
        optimizer.zero_grad()
        log["loss"].append(loss.item())
        log["grad_norm"].append(norm)
    for name, values in log.items():
        worst = max(abs(a / b - 1) for a, b in zip(values, golden["f32"][name]))
        if not worst <= 1e-5:
            sys.exit(f"{kind}: {name} differs by {worst:.2g} from {kind}/adamw.json, expected at most 1e-5")
        if rank == 0:
            print(f"{kind}: {name} is that of adamw.json to {worst:.2g}")
    return {"steps": STEPS, "ranks": RANKS, "microbatches": MICROBATCHES, "f32": log}


def process(rank):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29654", "RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for kind in ("gpt2", "llama"):
        golden = train(kind, rank)
        if rank == 0:
            (HERE / kind / "pipeline.json").write_text(json.dumps(golden, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(process, nprocs=RANKS)
