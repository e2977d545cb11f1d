//===- SumOrder.h - whether sums depend on the order of their terms *- C++ -*-===//

#ifndef INTERPRETER_SUMORDER_H
#define INTERPRETER_SUMORDER_H

#include "interpreter/Tensor.h"

namespace mlir::fsdp::interpreter {

/// While one is alive, the interpreter's sums on this thread report to it: of products, reductions,
/// collectives, norms of gradients and gradients of lookups (not those inside of softmax, norms of rows,
/// attention and cross-entropy, whose terms are no exact numbers anyway). A sum does not depend on
/// its order where all of its terms are multiples of some power of two 2^e and the sum of their
/// magnitudes is at most 2^(e + p), p being the bits of a significand of the accumulator: every
/// partial sum, in any order and with or without fused products, is then exact.
class SumOrderProbe {
public:
  SumOrderProbe();
  ~SumOrderProbe();
  SumOrderProbe(const SumOrderProbe &) = delete;

  /// True where a sum since the start or the latest `reset` may depend on its order.
  bool dependsOnOrder() const { return depends; }
  void reset() { depends = false; }

private:
  friend class SumTerms;
  bool depends = false;
  SumOrderProbe *outer;
};

/// The terms of one sum, products being terms that are not rounded, formed in floats of type
/// `accumulator`. Costs next to nothing where nobody probes.
class SumTerms {
public:
  explicit SumTerms(Type accumulator);
  ~SumTerms();
  void add(double term) {
    if (probe)
      note(term);
  }

private:
  void note(double term);

  SumOrderProbe *probe;
  int precision;         ///< bits of a significand
  int grid;              ///< all terms are multiples of 2^grid
  double magnitude = 0;  ///< of all terms together
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_SUMORDER_H
