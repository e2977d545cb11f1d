//===- TemporaryFolder.h - folders removed at exit --------------*- C++ -*-===//

#ifndef TOOLS_OUTPUT_TEMPORARYFOLDER_H
#define TOOLS_OUTPUT_TEMPORARYFOLDER_H

#include "llvm/Support/Program.h"
#include <string>
#include <sys/types.h>
#include <vector>

namespace fsdpc {

/// A folder that is removed with its contents, by its destructor or when SIGHUP, SIGINT or SIGTERM
/// ends this process. Processes that work in it are ended first.
///
/// [Note: folders of killed processes] A killed process removes nothing; the next process that
/// creates a folder of the same name does. A folder contains a file `.fsdpc-temporary` on which its
/// owner, and its child processes, hold a lock (flock): a folder without a held lock is abandoned.
/// Its age is not considered, and folders without the file are not touched.
class TemporaryFolder {
public:
  /// In the system's place for temporary files.
  TemporaryFolder();
  /// Next to `path`, for a folder that becomes `path` later.
  explicit TemporaryFolder(const std::string &path);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::string &path() const { return folder; }
  /// The folder is about to be renamed, and is then not temporary.
  void unmark();
  /// Starts `command`, arguments of env, with its output in the file `log`. It works here and leads
  /// a new process group.
  llvm::sys::ProcessInfo start(llvm::ArrayRef<std::string> command, llvm::StringRef log);
  /// That process has been waited for.
  void removeProcess(pid_t process);
  /// The work of the destructor, for code that ends the process.
  void clear();

private:
  void make(const std::string &prefix);
  bool mark();

  std::string folder;
  int held = -1; ///< descriptor of the file that marks the folder
  std::vector<pid_t> processes;
};

} // namespace fsdpc

#endif // TOOLS_OUTPUT_TEMPORARYFOLDER_H
