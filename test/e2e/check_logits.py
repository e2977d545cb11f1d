#!/usr/bin/env python3
"""check_logits.py SMALL MERGED SCORES: scores of a program are those of a Llama in plain Python, in double.

SMALL is what scripts/small-llama has made with seed 1. The Llama here computes its scores as transformers does, which
test/golden/small-llama.json has (test/golden/make_small_llama.py). MERGED is a model that --export-merged has written, SCORES what
`generate --scores` of the program with the adapters has.
"""

import json
import math
import pathlib
import sys
from operator import mul

import training
import weights


class Llama:
    """LlamaForCausalLM of a folder, one text at a time."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.rows = {}
        for name, (_, shape, values) in weights.read(folder / "model.safetensors").items():
            width = shape[-1]
            self.rows[name.removeprefix("model.")] = [values[i : i + width] for i in range(0, len(values), width)]
        self.head = self.config["hidden_size"] // self.config["num_attention_heads"]

    def product(self, name, x):
        return [sum(map(mul, row, x)) for row in self.rows[f"{name}.weight"]]

    def norm(self, name, x):
        scale = (sum(map(mul, x, x)) / len(x) + self.config["rms_norm_eps"]) ** -0.5
        return [value * scale * weight for value, weight in zip(x, self.rows[f"{name}.weight"][0])]

    def rotate(self, heads, position):
        """Half-split rotary embedding of each head."""
        half, rotated = self.head // 2, []
        for at in range(0, len(heads), self.head):
            head = heads[at : at + self.head]
            angles = [position * self.config["rope_theta"] ** (-i / half) for i in range(half)]
            rotated.append([head[i] * math.cos(a) - head[half + i] * math.sin(a) for i, a in enumerate(angles)]
                           + [head[half + i] * math.cos(a) + head[i] * math.sin(a) for i, a in enumerate(angles)])
        return rotated

    def attend(self, block, x, position, past):
        queries = self.rotate(self.product(f"{block}.self_attn.q_proj", x), position)
        values = self.product(f"{block}.self_attn.v_proj", x)
        past.append((self.rotate(self.product(f"{block}.self_attn.k_proj", x), position),
                     [values[i : i + self.head] for i in range(0, len(values), self.head)]))
        result = []
        for i, query in enumerate(queries):
            group = i * len(past[0][0]) // len(queries)
            scores = [sum(map(mul, query, keys[group])) / math.sqrt(self.head) for keys, _ in past]
            shares = [math.exp(score - max(scores)) for score in scores]
            columns = zip(*(values[group] for _, values in past))
            result += [sum(map(mul, shares, column)) / sum(shares) for column in columns]
        return self.product(f"{block}.self_attn.o_proj", result)

    def scores(self, ids):
        """Of the token behind each of `ids`."""
        found, kept = [], [[] for _ in range(self.config["num_hidden_layers"])]
        for position, token in enumerate(ids):
            x = self.rows["embed_tokens.weight"][token]
            for i, past in enumerate(kept):
                block = f"layers.{i}"
                x = [a + b for a, b in zip(x, self.attend(block, self.norm(f"{block}.input_layernorm", x), position, past))]
                y = self.norm(f"{block}.post_attention_layernorm", x)
                gate, up = self.product(f"{block}.mlp.gate_proj", y), self.product(f"{block}.mlp.up_proj", y)
                y = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
                x = [a + b for a, b in zip(x, self.product(f"{block}.mlp.down_proj", y))]
            found.append(self.product("lm_head", self.norm("norm", x)))
        return found


def compare(what, got, expected, tolerance=1e-5):
    difference = max(abs(a - b) for a, b in zip(got, expected))
    largest = max(map(abs, expected))
    print(f"{what}: {len(expected)} scores, largest difference {difference:.3g} of scores up to {largest:.3g}")
    if len(got) != len(expected) or not difference <= tolerance * max(1, largest):
        sys.exit(f"{what}: got a difference of {difference:.3g} in {len(got)} scores, expected at most {tolerance} of {len(expected)}")


def main():
    small, merged, scores = map(pathlib.Path, sys.argv[1:])
    golden = json.loads((training.GOLDEN / "small-llama.json").read_text())
    compare("the Llama in Python and transformers", Llama(small).scores(golden["ids"])[-1], golden["scores"])
    written = weights.read(scores)
    prompt, tokens = written["prompt"][2], written["tokens"][2]
    expected = Llama(merged).scores([*prompt, *tokens][:-1])[len(prompt) - 1 :]
    compare("the program and the Llama in Python", written["scores"][2], [score for row in expected for score in row])


if __name__ == "__main__":
    main()
