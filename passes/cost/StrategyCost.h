//===- StrategyCost.h - what a strategy costs, by formula -------*- C++ -*-===//
// The table of docs/cost-model.md: memory, bytes and time of the strategies for a model of which
// only the number of parameters is known. Compiled plans are measured exactly instead
// (MemoryReport, Simulator).
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_COST_STRATEGYCOST_H
#define PASSES_COST_STRATEGYCOST_H

#include "passes/cost/Collectives.h"

namespace mlir::fsdp::cost {

/// A model in data-parallel training on `ranks`.
struct ModelSize {
  double parameters = 0;
  int64_t ranks = 1;
  double elementBytes = 4; ///< of parameters, gradients and states
  int64_t states = 2;      ///< numbers that the optimizer keeps for each parameter: 2 of Adam
};

struct StrategyCost {
  double memory = 0;  ///< bytes of parameters, gradients and states on a rank
  double sent = 0;    ///< bytes that a rank sends in a step
  double seconds = 0; ///< of the collectives of a step, one after another
};

/// The cost of "ddp", "zero1", "zero2" or "fsdp" with one gather or reduction for each of `units`
/// equal units. Nothing for other names.
std::optional<StrategyCost> costOfStrategy(llvm::StringRef strategy, const ModelSize &model,
                                           int64_t units, const Machine &machine);

/// The part of a step that computes, if `exposed` seconds of communication do not overlap with
/// `compute` seconds of computation.
double efficiencyOf(double compute, double exposed);

/// The bandwidth of a rank's link, in bytes/s, below which the gather of a unit of `bytes` among
/// `ranks` takes longer than the `compute` seconds that it overlaps with; infinite if its latency
/// alone does.
double hidingBandwidth(double bytes, int64_t ranks, double compute, double latency);

} // namespace mlir::fsdp::cost

#endif // PASSES_COST_STRATEGYCOST_H
