//===- RoundingNoise.h - rounding of other implementations ------*- C++ -*-===//

#ifndef INTERPRETER_ROUNDINGNOISE_H
#define INTERPRETER_ROUNDINGNOISE_H

#include "interpreter/Tensor.h"

namespace mlir::fsdp::interpreter {

/// During its lifetime, every number that typed numerics round on this thread, and that is not
/// exact, gets an error that another implementation of the same op may have. The distance between
/// results of such runs is the tolerance for a correct program. Exact numbers are exact in every
/// implementation (a mask, a maximum, a sum of multiples of a power of two) and do not change.
/// Noise is a function of the seed and the number, so equal numbers stay equal, on all ranks.
class RoundingNoise {
public:
  /// For a 16-bit float: `compute` is the error of computing in f32, which is zero except close to
  /// a tie; `store` moves it to one of its two neighbours in half of the cases.
  enum class Narrow { compute, store };

  /// An f32, or the value that a 16-bit float is rounded from, has an error of up to `units` units
  /// in the last place of an f32.
  RoundingNoise(uint64_t seed, double units, Narrow narrow);
  ~RoundingNoise();
  RoundingNoise(const RoundingNoise &) = delete;

  /// `value` rounded to `type`, with the noise of the thread's innermost object, if any.
  static double round(double value, Type type);
  /// A number inside an op that the interpreter computes in double, and that implementations may
  /// hold as an f32, or as `type` if that has 16 bits: `value` with noise, or `value` if there is
  /// none.
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
