"""Twenty AdamW steps of tiny language models as pipelines of two processes, by PyTorch's `torch.distributed.pipelining`: see README.md.
usage: make_pipeline.py

The first stage has embedding and first block, the second one the other block, norm and head; `Schedule1F1B` runs three microbatches of a
step. gpt2's table is in both stages, whose gradients are added. Weights, tokens and options are those of `MODEL/adamw.json`, and the losses
must be its losses, Hugging Face's, to 1e-5; they are written to `MODEL/pipeline.json`.
"""

import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F
from make_parallel import RANKS, attend, model_of, process, train
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

MICROBATCHES = 3


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


def train_stages(kind):
    rank = dist.get_rank()
    module = Stage(model_of(kind, None), rank)
    parameters = list(module.parameters())
    tied = module.table.weight if module.tied else None
    stage = PipelineStage(module, rank, RANKS, torch.device("cpu"))
    # Each microbatch has as many tokens, so that sums of means are the mean.
    schedule = Schedule1F1B(stage, MICROBATCHES, scale_grads=False,
                            loss_fn=lambda logits, targets: F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / MICROBATCHES)

    def gradients(rows, _):
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
        return loss.item(), squares.sqrt().item()

    log = train(kind, "pipeline", parameters, gradients)
    return {"steps": log["steps"], "ranks": log["ranks"], "microbatches": MICROBATCHES, "f32": log["f32"]}


if __name__ == "__main__":
    torch.multiprocessing.spawn(process, (29654, {"pipeline": train_stages}), nprocs=RANKS)
