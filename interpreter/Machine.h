//===- Machine.h - run modules of any phase on simulated ranks --*- C++ -*-===//
//
// One interface, three machines: the global phase runs as one device, the local phase as N ranks
// with collectives, the scheduled phase as N ranks with streams and an arena. All three must
// produce the same parameters and outputs.
//
//===----------------------------------------------------------------------===//

#ifndef INTERPRETER_MACHINE_H
#define INTERPRETER_MACHINE_H

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/DataSet.h"
#include "interpreter/Tensor.h"
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

namespace mlir::fsdp::interpreter {

/// Takes result `result` of `op`, which `rank` has computed; in the scheduled phase, the contents
/// that a launch has written into the buffer `op`. The rank is 0 in the global phase.
using Observer =
    std::function<void(int64_t rank, Operation *op, unsigned result, const Tensor &value)>;

struct MachineOptions {
  Numerics numerics = Numerics::exact;
  /// The seed of initial values, of draws, and of the order in which streams run.
  uint64_t seed = 0;
  /// The step at which falling learning rates end.
  int64_t totalSteps = 1;
  /// Replaces the base rate of the optimizer.
  std::optional<double> learningRate;
  /// The number of valid samples of a batch in a segment that evaluates; all if it has fewer.
  int64_t samples = std::numeric_limits<int64_t>::max();
  /// Fills the data that no result may depend on with NaN (padding of shards) or with another
  /// sample (padding of batches).
  bool poison = true;
  /// Called for each value, if it is not null.
  Observer observe = nullptr;
};

/// The state that changes from step to step and is not a tensor of the model.
struct StepState {
  int64_t step = 0;       ///< steps finished
  int64_t updates = 0;    ///< steps whose update was applied
  int64_t badSteps = 0;   ///< consecutive steps that were skipped
  int64_t microbatch = 0; ///< of the current step
};

/// The log of a step, by name.
using Outputs = std::map<std::string, Tensor>;

class Machine {
public:
  /// The machine for the phase of `module`, parameters initialized by seed. Fails, emitting
  /// diagnostics, if an op has no semantics in that phase. The module must outlive the machine.
  static FailureOr<std::unique_ptr<Machine>> create(ModuleOp module, const MachineOptions &options);
  virtual ~Machine() = default;

  /// Runs one step or walk on the batch of the current step, until its outputs are available. Other
  /// work may continue during the next runs, as segments allow: `data` must live until `finish`.
  /// Fails, emitting diagnostics, if inputs do not fit, ranks issue different collectives, launches
  /// race, or ranks log different outputs.
  virtual FailureOr<Outputs> run(StringRef walk, const DataSet &data) = 0;
  /// Runs `walks` one after the other, all of them issued before the outputs of any are available
  /// where the phase has a host that issues launches. The outputs of each.
  virtual FailureOr<std::vector<Outputs>> runAhead(ArrayRef<StringRef> walks, const DataSet &data);
  /// Completes all work in flight.
  virtual LogicalResult finish() { return success(); }
  /// Begins again as a new machine with `seed` does, without compiling the module again. Drops work
  /// in flight, also where a run has failed.
  LogicalResult restart(uint64_t seed);

  /// The whole value of a parameter (`what` = "parameter") or of one of its optimizer states, once
  /// all work is finished. Fails if replicas on different ranks differ.
  virtual FailureOr<Tensor> get(StringRef parameter, StringRef what) = 0;
  /// Replaces it on every rank. `value` has the type of the parameter.
  virtual LogicalResult set(StringRef parameter, StringRef what, const Tensor &value) = 0;

  /// The names that can be run, in the order of the text: the steps of the global phase, else
  /// the walks, or the segments of programs without walks.
  ArrayRef<std::string> getWalks() const { return walks; }
  /// The names of the optimizer states that are kept.
  ArrayRef<std::string> getStates() const { return states; }
  /// The state after the last run, once it is finished.
  const StepState &getStepState() const { return stepState; }

protected:
  Machine(ModuleOp module, const MachineOptions &options) : module(module), options(options) {}

  /// Compiles the module, once. Fails, emitting diagnostics, if an op has no semantics in the
  /// phase.
  virtual LogicalResult compile() = 0;
  /// Resets the state that runs change: steps, stored tensors, work in flight.
  virtual void clear() = 0;
  void addState(StringRef name);

  ModuleOp module;
  MachineOptions options;
  SmallVector<std::string> walks, states;
  StepState stepState;

private:
  /// Sets every parameter to its initial value and every state to zero.
  LogicalResult initialize();
};

namespace detail {
std::unique_ptr<Machine> makeGlobalMachine(ModuleOp, const MachineOptions &);
std::unique_ptr<Machine> makeLocalMachine(ModuleOp, const MachineOptions &);
std::unique_ptr<Machine> makeScheduledMachine(ModuleOp, const MachineOptions &);
} // namespace detail

/// The initial value of `param` for `seed`: the same numbers as a generated program draws.
Tensor initialValue(ParamOp param, uint64_t seed);

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_MACHINE_H
