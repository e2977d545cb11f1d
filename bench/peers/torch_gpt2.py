"""GPT-2 in PyTorch: one process, DDP or FSDP2 over gloo; eager or compiled; f32 or bf16 compute; with and without
activation checkpointing of each block; in one or several microbatches."""

import importlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import protocol

JOB = protocol.job()
MODEL, FORM = JOB["model"], JOB["form"]
RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
BF16 = JOB["precision"] == "bf16"


class Product(nn.Module):
    """Weight (in, out), as GPT-2's files have it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(inputs, outputs)), nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Product(width, 3 * width), Product(width, width)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.c_attn(x).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).reshape(b, s, d))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Product(width, 4 * width), Product(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width, heads), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def head(x, scale, bias, wte, targets):
    logits = F.linear(F.layer_norm(x, x.shape[-1:], scale, bias), wte)
    return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.reshape(-1))


class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, context, vocab):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

        self.head = head

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.h:
            x = block(x)
        return self.head(x, self.ln_f.weight, self.ln_f.bias, self.wte.weight, targets)


def build():
    with torch.device("meta"):
        model = Gpt2(**MODEL)
    weights = {name.removeprefix("transformer."): w for name, w in load_file(JOB["init"]).items()}
    model.load_state_dict(weights, assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return model


def distributed(model):
    """The form's wrapper around `model`. With `compiled` "blocks", one block (all share its code) and
    the head are compiled, as FSDP2 recommends; with "whole", the model as one graph. Activation checkpointing,
    compilation and sharding are applied to a block in this order, as torchtitan does."""
    if JOB["remat"]:
        for layer, block in enumerate(model.h):
            model.h[layer] = checkpoint_wrapper(block)
    if JOB["compiled"] == "blocks":
        model.head = torch.compile(head)
        for block in model.h:
            block.compile()
    elif JOB["compiled"] == "whole":
        model.compile()
    if FORM == "fsdp":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if BF16 \
            else MixedPrecisionPolicy()
        mesh = dist.init_device_mesh("cpu", (RANKS,))
        for part in (*model.h, model):
            fully_shard(part, mesh=mesh, mp_policy=policy)
    elif FORM == "ddp":
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model


def main():
    if JOB["compiled"]:
        importlib.import_module("torch._inductor.compile_fx")  # as the first compilation would
    protocol.say(imports=protocol.status("VmHWM"))
    torch.set_num_threads(JOB["threads"])
    if RANKS > 1:
        dist.init_process_group("gloo")
    model = distributed(build())
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": JOB["decay"]}, {"params": others, "weight_decay": 0.0}],
        lr=JOB["lr"], betas=(0.9, 0.999), eps=JOB["eps"], fused=True)
    per_rank = JOB["batch"] // RANKS

    def step(rows):
        mine = torch.from_numpy(rows[RANK * per_rank:(RANK + 1) * per_rank]).long()
        total = 0.0
        # Microbatches of one size: their means count alike. Gradients are reduced and added up shard by shard after
        # each, FSDP2's way that needs least memory (and what `fsdpc --accumulate` does with fsdp by default).
        for part in mine.chunk(JOB["accumulate"]):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=BF16 and FORM != "fsdp"):
                loss = model(part[:, :-1], part[:, 1:]) / JOB["accumulate"]
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), JOB["clip"], foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if RANKS > 1:
            dist.all_reduce(total)
        return total.item() / RANKS

    protocol.train(step, JOB)
    if RANKS > 1:
        dist.destroy_process_group()


main()
