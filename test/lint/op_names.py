"""Passes and code generation ask ops what they are through interfaces, and name none.

What an op is to a pass stands beside the op (dialect/nn/NNInterfaces.td): a new op then needs no change in passes/
and codegen/. Building an op names it, and so may the few places below, each for the reason given there. An
allowance that nothing needs any more is refused as well. Ops of `fsdp` are what passes are about.
"""

import re

NAME = re.compile(r"\b(nn|arith|math)::([A-Z]\w*Op)\b(?!::create\b)")
# A constant computes nothing.
EVERYWHERE = {"arith::ConstantOp"}
LOOPS = {"nn::EinsumOp", "nn::ReduceOp", "nn::RepeatOp", "nn::RearrangeOp", "nn::FusedOp", "nn::YieldOp"}
# (beginnings of paths, ops, reason)
ALLOWED = [
    # What loops over factors are made of: the ops in einops notation, and the kernel that holds them.
    (("passes/local/Fuse.cpp",), LOOPS - {"nn::FusedOp", "nn::YieldOp"}, "draws them into kernels"),
    (("passes/local/Fuse.cpp",), {"arith::AddFOp"}, "a sum of products is added up product by product"),
    (("passes/scheduled/InPlace.cpp",), LOOPS - {"nn::RearrangeOp"}, "follows elements through a kernel's loops"),
    (("passes/global/Recompute.cpp",), {"nn::RearrangeOp", "nn::RepeatOp", "nn::ReduceOp"}, "knows what joins a kernel"),
    (("passes/local/JoinReaders.cpp",), {"nn::EinsumOp", "nn::FusedOp"}, "a kernel that begins with a product, and what reads the product"),
    (("passes/local/JoinOperandSums.cpp",), {"nn::EinsumOp", "nn::ReduceOp", "nn::FusedOp"}, "a product and the sum over the rows of its operand"),
    (("passes/local/JoinKernels.cpp",), {"nn::ReduceOp", "nn::RepeatOp", "arith::AddFOp"}, "additions that the kernel of an op takes with it"),
    (("passes/local/JoinLoss.cpp",), {"nn::CrossEntropyGradOp"}, "the gradient that a loss takes with it"),
    (("passes/KernelJoiner.",), {"nn::FusedOp"}, "makes kernels"),
    (("passes/LaunchNames.cpp",), {"nn::FusedOp"}, "a kernel is called what its root is"),
    (("codegen/KernelBuilder.cpp",), LOOPS - {"nn::FusedOp", "nn::YieldOp"}, "writes the loops"),
    (("codegen/FusedProduct.",), {"nn::FusedOp", "nn::EinsumOp", "nn::ReduceOp"}, "the product that begins a kernel"),
    (("codegen/MatrixProduct.",), {"nn::EinsumOp"}, "reads a notation as matrices"),
    (("codegen/Calls.cpp",), {"nn::EinsumOp", "nn::FusedOp"}, "matrices where they are, loops elsewhere"),
    # Ops without a function of the runtime, or with loops beside it.
    (("codegen/KernelBuilder.cpp",), {"nn::CrossEntropyGradOp"}, "loops that take the place of its call"),
    (("codegen/KernelPrinter.cpp", "codegen/CudaKernelPrinter.cpp"), {"nn::ArgmaxOp"}, "no loops over elements"),
    # What is about one law of arithmetic.
    (("passes/global/ConcatGradients.cpp",), {"nn::PadOp", "arith::AddFOp"}, "a sum of padded pieces is their join"),
    (("passes/global/CountSamples.cpp", "passes/global/SampleAnalysis.", "passes/sharding/StepShardings.cpp", "passes/local/partition/LocalOps.cpp",
      "passes/local/partition/StepPartitioner.h"), {"nn::ReduceOp"}, "a mean becomes a sum and a division"),
    (("passes/sharding/StepShardings.cpp", "passes/local/partition/StageSums.cpp", "passes/local/partition/Microbatches.cpp"), {"arith::AddFOp"},
     "gradients of a parameter that is used twice are added up"),
    # What the digest of a model takes from the end of a sequence.
    (("passes/global/ModelDigest.cpp",), {"nn::SliceOp", "nn::PadOp"}, "offsets along sizes of the data"),
    (("passes/global/Differentiate.cpp",), {"nn::EinsumOp", "arith::TruncFOp"}, "a product is rounded to any type at once"),
    (("passes/global/DeriveGeneration.cpp",), {"nn::AttentionOp", "nn::RopeOp", "nn::PositionsSinceOp"},
     "how they act on one position of a text"),
    (("passes/global/ContextParallel.cpp", "passes/global/StepSplitter.h"), {"nn::AttentionOp", "nn::RopeOp", "nn::RepeatOp"},
     "heads in the place of positions, and tables of positions that are added"),
    (("passes/global/ContextParallel.cpp",), {"nn::SliceOp"}, "rows of such tables"),
    (("passes/global/ContextAttention.cpp",), {"nn::AttentionOp"}, "which kind of attention fits"),
    (("passes/global/SequenceOrder.",), {"nn::AttentionOp", "nn::RopeOp", "nn::RepeatOp", "nn::SliceOp"},
     "take the numbers of positions"),
    # Where values lie.
    (("passes/scheduled/SegmentPlan.cpp", "passes/local/JoinAllReduces.cpp"), {"nn::RearrangeOp", "nn::SliceOp", "nn::ConcatOp"}, "values that lie inside of others"),
    (("passes/scheduled/SegmentPlan.h",), {"nn::RearrangeOp"}, "the same"),
    (("passes/scheduled/StaleReads.cpp",), {"nn::RearrangeOp", "nn::ConcatOp"}, "the same"),
]


def allowances(path):
    ops = set()
    for beginnings, names, _ in ALLOWED:
        if path.startswith(beginnings):
            ops |= names
    return ops


def check(tree):
    for path in tree.paths(".cpp", ".h", under=("passes", "codegen")):
        allowed, used = allowances(path), set()
        for number, line in tree.lines(path):
            for match in NAME.finditer(line.split("//")[0]):
                name, family = match.group(0), match.group(1) + "::*"
                used |= {name, family}
                if not ({name, family} & allowed or name in EVERYWHERE):
                    yield path, number, f"'{name}' is named; ask an interface of dialect/nn/NNInterfaces.td"
        # A header and its source share an allowance that ends in a dot.
        shared = [ops for beginnings, ops, _ in ALLOWED for b in beginnings if b.endswith(".") and path.startswith(b)]
        for name in sorted(allowed - used - set().union(*shared)):
            yield path, 1, f"'{name}' is allowed here by test/lint/op_names.py and not named; take it off"
