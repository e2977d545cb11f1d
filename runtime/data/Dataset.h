//===- Dataset.h - data sets and the order of samples -----------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DATA_DATASET_H
#define FSDP_RUNTIME_DATA_DATASET_H

#include "runtime/data/Mixture.h"
#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fsdp::rt {

/// A data set that has been checked against a program's inputs. Reads are thread-safe, never fail
/// and never allocate.
class Dataset {
public:
  virtual ~Dataset() = default;

  /// The number of samples; at least one.
  virtual std::int64_t samples() const = 0;

  /// Writes one sample of input `input`, contiguous, in the input's own type.
  /// `sample` is below `samples()`.
  virtual void read(std::size_t input, std::int64_t sample, void *to) const = 0;

  /// `read` will be called for this sample soon: the system may read its pages meanwhile.
  virtual void readAhead(std::size_t input, std::int64_t sample) const = 0;

  /// Error: a file was truncated after it was opened, so that the data read may be wrong.
  virtual void requireWhole() const = 0;

  /// The kind of file, as messages name it, such as "16-bit tokens".
  virtual const char *form() const = 0;
};

/// Consecutive samples of a data set, and their share of the draws.
struct WeightedSamples {
  std::int64_t count;
  double weight; ///< finite, above 0
};

/// The sample at each position of a training run. Positions continue over the epochs: with n
/// samples, positions [e n, (e + 1) n) are epoch e, in file order or shuffled. Every sample is in
/// each epoch once, and the order depends on seed and epoch only, not on the ranks.
///
/// With several sources, a Mixture determines the source of each position. The samples of each
/// source are drawn in a separate order of this kind, with separate epochs.
class SampleOrder {
public:
  SampleOrder() = default;
  SampleOrder(bool shuffle, std::uint64_t seed) : shuffle(shuffle), seed(seed) {}
  /// `sources`: of a data set, in the order of its samples. One source is as without the argument.
  SampleOrder(bool shuffle, std::uint64_t seed, const std::vector<WeightedSamples> &sources);

  /// `samples`: of the data set.
  std::int64_t sampleAt(std::int64_t position, std::int64_t samples) const {
    Mixture::Block block;
    return sampleAt(position, samples, block);
  }
  /// `block`: of the last position; callers request consecutive positions.
  std::int64_t sampleAt(std::int64_t position, std::int64_t samples, Mixture::Block &block) const;

  /// Whether consecutive positions have samples that are far apart.
  bool isRandom() const { return shuffle; }

  /// The number of positions below `position` that draw from each source; nothing for one source.
  std::vector<std::int64_t> drawsBefore(std::int64_t position) const {
    return mixture ? mixture->drawsBefore(position) : std::vector<std::int64_t>();
  }

private:
  struct Source {
    std::int64_t first, count; ///< samples of the data set
    std::uint64_t seed;
  };

  std::int64_t inOrder(std::int64_t position, std::int64_t samples, std::uint64_t seed) const;

  bool shuffle = false;
  std::uint64_t seed = 0;
  std::optional<Mixture> mixture;
  std::vector<Source> sources; ///< of the mixture
};

/// A range of positions in a batch.
struct BatchRows {
  std::int64_t begin, end;
};

/// A number for "`sample` is at `position`", below 2^53, so that every reader of JSON accepts it.
/// Sums of them modulo 2^53 distinguish sequences, independent of the order of the terms.
std::uint64_t digestOfSample(std::int64_t position, std::int64_t sample);
constexpr std::uint64_t kSampleDigestMask = (std::uint64_t(1) << 53) - 1;

/// The samples of a batch for part `part` of `input` at `coordinate` of `ranks`. Each rank has n =
/// ceil(batch / ranks) samples, [coordinate * n, (coordinate + 1) * n), of which the part begins at
/// part * rows; samples beyond the batch do not exist. The end is that of the last part.
BatchRows rowsOf(const Input &input, int ranks, int coordinate, std::int64_t part = 0);

/// The position of the loads of an input: by part, then by batch.
struct LoadPosition {
  std::int64_t first = 0; ///< position of the first sample of the batch
  std::int64_t part = 0;

  void next(const Input &input) {
    if (++part == input.parts)
      part = 0, first += input.batch;
  }
};

/// Starts reading the samples of the next readBatch() if the order is random; the system reads
/// ahead in a file that is read in order.
void readAhead(const Dataset &data, const SampleOrder &order, std::size_t index, std::int64_t first,
               BatchRows rows, std::int64_t count);

/// Fills `input`'s slice with `rows` of the batch that begins at position `first`. Samples of the
/// slice past their end repeat the last of them and have weight 0 in every reduction over the
/// batch. `row` is a buffer for one sample. Returns the sum of digestOfSample of the others.
std::uint64_t readBatch(const Dataset &data, const SampleOrder &order, const Input &input,
                        std::size_t index, std::int64_t first, BatchRows rows, void *row,
                        void *slice);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_DATASET_H
