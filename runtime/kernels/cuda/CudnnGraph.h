//===- CudnnGraph.h - attention as a graph of cuDNN's operations -*- C++ -*-===//
//
// [Note: attention by cuDNN] Forward and gradient are graphs of products, reductions and loops, of
// which one kernel of cuDNN's computes each: the forms that its documentation calls "Flash
// Attention" (docs.nvidia.com, cuDNN, "Graph API", "Fused Attention"), and in which its engines
// look for the operations. There are unified operations for both, with a causal mask from 9.21 on.
// They are not used: the graph is one form for all versions from 9.19 on, and its engine for the
// gradient is the one that is known to add up in one order.
//
// The statistics of rows are log(sum of exp(scale * q . k)), in f32 as (batch, heads, queries), as
// those of our own kernels: either gradient can follow either forward.
//
// The gradient adds in one order. Up to 9.24 that takes the gradients of all scores in the scratch
// memory, in bf16: batch * heads * queries * keys * 2 bytes. From 9.25 on an engine of Hopper adds
// the gradients of queries up in order, with scratch memory that grows with the queries.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_CUDNNGRAPH_H
#define FSDP_RUNTIME_KERNELS_CUDA_CUDNNGRAPH_H

#include "runtime/kernels/cuda/CudnnLibrary.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace fsdp::rt::cudnn {

/// The tensors of a graph that have memory; the number is that in the graph.
enum class Operand : std::int64_t {
  Q = 1,
  K,
  V,
  Out,
  LogSumExp,
  DOut,
  DQ,
  DK,
  DV,
  Along,     ///< f32, the products of rows of out and dOut; in the scratch memory
  QuerySums, ///< f32, the gradients of queries; in the scratch memory
  Scale,     ///< of the scores, a number
  One,       ///< 1
  Hidden,    ///< the score of a key that a query does not see: the least number
};

/// "", or why cuDNN does not compute this attention: a property of the shape that it lacks.
std::string whyNot(const AttentionShape &shape);
/// "2 x 32 heads of 128 (8 groups), 8192 queries, 8192 keys, causal".
std::string describe(const AttentionShape &shape);

/// A GPU, or the properties of one that need not be there: kernels for it are looked for, and not
/// loaded.
struct Device {
  Descriptor properties;
  bool isThere;
};

/// A graph with the kernel that computes it on a device.
class AttentionPlan {
public:
  /// Errors: the library refuses the graph, or has no kernel for it.
  AttentionPlan(const Library &library, const Device &device, const AttentionShape &shape,
                bool isGradient);

  struct Graph {
    std::deque<Descriptor> parts; ///< the descriptors that it was made of
    Descriptor whole;
  };

  /// Null where the device is not there.
  RawDescriptor raw() const { return plan_.raw(); }
  /// Bytes of scratch memory: the kernel's, and behind it that of scratch().
  std::size_t workspace() const { return workspace_; }
  /// The tensors in scratch memory, with their offsets.
  struct Scratch {
    Operand operand;
    std::size_t offset;
  };
  const std::vector<Scratch> &scratch() const { return scratch_; }
  /// The number of the engine among those for the graph, as cuDNN counts them.
  std::int64_t engine() const { return engine_; }
  float scale() const { return scale_; }

private:
  void choose(const Library &library, const Device &device, const std::string &what);
  bool tryEngine(const Library &library, const Device &device, Descriptor config);

  Graph graph_;
  Descriptor plan_;
  std::size_t workspace_ = 0;
  std::vector<Scratch> scratch_;
  std::int64_t engine_ = -1;
  float scale_;
};

/// From this version on the gradient adds the gradients of queries up in order.
constexpr std::size_t kOrderedGradient = 92500;

/// The device of CUDA's number `device`.
Device deviceOf(const Library &library, std::int32_t device);
/// One that need not be there, by its properties as a JSON object.
Device deviceOf(const Library &library, const std::string &properties);

} // namespace fsdp::rt::cudnn

#endif // FSDP_RUNTIME_KERNELS_CUDA_CUDNNGRAPH_H
