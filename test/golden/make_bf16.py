"""Thirty steps in bf16 of the language models of make_language.py: see README.md. usage: make_bf16.py

Mixed precision as FSDP2's MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=float32) does it:
master weights and AdamW in float, a bf16 copy for forward and backward, the loss in float.
"""

import json

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file

from make_language import BATCH, CLIP, CONTEXT, DECAY, HERE, LR, MODELS, SAMPLES, STEPS, VOCAB


def main():
    torch.set_num_threads(1)
    for name, (make, _) in MODELS.items():
        folder = HERE / name
        init = load_file(folder / "init.safetensors")
        tokens = np.fromfile(folder / "tokens.bin", np.uint16, offset=1024).astype(np.int64)
        master = {k: torch.nn.Parameter(torch.tensor(v)) for k, v in init.items()}
        optimizer = torch.optim.AdamW(
            [{"params": [p for p in master.values() if p.dim() >= 2], "weight_decay": DECAY},
             {"params": [p for p in master.values() if p.dim() < 2], "weight_decay": 0.0}],
            lr=LR, betas=(0.9, 0.999), eps=1e-8)
        model = make().to(torch.bfloat16).train()
        model.tie_weights()
        copies = dict(model.named_parameters())
        assert copies.keys() == master.keys()
        log = {"loss": [], "grad_norm": []}
        for step in range(STEPS):
            with torch.no_grad():
                for key, copy in copies.items():
                    copy.copy_(master[key])
            starts = [CONTEXT * ((step * BATCH + i) % SAMPLES) for i in range(BATCH)]
            rows = torch.tensor(np.stack([tokens[s:s + CONTEXT + 1] for s in starts]))
            logits = model(input_ids=rows[:, :-1]).logits
            loss = F.cross_entropy(logits.float().reshape(-1, VOCAB), rows[:, 1:].reshape(-1))
            model.zero_grad()
            loss.backward()
            for key, copy in copies.items():
                master[key].grad = copy.grad.float()
            norm = torch.nn.utils.clip_grad_norm_(master.values(), CLIP)
            optimizer.step()
            log["loss"].append(loss.item())
            log["grad_norm"].append(norm.item())
        golden = json.loads((folder / "adamw.json").read_text())
        golden["bf16"] = log
        (folder / "adamw.json").write_text(json.dumps(golden, indent=1) + "\n")
        for what, values in log.items():
            worst = max(abs(a / b - 1) for a, b in zip(values, golden["f64"][what]))
            print(name, what, values[0], values[-1], "bf16 against f64", worst)


if __name__ == "__main__":
    main()
