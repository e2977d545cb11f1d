//===- Output.h - results that appear whole or not at all -------*- C++ -*-===//

#ifndef TOOLS_FSDPC_OUTPUT_H
#define TOOLS_FSDPC_OUTPUT_H

#include <map>
#include <string>

namespace fsdpc {

/// Relative path -> content.
using Files = std::map<std::string, std::string>;

/// The file that says that this tool wrote the folder it stands in.
extern const char *const markerName;

/// Fails early, before the work, where a file could not be written to `path`: its folder is missing
/// or not writable, or `path` is a folder.
void checkFileOutput(const std::string &path);
/// The same for a folder: `path` must be free or a folder that this tool wrote.
void checkFolderOutput(const std::string &path);

/// Replaces the file at `path` by `content` in one move. What is no regular file (a pipe, a
/// device) is written to instead; "-" is standard output.
void writeFile(const std::string &path, const std::string &content);
/// Moves `file`, made by this process in the folder of `path` (see temporaryBeside), to `path`.
void moveFile(const std::string &file, const std::string &path);
/// Replaces the folder at `path` by one with `files` and the marker, in one move.
void writeFolder(const std::string &path, const Files &files);

/// A name in the folder of `path` that nothing has, for what becomes `path` later.
std::string temporaryBeside(const std::string &path);

/// A folder in the system's place for temporary files, removed with all it holds at the end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::string &path() const { return folder; }

private:
  std::string folder;
};

} // namespace fsdpc

#endif // TOOLS_FSDPC_OUTPUT_H
