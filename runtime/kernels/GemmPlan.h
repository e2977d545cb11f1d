//===- GemmPlan.h - a matrix product, prepared ------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_GEMMPLAN_H
#define FSDP_RUNTIME_KERNELS_GEMMPLAN_H

#include "runtime/kernels/EpilogueCallback.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/KernelArguments.h"

#include <dnnl.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The setup of threads that call oneDNN, which then computes on the calling thread only: pieces of
/// a product are the parallelism here.
struct GemmLibrary {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<dnnl::stream> streams; ///< one for each slot of threads
  explicit GemmLibrary(std::size_t slots);
  /// Its name and version: "oneDNN 2.6.3".
  static std::string describe();
};

/// How a product is computed: by one call for each index of its batch dimensions, by one for each
/// strip of columns, or, where it is large, by blocks of rows over a right side that is packed
/// before. Each of these is a piece for a thread. Large products of bf16 are our
/// own (PackedBf16Gemm) where the processor has instructions for them.
///
/// oneDNN reads a right side of floats that stands row by row where it lies, and then waits for
/// the processor's table of pages: packing costs a few percent and makes a product 1.5 to 2.5
/// times as fast. The choice hangs on types, shapes and strides alone, so that equal products are
/// equal bit by bit.
class GemmPlan {
public:
  GemmPlan(const Gemm &gemm, DType in, DType out, const GemmLibrary &library);
  GemmPlan(GemmPlan &&) noexcept;
  ~GemmPlan();
  /// Calls `done` as rows of c become complete, or when all are.
  void run(const GemmLibrary &library, const void *a, const void *b, void *c,
           EpilogueCallback done);

private:
  class Calls;
  std::unique_ptr<Calls> calls;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_GEMMPLAN_H
