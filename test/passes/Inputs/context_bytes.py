"""context_bytes.py REPORT BYTES LAYERS BATCH CONTEXT WIDTH VOCABULARY: the bytes that docs/sharding.md derives for gpt2 over `fsdp`, `context` and `tensor` are those of REPORT.

BYTES of an element of activations; gradients are reduced in f32. BATCH samples on each rank of `fsdp`. Exact but for the gathers and reductions of parameters, whose formula leaves out that norms, biases and positions are whole on
each rank of `tensor`, and the padding of the vocabulary.
"""

import collections
import json
import sys

report = json.load(open(sys.argv[1]))
kind = report["context_attention"]
size, layers, batch, length, width, vocabulary = map(int, sys.argv[2:])
mesh = dict(axis.split("=") for axis in report["mesh"].split(","))
fsdp, context, tensor = (int(mesh.get(axis, 1)) for axis in ("fsdp", "context", "tensor"))
stored = "+".join(axis for axis in ("fsdp", "context") if axis in mesh)
got = collections.Counter()
for call in report["collectives"]:
    got[f"{call['kind']} {'+'.join(call['axes'])}"] += call["count"] * call["received"]
stream, ranks = size * batch * length * width, fsdp * context
once = report["replicated_parameters"] / tensor * (ranks - 1) / ranks  # in f32
embedding = 4 * width * (vocabulary + length) / tensor * (ranks - 1) / ranks
expected = {
    f"all_gather {stored}": (2 * once * size / 4, 0.05),
    f"reduce_scatter {stored}": (once + embedding, 0.05),
    "all_gather tensor": ((4 * layers + 2) * stream / context * (tensor - 1) / tensor, 0),
    "reduce_scatter tensor": ((4 * layers + 2) * stream / context * (tensor - 1) / tensor, 0),
}
blocks = layers / tensor * (context - 1) / context
keys = 4 * stream * blocks, 8 * stream / size * blocks  # sent forward and backward; their gradients, in f32
expected |= {
    "all-to-all": {"all_to_all context": (8 * stream * blocks / context, 0)},
    "gather": {"all_gather context": (keys[0], 0), "reduce_scatter context": (keys[1], 0)},
    "ring": {"collective_permute context": (sum(keys), 0)},
}[kind]
for name, (value, tolerance) in expected.items():
    if abs(got[name] - value) > tolerance * value:
        sys.exit(f"{report['mesh']}: {name} receives {got[name]} bytes, expected {value}")
if unknown := [name for name in got if name not in expected and not name.startswith("all_reduce")]:
    sys.exit(f"{report['mesh']}: also {unknown}")
print(f"{report['mesh']} {kind}: {sum(got.values())} bytes as derived")
