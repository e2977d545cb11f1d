"""Greedy continuations of token ids by the tiny language models, by transformers: see README.md. usage: make_generation.py"""

import json

import torch
from make_language import HERE, MODELS, VOCAB
from safetensors.numpy import load_file

# Context, and lengths of prompt and continuation: within one prefill, and over several.
CASES = {"gpt2": [(16, 1, 15), (16, 9, 7)], "llama": [(16, 5, 11), (192, 150, 30), (192, 97, 5)]}


def main():
    torch.set_num_threads(1)
    golden = {}
    for name, cases in CASES.items():
        model = MODELS[name][0]().double().eval()
        model.load_state_dict({k: torch.tensor(v) for k, v in load_file(HERE / name / "init.safetensors").items()}, strict=False)
        model.tie_weights()
        golden[name] = []
        for context, prompt, count in cases:
            tokens = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(prompt)]
            gaps = []
            with torch.no_grad():
                for _ in range(count):
                    scores = model(torch.tensor([tokens])).logits[0, -1]
                    best = scores.topk(2).values
                    gaps.append(float(best[0] - best[1]))
                    tokens.append(int(scores.argmax()))
            golden[name].append({"context": context, "prompt": tokens[:prompt], "continuation": tokens[prompt:], "least_gap": min(gaps)})
            print(name, context, prompt, count, "least gap", min(gaps), "distinct", len(set(tokens[prompt:])))
    (HERE / "generation.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
