"""What is compiled, run, compared and timed."""

import collections

# `options` of the program `model`; `small`: those under the emulator; `meshes`: see axes_of; `steps`; `tolerance`: how close losses must be
# to the CPU program's of one rank (relative; None: not run on the CPU); `rung`: where it runs; `run`: options of the program itself;
# `config`: the config.json that --from reads. Losses on further meshes: see between_meshes.
Case = collections.namedtuple("Case", "model options small meshes steps tolerance rung run config", defaults=((), None))

GPT2 = ["--layers=12", "--width=768", "--heads=12", "--vocab=50257"]
TINY = ["--layers=2", "--width=64", "--heads=4", "--context=32", "--vocab=256", "--batch=12", "--clip=1"]
SMALL = ["--layers=1", "--width=32", "--heads=2", "--context=16", "--vocab=61", "--batch=4"]
LLAMA = [*TINY, "--kv-heads=2", "--ffn=96"]
# Heads of 64 and more keys than one tile has: attention by wgmma, where the GPU has it.
HEADS = ["--layers=2", "--width=256", "--heads=4", "--kv-heads=2", "--ffn=320", "--context=256", "--vocab=256", "--batch=4", "--clip=1"]
CONFIG = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "intermediate_size": 320, "vocab_size": 256, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
          "tie_word_embeddings": False, "hidden_act": "silu"}
WINDOW = {**CONFIG, "model_type": "mistral", "sliding_window": 100}
ROPE = {**CONFIG, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                   "original_max_position_embeddings": 64}}
BIASES = ["--lr=0.01", "--eps=1e-3", "--weight-decay=0.01"]
FROM = ["--context=256", "--batch=4", "--clip=1"]
# Llama 3.2 1B.
LLAMA_1B = ["--layers=16", "--width=2048", "--heads=32", "--kv-heads=8", "--ffn=8192", "--vocab=128256", "--tie", "--rope-theta=500000"]
# 5 x 4096 x 128256 logits: more than 2^31.
WIDE = ["--layers=2", "--width=1024", "--heads=8", "--kv-heads=2", "--ffn=2816", "--context=4096", "--vocab=128256", "--batch=5",
        "--precision=bf16"]
SMALL_WIDE = ["--layers=1", "--width=256", "--heads=2", "--kv-heads=1", "--ffn=64", "--context=8", "--vocab=61", "--batch=2",
              "--precision=bf16"]
CASES = {
    "linear": Case("linear", ["--in=32", "--out=8", "--batch=24"], None, ["1", "3"], 10, 1e-4, "losses"),
    "mlp": Case("mlp", ["--in=32", "--hidden=48", "--classes=10", "--batch=24"], None, ["1", "2"], 10, 1e-4, "losses"),
    "gpt2-tiny": Case("gpt2", TINY, None, ["1", "2", "4"], 20, 1e-4, "losses"),
    "llama-tiny": Case("llama", LLAMA, None, ["1", "2", "4"], 20, 1e-4, "losses"),
    "gpt2-tiny-bf16": Case("gpt2", [*TINY, "--precision=bf16"], None, ["1", "2", "4"], 20, 1e-2, "losses"),
    "llama-documents": Case("llama", [*LLAMA, "--document-end=0", "--mask-prompt=7"], None, ["1", "2"], 10, 1e-4, "losses"),
    "llama-documents-bf16": Case("llama", [*HEADS, "--document-end=0", "--precision=bf16"], None, ["1", "2"], 10, 1e-2, "losses"),
    "mistral-window": Case("llama", FROM, None, ["1"], 10, 1e-4, "losses", (), WINDOW),
    "mistral-window-bf16": Case("llama", [*FROM, "--precision=bf16"], None, ["1"], 10, 1e-2, "losses", (), WINDOW),
    "llama-scaled-rope": Case("llama", FROM, None, ["1"], 10, 1e-4, "losses", (), ROPE),
    "gpt2-rates": Case("gpt2", TINY, None, ["1", "2"], 10, 1e-4, "losses",
                       ("--clip=0.5", "--weight-decay=0.2", "--beta1=0.8", "--beta2=0.9", "--eps=1e-6", "--warmup=3",
                        "--lr-scale=*wte*=0.5", "--lr-scale=*.mlp.*=2", "--no-decay=*wpe*", "--on-spike=skip")),
    "llama-lion": Case("llama", [*LLAMA, "--optimizer=lion", "--lr=1e-4", "--schedule=wsd", "--accumulate=3", "--defer-updates=on",
                                 "--remat=full", "--loss-chunks=2"], None, ["1", "2"], 10, 1e-4, "losses"),
    "llama-lora": Case("llama", [*LLAMA, "--lora=4"], None, ["1", "2"], 10, 1e-4, "losses"),
    "llama-generate": Case("llama", [*LLAMA, "--generate"], None, ["1", "2"], 10, 1e-4, "losses"),
    # Activations split along the sequence; the loss's joined all-reduces.
    "llama-tensor": Case("llama", LLAMA, None, ["1", "1x2", "2x2"], 10, 1e-4, "losses"),
    "gpt2-tensor-bf16": Case("gpt2", [*TINY, "--precision=bf16"], None, ["1", "1x2"], 10, 1e-2, "losses"),
    # Learned biases with a gradient; masking ones of -1e9, of which each row's largest is subtracted.
    "biases-relative": Case("biases", ["--bias=relative", *BIASES], None, ["1", "2"], 10, 1e-4, "losses"),
    "biases-mask": Case("biases", ["--bias=mask", *BIASES], None, ["1", "2"], 10, 1e-4, "losses"),
    "prints": Case("prints", ["--prints=1", "--checks=1"], None, ["1", "3"], 10, 1e-4, "losses"),
    "gpt2-124m": Case("gpt2", [*GPT2, "--context=256", "--batch=4"], SMALL, ["1", "2"], 3, 1e-4, "losses"),
    "gpt2-124m-bf16": Case("gpt2", [*GPT2, "--context=1024", "--batch=32", "--precision=bf16"], [*SMALL, "--precision=bf16"],
                           ["1"], 30, None, "timed"),
    "gpt2-124m-f32": Case("gpt2", [*GPT2, "--context=1024", "--batch=8"], SMALL, ["1"], 15, None, "timed"),
    "llama-1b-bf16": Case("llama", [*LLAMA_1B, "--context=4096", "--batch=4", "--precision=bf16"], [*SMALL_WIDE, "--tie"], ["1"], 15, None,
                          "timed"),
    "llama-wide": Case("llama", WIDE, SMALL_WIDE, ["1"], 4, None, "large"),
    "llama-wide-chunks": Case("llama", [*WIDE, "--loss-chunks=5"], [*SMALL_WIDE, "--loss-chunks=2"], ["1"], 4, None, "large"),
}
# Cases whose losses agree up to rounding: the same computation with fewer logits at once.
SAME = {"llama-wide": "llama-wide-chunks"}
# Cases of the rungs that need one.
FIRST, SAME_BITS, NCCL = ("linear", "gpt2-tiny"), ("gpt2-tiny-bf16", "gpt2-124m-bf16", "linear"), ("linear", "gpt2-tiny",
                                                                                               "gpt2-tiny-bf16")
