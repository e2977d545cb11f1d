//===- SumOrder.cpp -------------------------------------------------------===//

#include "interpreter/SumOrder.h"

#include "llvm/ADT/bit.h"
#include <algorithm>
#include <climits>
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp::interpreter;

static thread_local SumOrderProbe *current = nullptr;

SumOrderProbe::SumOrderProbe() : outer(current) { current = this; }
SumOrderProbe::~SumOrderProbe() { current = outer; }

SumTerms::SumTerms(Type accumulator)
    : probe(current), precision(cast<FloatType>(accumulator).getFPMantissaWidth()), grid(INT_MAX) {}

SumTerms::~SumTerms() {
  if (probe && grid != INT_MAX && !(magnitude <= std::ldexp(1.0, grid + precision)))
    probe->depends = true;
}

void SumTerms::note(double term) {
  magnitude += std::fabs(term);
  if (term == 0 || !std::isfinite(term))
    return;
  // The exponent of the lowest bit that is set.
  int exponent = 0;
  double fraction = std::frexp(term, &exponent);
  auto bits = static_cast<int64_t>(std::ldexp(std::fabs(fraction), 53));
  grid = std::min(grid, exponent - 53 + llvm::countr_zero(static_cast<uint64_t>(bits)));
}
