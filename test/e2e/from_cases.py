"""Models that `--from` reads: their config.json, and weights and tokens that are functions of names and numbers, so that no file
has to hold them. Standard library only; what transformers makes of the cases is in test/golden/from.json."""

import json
import random
import struct
import zlib

CONTEXT, BATCH = 12, 3
SIZES = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64}
OLD_LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
             "initializer_range": 0.02, "pretraining_tp": 1, "torch_dtype": "bfloat16", "transformers_version": "4.35.0", "use_cache": True}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 48, "rope_type": "llama3"}
QWEN = {"attention_dropout": 0.0, "bos_token_id": 3, "eos_token_id": 5, "hidden_act": "silu", "initializer_range": 0.02,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": True,
        "torch_dtype": "bfloat16", "use_cache": True, "use_sliding_window": False}

# The configurations of models on Hugging Face, with small sizes; lengths that rope is scaled by are small too, so that they matter.
SHAPES = {
    "tinyllama": {**OLD_LLAMA, **SIZES, "attention_bias": False, "max_position_embeddings": 2048, "num_key_value_heads": 1,
                  "rms_norm_eps": 1e-5, "rope_scaling": None, "rope_theta": 10000.0, "tie_word_embeddings": False},
    "llama-2": {**OLD_LLAMA, **SIZES, "max_position_embeddings": 4096, "num_key_value_heads": 4, "rms_norm_eps": 1e-5,
                "rope_scaling": None, "tie_word_embeddings": False},
    "llama-3.1": {**OLD_LLAMA, **SIZES, "attention_bias": False, "attention_dropout": 0.0, "eos_token_id": [1, 8, 9],
                  "max_position_embeddings": 131072, "mlp_bias": False, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
                  "rope_scaling": LLAMA3, "rope_theta": 500000.0, "tie_word_embeddings": False},
    "llama-3.2": {**OLD_LLAMA, **SIZES, "head_dim": 8, "max_position_embeddings": 131072, "num_key_value_heads": 2,
                  "rms_norm_eps": 1e-5, "rope_scaling": {**LLAMA3, "factor": 32.0}, "rope_theta": 500000.0, "tie_word_embeddings": True},
    "smollm": {**OLD_LLAMA, **SIZES, "hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 1, "is_llama_config": True,
               "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_interleaved": False, "rope_scaling": None,
               "rope_theta": 10000.0, "tie_word_embeddings": True},
    "mistral-0.1": {**SIZES, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "bos_token_id": 1, "eos_token_id": 2,
                    "hidden_act": "silu", "max_position_embeddings": 32768, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
                    "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
    "mistral-0.3": {**SIZES, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "head_dim": 6, "hidden_act": "silu",
                    "max_position_embeddings": 32768, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0,
                    "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
    "qwen2": {**QWEN, **SIZES, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "max_window_layers": 24,
              "num_key_value_heads": 2, "sliding_window": 32768},
    "qwen2.5-yarn": {**QWEN, **SIZES, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "max_window_layers": 2,
                     "num_key_value_heads": 1, "sliding_window": 131072, "rope_theta": 100.0,
                     "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 2.0, "type": "yarn"}},
    "qwen3": {**QWEN, **SIZES, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": False, "head_dim": 12,
              "max_window_layers": 28, "num_key_value_heads": 2, "rope_scaling": None, "sliding_window": None},
    "gpt2": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new", "attn_pdrop": 0.1,
             "bos_token_id": 60, "embd_pdrop": 0.1, "eos_token_id": 60, "initializer_range": 0.02, "layer_norm_epsilon": 1e-5,
             "n_ctx": 16, "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 16, "resid_pdrop": 0.1, "summary_activation": None,
             "summary_first_dropout": 0.1, "summary_type": "cls_index", "summary_use_proj": True, "vocab_size": 61},
}
# Windows smaller than the context, in all layers, in the last ones, and in those that are named.
SHAPES["mistral-window"] = {**SHAPES["mistral-0.1"], "sliding_window": 4}
SHAPES["qwen2-window"] = {**SHAPES["qwen2"], "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
SHAPES["qwen3-window"] = {**SHAPES["qwen3"], "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0,
                          "layer_types": ["sliding_attention", "full_attention"]}
# Of few tokens, of which one ends a document, and answers that count alone: name -> (end of documents or None, tokens before an
# answer, tokens that end one).
FEW = {"llama": {**SHAPES["llama-2"], "vocab_size": 7}, "qwen2": {**SHAPES["qwen2"], "vocab_size": 7},
       "gpt2": {**SHAPES["gpt2"], "vocab_size": 7, "bos_token_id": 6, "eos_token_id": 6}}
PACKED = {"llama-documents": (3, (), ()), "gpt2-documents": (3, (), ()), "gpt2-answers": (3, (2,), ()), "llama-chat": (None, (5,), (2,)),
          "qwen2-chat": (3, (4, 2), (1,)), "llama-nothing": (3, (5, 5), (2, 2, 2))}
SHAPES.update({name: FEW[name.split("-")[0]] for name in PACKED})
FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gpt2")
ACTIVATIONS = ("silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu")


def program_of(config):
    return "gpt2" if config["model_type"] == "gpt2" else "llama"


def random_gpt2(draw):
    heads = draw.choice((1, 2, 3, 4))
    config = {"model_type": "gpt2", "n_head": heads, "n_embd": heads * draw.choice((4, 6, 8)), "n_layer": draw.choice((1, 2, 3)),
              "n_positions": draw.choice((12, 13, 40)), "vocab_size": draw.randrange(20, 70), "bos_token_id": 1, "eos_token_id": 2,
              "activation_function": draw.choice(ACTIVATIONS), "layer_norm_epsilon": draw.choice((1e-5, 1e-6, 1e-2)),
              "scale_attn_weights": draw.choice((True, True, False)), "scale_attn_by_inverse_layer_idx": draw.choice((False, False, True)),
              "tie_word_embeddings": draw.choice((True, True, False)), "n_inner": draw.choice((None, 24, 50))}
    if draw.random() < 0.3:
        config["max_position_embeddings"] = config.pop("n_positions")
    return config


def random_rope(draw, positions):
    theta = draw.choice((10000.0, 500000.0, 100.0, 1000000))
    kind = draw.choice(("default", "default", "linear", "llama3", "yarn"))
    scaling = {"rope_type": kind}
    if kind != "default":
        scaling["factor"] = draw.choice((2.0, 4, 8.0, 1.5))
    if kind == "llama3":
        scaling.update(low_freq_factor=draw.choice((1.0, 2)), high_freq_factor=draw.choice((4.0, 3.0)),
                       original_max_position_embeddings=draw.choice((16, 40, 100)))
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = draw.choice((8, 20, positions))
        for name, values in (("beta_fast", (2.0, 32)), ("beta_slow", (1, 0.5)), ("truncate", (True, False)),
                             ("attention_factor", (1.2, None)), ("mscale", (0.7, 1.0)), ("mscale_all_dim", (0.9, 1.0))):
            if draw.random() < 0.4:
                scaling[name] = draw.choice(values)
    if draw.random() < 0.5:
        return {"rope_parameters": {"rope_theta": theta, **scaling}}
    if kind == "default":
        return {"rope_theta": theta, "rope_scaling": None} if draw.random() < 0.8 else {}
    return {"rope_theta": theta, "rope_scaling": scaling}


def random_config(family, draw):
    """A configuration with every entry that the family has, each at random."""
    if family == "gpt2":
        return random_gpt2(draw)
    heads = draw.choice((1, 2, 3, 4, 6))
    config = {"model_type": family, "num_attention_heads": heads, "hidden_size": 2 * heads * draw.choice((2, 3, 4)),
              "num_hidden_layers": draw.choice((1, 2)), "intermediate_size": draw.randrange(8, 50), "vocab_size": draw.randrange(20, 70),
              "num_key_value_heads": draw.choice([n for n in range(1, heads + 1) if heads % n == 0]),
              "hidden_act": draw.choice(("silu", "silu", *ACTIVATIONS)), "rms_norm_eps": draw.choice((1e-5, 1e-6, 1e-2)),
              "tie_word_embeddings": draw.choice((True, False)), "max_position_embeddings": draw.choice((64, 2048, 12)),
              "bos_token_id": 1, "eos_token_id": draw.choice((2, [2, 3]))}
    if family == "qwen3" or draw.random() < 0.4:
        config["head_dim"] = draw.choice((4, 6, 8, 10))
    if family == "llama" and draw.random() < 0.3:
        del config["num_key_value_heads"]
    if family in ("llama", "qwen3"):
        config["attention_bias"] = draw.choice((True, False))
    if family == "llama":
        config["mlp_bias"] = draw.choice((True, False))
    if family == "mistral":
        config["sliding_window"] = draw.choice((None, CONTEXT, 4096))
    if family.startswith("qwen"):
        config["use_sliding_window"] = draw.choice((True, False))
        config["max_window_layers"] = draw.choice((0, 1, 28))
        config["sliding_window"] = draw.choice((CONTEXT, 4096)) if config["use_sliding_window"] else draw.choice((None, 4, 4096))
    config.update(random_rope(draw, config["max_position_embeddings"]))
    return config


def random_cases(count, seed=1):
    """name -> configuration: `count` of each family."""
    return {f"{family}-{i}": random_config(family, random.Random(f"{seed} {family} {i}")) for family in FAMILIES for i in range(count)}


def mixed(number):
    """A hash of 64 bits (the finalizer of splitmix64)."""
    mask = 2**64 - 1
    number = (number + 0x9E3779B97F4A7C15) & mask
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & mask
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & mask
    return number ^ (number >> 31)


def uniform(name, index):
    """In [-1, 1), exact in f32."""
    return (mixed(zlib.crc32(name.encode()) * 2**32 + index) >> 44) / 2**19 - 1


def weight(name, shape):
    """Values of a parameter: large enough that every part matters."""
    count = 1
    for size in shape:
        count *= size
    isNorm = len(shape) == 1 and name.endswith("weight")
    return [isNorm + 0.25 * uniform(name, i) for i in range(count)]


def stream(vocab):
    """The tokens of a step."""
    return [mixed(i) % vocab for i in range(BATCH * CONTEXT + 1)]


def tokens(vocab):
    """BATCH rows of CONTEXT + 1 tokens, each of which begins with the last token of the one before."""
    row = stream(vocab)
    return [row[CONTEXT * i:CONTEXT * (i + 1) + 1] for i in range(BATCH)]


def counts(row, end, begin, stop):
    """For the successor of each token of `row` but the last whether it counts in the loss: a definition token by token."""
    said, within = [], not begin
    for i, token in enumerate(row[:-1]):
        before = tuple(row[:i + 1])
        if begin and before[-len(begin):] == tuple(begin):
            within = True
        elif stop and before[-len(stop):] == tuple(stop):
            within = False
        if token == end:
            within = within and not begin
        said.append(within and token != end)
    return said


def write_safetensors(path, tensors):
    """`tensors`: name -> (dtype, shape, values)."""
    header, parts, at = {}, [], 0
    for name, (dtype, shape, values) in tensors.items():
        parts.append(struct.pack(f"<{len(values)}{ {'F32': 'f', 'I32': 'i'}[dtype] }", *values))
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def summary(name, values):
    """Of a gradient: its largest element, some elements, and a sum with signs, in which all take part."""
    step = max(1, len(values) // 6)
    return {"largest": max(map(abs, values)), "elements": [values[i] for i in range(0, len(values), step)],
            "sum": sum(v if mixed(i) & 1 else -v for i, v in enumerate(values))}
