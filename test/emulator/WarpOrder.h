//===- WarpOrder.h - threads of a block, warp by warp -------------------------===//
#ifndef FSDP_EMULATOR_WARPORDER_H
#define FSDP_EMULATOR_WARPORDER_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace emulator {

/// Orders `threads`, of at most 1024, by warps in a random order; those of a warp keep theirs. By
/// counting: a stable sort took a fifteenth of the time of kernels. `scratch` keeps its memory.
inline void groupByWarps(std::vector<unsigned> &threads, std::mt19937_64 &random,
                         std::vector<unsigned> &scratch) {
  std::array<std::pair<std::uint64_t, unsigned>, 32> warps;
  for (unsigned warp = 0; warp < warps.size(); ++warp)
    warps[warp] = {random(), warp};
  std::sort(warps.begin(), warps.end());
  std::array<unsigned, 32> counts = {}, next;
  for (unsigned thread : threads)
    ++counts[thread / 32];
  unsigned begin = 0;
  for (const auto &[rank, warp] : warps) {
    next[warp] = begin;
    begin += counts[warp];
  }
  scratch.resize(threads.size());
  for (unsigned thread : threads)
    scratch[next[thread / 32]++] = thread;
  threads.swap(scratch);
}

} // namespace emulator

#endif // FSDP_EMULATOR_WARPORDER_H
