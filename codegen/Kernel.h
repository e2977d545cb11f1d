//===- Kernel.h - the body of a launch as loops over elements ---*- C++ -*-===//
//
// A kernel is one nest of loops over the factors of its ops (dialect/nn/ShardingRule.h) and a list
// of nodes, each a scalar per iteration. Every address is affine in the loop variables. Broadcasts
// and views are only coefficients; a reduction, if any, ends the kernel.
//
// The order of the loops is that of the indices, and a sum adds in that order: the result does not
// depend on the other ops fused into the kernel.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_KERNEL_H
#define CODEGEN_KERNEL_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

struct ScheduledProgram;

/// The range of a call of the kernel. For a kernel that begins with a product: `rows` for some of
/// the product's rows at a time, `whole` for all. Other kernels are always called for the whole.
enum class Traversal { whole, rows };

/// The implementation of functions. `exact`: the functions of the language, as the ops are written.
/// `fast`: GELU of 16-bit results, in its form with tanh, is a function of FusedKernel.h, whose
/// error is far below the rounding of the result.
enum class Functions { exact, fast };

/// One loop, outermost first.
struct LoopVar {
  std::string name;
  int64_t size = 1;
  bool reduction = false; ///< summed or maximized away
  bool counted = false;   ///< its value is used outside addresses: never merged
};

/// An address or position: the sum of coefficient times variable, one coefficient per loop.
using Affine = SmallVector<int64_t, 4>;

/// The C++ expression of `at`; `indices` are those of the loops' variables.
std::string spellAffine(ArrayRef<int64_t> at, ArrayRef<std::string> indices);

struct KernelNode {
  enum Kind {
    load,       ///< parameter[at]
    constant,   ///< `text`
    table,      ///< `values`[at]
    expression, ///< `text`, with $i for operands[i]
    masked,   ///< at < held[mask] ? operands[0] : operands[1]; with a third operand, the number of
              ///< samples that count: first[mask] + at < operands[2] * rows ? ...
    position, ///< at
  } kind;
  Type type; ///< of the element
  SmallVector<int, 3> operands;
  std::string text;
  int input = -1;   ///< load: which input
  int mask = -1;    ///< none if the masked dimension is not split
  int64_t rows = 1; ///< elements of a sample along the masked dimension
  Affine at;
  DenseElementsAttr values;
  std::string name; ///< from the model

  KernelNode(Kind kind, Type type) : kind(kind), type(type) {}
};

/// An argument of the kernel that the host computes from the rank's coordinate on a split
/// dimension: how many of its first elements are not padding on this rank (`held`), or where it
/// begins in the whole dimension (`first`), for masks whose end is known only at run time.
struct KernelMask {
  ArrayAttr over;
  int64_t size;  ///< of the whole dimension
  int64_t local; ///< of this rank's part, padding included
  bool counted;  ///< the argument is `first`
  StringRef name() const { return counted ? "first" : "held"; }
  /// The C++ expression of the argument, in a program whose context is `c`.
  std::string spell(const ScheduledProgram &program) const;
  bool operator==(const KernelMask &o) const {
    return over == o.over && size == o.size && local == o.local && counted == o.counted;
  }
};

/// The C++ condition under which the element at `place` is not padding. `argument` is that of the
/// mask, `count` the number of samples that count; empty if `node` has none.
std::string maskCondition(const KernelNode &node, const std::string &place,
                          const std::string &argument, const std::string &count);

/// The destination of a node: element `at` of result `output`.
struct KernelStore {
  int node;
  int output;
  Affine at;
};

struct KernelReduction {
  enum Kind { sum, mean, max } kind;
  KernelStore store;
  Type type;         ///< of accumulator and result
  int64_t count = 0; ///< elements that each result combines
};

struct Kernel {
  SmallVector<RankedTensorType> inputs, outputs;
  SmallVector<std::string> inputNames, outputNames; ///< from the model
  SmallVector<LoopVar> loops;
  /// The number of outer loops over the rows of a call, at least one; 0: over everything. The last
  /// of `inputs` is then the product, which may share the buffer of the first output.
  size_t rowLoops = 0;
  bool updates = false; ///< an update rule, with an UpdateStep as argument (UpdateKernel.h)
  std::vector<KernelNode> nodes; ///< operands before users
  SmallVector<KernelMask> masks;
  SmallVector<KernelStore> stores;
  std::optional<KernelReduction> reduction;

  /// The kernel of the body of `launch`, without a product before or after it. Fails with a
  /// diagnostic that names the op that has no form in C++ or does not fit one loop nest. Buffers of
  /// `anonymous` kernels have no names.
  static FailureOr<Kernel> create(LaunchOp launch, Traversal traversal, Functions functions,
                                  bool anonymous = false);

  /// Drops loops of one iteration and joins adjacent loops that all addresses treat as one, rows
  /// and columns separately.
  void simplify();

  /// For each node the number of loops around it: up to the innermost that it varies with.
  SmallVector<int> depths() const;

  /// The kernel of the other results where the first is complete in memory, in place of the
  /// product.
  Kernel behindFirstResult() const;

  /// For each node, the number of its uses as operand of other nodes and as result, the reduction's
  /// included.
  SmallVector<int> uses() const;
  SmallVector<int> stored() const;
};

} // namespace mlir::fsdp

#endif // CODEGEN_KERNEL_H