# Cases that evaluate their trained weights and continue from a checkpoint; those with --generate write this text.
USED = ("llama-generate", "llama-documents")
GENERATED = ("--prompt", "1 38 161", "--tokens", "24", "--temperature", "0")
TEST_FILES = ("Row", "Copy", "Loss", "InPlace", "Update", "Variant", "Attention", "Generation")
# Jobs of the runtime (test/unit/runtime/comm/cuda/CudaRanksMain.cpp): mesh, the work, the
# transport, the exit status, the message. All ranks share the GPU as threads; NCCL, which refuses
# that, has one rank, which uses all of NCCL (`nccl-always`) or, as programs do, none of it. Then
# the faults that every rank must detect.
RANKS = [
    ("fsdp=3", "conformance", "loopback", 0, r"compared \d{6}"),
    ("data=2,fsdp=2", "conformance", "loopback", 0, r"compared \d{6}"),
    ("fsdp=1", "conformance", "nccl", 0, r"compared \d"),
    ("fsdp=1", "conformance", "nccl-always", 0, r"compared \d"),
    ("fsdp=7", "steps", "loopback", 0, "done"),
    ("fsdp=1", "steps", "nccl", 0, "done"),
    ("fsdp=1", "steps", "nccl-always", 0, "done"),
    ("fsdp=3", "throw", "loopback", 1, "error: rank 1: the planted fault"),
    ("fsdp=2", "invalid", "loopback", 1, "error: rank 1, 'wrong copy': "),
    ("fsdp=2", "kind", "loopback", 1, "'scatter': collectives over 'all axes' do not match: "),
    ("fsdp=3", "leave", "loopback", 1, "over 'all axes', waiting for rank 1"),
]
# Separate timings: groups and models of device-bench.
BENCHES = [("products", "gpt2-124m"), ("kernels", "gpt2-124m"), ("products", "llama-8b"), ("kernels", "llama-8b"),
           ("products", "gpt2-124m-f32"), ("kernels", "gpt2-124m-f32")]
# By NVIDIA's data sheets: dense peaks in TFLOP/s, f32 outside of tensor cores and bf16 in them; memory's in GB/s.
PEAKS = {"H200": (67, 989, 4800), "H100 PCIe": (51, 756, 2000), "H100": (67, 989, 3350), "A100": (19.5, 312, 2039),
         "L40S": (91.6, 362, 864), "RTX 4090": (82.6, 165, 1008)}


def between_meshes(options):
    """How close losses must be to those of one rank (relative). Another order of every product's sums changes those of tiny gpt2 by
    2e-5 in bf16, and in f32 by less than 2e-6 (FSDP_EMULATOR=products=split)."""
    return 5e-4 if "--precision=bf16" in options else 2e-6


def flops_of_token(options):
    """Forward and backward of every product, the unembedding's too, and attention's, causal or not (PaLM, appendix B)."""
    layers, width, context, vocabulary = (number(options, key) for key in ("layers", "width", "context", "vocab"))
    block = 12 * width * width
    if any(option.startswith("--ffn=") for option in options):
        block = 2 * width * width * (1 + number(options, "kv-heads") / number(options, "heads")) + 3 * width * number(options, "ffn")
    return 6 * (layers * block + vocabulary * width) + 12 * layers * width * context


def peaks_of(gpu):
    """The peaks of the GPU of this name, None where they are not known."""
    return next((peaks for name, peaks in PEAKS.items() if name in gpu), None)


def axes_of(mesh):
    """The mesh of FSDP ranks, "4", or of FSDP x tensor ranks, "2x2", as --mesh has it."""
    return ",".join(f"{axis}={size}" for axis, size in zip(("fsdp", "tensor"), mesh.split("x")))


def number(options, name):
    return next(int(o.split("=")[1]) for o in options if o.startswith(f"--{name}="))


def data_of(name):
    if name.startswith(("llama-wide", "llama-1b")):
        return "124m.data"
    if name.startswith("biases"):
        return "biases.data"
    return {"linear": "linear", "mlp": "mlp", "prints": "prints"}.get(name, "124m" if "124m" in name else "tiny") + ".data"


def program_of(name, mesh):
    return f"train-{name}-{mesh}"
