"""GPT-2 in PyTorch: one process, DDP, FSDP2, tensor, sequence or context parallel over gloo; eager or compiled; f32 or bf16 compute; with
and without activation checkpointing of each block; in one or several microbatches."""

import contextlib
import importlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)

import protocol
import torch_ring

JOB = protocol.job()
MODEL, FORM = JOB["model"], JOB["form"]
RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
BF16 = JOB["precision"] == "bf16"
SPLIT = FORM in ("tensor", "sequence")  # blocks, embedding and head are DTensors


class Product(nn.Module):
    """Weight (in, out), as GPT-2's files have it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(inputs, outputs)), nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)


def attend(q, k, v):
    return torch_ring.attention(q, k, v) if FORM == "context" else F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Product(width, 3 * width), Product(width, width)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.c_attn(x).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mixed = attend(q, k, v)
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


def split_head(x, scale, bias, wte, targets):
    """`head` where each rank has some classes: their logits stay where they are, under `loss_parallel`."""
    if FORM == "tensor":
        x = DTensor.from_local(F.layer_norm(x, x.shape[-1:], scale, bias), wte.device_mesh, [Replicate()], run_check=False)
    else:
        x = DTensor.from_local(x, wte.device_mesh, [Shard(1)], run_check=False)
        x = F.layer_norm(x, x.shape[-1:], scale, bias).redistribute(placements=[Replicate()])
    logits = F.linear(x, wte)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.reshape(-1)).to_local()


class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, context, vocab):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

        self.head = head

    def positions(self):
        if FORM == "context":
            return torch_ring.balanced(self.wpe.weight, RANK, RANKS, 0)
        return self.wpe.weight.to_local() if FORM == "sequence" else self.wpe.weight

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.positions()
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


class SplitAttention(nn.Module):
    """Attention over the heads of one rank: q, k and v of a head stand together in the rows of `c_attn`, so that a part of the
    rows is some heads, and one product makes all three."""

    def __init__(self, attention):
        super().__init__()
        self.head = attention.c_proj.weight.shape[0] // attention.heads
        self.c_attn, self.c_proj = linear(attention.c_attn), linear(attention.c_proj)
        for name, tensor in list(self.c_attn.named_parameters()):
            heads = tensor.detach().unflatten(0, (3, attention.heads, self.head)).transpose(0, 1)
            setattr(self.c_attn, name, nn.Parameter(heads.reshape(tensor.shape).contiguous()))

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = self.c_attn(x).view(b, s, -1, 3, self.head).permute(3, 0, 2, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).reshape(b, s, -1))


def linear(product):
    """The product as a module that `parallelize_module` knows."""
    result = nn.Linear(*product.weight.shape, device="meta")
    result.weight = nn.Parameter(product.weight.detach().t().contiguous())
    result.bias = product.bias
    return result


def tensor_parallel(model):
    """Blocks split by columns, then rows, as Megatron's; embedding and head by the vocabulary, as ours are. With "sequence" norms and sums
    are split along the sequence, and the input of attention and MLP is gathered once."""
    mesh, stream, plan = dist.init_device_mesh("cpu", (RANKS,)), Replicate(), {}
    if FORM == "sequence":
        stream = Shard(1)
        plan = {"ln_1": SequenceParallel(), "ln_2": SequenceParallel()} | {
            part: PrepareModuleInput(input_layouts=stream, desired_input_layouts=Replicate()) for part in ("attn", "mlp")}
        parallelize_module(model, mesh, {"ln_f": SequenceParallel()})
        model.wpe.weight = nn.Parameter(distribute_tensor(model.wpe.weight.detach(), mesh, [Shard(0)]))
    for block in model.h:
        block.attn = SplitAttention(block.attn)
        block.mlp.c_fc, block.mlp.c_proj = linear(block.mlp.c_fc), linear(block.mlp.c_proj)
        parallelize_module(block, mesh, {**plan, "attn.c_attn": ColwiseParallel(), "attn.c_proj": RowwiseParallel(output_layouts=stream),
                                         "mlp.c_fc": ColwiseParallel(), "mlp.c_proj": RowwiseParallel(output_layouts=stream)})
    parallelize_module(model, mesh, {"wte": RowwiseParallel(input_layouts=Replicate(), output_layouts=stream)})
    model.head = split_head


def clip(parameters):
    """Clips gradients, those of DTensors and others apart, to one norm."""
    kinds = [kind for split in (False, True) if (kind := [p for p in parameters if isinstance(p, DTensor) == split])]
    norms = [nn.utils.get_total_norm([p.grad for p in kind], foreach=True) for kind in kinds]
    total = torch.stack([norm.full_tensor() if isinstance(norm, DTensor) else norm for norm in norms]).norm()
    for kind in kinds:
        scale = torch.clamp(JOB["clip"] / (total + 1e-6), max=1.0)
        torch._foreach_mul_([p.grad.to_local() if isinstance(p, DTensor) else p.grad for p in kind], scale)


def distributed(model):
    """The form's wrapper around `model`. With `compiled` "blocks", one block (all share its code) and
    the head are compiled, as FSDP2 recommends; with "whole", the model as one graph. Activation checkpointing,
    compilation and sharding are applied to a block in this order, as torchtitan does."""
    if SPLIT:
        tensor_parallel(model)
    if JOB["remat"]:
        for layer, block in enumerate(model.h):
            model.h[layer] = checkpoint_wrapper(block)
    if JOB["compiled"] == "blocks":
        model.head = torch.compile(model.head)
        for block in model.h:
            block.compile()
    elif JOB["compiled"] == "whole":
        model.compile()
    if FORM in ("fsdp", "context"):
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
    # Tensors and DTensors cannot be updated by one call.
    groups = [{"params": [p for p in model.parameters() if (p.dim() >= 2, SPLIT and isinstance(p, DTensor)) == kind],
               "weight_decay": JOB["decay"] if kind[0] else 0.0} for kind in ((True, False), (True, True), (False, False), (False, True))]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], lr=JOB["lr"], betas=(0.9, 0.999),
                                  eps=JOB["eps"], fused=True)
    shards = RANKS if FORM in ("ddp", "fsdp") else 1  # of the batch
    per_rank = JOB["batch"] // shards

    def step(rows):
        first = RANK % shards * per_rank
        mine = torch.from_numpy(rows[first:first + per_rank]).long()
        total = 0.0
        # Microbatches of one size, so their means have equal weights. Gradients are reduced and
        # accumulated as shards after each, FSDP2's mode with the least memory (and the default of
        # `fsdpc --accumulate` with fsdp).
        for part in mine.chunk(JOB["accumulate"]):
            inputs, targets = part[:, :-1], part[:, 1:]
            if FORM == "context":
                inputs, targets = (torch_ring.balanced(of, RANK, RANKS, 1) for of in (inputs, targets))
            with loss_parallel() if SPLIT else contextlib.nullcontext():
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=BF16 and FORM not in ("fsdp", "context")):
                    loss = model(inputs, targets) / JOB["accumulate"]
                loss.backward()
            total += loss.detach()
        if SPLIT:
            clip(list(model.parameters()))
        else:
            nn.utils.clip_grad_norm_(model.parameters(), JOB["clip"], foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        parts = RANKS if FORM == "context" else shards  # of which the loss is the mean
        if parts > 1:
            dist.all_reduce(total)
        return total.item() / parts

    protocol.train(step, JOB)
    # Gloo's threads sometimes abort the process while the interpreter ends; everything measured is printed by now.
    if RANKS > 1:
        dist.barrier()
    os._exit(0)


main()
