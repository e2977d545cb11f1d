//===- Dataset.h - samples, by number ---------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DATA_DATASET_H
#define FSDP_RUNTIME_DATA_DATASET_H

#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// A data set that has been checked against a program's inputs. Reading is
/// thread-safe, never fails and never allocates.
class Dataset {
public:
  virtual ~Dataset() = default;

  /// How many samples it has; at least one.
  virtual std::int64_t samples() const = 0;

  /// Writes one sample of input `input`, contiguous, in the input's own type.
  /// `sample` is below `samples()`.
  virtual void read(std::size_t input, std::int64_t sample, void *to) const = 0;

  /// Error: the file was cut since it was opened, so that what was read may be none of it.
  virtual void requireWhole() const = 0;
};

/// Which sample stands at a position of the training run. Positions count on over the epochs: with
/// n samples, positions [e n, (e + 1) n) are epoch e, in file order or shuffled. Every sample
/// stands in each epoch once, and the order depends on seed and epoch alone, not on the ranks.
class SampleOrder {
public:
  SampleOrder() = default;
  SampleOrder(bool shuffle, std::uint64_t seed) : shuffle(shuffle), seed(seed) {}

  std::int64_t sampleAt(std::int64_t position, std::int64_t samples) const;

private:
  bool shuffle = false;
  std::uint64_t seed = 0;
};

/// A range of positions in a batch.
struct BatchRows {
  std::int64_t begin, end;
};

/// The samples of a batch that part `part` of `input` takes at `coordinate` of `ranks`, of which
/// each has n = ceil(batch / ranks): of its samples [coordinate * n, (coordinate + 1) * n) those
/// from part * rows on, as far as there are any in the batch. The end is that of all parts.
BatchRows rowsOf(const Input &input, int ranks, int coordinate, std::int64_t part = 0);

/// Where the loads of an input stand: part after part of batch after batch.
struct LoadPosition {
  std::int64_t first = 0; ///< position of the first sample of the batch
  std::int64_t part = 0;

  void next(const Input &input) {
    if (++part == input.parts)
      part = 0, first += input.batch;
  }
};

/// Fills `input`'s slice with `rows` of the batch that begins at position `first`. Samples of the
/// slice past their end repeat the last of them and have weight 0 in every reduction over the
/// batch. `row` is room for one sample.
void readBatch(const Dataset &data, const SampleOrder &order, const Input &input, std::size_t index,
               std::int64_t first, BatchRows rows, void *row, void *slice);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_DATASET_H
