"""Llama in transformers: evaluation and generation. python transformers_llama.py JOB, one JSON object a line (see bench/generation).

{"make": FOLDER, "config": {...}} writes a model with random weights. {"evaluate": ...} and {"generate": ...} measure."""

import json
import os
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

import protocol


def make(job):
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**job["config"]))
    for parameter in model.parameters():  # as a trained model: scores that differ
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    model.save_pretrained(job["make"])


def open_model(job):
    torch.set_num_threads(job["threads"])
    dtype = torch.bfloat16 if job["precision"] == "bf16" else torch.float32
    return AutoModelForCausalLM.from_pretrained(job["model"], dtype=dtype, attn_implementation="sdpa").eval()


def timed(function):
    begin, used = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - begin, time.process_time() - used


def evaluate(job):
    model, losses = open_model(job), []
    tokens = protocol.Tokens(job["data"], job["context"], job["batch"])

    def batch():
        rows = torch.from_numpy(tokens.rows()).long()
        logits = model(rows[:, :-1]).logits.float()
        losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item())

    with torch.inference_mode():
        batch()  # warms up
        tokens.next = 0
        losses.clear()
        _, seconds, core_seconds = timed(lambda: [batch() for _ in range(job["batches"])])
    count = job["batches"] * job["batch"] * job["context"]
    protocol.say(loss=sum(losses) / len(losses), tokens_per_s=count / seconds, core_seconds=core_seconds / count)


def generate(job):
    model, prompt = open_model(job), torch.tensor([job["prompt"]])

    def run(count):
        return model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=count, min_new_tokens=count, pad_token_id=0)

    with torch.inference_mode():
        run(2)  # warms up
        _, first, used_first = timed(lambda: run(1))
        out, seconds, used = timed(lambda: run(job["tokens"]))
    after = job["tokens"] - 1
    protocol.say(tokens=out[0, len(job["prompt"]) :].tolist(), first_token=first, tokens_per_s=after / (seconds - first),
                 core_seconds=(used - used_first) / after)


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    job = json.loads(sys.argv[1])
    {"make": make, "evaluate": evaluate, "generate": generate}[next(name for name in ("make", "evaluate", "generate") if name in job)](job)


if __name__ == "__main__":
    main()
