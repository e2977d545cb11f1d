//===- MappedFile.h - files mapped for reading ------------------*- C++ -*-===//

#ifndef BASE_MAPPEDFILE_H
#define BASE_MAPPEDFILE_H

#include "base/Descriptor.h"
#include "base/Error.h"

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>

namespace base {

/// The file exists but cannot be read now: permissions, a failing disk or server, no memory. Its
/// content may be valid.
class UnreadableFile : public Error {
public:
  using Error::Error;
};

/// A regular file, mapped for reading. The constructor throws an UnreadableFile if the file exists
/// but cannot be opened, and another Error if it does not exist or is not a regular file. If a page
/// cannot be read later (SIGBUS), because the file was truncated or the disk fails, the process
/// ends: see LostPageHandler.
class MappedFile {
public:
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return name; }
  const char *data() const { return base; }
  std::size_t size() const { return bytes; }
  /// Releases the memory of the pages read so far. data() stays valid; later accesses read the file
  /// again.
  void releasePages() const;
  /// Announces reads of `count` bytes from `from` on, so that the system can read ahead.
  void readAhead(const char *from, std::size_t count) const;
  /// Error: the file has been truncated. data() reads as zero between the new end and the end of
  /// its page.
  void requireWhole() const;

private:
  friend const MappedFile *mappedFileAt(const char *address);

  std::string name;
  Descriptor file;
  const char *base = nullptr;
  std::size_t bytes = 0;
};

/// While this object exists, `handle` is called when a page of a mapped file cannot be read, before
/// the process ends with the error's status. Without a handler the error is printed; of several
/// handlers the latest is called. `handle` runs in a signal handler, on the thread that read the
/// page, which was executing code of the program and so holds no lock of the C library.
class LostPageHandler {
public:
  explicit LostPageHandler(std::function<void(const Error &)> handle);
  ~LostPageHandler();
  LostPageHandler(const LostPageHandler &) = delete;
  LostPageHandler &operator=(const LostPageHandler &) = delete;

  /// Null if there is none.
  static LostPageHandler *latest();

  const std::function<void(const Error &)> handle;
};

/// One value of a file of little-endian numbers, on a little-endian machine; need not be aligned.
template <typename T> T load(const char *data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

} // namespace base

#endif // BASE_MAPPEDFILE_H
