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


def documents_of(row, end):
    """The parts of `row` that end with `end`, or with the row: (first, last + 1)."""
    ends = [i + 1 for i, token in enumerate(row) if token == end]
    starts = [0, *ends]
    return [(a, b) for a, b in zip(starts, [*ends, len(row)]) if a < b]


def packed_loss(model, end, begin, stop):
    """In rows, with a mask of attention, positions that begin anew in each document, and targets that do not count."""
    rows, vocabulary = from_cases.tokens(model.config.vocab_size), model.config.vocab_size
    length = len(rows[0]) - 1
    seen, positions = torch.zeros(len(rows), length, length, dtype=torch.bool), torch.zeros(len(rows), length, dtype=torch.long)
    targets = torch.tensor([row[1:] for row in rows])
    for b, row in enumerate(rows):
        for first, last in documents_of(row[:-1], end):
            seen[b, first:last, first:last] = torch.ones(last - first, last - first).tril().bool()
            positions[b, first:last] = torch.arange(last - first)
        for t, isCounted in enumerate(from_cases.counts(row, end, begin, stop)):
            if not isCounted:
                targets[b, t] = -100
    mask = torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, torch.finfo(torch.float64).min)[:, None]
    logits = model(input_ids=torch.tensor(rows)[:, :-1], attention_mask=mask, position_ids=positions).logits
    losses = F.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1), reduction="sum")
    return losses / max(1, (targets != -100).sum().item())


def separate_loss(model, end, begin, stop):
    """The same, each document by itself, without any mask."""
    total, count = 0, 0
    for row in from_cases.tokens(model.config.vocab_size):
        for first, last in documents_of(row[:-1], end):
            document = row[first:last + 1]
            logits = model(input_ids=torch.tensor([document[:-1]])).logits[0]
            for t, isCounted in enumerate(from_cases.counts(document, end, begin, stop)):
                if isCounted:
                    total, count = total - F.log_softmax(logits[t], -1)[document[t + 1]], count + 1
    # Where nothing counts, PyTorch has no gradient.
    return total / count if count else 0 * sum(p.sum() for p in model.parameters())


def loss_of(model):
    rows = torch.tensor(from_cases.tokens(model.config.vocab_size))
    logits = model(input_ids=rows[:, :-1]).logits
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), rows[:, 1:].reshape(-1))


def gradients_of(model, loss):
    """(loss, name -> gradient as a list)."""
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return loss.item(), {name: g.reshape(-1).tolist() for (name, _), g in zip(model.named_parameters(), gradients)}


def packed_gradients_of(model, packing):
    """As `gradients_of`, computed in two ways."""
    loss, gradients = gradients_of(model, packed_loss(model, *packing))
    separate, others = gradients_of(model, separate_loss(model, *packing))
    assert abs(loss - separate) <= 1e-12, (loss, separate)
    for name, values in gradients.items():
        assert max(abs(a - b) for a, b in zip(values, others[name])) <= 1e-12, name
    return loss, gradients


def main():
    torch.set_num_threads(1)
    cases = []
    for name, config in {**from_cases.SHAPES, **from_cases.random_cases(RANDOM)}.items():
        model = model_of(config)
        packing = from_cases.PACKED.get(name)
        loss, gradients = packed_gradients_of(model, packing) if packing else gradients_of(model, loss_of(model))
        shapes = {key: list(p.shape) for key, p in model.named_parameters()}
        cases.append({"name": name, "config": config, "loss": loss,
                      "tensors": {key: {"shape": shapes[key], **from_cases.summary(key, values)} for key, values in gradients.items()}})
        print(f"{name}: loss {loss:.9f}, {len(gradients)} tensors")
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "from.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
