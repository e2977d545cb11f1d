//===- PlanChoice.h - options that the cost model chooses -------*- C++ -*-===//
// For --prefetch=auto, --remat=auto, --accumulate=auto and --memory-limit: compiles all candidates,
// takes their exact arenas, and simulates them (passes/prediction).
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PLANCHOICE_H
#define TOOLS_FSDPC_PLANCHOICE_H

#include "passes/prediction/Prediction.h"
#include "passes/scheduled/MemoryReport.h"
#include "tools/fsdpc/Options.h"
#include "llvm/Support/JSON.h"

namespace fsdpc {

/// The values that are tried of --remat, --accumulate and --prefetch, in the order of preference
/// among equals.
extern const std::vector<std::string> kTriedRemats;
extern const std::vector<int64_t> kTriedAccumulations, kTriedDepths;

/// "3.1 ms"
std::string milliseconds(double seconds);

/// Compiles `model` on `mesh` with each depth of prefetch of `depths`, and calls `visit` with the
/// depth, its memory, and its prediction on the machine of `options`. Throws as configure and
/// lower do, once a depth is refused.
void compileDepths(mlir::ModuleOp model, const std::string &name, const MeshAxes &mesh,
                   const Options &options, llvm::ArrayRef<int64_t> depths,
                   llvm::function_ref<void(int64_t, const mlir::fsdp::MemoryReport &,
                                           const mlir::fsdp::Prediction &)>
                       visit);

/// A compiled plan.
struct PlanCandidate {
  mlir::fsdp::PipelineOptions pipeline;
  std::string options; ///< "--remat=full --prefetch=2": those that are chosen
  int64_t arena = 0;   ///< bytes of a rank
  mlir::fsdp::Prediction prediction;
};

/// The candidates of `model` on `mesh` with every value of what `options` leaves to be chosen;
/// those that the compiler refuses are left out. In the order of preference among equals: without
/// recomputation, few microbatches, small depths first. Throws Failure where all are refused,
/// after printing the reason.
std::vector<PlanCandidate> compileCandidates(mlir::ModuleOp model, const std::string &name,
                                             const MeshAxes &mesh, const Options &options);

/// The index of the fastest whose arena is at most `limit`; of the smallest where none is.
size_t choosePlan(llvm::ArrayRef<PlanCandidate> candidates, int64_t limit);

/// "prefetch 2: gather 3.1 ms > compute 2.4 ms; ...": what was chosen, and what the others take.
std::string explainChoice(llvm::ArrayRef<PlanCandidate> candidates, size_t chosen, int64_t limit,
                          const Options &options);

/// Whether a plan keeps to --memory-limit, and if not, what would.
struct MemoryVerdict {
  int64_t limit = 0, arena = 0;
  std::vector<PlanCandidate> fitting; ///< the fastest first
  std::string command;                ///< that the options of a candidate complete

  bool fits() const { return arena <= limit; }
  void addTo(llvm::json::Object &report) const;
  void print(llvm::raw_ostream &os) const;
};

/// The verdict on a plan of `arena` bytes. `command` is the one that compiled it, quoted for a
/// shell.
MemoryVerdict judgeMemory(mlir::ModuleOp model, const std::string &name, const MeshAxes &mesh,
                          const Options &options, int64_t arena, const std::string &command);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANCHOICE_H
