//===- Peak.cpp - the heaviest set of buffers that live together ----------===//

#include "passes/schedule/Peak.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

/// The first launch of `segment` that touches each buffer; the number of launches where none does.
static std::vector<int> firstTouches(const Role &role, const Segment &segment) {
  std::vector<int> first(role.buffers.size(), static_cast<int>(segment.launches.size()));
  for (int launch = static_cast<int>(segment.launches.size()) - 1; launch >= 0; --launch)
    for (const std::vector<Access> *accesses :
         {&segment.launches[launch].reads, &segment.launches[launch].writes})
      for (const Access &access : *accesses)
        first[access.buffer] = launch;
  return first;
}

Peak mlir::fsdp::schedule::findPeak(const Role &role) {
  std::vector<SegmentTouches> touches;
  touches.reserve(role.segments.size());
  for (size_t s = 0; s < role.segments.size(); ++s)
    touches.emplace_back(role, static_cast<int>(s));
  return findPeak(role, touches);
}

Peak mlir::fsdp::schedule::findPeak(const Role &role, const std::vector<SegmentTouches> &touches) {
  Peak peak;
  int64_t persistent = 0;
  for (size_t i = 0; i < role.buffers.size(); ++i)
    if (role.buffers[i].isPersistent()) {
      peak.buffers.push_back(static_cast<int>(i));
      peak.bytes = persistent + role.buffers[i].size;
      persistent = (peak.bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
  std::vector<std::vector<int>> chains; // of the peak's blocks
  for (size_t s = 0; s < role.segments.size(); ++s) {
    Interference interference(role, touches[s]);
    if (interference.getBlocks().empty())
      continue;
    std::vector<int> together = interference.heaviestTogether();
    int64_t bytes = persistent + interference.bytesTogether(together);
    if (bytes <= peak.bytes)
      continue;
    peak.bytes = bytes;
    peak.segment = static_cast<int>(s);
    chains.clear();
    for (int block : together)
      chains.push_back(interference.getBlocks()[block].buffers);
  }
  if (peak.segment < 0)
    return peak;
  std::vector<int> first = firstTouches(role, role.segments[peak.segment]);
  const int count = static_cast<int>(role.segments[peak.segment].launches.size());
  for (const std::vector<int> &chain : chains)
    if (first[chain.front()] < count) // a buffer without accesses has no first launch
      peak.launch = std::max(peak.launch, first[chain.front()]);
  for (const std::vector<int> &chain : chains) {
    int alive = chain.front();
    for (int buffer : chain)
      if (first[buffer] <= peak.launch)
        alive = buffer;
    peak.buffers.push_back(alive);
  }
  std::sort(peak.buffers.begin(), peak.buffers.end());
  return peak;
}
