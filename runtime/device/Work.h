//===- Work.h - what a launch does, for traces ------------------*- C++ -*-===//
//
// The same for the launches of every target.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DEVICE_WORK_H
#define FSDP_RUNTIME_DEVICE_WORK_H

#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace fsdp::rt {

/// The kind of a launch, a literal, and its multiplications and additions, 0 where nobody counted
/// them. A launch that says nothing is a loop that the compiler wrote.
struct Work {
  const char *kind = "fused";
  double flops = 0;
  /// Which of several kernels for one result was chosen, by sizes and addresses: a literal. Null
  /// where there is one kernel only.
  const char *variant = nullptr;
};

/// What the host calls something that it has a device do: "step 12", "evaluate 12". A trace shows
/// it.
struct Mark {
  const char *name = nullptr; ///< a literal
  std::int64_t number = 0;
};

/// Something that a stream has done.
struct StreamAction {
  const char *name; ///< of the launch; where it waits, of the launch that it waits for
  Work work;
  std::size_t bytes;             ///< read and written
  double start, end;             ///< seconds of `now()`
  double processor;              ///< seconds that whoever performed it worked in between
  const char *awaited = nullptr; ///< where it waits: the stream that it waits for
};

/// Multiplications and additions of a product.
constexpr double flopsOf(const Gemm &product) {
  double flops = 2;
  for (std::int64_t extent :
       {product.m, product.n, product.k, product.batch[0], product.batch[1], product.batch[2]})
    flops *= static_cast<double>(extent);
  return flops;
}
constexpr Work gemmWork(const Gemm &product) { return {"gemm", flopsOf(product)}; }

/// Multiplications and additions of the two products forward; backward has five. What the mask
/// hides is not counted.
constexpr double flopsOf(const AttentionShape &shape) {
  const double queries = shape.queries, keys = shape.keys;
  double pairs = queries * keys;
  if (shape.causal && keys >= queries)
    pairs -= queries * (queries - 1) / 2;
  return 4 * pairs * shape.width * shape.batch * shape.heads;
}
/// Of other shapes nobody counts them.
template <class Shape> constexpr double flopsOf(const Shape &) { return 0; }

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_WORK_H
