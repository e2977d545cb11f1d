//===- RangeWriter.h - ranges of a file, past the page cache ----*- C++ -*-===//
//
// Several processes write their ranges of one file at once. Through the page cache each byte is
// copied once more, each page is taken from the system and given back, and a file has one writer at
// a time; so what is long goes to the device directly (O_DIRECT). The two ways must not meet in a
// page, or an old copy in the cache could overwrite what was written directly: only pages that lie
// in one range as a whole are written directly, those at its ends, which others may share, through
// the cache.
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
    std::size_t buffer = std::size_t(4)
                         << 20; ///< bytes written at once; a multiple of kDirectAlignment
    std::size_t direct = std::size_t(64)
                         << 10; ///< fewer go through the page cache: a call waits for the device
  };
  RangeWriter(base::FileSystem &system, const Sizes &sizes);
  /// Closes the file, losing what `finish` has not written.
  ~RangeWriter();
  RangeWriter(const RangeWriter &) = delete;
  RangeWriter &operator=(const RangeWriter &) = delete;

  // Each returns the error number of the system, or 0.

  /// Opens a file that is there and has its size.
  int open(const std::string &path);
  bool isOpen() const { return file >= 0; }
  /// Takes `bytes` bytes for byte `offset` of the file. What follows on the bytes before is written
  /// together with them.
  int write(const void *data, std::size_t bytes, std::uint64_t offset);
  /// Writes what is left, returns when all is on the device, and closes the file.
  int finish();

private:
  int flush();
  int writeDirectly(const char *data, std::size_t bytes, std::uint64_t offset);
  int close(int &descriptor);

  base::FileSystem &system;
  const Sizes sizes;
  std::unique_ptr<char, void (*)(void *)> buffer;
  int file = -1,
      direct = -1; ///< the file twice; `direct` is -1 where the file system has no such way
  /// The buffer holds bytes [begin, end) of the file, byte b at b - first; `first` is the start of
  /// a page.
  std::uint64_t first = 0, begin = 0, end = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_FILES_RANGEWRITER_H
