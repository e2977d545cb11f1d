//===- MappedFile.h - a file as bytes in memory -----------------*- C++ -*-===//

#ifndef BASE_MAPPEDFILE_H
#define BASE_MAPPEDFILE_H

#include "base/Descriptor.h"
#include "base/Error.h"

#include <cstddef>
#include <functional>
#include <string>

namespace base {

/// A file that is there, and that the system does not give now: permission, a disk or a server that
/// fails, no memory. It says nothing of the content.
class UnreadableFile : public Error {
public:
  using Error::Error;
};

/// A regular file, mapped for reading. Throws an Error that names it if it cannot be opened: an
/// UnreadableFile, unless there is none, or something else. Where a page of it cannot be read later
/// (SIGBUS), because the file was cut or the disk fails, the process ends: see LostPageHandler.
class MappedFile {
public:
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return name; }
  const char *data() const { return base; }
  std::size_t size() const { return bytes; }
  /// Gives back the memory of what was read so far; data() is valid as before, and is read from the
  /// file again.
  void releasePages() const;
  /// Error: the file has become shorter; behind its end, data() reads as zero to the end of a page.
  void requireWhole() const;

private:
  friend const MappedFile *mappedFileAt(const char *address);

  std::string name;
  Descriptor file;
  const char *base = nullptr;
  std::size_t bytes = 0;
  MappedFile *next = nullptr, *previous = nullptr; ///< of all that are mapped
};

/// What happens, while this object lives, where a page of a mapped file cannot be read, before the
/// process ends with the error's status. Without a handler the error is printed; of several the
/// latest is called, as in tests whose ranks are threads. It runs on the thread that reads, in a
/// signal handler: that thread was between two instructions of its own and holds no lock of the
/// system's.
class LostPageHandler {
public:
  explicit LostPageHandler(std::function<void(const Error &)> handle);
  ~LostPageHandler();
  LostPageHandler(const LostPageHandler &) = delete;
  LostPageHandler &operator=(const LostPageHandler &) = delete;

  /// Null where there is none.
  static LostPageHandler *latest();

  const std::function<void(const Error &)> handle;

private:
  LostPageHandler *next;
};

} // namespace base

#endif // BASE_MAPPEDFILE_H
