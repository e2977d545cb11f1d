"""Losses and gradients of small models that `--from` reads, by transformers: see README.md. usage: make_from.py"""

import json
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen3 import modeling_qwen3

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import from_cases

RANDOM = 2  # of each family


def keep_precision(self, x):
    """The norms' formula without its detour over single precision."""
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


for norm in (modeling_llama.LlamaRMSNorm, modeling_mistral.MistralRMSNorm, modeling_qwen2.Qwen2RMSNorm, modeling_qwen3.Qwen3RMSNorm):
    norm.forward = keep_precision


def model_of(config):
    """The model of a configuration in double, as transformers reads it from a file."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        read = AutoConfig.from_pretrained(folder)
    model = AutoModelForCausalLM.from_config(read, attn_implementation="eager").double().eval()
    for name, parameter in model.named_parameters():
        shape = tuple(parameter.shape)
        parameter.data = torch.tensor(from_cases.weight(name, shape), dtype=torch.float64).reshape(shape)
    model.tie_weights()
    return model


def mask_of(tokens, end):
    """What is added to scores where attention stays within documents, which end with the token `end`: (batch, 1, queries, keys)."""
    isEnd = (tokens == end).long()
    document = isEnd.cumsum(1) - isEnd
    seen = (document[:, :, None] == document[:, None, :]) & torch.ones(tokens.shape[1], tokens.shape[1]).tril().bool()
    return torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, torch.finfo(torch.float64).min)[:, None]


def loss_of(model, end=None):
    rows = torch.tensor(from_cases.tokens(model.config.vocab_size))
    mask = None if end is None else mask_of(rows[:, :-1], end)
    logits = model(input_ids=rows[:, :-1], attention_mask=mask).logits
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), rows[:, 1:].reshape(-1))


def gradients_of(model, end=None):
    """(loss, name -> gradient as a list)."""
    loss = loss_of(model, end)
    loss.backward()
    return loss.item(), {name: p.grad.reshape(-1).tolist() for name, p in model.named_parameters()}


def main():
    torch.set_num_threads(1)
    cases = []
    for name, config in {**from_cases.SHAPES, **from_cases.random_cases(RANDOM)}.items():
        model = model_of(config)
        loss, gradients = gradients_of(model, from_cases.DOCUMENT_ENDS.get(name))
        shapes = {key: list(p.shape) for key, p in model.named_parameters()}
        cases.append({"name": name, "config": config, "loss": loss,
                      "tensors": {key: {"shape": shapes[key], **from_cases.summary(key, values)} for key, values in gradients.items()}})
        print(f"{name}: loss {loss:.9f}, {len(gradients)} tensors")
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "from.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
