//===- CudaKernelWriter.h - writes one CUDA kernel --------------*- C++ -*-===//

#ifndef CODEGEN_CUDAKERNELWRITER_H
#define CODEGEN_CUDAKERNELWRITER_H

#include "codegen/Elementwise.h"
#include "codegen/KernelTable.h"
#include "codegen/Names.h"
#include "codegen/Writer.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fsdp {

inline std::string typeName(Type type) { return elementType(type).str(); }

/// Some of the loops as one index, and how threads iterate over it.
struct LoopGroup {
  SmallVector<int> loops; ///< outermost first
  int64_t size = 1;
};

/// Writes one kernel (see CudaKernelPrinter.h). `alignments` are in bytes, of inputs, then outputs.
class CudaKernelWriter {
public:
  CudaKernelWriter(const Kernel &kernel, ArrayRef<int64_t> alignments, bool anonymous);
  KernelFunction print();
  /// The same of an update rule (codegen/CudaUpdatePrinter.cpp).
  KernelFunction printUpdate();

private:
  // Names and expressions.
  std::string named(StringRef wanted) { return names.unique(anonymous ? "v" : wanted); }
  std::string loopIndex(int loop) const;
  std::string address(const Affine &at) const;
  std::string operand(int node) const;
  std::string value(int node) const;
  bool inlined(int node) const;
  Type memoryType(const KernelNode &load) const {
    return kernel.inputs[load.input].getElementType();
  }
  std::string stored(int output, Type type, const std::string &value) const;
  bool vectorLoad(int node) const { return !vectors[node].empty(); }

  // The loops that an expression varies with.
  bool varies(int node, int loop) const { return variesWith[node][loop]; }
  /// Whether the node belongs in the loop that a thread runs: over a vector or over terms.
  bool inLoop(int node) const {
    if (kernel.reduction)
      return llvm::any_of(reduced.loops, [&](int loop) { return varies(node, loop); });
    return vectorized && varies(node, kernel.loops.size() - 1);
  }
  int64_t vectorWidth() const;
  bool contiguous(const Affine &at, int64_t alignment, Type type, int64_t width) const;

  // Statements.
  void declareIndices(const LoopGroup &group, const std::string &flat);
  std::string flatName(const LoopGroup &group, StringRef wanted);
  /// The block's number, in a type that holds every index.
  std::string blockNumber() const { return index == "int" ? "blockIdx.x" : index + "(blockIdx.x)"; }
  void define(ArrayRef<int> nodes);
  void store(const KernelStore &store);
  void tables();
  void elementwise();
  void reduceColumns();
  void reduceRows();
  void accumulate(const std::string &total, const std::string &first, const std::string &step);
  std::string combination(StringRef function, StringRef sizes, const std::string &total) const;
  void finish(const std::string &total, const std::string &guard);
  void launches(const std::string &grid, const std::string &block, StringRef note);

  const Kernel &kernel;
  ArrayRef<int64_t> alignments; ///< in bytes: of inputs, then outputs
  bool anonymous;
  Names names;
  Writer writer, head, host;
  std::vector<std::string> loops, inputs, outputs, held, nodes, vectors, outputVectors;
  std::vector<llvm::BitVector> variesWith;
  SmallVector<int> uses, results;
  LoopGroup kept, reduced;
  bool vectorized = false;
  std::string lane; ///< the current element of a vector
  std::string index = "int";
  SmallVector<std::string> arguments;
};

} // namespace mlir::fsdp

#endif // CODEGEN_CUDAKERNELWRITER_H
