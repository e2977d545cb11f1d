//===- AtomicFile.h - files that appear whole or not at all -----*- C++ -*-===//

#ifndef BASE_ATOMICFILE_H
#define BASE_ATOMICFILE_H

#include "base/FileSystem.h"
#include "base/OutputPath.h"

#include <cstddef>
#include <string>

namespace base {

struct AtomicFileOptions {
  /// Who may read the file may execute it.
  bool executable = false;
  /// `commit` returns when content and name are on the device.
  bool flushed = true;
};

/// Writes a file beside its destination and renames it there when it is whole, with the mode and,
/// where permitted, the owner of the file that it replaces. If anything fails, if `commit` is never
/// reached, or if the process is ended by SIGHUP, SIGINT or SIGTERM, the destination keeps what it
/// had and nothing is left beside it. A destination that is a stream is written into as it goes.
/// Every failure (a full disk, a missing folder) throws an Error that names the file and the
/// system's reason.
class AtomicFile {
public:
  explicit AtomicFile(const OutputPath &path, FileSystem &system = FileSystem::real(),
                      AtomicFileOptions options = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  /// Takes the room for a file of `bytes` bytes, all of which are written next: a full disk is seen
  /// before it gets any of them. Nothing for a stream.
  void reserve(std::size_t bytes);

  /// Appends `bytes` bytes.
  void write(const void *data, std::size_t bytes);

  /// Flushes to the device, renames over the destination, and flushes the folder's names; without
  /// flushing where the options say so.
  void commit();

private:
  void createTemporary();
  void takeAttributes();
  void discard();
  [[noreturn]] void failed(const char *doing, int reason);

  FileSystem &system;
  const AtomicFileOptions options;
  std::string described, target;
  std::string temporary; ///< empty for a stream
  std::uint64_t size = 0;
  int descriptor = -1;
};

/// Who removes the temporary files of this process when a signal ends it, in the place of the
/// handlers of AtomicFile: told of each before it is created, and when it is gone.
struct TemporaryFileOwner {
  void (*added)(const std::string &path);
  void (*removed)(const std::string &path);
};
void setTemporaryFileOwner(const TemporaryFileOwner &owner);

/// Removes what AtomicFiles of this process have begun: for those who end it without unwinding.
/// Safe in a signal handler.
void removeTemporaryFiles() noexcept;

} // namespace base

#endif // BASE_ATOMICFILE_H
