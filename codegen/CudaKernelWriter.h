//===- CudaKernelWriter.h - writes one CUDA kernel --------------*- C++ -*-===//

#ifndef CODEGEN_CUDAKERNELWRITER_H
#define CODEGEN_CUDAKERNELWRITER_H

#include "codegen/KernelExpressions.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fsdp {

/// Blocks that keep every multiprocessor of a large device busy twice over.
constexpr int64_t manyBlocks = 264;
constexpr int64_t threadsOfBlock = 256;
/// So few that one thread adds them up.
constexpr int64_t fewTerms = 16;

/// In memory.
inline int64_t bytesOf(Type type) { return std::max<int64_t>(type.getIntOrFloatBitWidth() / 8, 1); }

/// Some of the loops as one index, and how threads iterate over it.
struct LoopGroup {
  SmallVector<int> loops; ///< outermost first
  int64_t size = 1;
};

/// How a reduction whose results are neighbours in memory is spread over threads.
struct ColumnPlan {
  int64_t width = 1;   ///< results of a thread, neighbours
  int64_t columns = 1; ///< threads of a block beside one another, of `width` results each
  int64_t lanes = 1;   ///< threads of a block with the same results, which share the terms
  int64_t batch = 1;   ///< terms of a thread whose loads are in flight together
  int64_t blocks = 1;  ///< for the results
  int64_t splits = 1;  ///< blocks with the same results, which share the terms

  /// Of `results` results, a multiple of `width`, with `terms` terms each, of each of which a
  /// thread loads `bytes`. Depends on nothing else.
  static ColumnPlan of(int64_t results, int64_t terms, int64_t width, int64_t bytes);
};

/// Writes one kernel (see CudaKernelPrinter.h). `alignments` are in bytes, of inputs, then outputs.
/// The level of a node is that of the innermost loop of a thread around it: 0 for none, else 1 for
/// the terms, and the last for a vector's elements.
class CudaKernelWriter : KernelExpressions {
public:
  CudaKernelWriter(const Kernel &kernel, ArrayRef<int64_t> alignments, bool anonymous);
  KernelFunction print();
  /// The same of an update rule (codegen/CudaUpdatePrinter.cpp).
  KernelFunction printUpdate();

private:
  int levelOf(int node) const override {
    const bool ofVector = vectorized && varies(node, kernel.loops.size() - 1);
    return ofVector ? storeLevel() : kernel.reduction && inLoop(node);
  }
  int storeLevel() const override { return vectorized + kernel.reduction.has_value(); }
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
  /// The condition under which a thread stores, or "": others have the same results.
  std::string guardOf(const KernelStore &store) const;
  /// Variables that hold vectors of results, the loop over their elements, and their stores.
  void declareVectors(int64_t width);
  void openLanes(int64_t width);
  void closeLanes();
  void storeVector(const KernelStore &store);
  void elementwise();
  void reduceFew();
  void reduceRows();
  void reduceRowsInSplits(const std::string &total, const std::string &flat,
                          const std::string &start);
  // codegen/CudaColumnPrinter.cpp
  void reduceColumns();
  int64_t bytesOfTerm(int64_t width) const;
  void declareBatch(const ColumnPlan &plan, StringRef item);
  void loadTerm(const ColumnPlan &plan, StringRef item);
  void addTerm(const ColumnPlan &plan, const std::string &total);
  void addTerms(const ColumnPlan &plan, const std::string &total);
  void finishColumns(const ColumnPlan &plan, const std::string &total, const std::string &guard);
  void combineSplits(const ColumnPlan &plan, const std::string &total, const std::string &flat);
  void accumulate(const std::string &total, const std::string &first, const std::string &step);
  std::string combination(StringRef function, StringRef sizes, const std::string &total) const;
  void finish(const std::string &total, const std::string &guard);
  void launches(const std::string &grid, const std::string &block, StringRef note);
  std::string launchOf(StringRef kernel, const std::string &grid, const std::string &block,
                       ArrayRef<std::string> arguments) const;

  /// The number of the reduction's result among the arguments.
  size_t resultArgument() const {
    return held.size() + inputs.size() + kernel.reduction->store.output;
  }

  ArrayRef<int64_t> alignments; ///< in bytes: of inputs, then outputs
  Writer head, host, second;    ///< `second` is a kernel that runs after the first
  std::string bounds;           ///< of the first kernel's launch, and a blank, or ""
  std::string parts;            ///< the parameter for partial results of several blocks, or ""
  std::vector<std::string> vectors, outputVectors;
  std::vector<llvm::BitVector> variesWith;
  LoopGroup kept, reduced;
  bool vectorized = false;
  std::string lane, laneName; ///< the current element of a vector, or ""; its variable
  std::string index = "int";
  SmallVector<std::string> arguments;
};

} // namespace mlir::fsdp

#endif // CODEGEN_CUDAKERNELWRITER_H
