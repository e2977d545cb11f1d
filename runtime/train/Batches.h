//===- Batches.h - the samples of a data set, for one rank ----------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_BATCHES_H
#define FSDP_RUNTIME_TRAIN_BATCHES_H

#include "runtime/data/Dataset.h"
#include "runtime/device/InputSource.h"
#include "runtime/job/Job.h"
#include "runtime/program/Shard.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fsdp::rt {

/// The position of the rank of `job` on the mesh.
RankPosition positionOf(const Program &program, const Job &job);

/// The samples of one data set, batch after batch, for one rank.
class Batches final : public InputSource {
public:
  Batches(const Program &program, const Dataset &data, SampleOrder order, const Job &job);

  void load(int index, void *target, std::size_t bytes) override;
  /// Continues with the sample at this position of the order.
  void goTo(std::int64_t position);
  /// The sum, modulo 2^53, of digestOfSample over the samples that this rank has loaded of the
  /// batch that begins at `position`: one of this batch or of the next one is being loaded. It is 0
  /// on replicas of another rank, so that the sum over all ranks counts every sample once.
  std::uint64_t digestOf(std::int64_t position) const;

private:
  /// Of one batch of input 0.
  struct Digest {
    std::int64_t first = -1; ///< position of its first sample
    std::uint64_t sum = 0;
  };

  const Program &program;
  const Dataset &data;
  SampleOrder order;
  std::vector<LoadPosition> next; ///< of each input
  std::vector<int> coordinates;
  bool isReplica = false;                   ///< of a rank that loads the same samples of input 0
  Digest digests[2];                        ///< of the latest batch and of the one before it
  std::vector<std::vector<std::byte>> rows; ///< buffers for a sample of each input
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_BATCHES_H
