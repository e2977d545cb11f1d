//===- AtomicFile.h - files that are replaced atomically --------*- C++ -*-===//

#ifndef BASE_ATOMICFILE_H
#define BASE_ATOMICFILE_H

#include "base/FileSystem.h"
#include "base/OutputPath.h"

#include <cstddef>
#include <string>

namespace base {

struct AtomicFileOptions {
  /// Users who may read the file may execute it.
  bool executable = false;
  /// `commit` returns when content and name are on the device.
  bool flushed = true;
};

/// Writes a file beside its destination and renames it there when it is whole, with the mode and,
/// where permitted, the owner of the file that it replaces. If anything fails, if `commit` is never
/// reached, or if the process is ended by SIGHUP, SIGINT or SIGTERM, the destination keeps its
/// content and no temporary file remains. A stream is written to directly. Every failure (a full
/// disk, a missing folder) throws an Error that names the file and the system's reason.
class AtomicFile {
public:
  explicit AtomicFile(const OutputPath &path, FileSystem &system = FileSystem::real(),
                      AtomicFileOptions options = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  /// Reserves space for `bytes` bytes, all of which are written next, so that a full disk is
  /// detected before any byte is written. Does nothing for a stream.
  void reserve(std::size_t bytes);

  /// Appends `bytes` bytes.
  void write(const void *data, std::size_t bytes);

  /// Replaces the first `bytes` bytes, which have been written. Not for a stream.
  void writeAtBegin(const void *data, std::size_t bytes);

  /// Flushes to the device, renames over the destination, and flushes the folder's names; without
  /// flushing if the options say so.
  void commit();

private:
  void createTemporary();
  void takeAttributes();
  void discard();
  [[noreturn]] void failed(const char *doing, int reason);

  FileSystem &system;
  const AtomicFileOptions options;
  std::string described, target;
  bool isStandardOutput = false; ///< whose reader may leave: NoReader
  std::string temporary;         ///< empty for a stream
  std::uint64_t size = 0;
  int descriptor = -1;
};

/// Removes a temporary file left by an AtomicFile of another process that was ended by SIGKILL or a
/// power failure. Does nothing while that process still runs, on any machine, or if the file system
/// has no locks.
void removeUnfinished(const std::string &temporary);

/// Removes the temporary files of this process when a signal ends it, instead of the handlers of
/// AtomicFile. `added` is called before a file is created, `removed` when it is gone.
struct TemporaryFileOwner {
  void (*added)(const std::string &path);
  void (*removed)(const std::string &path);
};
void setTemporaryFileOwner(const TemporaryFileOwner &owner);

/// Removes the unfinished files of this process, for code that ends it without unwinding. Safe in a
/// signal handler.
void removeTemporaryFiles() noexcept;

} // namespace base

#endif // BASE_ATOMICFILE_H
