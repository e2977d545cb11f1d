//===- OutputFile.h - atomic output files -----------------------*- C++ -*-===//
//
// The rules of docs/files.md for the tools; runtime/files/OutputPath.h and
// runtime/files/AtomicFile.h are those of generated programs, which link nothing of LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_OUTPUT_OUTPUTFILE_H
#define TOOLS_OUTPUT_OUTPUTFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem/UniqueID.h"
#include <optional>
#include <string>

namespace fsdpc {

/// The identity of a file, equal for all paths to it. A file that does not exist yet is identified
/// by its folder and its name.
struct FileIdentity {
  llvm::sys::fs::UniqueID id;
  std::string newName; ///< empty for a file that exists

  bool operator==(const FileIdentity &other) const {
    return id == other.id && newName == other.newName;
  }
};

/// The identity of the file at `path`, links followed; nothing if no file is possible there, and
/// for the null device, which may be named several times.
std::optional<FileIdentity> identityOf(const std::string &path);
std::optional<FileIdentity> identityOfDescriptor(int descriptor);

/// A destination. A regular file, or a name that is free, is replaced in one move, and a symbolic
/// link leads to its target; a FIFO, a character device, what `/dev/stdout` or `/dev/fd/N` name,
/// and
/// "-" for standard output are written into, and are open from here on.
class OutputFile {
public:
  /// Errors: a folder, a socket or a block device; a FIFO that no process reads; a folder around it
  /// that is missing or not writable; a file without permission to write.
  static llvm::Expected<OutputFile> open(const std::string &path);
  OutputFile(OutputFile &&other);
  OutputFile &operator=(OutputFile &&other);
  ~OutputFile();

  /// The path as given by the user.
  const std::string &name() const { return path; }
  std::optional<FileIdentity> identity() const;

  /// Writes all of the file. One that is replaced keeps its mode and, where permitted, its owner; a
  /// new one gets `mode` less the umask. If this fails, or SIGHUP, SIGINT or SIGTERM ends the
  /// process, an existing file is unchanged and no temporary file remains.
  llvm::Error write(llvm::StringRef content, unsigned mode = 0666);

private:
  OutputFile() = default;
  llvm::Error resolve();
  llvm::Error openStream(bool fifo);
  llvm::Error inherit(int number);
  llvm::Error replace(llvm::StringRef content, unsigned mode);

  std::string path, target;
  int stream = -1;
};

/// `path` with `ending` appended to its last name, which is truncated at a character if both would
/// exceed the limit of a name.
std::string withEnding(const std::string &path, const std::string &ending);

/// Error if the file of an input exists and cannot be read from its beginning to its end: a folder,
/// a device, a socket, or a FIFO, which would wait for a writer. What `/dev/stdin`
/// or
/// `/dev/fd/N` name is already open, and may be a pipe; "-" is standard input.
llvm::Error checkInput(const std::string &path);

/// A file of the command line.
struct NamedFile {
  std::string option; ///< such as "-o"
  std::string path;
  std::optional<FileIdentity> identity;
  bool output;
};

/// Error where an output is the file of another option.
llvm::Error checkDistinct(llvm::ArrayRef<NamedFile> files);

} // namespace fsdpc

#endif // TOOLS_OUTPUT_OUTPUTFILE_H
