//===- RoundingNoise.h - what another implementation may round to *- C++ -*-===//

#ifndef INTERPRETER_ROUNDINGNOISE_H
#define INTERPRETER_ROUNDINGNOISE_H

#include "interpreter/Tensor.h"

namespace mlir::fsdp::interpreter {

/// While one is alive, every number that typed numerics round on this thread, and that they do not
/// round to itself, is off by what another implementation of the same op may be off by. How far
/// results of such runs lie apart is how far those of a correct program may. What is exact is so in
/// every implementation (a mask, a maximum, a sum of multiples of a power of two) and stays. Noise
/// is a function of the seed and the number, so equal numbers stay equal, on all ranks.
class RoundingNoise {
public:
  /// Of a 16-bit float: `compute` is what computing in f32 may change of it, which is nothing but
  /// close to a tie; `store` takes it to one of its two neighbours in half of the cases.
  enum class Narrow { compute, store };

  /// An f32, or what a 16-bit float is rounded from, is off by up to `units` units in the last
  /// place of an f32.
  RoundingNoise(uint64_t seed, double units, Narrow narrow);
  ~RoundingNoise();
  RoundingNoise(const RoundingNoise &) = delete;

  /// `value` rounded to `type`, with the noise of the thread's innermost object, if any.
  static double round(double value, Type type);
  /// A number inside of an op that the interpreter computes in double, and that implementations may
  /// hold as an f32, or as `type` where that has 16 bits: what noise makes of it; `value` without.
  static double held(double value, Type type = {});

private:
  uint64_t draw(double value) const;
  double disturbed(double value, uint64_t bits) const;

  uint64_t seed;
  double units;
  Narrow narrow;
  RoundingNoise *outer;
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_ROUNDINGNOISE_H
