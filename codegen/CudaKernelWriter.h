//===- CudaKernelWriter.h - writes one CUDA kernel --------------*- C++ -*-===//

#ifndef CODEGEN_CUDAKERNELWRITER_H
#define CODEGEN_CUDAKERNELWRITER_H

#include "codegen/KernelExpressions.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fsdp {

/// Some of the loops as one index, and how threads iterate over it.
struct LoopGroup {
  SmallVector<int> loops; ///< outermost first
  int64_t size = 1;
};

/// Writes one kernel (see CudaKernelPrinter.h). `alignments` are in bytes, of inputs, then outputs.
/// The level of a node is 1 in the loop that a thread runs, over a vector or over terms, else 0.
class CudaKernelWriter : KernelExpressions {
public:
  CudaKernelWriter(const Kernel &kernel, ArrayRef<int64_t> alignments, bool anonymous);
  KernelFunction print();
  /// The same of an update rule (codegen/CudaUpdatePrinter.cpp).
  KernelFunction printUpdate();

private:
  int levelOf(int node) const override { return inLoop(node); }
  int storeLevel() const override { return vectorized || kernel.reduction; }
  std::string loopIndex(int loop) const override;
  std::string element(int load) const override;
  std::string widened(Type type, const std::string &element) const override {
    return "toFloat(" + element + ")";
  }
  bool inlined(int node) const override {
    return vectorLoad(node) || KernelExpressions::inlined(node);
  }
  std::string inMemory(int output, Type type, const std::string &value) const;
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
  void defineAll(ArrayRef<int> nodes);
  void store(const KernelStore &store);
  void elementwise();
  void reduceColumns();
  void reduceRows();
  void accumulate(const std::string &total, const std::string &first, const std::string &step);
  std::string combination(StringRef function, StringRef sizes, const std::string &total) const;
  void finish(const std::string &total, const std::string &guard);
  void launches(const std::string &grid, const std::string &block, StringRef note);

  ArrayRef<int64_t> alignments; ///< in bytes: of inputs, then outputs
  Writer head, host;
  std::vector<std::string> vectors, outputVectors;
  std::vector<llvm::BitVector> variesWith;
  LoopGroup kept, reduced;
  bool vectorized = false;
  std::string lane; ///< the current element of a vector
  std::string index = "int";
  SmallVector<std::string> arguments;
};

} // namespace mlir::fsdp

#endif // CODEGEN_CUDAKERNELWRITER_H
