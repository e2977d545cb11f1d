#include "runtime/data/ConcatenatedDataset.h"

#include <algorithm>
#include <utility>

namespace fsdp::rt {

ConcatenatedDataset::ConcatenatedDataset(std::vector<std::unique_ptr<Dataset>> given)
    : parts(std::move(given)), wasRead(parts.size()) {
  std::int64_t end = 0;
  for (const auto &part : parts)
    ends.push_back(end += part->samples());
}

std::size_t ConcatenatedDataset::partOf(std::int64_t sample) const {
  return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), sample) -
                                  ends.begin());
}

void ConcatenatedDataset::read(std::size_t input, std::int64_t sample, void *to) const {
  const std::size_t part = partOf(sample);
  parts[part]->read(input, sample - firstOf(part), to);
  wasRead[part].store(true, std::memory_order_relaxed);
}

void ConcatenatedDataset::readAhead(std::size_t input, std::int64_t sample) const {
  const std::size_t part = partOf(sample);
  parts[part]->readAhead(input, sample - firstOf(part));
}

void ConcatenatedDataset::requireWhole() const {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (wasRead[i].exchange(false, std::memory_order_relaxed))
      parts[i]->requireWhole();
}

} // namespace fsdp::rt
