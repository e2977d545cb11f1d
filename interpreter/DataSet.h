//===- DataSet.h - samples and the order in which steps take them *- C++ -*===//

#ifndef INTERPRETER_DATASET_H
#define INTERPRETER_DATASET_H

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/Tensor.h"
#include <map>
#include <string>

namespace mlir::fsdp::interpreter {

/// One tensor per input, whose first dimension counts the samples.
class DataSet {
public:
  /// Adds an input; fails, emitting at `location`, where it has another number of samples than
  /// those before.
  LogicalResult add(Location location, StringRef name, const Tensor &samples);

  /// The part of the batch of step `step` (from 0) that `input` stands for: samples [step*B,
  /// (step+1)*B) of the global batch size B, wrapping at the end; of these the rank at `index`
  /// along the axes of the input takes [index*c, (index+1)*c), c being the local size. Those past B
  /// repeat the last sample. No result may depend on them, nor on any from `counted` on: with
  /// `poison` they repeat the first. Fails, emitting on the op, where the data do not fit.
  FailureOr<Tensor> take(InputOp input, int64_t step, int64_t index, int64_t counted,
                         bool poison) const;

  /// All samples, by the name of the input.
  const std::map<std::string, Tensor> &getInputs() const { return inputs; }

private:
  std::map<std::string, Tensor> inputs;
  int64_t samples = 0;
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_DATASET_H
