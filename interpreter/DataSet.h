//===- DataSet.h - samples and their order in steps -------------*- C++ -*-===//

#ifndef INTERPRETER_DATASET_H
#define INTERPRETER_DATASET_H

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/Tensor.h"
#include <map>
#include <string>

namespace mlir::fsdp::interpreter {

/// The samples of an input: those of the batch of step `step` (from 0); if a batch is split in
/// parts, part number `part` of it.
struct BatchPosition {
  int64_t step = 0, part = 0;
};

/// One of `count` equal shares.
struct Shard {
  int64_t index = 0, count = 1;
};

/// One tensor per input, whose first dimension counts the samples.
class DataSet {
public:
  /// Adds an input; fails, emitting at `location`, if its number of samples differs from those
  /// before.
  LogicalResult add(Location location, StringRef name, const Tensor &samples);

  /// The part of the batch of step s = `batch.step` that `input` denotes: samples [s*B,
  /// (s+1)*B) of the global batch size B, wrapping at the end; of these the rank at `shard.index`
  /// along the axes of the input takes [index*n, (index+1)*n), n = ceil(B / shard.count). An input
  /// with `microbatches` = K takes of them part m = `at`, or else `batch.part` modulo K, [m*p,
  /// (m+1)*p), p being the local size; without it p = n. Positions past n or B repeat the last
  /// sample. No result may depend on them, nor on samples from `counted` on: with `poison` they
  /// repeat the first. Fails, emitting on the op, if the data do not fit.
  FailureOr<Tensor> take(InputOp input, BatchPosition batch, Shard shard, int64_t counted,
                         bool poison) const;

  /// All samples, by the name of the input.
  const std::map<std::string, Tensor> &getInputs() const { return inputs; }

private:
  std::map<std::string, Tensor> inputs;
  int64_t samples = 0;
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_DATASET_H
