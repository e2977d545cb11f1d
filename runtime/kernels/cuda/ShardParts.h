//===- ShardParts.h - which parameter an element of a shard is of -*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_SHARDPARTS_H
#define FSDP_RUNTIME_KERNELS_CUDA_SHARDPARTS_H

#include "runtime/program/Storage.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

/// Consecutive members of a storage whose rates have one scale, and where each ends in this rank's
/// shard, small enough to be an argument of a kernel.
struct ShardParts {
  static constexpr int kMax = 32;

  int firstParameter;     ///< index of the first of these members among all parameters
  int count;              ///< of members
  std::uint32_t decay;    ///< bit m: weight decay applies to member m
  float rateScale;        ///< factor of the learning rate of all of them
  std::size_t ends[kMax]; ///< in elements of the shard; the last is the end of the range of fill()

  /// Takes the members from element `begin` of the shard on; returns the element up to which they
  /// reach, which is past `begin`. The padding after the last member is included in it.
  std::size_t fill(ShardOf shard, std::size_t begin) {
    const Storage &storage = *shard.storage;
    const std::size_t size = storage.shard.count;
    count = 0, decay = 0, firstParameter = storage.firstParameter;
    if (storage.layout == Layout::Dimension) {
      add(size, shard.settingOf(0));
      return size;
    }
    // Coordinate r holds elements [r size, (r + 1) size) of the members one after another.
    const std::size_t offset = static_cast<std::size_t>(shard.coordinate) * size;
    for (std::size_t m = 0; m < storage.members.size() && count < kMax; ++m) {
      const bool last = m + 1 == storage.members.size();
      const std::size_t end = last ? offset + size : storage.members[m + 1].offset;
      if (end <= offset + begin)
        continue; // none of it, or done before
      const UpdateSetting setting = shard.settingOf(m);
      if (count == 0)
        firstParameter += static_cast<int>(m);
      else if (setting.rateScale != rateScale)
        break;
      add(end < offset + size ? end - offset : size, setting);
      if (ends[count - 1] == size)
        break;
    }
    return ends[count - 1];
  }

  /// The member that element i belongs to; `from` is not a later one.
  __host__ __device__ int partOf(std::size_t i, int from) const {
    while (i >= ends[from])
      ++from;
    return from;
  }
  __host__ __device__ bool decays(int part) const { return decay >> part & 1u; }

private:
  void add(std::size_t end, UpdateSetting setting) {
    ends[count] = end;
    rateScale = setting.rateScale;
    decay |= static_cast<std::uint32_t>(setting.decays) << count++;
  }
};

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_SHARDPARTS_H
