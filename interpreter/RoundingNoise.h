//===- RoundingNoise.h - what another implementation may round to *- C++ -*-===//

#ifndef INTERPRETER_ROUNDINGNOISE_H
#define INTERPRETER_ROUNDINGNOISE_H

#include "interpreter/Tensor.h"

namespace mlir::fsdp::interpreter {

/// While one is alive, every number that typed numerics round on this thread is off by what another
/// implementation of the same op may be off by: an f32 by up to `units` units in the last place, a
/// 16-bit float by one, in a quarter of the cases each way. How far results of such runs lie apart is
/// how far those of a correct program may. Noise is a function of the seed and the number, so equal
/// numbers stay equal, on all ranks.
class RoundingNoise {
public:
  RoundingNoise(uint64_t seed, double units);
  ~RoundingNoise();
  RoundingNoise(const RoundingNoise &) = delete;

  /// `value`, which was rounded to `type`, with the noise of the thread's innermost object, if any.
  static double apply(double value, Type type);

private:
  uint64_t seed;
  double units;
  RoundingNoise *outer;
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_ROUNDINGNOISE_H
