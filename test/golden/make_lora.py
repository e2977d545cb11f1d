"""AdamW steps of the adapters of tiny language models, by PEFT: see README.md. usage: make_lora.py"""

import json

import numpy as np
import torch
import torch.nn.functional as F
from make_language import BATCH, CONTEXT, DECAY, HERE, MODELS, SAMPLES, VOCAB, keep_precision
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.numpy import load_file, save_file
from transformers.models.llama.modeling_llama import LlamaRMSNorm

RANK, ALPHA, STEPS, LR, CLIP = 2, 6, 8, 1e-2, 1.0
# Values of --lora-on, and the projections that they select.
ON = {
    "gpt2": ("c_attn,c_fc,*.h.1.*.c_proj", lambda name: name.endswith(("c_attn", "c_fc")) or ("h.1." in name and name.endswith("c_proj"))),
    "llama": ("q_proj,v_proj,o_proj,layers.1.mlp.*", lambda name: name.endswith(("q_proj", "v_proj", "o_proj")) or "layers.1.mlp." in name and name.endswith("_proj")),
}


def adapted(name, weights, dtype):
    """The model with adapters, and the names of the projections that have one."""
    base = MODELS[name][0]()
    base.load_state_dict({k: torch.tensor(v) for k, v in weights.items()}, strict=False)
    base.tie_weights()
    modules = [module for module, _ in base.named_modules() if ON[name][1](module)]
    config = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=modules, fan_in_fan_out=name == "gpt2", task_type="CAUSAL_LM")
    return get_peft_model(base, config).to(dtype).train(), modules


def train(model, tokens):
    named = {k: p for k, p in model.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(named.values(), lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=DECAY)
    log = {"loss": [], "grad_norm": []}
    for step in range(STEPS):
        starts = [CONTEXT * ((step * BATCH + i) % SAMPLES) for i in range(BATCH)]
        rows = torch.tensor(np.stack([tokens[s:s + CONTEXT + 1] for s in starts]))
        logits = model(input_ids=rows[:, :-1]).logits
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), rows[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(named.values(), CLIP)
        optimizer.step()
        log["loss"].append(loss.item())
        log["grad_norm"].append(norm.item())
    return log


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    plain_norm = LlamaRMSNorm.forward
    for name in MODELS:
        folder, random = HERE / name, np.random.default_rng(5)
        weights = load_file(folder / "init.safetensors")
        tokens = np.frombuffer((folder / "tokens.bin").read_bytes()[1024:], np.uint16).astype(np.int64)
        model, modules = adapted(name, weights, torch.float32)
        start = {k: v.numpy() for k, v in get_peft_model_state_dict(model).items()}
        # B is zero at first, and A has no gradient then.
        start = {k: (0.1 * random.standard_normal(v.shape)).astype(np.float32) if "lora_B" in k else v for k, v in start.items()}
        logs = {}
        for key, dtype in (("f32", torch.float32), ("f64", torch.float64)):
            LlamaRMSNorm.forward = keep_precision if key == "f64" else plain_norm
            model, _ = adapted(name, weights, dtype)
            set_peft_model_state_dict(model, {k: torch.tensor(v).to(dtype) for k, v in start.items()})
            logs[key] = train(model, tokens)
        LlamaRMSNorm.forward = plain_norm
        end = {k: v.numpy().astype(np.float32) for k, v in get_peft_model_state_dict(model).items()}
        merged = {k: v.numpy().astype(np.float32) for k, v in model.merge_and_unload().state_dict().items() if k in weights}
        save_file(start, folder / "lora-init.safetensors")
        save_file(end, folder / "lora-expected.safetensors")
        changed = {k: v for k, v in merged.items() if k.removesuffix(".weight") in modules and ".0." in k}
        save_file(changed, folder / "lora-merged.safetensors")
        golden = {
            "steps": STEPS, "batch": BATCH, "sizes": MODELS[name][1], "modules": modules,
            "lora": [f"--lora={RANK}", f"--lora-alpha={ALPHA}", f"--lora-on={ON[name][0]}"],
            "options": ["--optimizer=adamw", f"--lr={LR}", "--eps=1e-8", f"--weight-decay={DECAY}", f"--clip={CLIP}"], **logs}
        (folder / "lora.json").write_text(json.dumps(golden, indent=1) + "\n")
        print(name, golden["f32"]["loss"], sorted(start)[:2], len(start))


if __name__ == "__main__":
    main()
