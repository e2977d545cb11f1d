//===- KernelExpressions.h - names and expressions of a kernel --*- C++ -*-===//
//
// The parts that kernels of all targets share: the names in a kernel, its addresses and the
// expressions of its nodes. Each target maps the loops: to loops of one thread (KernelPrinter.cpp),
// or to threads (CudaKernelWriter.h).
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_KERNELEXPRESSIONS_H
#define CODEGEN_KERNELEXPRESSIONS_H

#include "codegen/Elementwise.h"
#include "codegen/KernelTable.h"
#include "codegen/Names.h"
#include "codegen/Writer.h"

namespace mlir::fsdp {

inline std::string typeName(Type type) { return elementType(type).str(); }

/// The base of the writer of one kernel.
class KernelExpressions {
protected:
  /// With `anonymous`, names are not those of the model. `taken` are names that the target's code
  /// uses.
  KernelExpressions(const Kernel &kernel, bool anonymous, FunctionName functionName,
                    ArrayRef<StringRef> taken);
  virtual ~KernelExpressions() = default;

  // Determined by the mapping of the loops.
  /// Where a node is computed: nodes of one level are computed in the same iterations.
  virtual int levelOf(int node) const = 0;
  /// The level of the stores.
  virtual int storeLevel() const = 0;
  virtual std::string loopIndex(int loop) const { return loops[loop]; }
  /// The element that a node loads, in the type in memory.
  virtual std::string element(int load) const;
  /// `element` converted to the compute type, which is wider.
  virtual std::string widened(Type type, const std::string &element) const = 0;

  // Expressions.
  std::string named(StringRef wanted) { return names.unique(anonymous ? "v" : wanted); }
  std::string address(const Affine &at) const;
  /// The node where it is used: its name, or its value in parentheses if it has no name.
  std::string operand(int node) const;
  /// The node where it is stored.
  std::string result(int node) const { return inlined(node) ? value(node) : nodes[node]; }
  std::string value(int node) const;
  /// Literals and positions are inlined at their uses; loads and stored values only if they have
  /// one use, at the same level. As a result may overwrite an operand (passes/scheduled/InPlace.h;
  /// a product is in the buffer of the first), an element is loaded once, and never after a store
  /// to it: with several results, the stored values have names.
  virtual bool inlined(int node) const;
  Type memoryType(const KernelNode &load) const {
    return kernel.inputs[load.input].getElementType();
  }

  // Of the reduction.
  std::string identity() const;
  /// `total` with one more element.
  std::string combined(const std::string &total) const;
  /// The result of the complete `total`.
  std::string finished(const std::string &total) const;

  // Statements.
  /// Names a node, unless it is inlined at its use.
  void define(int node);
  /// Constants other than splats, as arrays of `qualifiers` whose names begin with `prefix`.
  void tables(StringRef qualifiers, StringRef prefix, Writer &writer);
  /// The indices of `loops` out of their flat number: "i = flat / 12, j = flat % 12".
  std::vector<std::string> splitIndex(ArrayRef<int> loops, const std::string &flat) const;

  const Kernel &kernel;
  bool anonymous;
  FunctionName functionName;
  Names names;
  Writer writer;
  std::vector<std::string> loops, inputs, outputs, held, nodes;
  SmallVector<int> uses, stored;
};

/// A piece of a flat tensor: an operand of the launch, or a value that fills it.
struct FlatPiece {
  int64_t offset, count; ///< elements
  int argument;          ///< of the launch; -1 if none
  std::string value;     ///< of each element, if there is no argument
};

/// The pieces of `op` that are not empty, padding included.
std::vector<FlatPiece> flatPieces(FlattenOp op);

/// The function for `op` in `launch`, without lines: parameters `part_0`, ... and `flat`.
KernelFunction declareFlatten(FlattenOp op, LaunchOp launch);

} // namespace mlir::fsdp

#endif // CODEGEN_KERNELEXPRESSIONS_H
