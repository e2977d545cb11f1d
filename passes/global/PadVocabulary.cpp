//===- PadVocabulary.cpp - to which sizes ranks pad rows of tables and classes ----===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/nn/TensorSize.h"
#include "passes/Passes.h"
#include "passes/sharding/DimensionClasses.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PADVOCABULARYPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Multiples of fewer elements align no row: 8 of bf16 are 16 bytes, the widest load of a GPU.
static constexpr int64_t leastMultiple = 8;

namespace {
struct PadVocabulary : fsdp::impl::PadVocabularyPassBase<PadVocabulary> {
  using Base::Base;

  void runOnOperation() override {
    DimensionClasses dimensions(getOperation());
    for (const DimensionClasses::Class &all : dimensions.getClasses()) {
      if (!all.indexed || all.params.empty())
        continue;
      // The model, or an earlier run of this pass, may have set it.
      auto isPadded = [&](std::pair<ParamOp, int64_t> use) {
        return use.first.getSplitShape()[use.second] != all.size;
      };
      if (llvm::any_of(all.params, isPadded))
        continue;
      const int64_t size = paddedSize(all.size, all.parts);
      if (size == all.size || !fits(all, size))
        continue;
      if (all.obstacle) {
        auto [param, dim] = all.params.front();
        all.obstacle->emitRemark()
            << "dimension " << dim << " of '" << param.getSymName() << "' is not padded from "
            << all.size << " to " << size << ": '" << all.obstacle->getName() << "' " << all.need;
        continue;
      }
      for (auto [param, dim] : all.params) {
        SmallVector<int64_t> shape(param.getSplitShape());
        shape[dim] = size;
        param.setPadded(shape);
      }
    }
  }

private:
  /// `size`, so padded that each of `parts` ranks has the best multiple that adds little enough.
  int64_t paddedSize(int64_t size, int64_t parts) const {
    for (int64_t best = multiple.value; best >= std::min(leastMultiple, multiple.value) && best > 1;
         best /= 2) {
      std::optional<int64_t> step = llvm::checkedMul(best, parts);
      if (!step || *step > nn::kMaxTensorBytes)
        continue;
      const int64_t padded = llvm::alignTo(size, *step);
      if (static_cast<double>(padded - size) * 100 <=
          static_cast<double>(size) * static_cast<double>(mostPadding.value))
        return padded;
    }
    return size;
  }

  /// True where the parameters of `all` do not become too large for a tensor.
  static bool fits(const DimensionClasses::Class &all, int64_t size) {
    return llvm::all_of(all.params, [&](std::pair<ParamOp, int64_t> use) {
      SmallVector<int64_t> shape(use.first.getSplitShape());
      shape[use.second] = size;
      std::optional<int64_t> elements = nn::countElements(shape);
      return elements && nn::countBytes(use.first.getTensorType().clone({*elements})).has_value();
    });
  }
};
} // namespace
