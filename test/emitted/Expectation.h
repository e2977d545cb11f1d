//===- Expectation.h - what a right program may leave -------------*- C++ -*-===//

#ifndef TEST_EMITTED_EXPECTATION_H
#define TEST_EMITTED_EXPECTATION_H

#include "interpreter/DataSet.h"
#include "mlir/IR/BuiltinOps.h"
#include "test/emitted/Case.h"

namespace mlir::fsdp {

/// Sets `outputs` and `tensors` of `wanted` to what two steps of training and an evaluation of the
/// scheduled `module` leave in typed numerics. How far a program may be from a number x follows
/// from runs of the interpreter with noise (interpreter/RoundingNoise.h), `runs` of each kind: with
/// d the largest distance from x in them and r the root mean square of d over the tensor, it is
///
///   4 max(d, r) + 4 units in the last place of x as an f32.
///
/// `tight` is that of runs in which what is rounded to f32 is off by up to 4 units in the last
/// place, and 16-bit floats are what such values round to; `loose` of runs in which, besides, half
/// of all stored 16-bit floats are off by one unit in the last place. Fails, emitting diagnostics,
/// where the module does not run.
LogicalResult expect(ModuleOp module, const interpreter::DataSet &data, int runs,
                     ::fsdp::emitted::Case &wanted);

} // namespace mlir::fsdp

#endif // TEST_EMITTED_EXPECTATION_H
