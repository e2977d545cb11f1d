//===- ProductChooser.h - the choice among algorithms of a product ----------===//
#ifndef FSDP_RUNTIME_KERNELS_CUDA_PRODUCTCHOOSER_H
#define FSDP_RUNTIME_KERNELS_CUDA_PRODUCTCHOOSER_H

#include <functional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Chooses the algorithm of each product at its first use.
class ProductChooser {
public:
  /// So many algorithms are compared at most.
  static constexpr int kMost = 8;

  virtual ~ProductChooser() = default;
  /// The number of the algorithm for `product`, one of `candidates`. `measure`, called once at
  /// most, gives the milliseconds of each; nothing if they cannot be measured.
  virtual int choose(const std::string &product, int candidates,
                     const std::function<std::vector<float>()> &measure) = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_CUDA_PRODUCTCHOOSER_H
