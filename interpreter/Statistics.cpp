#include "interpreter/Statistics.h"

#include <algorithm>

using namespace mlir::fsdp::interpreter;

Statistics Statistics::of(const Tensor &tensor) {
  Statistics all;
  double sum = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double number = tensor.getNumber(i);
    if (!std::isfinite(number)) {
      ++all.notFinite;
      continue;
    }
    all.min = std::min(all.min, number);
    all.max = std::max(all.max, number);
    sum += number;
  }
  all.mean = sum / static_cast<double>(tensor.size() - all.notFinite);
  return all;
}
