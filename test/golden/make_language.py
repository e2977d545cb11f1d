"""Thirty AdamW steps of tiny language models, by Hugging Face's: see README.md. usage: make_language.py"""

import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm

HERE = pathlib.Path(__file__).resolve().parent
LAYERS, WIDTH, HEADS, KV_HEADS, FFN, CONTEXT, VOCAB = 2, 32, 4, 2, 48, 16, 61
BATCH, STEPS, SAMPLES, CLIP = 6, 30, 32, 1.0
LR, DECAY = 3e-4, 0.01

MODELS = {
    "gpt2": (
        lambda: GPT2LMHeadModel(GPT2Config(
            n_layer=LAYERS, n_embd=WIDTH, n_head=HEADS, n_positions=CONTEXT, vocab_size=VOCAB,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager")),
        {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "context": CONTEXT, "vocab": VOCAB}),
    "llama": (
        lambda: LlamaForCausalLM(LlamaConfig(
            num_hidden_layers=LAYERS, hidden_size=WIDTH, num_attention_heads=HEADS,
            num_key_value_heads=KV_HEADS, intermediate_size=FFN, max_position_embeddings=CONTEXT,
            vocab_size=VOCAB, attn_implementation="eager")),
        {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "kv-heads": KV_HEADS, "ffn": FFN,
         "context": CONTEXT, "vocab": VOCAB}),
}


def keep_precision(self, x):
    """LlamaRMSNorm's formula without its detour over single precision."""
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def initial(model, random):
    """Weights larger than a training's first ones, so that every part matters from step 1 on."""
    weights = {}
    for name, p in model.named_parameters():
        noise = random.standard_normal(tuple(p.shape))
        value = 0.15 * noise if p.dim() >= 2 else 0.1 * noise
        if p.dim() == 1 and name.endswith("weight"):
            value = 1 + value
        weights[name] = value.astype(np.float32)
    return weights


def write_tokens(path, random):
    """llm.c's format: 256 int32 of header, then uint16. Each token hints at the next one."""
    tokens = [0]
    for _ in range(SAMPLES * CONTEXT + 5):
        tokens.append((3 * tokens[-1] + int(random.integers(1, 6))) % VOCAB)
    header = np.zeros(256, np.int32)
    header[:3] = [20240520, 1, len(tokens)]
    path.write_bytes(header.tobytes() + np.array(tokens, np.uint16).tobytes())
    return np.array(tokens)


def train(make, init, tokens, dtype):
    """(loss and gradient norm of each step, gradients of step 1)."""
    model = make().to(dtype).train()
    model.load_state_dict({k: torch.tensor(v) for k, v in init.items()}, strict=False)
    model.tie_weights()
    named = dict(model.named_parameters())
    assert named.keys() == init.keys()
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in named.values() if p.dim() >= 2], "weight_decay": DECAY},
         {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0}],
        lr=LR, betas=(0.9, 0.999), eps=1e-8)
    log, gradients = {"loss": [], "grad_norm": []}, None
    for step in range(STEPS):
        starts = [CONTEXT * ((step * BATCH + i) % SAMPLES) for i in range(BATCH)]
        rows = torch.tensor(np.stack([tokens[s:s + CONTEXT + 1] for s in starts]))
        logits = model(input_ids=rows[:, :-1]).logits
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), rows[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        if gradients is None:
            gradients = {k: p.grad.numpy().astype(np.float32) for k, p in named.items()}
        norm = torch.nn.utils.clip_grad_norm_(named.values(), CLIP)
        optimizer.step()
        log["loss"].append(loss.item())
        log["grad_norm"].append(norm.item())
    return log, gradients


def main():
    torch.set_num_threads(1)
    plain_norm = LlamaRMSNorm.forward
    for name, (make, sizes) in MODELS.items():
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        random = np.random.default_rng(3)
        init = initial(make(), random)
        tokens = write_tokens(folder / "tokens.bin", random)
        single, _ = train(make, init, tokens, torch.float32)
        LlamaRMSNorm.forward = keep_precision
        double, gradients = train(make, init, tokens, torch.float64)
        LlamaRMSNorm.forward = plain_norm
        save_file(init, folder / "init.safetensors", metadata={"format": "pt"})
        save_file(gradients, folder / "gradients.safetensors")
        golden = {
            "steps": STEPS, "batch": BATCH, "sizes": sizes,
            "options": ["--optimizer=adamw", f"--lr={LR}", "--eps=1e-8", f"--weight-decay={DECAY}",
                        f"--clip={CLIP}"],
            "f32": single, "f64": double}
        (folder / "adamw.json").write_text(json.dumps(golden, indent=1) + "\n")
        worst = max(abs(a / b - 1) for a, b in zip(single["loss"], double["loss"]))
        print(name, single["loss"][0], single["loss"][-1], "norm", single["grad_norm"][0],
              "f32 against f64", worst)


if __name__ == "__main__":
    main()
