//===- OutputPath.h - destinations of output --------------------*- C++ -*-===//
//
// Output paths of the command line are resolved once, before anything is written: errors are
// reported before the first step, and a FIFO or an inherited descriptor is open for the whole run.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_OUTPUTPATH_H
#define BASE_OUTPUTPATH_H

#include "base/Descriptor.h"

#include <string>
#include <sys/types.h>
#include <vector>

namespace base {

/// Identifies a file: two paths to the same file compare equal. A file that does not exist yet is
/// identified by its folder and its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::string newName; ///< empty for a file that exists
  bool known = false;  ///< false if no file can be there, and for the null device

  bool operator==(const FileIdentity &other) const {
    return known && other.known && device == other.device && inode == other.inode &&
           newName == other.newName;
  }
};

/// The identity of the file at `path`, links followed; not known where links form a cycle.
FileIdentity identityOf(const std::string &path);
/// The identity of an open file.
FileIdentity identityOfDescriptor(int descriptor);

/// A destination of output. A regular file or a free name will be replaced atomically; symbolic
/// links are followed. FIFOs, character devices, `/dev/stdout` and `/dev/fd/N` are streams, which
/// the constructor opens.
class OutputPath {
public:
  /// No destination.
  OutputPath() = default;
  /// Errors: the path is a folder, a socket, a block device, or a FIFO without a reader; its folder
  /// is missing or not writable; the file is not writable; the name or path is too long, also with
  /// the ending that AtomicFile appends.
  OutputPath(std::string path);
  OutputPath(const char *path) : OutputPath(std::string(path)) {}

  /// Standard output, as a stream.
  static OutputPath standardOutput();

  bool empty() const { return path.empty(); }
  /// As the user wrote it.
  const std::string &name() const { return path; }
  /// The text that follows "cannot write": the name in quotes, or "to standard output".
  std::string describe() const;
  /// The file to replace, links followed. Only where this is not a stream.
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

/// Error if an input exists and is a folder, a device, a socket, or a FIFO, which would block until
/// it has a writer. The file behind `/dev/stdin` or `/dev/fd/N` is open already and may be a pipe.
void requireReadable(const std::string &path);

/// Error (bad command line) if an output is the file of another option.
void requireDistinct(const std::vector<NamedFile> &files);

/// As requireDistinct; also an error where an output would replace the file to which standard
/// output or standard error is redirected.
void checkDistinct(const std::vector<NamedFile> &files);

} // namespace base

#endif // BASE_OUTPUTPATH_H
