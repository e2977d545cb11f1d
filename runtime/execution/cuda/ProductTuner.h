//===- ProductTuner.h - algorithms of products by their times ---------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_PRODUCTTUNER_H
#define FSDP_RUNTIME_EXECUTION_CUDA_PRODUCTTUNER_H

#include "runtime/device/ProductChoices.h"
#include "runtime/kernels/cuda/ProductChooser.h"

#include <functional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Chooses the algorithm of each product once, at its first use, the same on every rank: rank 0
/// takes the choice of the checkpoint, or else of the cache, or else measures, and all ranks get
/// its choice. All ranks ask for the same products in the same order.
class ProductTuner final : public ProductChooser {
public:
  /// An algorithm is taken in the place of the first if it needs less than this share of its time:
  /// smaller differences are those of two measurements.
  static constexpr float kGain = 0.98f;

  struct Setting {
    int rank = 0;
    std::string machine; ///< see ProductChoices; the same on every rank
    std::string folder;  ///< of the cache; empty: none
    /// Replaces the number on every rank by that of rank 0.
    std::function<void(int &)> broadcast;
  };
  explicit ProductTuner(Setting setting);

  /// Whether the environment has FSDP_TUNE=1. Error: another value than 0 or 1.
  static bool isAsked();
  /// Of FSDP_TUNE_CACHE, or "fsdp/products" in $XDG_CACHE_HOME or ~/.cache. Empty: none.
  static std::string folderOfEnvironment();

  /// `measure` is called on rank 0 only.
  int choose(const std::string &product, int candidates,
             const std::function<std::vector<float>()> &measure) override;

  /// Takes the choices of a checkpoint, before the first product. Those of another machine are
  /// ignored, with a message of rank 0.
  void adopt(const ProductChoices &stored);
  const ProductChoices &choices() const { return choices_; }

  /// The file of the cache with the choice for a product on a machine.
  static std::string cacheName(const std::string &machine, const std::string &product);

private:
  int decide(const std::string &product, int candidates,
             const std::function<std::vector<float>()> &measure);
  int cached(const std::string &product, int candidates);
  void keep(const std::string &product, int candidates, int choice);
  void remark(const std::string &text);

  Setting setting_;
  ProductChoices choices_;
  std::map<std::string, int> stored_; ///< of the checkpoint
  bool remarked_ = false;             ///< on the cache
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_PRODUCTTUNER_H
