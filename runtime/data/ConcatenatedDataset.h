//===- ConcatenatedDataset.h - several files as one data set ----*- C++ -*-===//

#ifndef FSDP_RUNTIME_DATA_CONCATENATEDDATASET_H
#define FSDP_RUNTIME_DATA_CONCATENATEDDATASET_H

#include "runtime/data/Dataset.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fsdp::rt {

/// The samples of several data sets, one after another. No sample spans two of them.
class ConcatenatedDataset final : public Dataset {
public:
  /// `parts`: at least one.
  explicit ConcatenatedDataset(std::vector<std::unique_ptr<Dataset>> parts);

  std::int64_t samples() const override { return ends.back(); }
  void read(std::size_t input, std::int64_t sample, void *to) const override;
  void readAhead(std::size_t input, std::int64_t sample) const override;
  /// Checks the files that have been read since the last call.
  void requireWhole() const override;
  const char *form() const override { return parts.front()->form(); }

private:
  std::size_t partOf(std::int64_t sample) const;
  std::int64_t firstOf(std::size_t part) const { return part ? ends[part - 1] : 0; }

  std::vector<std::unique_ptr<Dataset>> parts;
  std::vector<std::int64_t> ends;                 ///< the sample after the last one of each part
  mutable std::vector<std::atomic<bool>> wasRead; ///< of each part
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_CONCATENATEDDATASET_H
