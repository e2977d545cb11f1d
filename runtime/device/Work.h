//===- Work.h - kinds of work, for traces -----------------------*- C++ -*-===//
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

/// The kind of a launch, a literal, and the number of its multiplications and additions; 0: not
/// counted. The default is a loop that the compiler generated.
struct Work {
  const char *kind = "fused";
  double flops = 0;
  /// The kernel chosen, by sizes and addresses, of several for the same result: a literal. Null if
  /// there is only one.
  const char *variant = nullptr;
};

/// A name of the host for work of the device, for traces: "step 12", "evaluate 12".
struct Mark {
  const char *name = nullptr; ///< a literal
  std::int64_t number = 0;
};

/// A finished action of a stream.
struct StreamAction {
  const char *name; ///< of the launch; for a wait, of the launch that it waits for
  Work work;
  std::size_t bytes;             ///< read and written
  double start, end;             ///< seconds of `now()`
  double processor;              ///< processor seconds of the rank's threads for it
  const char *awaited = nullptr; ///< for a wait: the stream that it waits for
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

/// Multiplications and additions of the two products forward; backward has five. Elements that are
/// masked by position are not counted.
constexpr double flopsOf(const AttentionShape &shape) {
  const double queries = shape.queries, keys = shape.keys;
  // How many keys the queries at positions below `end` see together, without a window.
  const auto seenBelow = [&](double end) {
    return end <= 0      ? 0
           : end <= keys ? end * (end + 1) / 2
                         : keys * (keys + 1) / 2 + (end - keys) * keys;
  };
  const auto seenFrom = [&](double first) { return seenBelow(first + queries) - seenBelow(first); };
  const auto first = static_cast<double>(shape.positionOf(0));
  double pairs = shape.causal ? seenFrom(first) : queries * keys;
  if (shape.causal && shape.window > 0)
    pairs -= seenFrom(first - shape.window); // those before the windows
  return 4 * pairs * shape.width * shape.batch * shape.heads;
}
/// They are not counted for other shapes.
template <class Shape> constexpr double flopsOf(const Shape &) { return 0; }

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_WORK_H
