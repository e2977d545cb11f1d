//===- OutputPath.h - where a result goes -----------------------*- C++ -*-===//
//
// What a path of the command line leads to is found out once, before there is anything to write:
// a mistake is refused before the first step, and what has to be open for the whole run (a FIFO, a
// descriptor that the program was started with) is.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_OUTPUTPATH_H
#define BASE_OUTPUTPATH_H

#include "base/Descriptor.h"

#include <string>
#include <sys/types.h>
#include <vector>

namespace base {

/// What makes two paths lead to the same file. A file that is not there yet is known by its folder
/// and its name in it.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::string newName; ///< empty for a file that exists
  bool known = false;  ///< false where no file can be, and for the null device, which is nobody's

  bool operator==(const FileIdentity &other) const {
    return known && other.known && device == other.device && inode == other.inode &&
           newName == other.newName;
  }
};

/// The identity of the file at `path`, links followed; not known where links lead to themselves.
FileIdentity identityOf(const std::string &path);
/// The identity of what is open as `descriptor`.
FileIdentity identityOfDescriptor(int descriptor);

/// A destination. A regular file, or a name that is free, will be replaced in one move, and a
/// symbolic link leads to its target; a FIFO, a character device and what `/dev/stdout` or
/// `/dev/fd/N` name are written into, and are open from here on.
class OutputPath {
public:
  /// No destination.
  OutputPath() = default;
  /// Errors: a folder, a socket or a block device; a FIFO that no process reads; a folder around it
  /// that is missing or not writable; a file without permission to write; a name or path that is
  /// too long, also for AtomicFile.
  OutputPath(std::string path);
  OutputPath(const char *path) : OutputPath(std::string(path)) {}

  /// Standard output, which is open from here on.
  static OutputPath standardOutput();

  bool empty() const { return path.empty(); }
  /// As the user wrote it.
  const std::string &name() const { return path; }
  /// What follows "cannot write": the name in quotes, or "to standard output".
  std::string describe() const;
  /// The file to replace, links followed; only without a stream.
  const std::string &file() const { return target; }
  /// The open descriptor to write into, or -1.
  int stream() const { return descriptor.get(); }
  FileIdentity identity() const;

private:
  void openStream(const std::string &at, bool fifo);
  void inherit(int number);

  std::string path, target;
  bool isStandardOutput = false;
  Descriptor descriptor;
};

/// A file of the command line.
struct NamedFile {
  enum Role { Input, Replaced, Stream };

  std::string option; ///< such as "--export"
  std::string path;
  FileIdentity identity;
  Role role;

  static NamedFile input(std::string option, std::string path);
  static NamedFile output(std::string option, const OutputPath &path);
};

/// Error where the file of an input is there and is none that can be read from its beginning to its
/// end: a folder, a device, a socket, or a FIFO, which would wait for a writer. What `/dev/stdin`
/// or `/dev/fd/N` name is open already, and may be a pipe.
void requireReadable(const std::string &path);

/// Error (bad command line) where an output is the file of another option.
void requireDistinct(const std::vector<NamedFile> &files);

/// The same, and where an output would replace the file that standard output or standard error goes
/// to.
void checkDistinct(const std::vector<NamedFile> &files);

} // namespace base

#endif // BASE_OUTPUTPATH_H
