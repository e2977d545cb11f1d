//===- Output.cpp - results that appear whole or not at all ---------------===//

#include "tools/fsdpc/Output.h"

#include "base/PrintableText.h"
#include "base/StandardOutput.h"
#include "tools/fsdpc/Options.h"
#include "tools/output/TemporaryFolder.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace files = std::filesystem;

namespace fsdpc {

const char *const markerName = ".written-by-fsdpc";

static std::string quoted(const files::path &path) { return base::inQuotes(path.string()); }

std::string readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    throw Failure("cannot read " + base::inQuotes(path) + ": " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

/// The final target of `text`, so that a link stays and its target is replaced. A trailing slash
/// names the same folder.
static files::path resolved(const std::string &text) {
  files::path path = text;
  if (!path.has_filename())
    path = path.parent_path();
  std::error_code error;
  files::path target = files::is_symlink(path, error) ? files::canonical(path, error) : path;
  return error || target.empty() ? path : target;
}

void finishPrinting(llvm::raw_fd_ostream &out) {
  out.flush();
  std::error_code error = out.error();
  out.clear_error();
  const std::string message = "cannot write to standard output: " + error.message();
  if (error == std::errc::broken_pipe)
    throw base::NoReader(message);
  if (error)
    throw Failure(message);
}

void printBeside(const std::string &table, llvm::ArrayRef<const base::OutputPath *> results) {
  const base::FileIdentity output = base::identityOfDescriptor(STDOUT_FILENO);
  if (llvm::any_of(results, [&](const auto *path) { return path->identity() == output; })) {
    llvm::errs() << table;
    return;
  }
  llvm::outs() << table;
  finishPrinting(llvm::outs());
}

void checkFolderOutput(const std::string &text) {
  files::path path = resolved(text);
  files::path folder = path.has_parent_path() ? path.parent_path() : files::path(".");
  std::error_code error;
  if (!files::is_directory(folder, error))
    throw Failure("cannot write " + quoted(path) + ": there is no folder " + quoted(folder) +
                  "; create it first");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Failure("cannot write " + quoted(path) + ": folder " + quoted(folder) + ": " +
                  std::strerror(errno));
  if (!files::exists(path))
    return;
  if (!files::is_directory(path))
    throw Failure("cannot write folder " + quoted(path) +
                  ": a file with this name exists; move it away or choose another location");
  if (!files::exists(path / markerName))
    throw Failure("refusing to replace folder " + quoted(path) +
                  ": it was not written by this tool (it has no " + quoted(markerName) +
                  "); move it away or choose another location");
}

bool standsInFolder(const std::string &file, const std::string &folder) {
  std::error_code error;
  files::path inner = files::canonical(file, error);
  files::path outer = error ? files::path() : files::canonical(folder, error);
  if (error)
    return false;
  for (files::path at = inner; at.has_relative_path(); at = at.parent_path())
    if (at == outer)
      return true;
  return false;
}

/// Writes `content` to `path`, which is new.
static void writeNew(const files::path &path, const std::string &content,
                     const files::path &named) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (!out)
    throw Failure("cannot write " + quoted(named) + ": " + std::strerror(errno));
}

void writeFolder(const std::string &text, const Files &content) {
  checkFolderOutput(text);
  files::path path = resolved(text);
  TemporaryFolder folder(path.string());
  files::path temporary = folder.path();
  std::error_code error;
  bool exists = files::exists(path);
  // As the folder that is replaced, or as any new one.
  mode_t mask = umask(0);
  umask(mask);
  files::permissions(
      temporary, exists ? files::status(path).permissions() : files::perms(0777 & ~mask), error);
  for (auto &[name, words] : content) {
    files::path file = temporary / name;
    files::create_directories(file.parent_path(), error);
    writeNew(file, words, path / name);
  }
  writeNew(temporary / markerName,
           "This folder is replaced, with all files in it, when it is written again.\n",
           path / markerName);
  folder.unmark();
  // An existing folder is exchanged with the new one atomically, and is removed with the temporary
  // folder.
  int failed = exists
                   ? renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE)
                   : std::rename(temporary.c_str(), path.c_str());
  if (failed && exists && errno == EINVAL) { // a file system that cannot exchange
    TemporaryFolder old(path.string());
    old.unmark(); // a folder is renamed onto an empty one
    failed = std::rename(path.c_str(), old.path().c_str()) ||
             std::rename(temporary.c_str(), path.c_str());
  }
  if (failed)
    throw Failure("cannot write folder " + quoted(path) + ": " + std::strerror(errno));
}

} // namespace fsdpc
