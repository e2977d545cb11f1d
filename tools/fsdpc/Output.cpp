//===- Output.cpp - results that appear whole or not at all ---------------===//

#include "tools/fsdpc/Output.h"

#include "tools/fsdpc/Options.h"
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sys/stat.h>
#include <unistd.h>

namespace files = std::filesystem;

namespace fsdpc {

const char *const markerName = ".written-by-fsdpc";

static std::string quoted(const files::path &path) { return "'" + path.string() + "'"; }

/// What `path` leads to in the end, so that a link stays and its target is replaced.
static files::path resolved(const files::path &path) {
  std::error_code error;
  files::path target = files::is_symlink(path, error) ? files::canonical(path, error) : path;
  return error || target.empty() ? path : target;
}

static files::path folderOf(const files::path &path) {
  return path.has_parent_path() ? path.parent_path() : files::path(".");
}

/// A pipe, a device: written to, never replaced.
static bool isSpecial(const files::path &path) {
  std::error_code error;
  files::file_status status = files::status(path, error);
  return files::exists(status) && !files::is_regular_file(status) && !files::is_directory(status);
}

static void checkFolderOf(const files::path &path) {
  files::path folder = folderOf(path);
  std::error_code error;
  if (!files::is_directory(folder, error))
    throw Failure("cannot write " + quoted(path) + ": there is no folder " + quoted(folder) +
                  "; make it first");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Failure("cannot write " + quoted(path) + ": folder " + quoted(folder) + ": " +
                  std::strerror(errno));
}

void checkFileOutput(const std::string &text) {
  if (text == "-" || isSpecial(text))
    return;
  files::path path = resolved(text);
  checkFolderOf(path);
  if (files::is_directory(path))
    throw Failure("cannot write " + quoted(path) + ": it is a folder; expected a file or nothing");
}

/// A trailing slash names the same folder.
static files::path withoutSlash(const std::string &text) {
  files::path path = text;
  return path.has_filename() ? path : path.parent_path();
}

void checkFolderOutput(const std::string &text) {
  files::path path = resolved(withoutSlash(text));
  checkFolderOf(path);
  if (!files::exists(path))
    return;
  if (!files::is_directory(path))
    throw Failure("cannot write folder " + quoted(path) +
                  ": a file stands there; move it away or choose another place");
  if (!files::exists(path / markerName))
    throw Failure("refusing to replace folder " + quoted(path) +
                  ": it was not written by this tool (it has no " + quoted(markerName) +
                  "); move it away or choose another place");
}

std::string temporaryBeside(const std::string &text) {
  files::path path = resolved(text);
  std::string stem = (folderOf(path) / ("." + path.filename().string() + ".")).string();
  for (int attempt = 0;; ++attempt) {
    std::string name = stem + std::to_string(getpid()) + "." + std::to_string(attempt);
    if (!files::exists(files::symlink_status(name)))
      return name;
  }
}

/// Writes `content` to `path`, which is new; removes it again if that fails.
static void writeNew(const files::path &path, const std::string &content,
                     const files::path &named) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (!out) {
    std::string why = std::strerror(errno);
    std::error_code ignored;
    if (files::is_regular_file(path, ignored))
      files::remove(path, ignored);
    throw Failure("cannot write " + quoted(named) + ": " + why);
  }
}

void moveFile(const std::string &file, const std::string &text) {
  files::path path = resolved(text);
  if (std::rename(file.c_str(), path.c_str()) != 0) {
    std::string why = std::strerror(errno);
    std::error_code ignored;
    files::remove(file, ignored);
    throw Failure("cannot write " + quoted(path) + ": " + why);
  }
}

void writeFile(const std::string &path, const std::string &content) {
  if (path == "-") {
    std::cout << content << std::flush;
    if (!std::cout)
      throw Failure("cannot write to standard output");
    return;
  }
  checkFileOutput(path);
  if (isSpecial(path))
    return writeNew(path, content, path);
  std::string temporary = temporaryBeside(path);
  writeNew(temporary, content, path);
  moveFile(temporary, path);
}

/// Removes a folder unless it was moved away.
namespace {
struct FolderGuard {
  files::path path;
  ~FolderGuard() {
    std::error_code ignored;
    files::remove_all(path, ignored);
  }
};
} // namespace

void writeFolder(const std::string &text, const Files &content) {
  checkFolderOutput(text);
  files::path path = resolved(withoutSlash(text));
  FolderGuard temporary{temporaryBeside(path.string())};
  std::error_code error;
  files::create_directory(temporary.path, error);
  for (auto &[name, words] : content) {
    files::path file = temporary.path / name;
    files::create_directories(file.parent_path(), error);
    writeNew(file, words, path / name);
  }
  writeNew(temporary.path / markerName, "This folder is replaced whole when it is written again.\n",
           path / markerName);
  // Where a folder stands already, both change places in one move; the guard removes the old one.
  bool exists = files::exists(path);
  int failed =
      exists ? renameat2(AT_FDCWD, temporary.path.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE)
             : std::rename(temporary.path.c_str(), path.c_str());
  if (failed && exists && errno == EINVAL) { // a file system that cannot exchange
    FolderGuard old{temporaryBeside(path.string())};
    failed = std::rename(path.c_str(), old.path.c_str()) ||
             std::rename(temporary.path.c_str(), path.c_str());
  }
  if (failed)
    throw Failure("cannot write folder " + quoted(path) + ": " + std::strerror(errno));
}

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  files::path base = files::temp_directory_path(error);
  std::string name = ((error ? files::path("/tmp") : base) / "fsdpc-XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw Failure("cannot make a temporary folder " + quoted(files::path(name)) + ": " +
                  std::strerror(errno));
  folder = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  files::remove_all(folder, ignored);
}

} // namespace fsdpc
