//===- Graph.h - what a graph of operations computes -------------------------------===//
//
// Graphs are interpreted operation by operation, in f32, on the CPU: what a graph says is what its
// tests compare, not what the program meant by it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_CUDNN_GRAPH_H
#define FSDP_EMULATOR_CUDNN_GRAPH_H

#include "Descriptors.h"

#include <cstddef>
#include <map>

namespace emulator::cudnn {

/// Whether the operands of an operation fit one another.
Status checkOperation(const Descriptor &operation);
/// Whether each tensor is written once, and virtual ones before they are read.
Status checkGraph(const Descriptor &graph);
/// The graphs that engines take begin with a product and have two, or have five.
bool isAttention(const Descriptor &graph);
/// Whether the engine of a plan takes its graph; the plan gets its workspace.
Status checkPlan(Descriptor &plan);

/// The engine that heuristics propose.
constexpr std::int64_t kProposedEngine = 1;
/// The engine that adds up in one order, with so many stages.
constexpr std::int64_t kOrderedEngine = 6, kOrderedStages = 4;

/// The tensors of a graph that have memory, each once.
std::map<std::int64_t, const Descriptor *> operandsOf(const Descriptor &graph);
/// From the first byte of a tensor to the one behind its last.
std::size_t bytesOf(const Descriptor &tensor);

/// Where tensors are, and the values of those that are numbers.
struct Memory {
  std::map<std::int64_t, void *> addresses;
  std::map<std::int64_t, float> numbers;
};
/// `call`: of those of a plan; sums whose order is not fixed differ from one to the next.
void perform(const Descriptor &plan, const Memory &memory, unsigned call);

} // namespace emulator::cudnn

#endif // FSDP_EMULATOR_CUDNN_GRAPH_H
