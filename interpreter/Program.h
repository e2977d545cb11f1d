//===- Program.h - straight-line code that one rank runs --------*- C++ -*-===//
//
// A block of any phase with its values numbered and its ops compiled. Pure ops are kernels; ops
// that depend on the rank, on the step or on stored parameters get a `RankContext`. The machine,
// which has the other ranks, performs collectives.
//
//===----------------------------------------------------------------------===//

#ifndef INTERPRETER_PROGRAM_H
#define INTERPRETER_PROGRAM_H

#include "interpreter/Evaluator.h"
#include "interpreter/Machine.h"
#include "interpreter/Storage.h"

namespace mlir::fsdp::interpreter {

/// One simulated rank during one step.
struct RankContext {
  int64_t rank = 0;
  MeshAttr mesh;
  const MachineOptions *options = nullptr;
  bool isObserved = false; ///< instructions hand over their results (MachineOptions::observe)
  const DataSet *data = nullptr;
  BatchPosition batch;
  StepState stepState;
  Outputs outputs;
  /// Tensors that persist from step to step, by name and "parameter" or state.
  std::map<std::pair<std::string, std::string>, Tensor> kept;
};

/// Executes one op on one rank. Fails, emitting on the op, for bad input.
using RankKernel =
    std::function<LogicalResult(RankContext &, ArrayRef<Tensor>, MutableArrayRef<Tensor>)>;

/// The kernel `fn`, which cannot fail.
template <typename Fn> RankKernel infallible(Fn fn) {
  return [fn = std::move(fn)](RankContext &context, ArrayRef<Tensor> in,
                              MutableArrayRef<Tensor> out) mutable {
    fn(context, in, out);
    return success();
  };
}

struct Instruction {
  Operation *op;
  RankKernel kernel; ///< null for collectives and for ops in local terms
  SmallVector<unsigned, 4> operands;
  unsigned firstResult, numResults;
  /// Values that no later instruction uses.
  SmallVector<unsigned, 2> dead;
};

struct CompiledBlock {
  std::vector<Instruction> instructions;
  unsigned numValues = 0;
  /// The operands of the terminator, if there is one.
  SmallVector<unsigned> yielded;

  /// `numericsOf` returns the numerics of each op.
  static FailureOr<CompiledBlock> compile(Block &block,
                                          llvm::function_ref<Numerics(Operation *)> numericsOf);
  static FailureOr<CompiledBlock> compile(Block &block, Numerics numerics) {
    return compile(block, [=](Operation *) { return numerics; });
  }

  /// Runs the instruction, which must not be a collective.
  static LogicalResult run(const Instruction &instruction, RankContext &context,
                           MutableArrayRef<Tensor> values);
  /// Hands over the results of the instruction where they are observed.
  static void observe(const Instruction &instruction, const RankContext &context,
                      ArrayRef<Tensor> values);
};

/// The results of a collective for the operands of all ranks of a group, in the group's order.
void performCollective(Operation *op, ArrayRef<Tensor> operands, MutableArrayRef<Tensor> results,
                       Numerics numerics);

/// The sum or maximum of `operands`, one after the other.
Tensor reduceInOrder(ArrayRef<Tensor> operands, ReduceKind kind, Numerics numerics);

/// Whether `op` is in the local terms of a manual region or at their boundary: the machine of the
/// global phase runs it.
bool isInLocalTerms(Operation *op);
/// The results of such an op on each rank of `mesh`, the manual axes, for the operands of each.
/// Fails, emitting on the op, where ranks have different values of one that is replicated.
FailureOr<std::vector<Tensor>> performInLocalTerms(Operation *op, MeshAttr mesh,
                                                   ArrayRef<Tensor> operands, Numerics numerics);

/// A description of `op` that must be equal on all ranks of a collective: op, types, axes.
std::string signatureOf(Operation *op);

namespace detail {
/// The kernel of an op that depends on rank, step or stored tensors; null where it is not one.
RankKernel compileRankOp(Operation *op, Numerics numerics);
/// Logs operand 0 divided by operand 1 under `name` as f32, as differentiation makes it:
/// operand 0 itself where operand 1 is 0.
RankKernel compileQuotient(StringRef name, Numerics numerics);
/// The kernel of an op of the global phase; null where it is not one.
RankKernel compileGlobalOp(Operation *op, Numerics numerics);
} // namespace detail

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_PROGRAM_H
