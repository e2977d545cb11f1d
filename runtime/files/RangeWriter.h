//===- RangeWriter.h - direct writes of ranges of a file --------*- C++ -*-===//
//
// Several processes write ranges of one file concurrently. Through the page cache each byte is
// copied once more, pages are allocated and freed, and a file has one writer at a time, so long
// ranges are written directly (O_DIRECT). The two methods must not write to the same page, or an
// old copy in the cache could overwrite data that was written directly: only pages that are
// completely in one range are written directly, and the pages at its ends, which other ranges may
// share, through the cache.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_FILES_RANGEWRITER_H
#define FSDP_RUNTIME_FILES_RANGEWRITER_H

#include "base/FileSystem.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fsdp::rt {

class RangeWriter {
public:
  struct Sizes {
    std::size_t buffer = std::size_t(4) << 20; ///< bytes per write; a multiple of kDirectAlignment
    std::size_t direct =
        std::size_t(64)
        << 10; ///< shorter writes use the page cache, as a direct write waits for the device
  };
  RangeWriter(base::FileSystem &system, const Sizes &sizes);
  /// Closes the file; data not written by finish() is lost.
  ~RangeWriter();
  RangeWriter(const RangeWriter &) = delete;
  RangeWriter &operator=(const RangeWriter &) = delete;

  // Each returns the error number of the system, or 0.

  /// Opens a file that exists and has its final size.
  int open(const std::string &path);
  bool isOpen() const { return file >= 0; }
  /// Writes `bytes` bytes at byte `offset` of the file. Adjacent calls are combined.
  int write(const void *data, std::size_t bytes, std::uint64_t offset);
  /// Writes the buffer, returns when all data is on the device, and closes the file.
  int finish();

private:
  int flush();
  int writeDirectly(const char *data, std::size_t bytes, std::uint64_t offset);
  int close(int &descriptor);

  base::FileSystem &system;
  const Sizes sizes;
  std::unique_ptr<char, void (*)(void *)> buffer;
  int file = -1,
      direct =
          -1; ///< the file, opened twice; `direct` is -1 if the file system does not support it
  /// The buffer holds bytes [begin, end) of the file, byte b at b - first; `first` is the start of
  /// a page.
  std::uint64_t first = 0, begin = 0, end = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_FILES_RANGEWRITER_H
