//===- OutputFile.h - results that appear whole or not at all ---*- C++ -*-===//
//
// The rules of docs/files.md for the tools; base/OutputPath.h and
// base/AtomicFile.h are those of generated programs, which link nothing of LLVM.
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

/// What makes two paths lead to one file. A file that is not there yet is known by its folder and
/// its name in it.
struct FileIdentity {
  llvm::sys::fs::UniqueID id;
  std::string newName; ///< empty for a file that exists

  bool operator==(const FileIdentity &other) const {
    return id == other.id && newName == other.newName;
  }
};

/// The identity of the file at `path`, links followed; nothing where no file can be, and for the
/// null device, which everybody may name.
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

  /// As the user wrote it.
  const std::string &name() const { return path; }
  std::optional<FileIdentity> identity() const;

  /// Writes all of the file. One that is replaced keeps its mode and, where permitted, its owner; a
  /// new one gets `mode` less the umask. Where this fails, or SIGHUP, SIGINT or SIGTERM ends the
  /// process, a file that was there before is as it was and nothing is left beside it.
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

/// `path` with `ending` behind its last name, which is cut at a character where both would be
/// longer than a name may be.
std::string withEnding(const std::string &path, const std::string &ending);

/// Error where the file of an input is there and is none that can be read from its beginning to its
/// end: a folder, a device, a socket, or a FIFO, which would wait for a writer. What `/dev/stdin`
/// or
/// `/dev/fd/N` name is open already, and may be a pipe; "-" is standard input.
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
