//===- TemporaryFolder.h - a folder that ends with its owner ----*- C++ -*-===//

#ifndef TOOLS_OUTPUT_TEMPORARYFOLDER_H
#define TOOLS_OUTPUT_TEMPORARYFOLDER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>
#include <sys/types.h>
#include <vector>

namespace fsdpc {

/// A folder that is removed with all it holds, by its destructor or when SIGHUP, SIGINT or SIGTERM
/// ends this process. Processes that work in it are ended first.
///
/// [Note: folders of killed processes] A killed process removes nothing; whoever makes a folder of
/// the same name later does. A folder holds a file `.fsdpc-temporary` on which its owner, and all
/// that it has started, keep a lock (flock): one whose lock nobody holds belongs to nobody. Its age
/// says nothing, and folders without the file are others'.
class TemporaryFolder {
public:
  /// In the system's place for temporary files.
  TemporaryFolder();
  /// Beside `path`, for what becomes `path` later.
  explicit TemporaryFolder(const std::string &path);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::string &path() const { return folder; }
  /// The folder is about to get another name, and is no temporary one there.
  void unmark();
  /// Has `start` start a process that works here and leads a process group of its own.
  void addProcess(llvm::function_ref<pid_t()> start);
  /// That process has been waited for.
  void removeProcess(pid_t process);
  /// What the destructor does, for whoever ends the process.
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
