#!/usr/bin/env python3
"""What PyTorch reaches on this GPU: torch_peer.py sdpa|gpt2|llama [cpu]

sdpa: scaled_dot_product_attention, forward and backward, at the shapes of gpt2-124m and llama-8b.
gpt2: a training step of GPT-2 124M, compiled, in bf16 by autocast, 32 samples of 1024 tokens, AdamW, as nanoGPT's train.py.
llama: the same of Llama 3.2 1B, 4 samples of 4096 tokens.
Prints a line of JSON for each figure, in milliseconds. With `cpu` small sizes on the CPU, to test this script. Exit status 3
where torch, or a GPU, is missing.
"""

import json
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"torch cannot be imported: {error}")
    sys.exit(3)

CPU = "cpu" in sys.argv[2:]
DEVICE = "cpu" if CPU else "cuda"


def timed(call, repeats):
    """Milliseconds of a call: the best of three means, after two calls that warm up."""
    def wait():
        if not CPU:
            torch.cuda.synchronize()
    for _ in range(2):
        call()
    best = float("inf")
    for _ in range(3):
        wait()
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        wait()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best * 1e3


def say(name, milliseconds):
    print(json.dumps({"name": name, "ms": milliseconds}), flush=True)


def attention(model, batch, heads, groups, context, width):
    def operand(count):
        return torch.randn(batch, count, context, width, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
    query, key, value = operand(heads), operand(groups), operand(groups)
    grouped = {} if heads == groups else {"enable_gqa": True}

    def forward():
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True, **grouped)
    with torch.no_grad():
        say(f"attention {model}", timed(forward, 20))
    out = forward()
    gradient = torch.randn_like(out)
    say(f"attention_grad {model}", timed(lambda: torch.autograd.grad(out, (query, key, value), gradient, retain_graph=True), 20))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, context, width = x.shape
        query, key, value = (part.view(batch, context, self.heads, width // self.heads).transpose(1, 2)
                             for part in self.qkv(self.norm1(x)).split(width, dim=2))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, context, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, context, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, inner):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def rotate(self, x, cosine, sine):
        first, second = x.chunk(2, dim=-1)
        return (x * cosine + torch.cat((-second, first), dim=-1) * sine).to(x.dtype)

    def forward(self, x, cosine, sine):
        batch, context, width = x.shape
        normed = self.norm1(x)
        query, key, value = (linear(normed).view(batch, context, -1, self.size).transpose(1, 2)
                             for linear in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(self.rotate(query, cosine, sine), self.rotate(key, cosine, sine), value,
                                                        is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, context, width))
        normed = self.norm2(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    def __init__(self, layers, width, heads, groups, inner, context, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        size = width // heads
        angles = torch.outer(torch.arange(context).float(), 500000.0 ** (-torch.arange(0, size, 2).float() / size)).repeat(1, 2)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def step(name, model, vocabulary, batch, context):
    torch.set_float32_matmul_precision("high")
    model = model.to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if "eager" not in sys.argv[2:] else model
    tokens, targets = (torch.randint(0, vocabulary, (batch, context), device=DEVICE) for _ in range(2))

    def train():
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = run(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    say(f"step {name}", timed(train, 2 if CPU else 10))


def gpt2_step():
    # The vocabulary as nanoGPT pads it: 50304.
    layers, width, heads, context, vocabulary, batch = (1, 32, 2, 16, 64, 2) if CPU else (12, 768, 12, 1024, 50304, 32)
    step("gpt2-124m", Gpt2(layers, width, heads, context, vocabulary), vocabulary, batch, context)


def llama_step():
    sizes = (1, 32, 4, 2, 48, 16, 64) if CPU else (16, 2048, 32, 8, 8192, 4096, 128256)
    step("llama-1b", Llama(*sizes), sizes[-1], 2 if CPU else 4, sizes[-2])


def main():
    if not CPU and not torch.cuda.is_available():
        print(f"torch {torch.__version__} finds no GPU")
        sys.exit(3)
    if sys.argv[1] == "sdpa":
        attention("gpt2-124m", *((1, 2, 2, 16, 8) if CPU else (32, 12, 12, 1024, 64)))
        attention("llama-8b", *((1, 4, 2, 16, 8) if CPU else (1, 32, 8, 8192, 128)))
    elif sys.argv[1] == "gpt2":
        gpt2_step()
    else:
        llama_step()


main()
