//===- OutputFile.cpp - results that appear whole or not at all -----------===//

#include "tools/output/OutputFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace fsdpc {

static llvm::Error cannotWrite(const std::string &path, const llvm::Twine &why) {
  return llvm::createStringError("cannot write '" + path + "': " + why);
}

static std::string folderOf(const std::string &path) {
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  return folder.empty() ? "." : folder.str();
}

static std::string nameIn(const std::string &path) { return path.substr(path.rfind('/') + 1); }

/// The number of the open descriptor that `path` names, as /dev/fd/3 does, or -1.
static int descriptorOf(const std::string &path) {
  char folder[PATH_MAX];
  int number;
  if (!realpath(folderOf(path).c_str(), folder) ||
      folder != "/proc/" + std::to_string(getpid()) + "/fd" ||
      !llvm::to_integer(nameIn(path), number, 10) || number < 0)
    return -1;
  return number;
}

/// `path` with the links in the place of its last name followed, as far as they name a place: those
/// of /proc to pipes and the like name none. Nothing for links that lead to themselves.
static std::optional<std::string> followLinks(std::string path) {
  for (int links = 0; links < 40; ++links) {
    struct stat status, behind;
    char text[PATH_MAX];
    ssize_t length;
    if (descriptorOf(path) >= 0 || lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode) ||
        (length = readlink(path.c_str(), text, sizeof(text))) <= 0)
      return path;
    std::string next(text, static_cast<size_t>(length));
    if (next[0] != '/')
      next = folderOf(path) + "/" + next;
    if (lstat(next.c_str(), &status) != 0 && stat(path.c_str(), &behind) == 0)
      return path;
    path = next;
  }
  return std::nullopt;
}

static std::optional<FileIdentity> identityOf(const struct stat &status,
                                              const std::string &newName = "") {
  if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3))
    return std::nullopt;
  return FileIdentity{llvm::sys::fs::UniqueID(status.st_dev, status.st_ino), newName};
}

std::optional<FileIdentity> identityOf(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0)
    return identityOf(status);
  std::optional<std::string> target = followLinks(path);
  if (target && stat(folderOf(*target).c_str(), &status) == 0)
    return identityOf(status, nameIn(*target));
  return std::nullopt;
}

std::optional<FileIdentity> identityOfDescriptor(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 ? identityOf(status) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Where it goes
//===----------------------------------------------------------------------===//

llvm::Expected<OutputFile> OutputFile::open(const std::string &path) {
  OutputFile file;
  file.path = path;
  if (llvm::Error error = path == "-" ? file.inherit(STDOUT_FILENO) : file.resolve())
    return std::move(error);
  return file;
}

OutputFile::OutputFile(OutputFile &&other) { *this = std::move(other); }

OutputFile &OutputFile::operator=(OutputFile &&other) {
  std::swap(path, other.path);
  std::swap(target, other.target);
  std::swap(stream, other.stream);
  return *this;
}

OutputFile::~OutputFile() {
  if (stream >= 0)
    close(stream);
}

std::optional<FileIdentity> OutputFile::identity() const {
  return stream < 0 ? identityOf(target) : identityOfDescriptor(stream);
}

llvm::Error OutputFile::resolve() {
  std::optional<std::string> end = followLinks(path);
  if (!end)
    return cannotWrite(path, std::strerror(ELOOP));
  target = *end;
  if (int number = descriptorOf(target); number >= 0)
    return inherit(number);
  struct stat status;
  if (stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      return cannotWrite(path, "it is a folder; expected a file or nothing");
    if (S_ISSOCK(status.st_mode) || S_ISBLK(status.st_mode))
      return cannotWrite(path, llvm::Twine("it is a ") +
                                   (S_ISSOCK(status.st_mode) ? "socket" : "block device") +
                                   "; expected a file, a FIFO, a character device or nothing");
    if (!S_ISREG(status.st_mode))
      return openStream(S_ISFIFO(status.st_mode));
    if (access(target.c_str(), W_OK) != 0)
      return cannotWrite(path, std::strerror(errno));
  } else if (errno == ENAMETOOLONG) {
    return cannotWrite(path, std::strerror(errno));
  } else if (nameIn(target).empty()) {
    return cannotWrite(path, "it names a folder; expected a file");
  }
  std::string folder = folderOf(target);
  if (!llvm::sys::fs::is_directory(folder))
    return cannotWrite(path, "there is no folder '" + folder + "'; create it first");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return cannotWrite(path, "folder '" + folder + "': " + std::strerror(errno));
  constexpr size_t mostBytes = PATH_MAX - 1 - 32; // room for what replace() puts behind it
  if (target.size() > mostBytes)
    return cannotWrite(path, "its path has " + llvm::Twine(target.size()) +
                                 " bytes, expected at most " + llvm::Twine(mostBytes) +
                                 ", because a temporary file is written beside it first");
  return llvm::Error::success();
}

llvm::Error OutputFile::openStream(bool fifo) {
  // Without O_NONBLOCK a FIFO's open waits for a reader, perhaps for ever.
  stream = ::open(target.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (stream < 0 && errno == ENXIO && fifo)
    return cannotWrite(path, "no process reads this FIFO; start its reader first");
  if (stream < 0)
    return cannotWrite(path, std::strerror(errno));
  fcntl(stream, F_SETFL, fcntl(stream, F_GETFL) & ~O_NONBLOCK);
  return llvm::Error::success();
}

llvm::Error OutputFile::inherit(int number) {
  int flags = fcntl(number, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
    return cannotWrite(path, "it is open for reading only");
  stream = fcntl(number, F_DUPFD_CLOEXEC, 3);
  if (stream < 0)
    return cannotWrite(path, std::strerror(errno));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Writes all of `content` to `descriptor`; the system's reason if that fails.
static std::error_code writeAll(int descriptor, llvm::StringRef content) {
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/false, /*unbuffered=*/true);
  out << content;
  std::error_code error = out.error();
  out.clear_error();
  return error;
}

llvm::Error OutputFile::write(llvm::StringRef content, unsigned mode) {
  if (stream < 0)
    return replace(content, mode);
  if (std::error_code error = writeAll(stream, content))
    return path == "-"
               ? llvm::createStringError("cannot write to standard output: " + error.message())
               : cannotWrite(path, error.message());
  return llvm::Error::success();
}

std::string withEnding(const std::string &path, const std::string &ending) {
  long most = pathconf(folderOf(path).c_str(), _PC_NAME_MAX);
  size_t limit = most > 0 ? static_cast<size_t>(most) : 255;
  size_t name = path.rfind('/') + 1; // npos + 1 is 0
  if (path.size() - name + ending.size() <= limit)
    return path + ending;
  size_t end = name + limit - std::min(limit, ending.size());
  while (end > name && (path[end] & 0xc0) == 0x80) // inside of a character of UTF-8
    --end;
  return path.substr(0, end) + ending;
}

llvm::Error OutputFile::replace(llvm::StringRef content, unsigned mode) {
  std::string temporary;
  int descriptor = -1;
  for (int attempt = 0; descriptor < 0; ++attempt) {
    temporary =
        withEnding(target, ".tmp." + std::to_string(getpid()) + "." + std::to_string(attempt));
    llvm::sys::RemoveFileOnSignal(
        temporary); // before it is there, or a signal in between leaves it
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor >= 0)
      break;
    int reason = errno;
    llvm::sys::DontRemoveFileOnSignal(temporary);
    if (reason != EEXIST || attempt == 1000)
      return cannotWrite(path, std::strerror(reason));
  }
  struct stat old;
  std::error_code error;
  if (stat(target.c_str(), &old) == 0) {
    // Only root gives files away. The mode comes last, as a change of owner clears bits of it.
    if (fchown(descriptor, old.st_uid, old.st_gid) != 0 &&
        fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) != 0)
      old.st_mode &= ~static_cast<mode_t>(S_ISUID | S_ISGID);
    // A program that replaces a text has to start: who may read it may execute it.
    mode_t execute = mode & 0111 & ((old.st_mode & 0444) >> 2);
    if (fchmod(descriptor, (old.st_mode & 07777) | execute) != 0)
      error = std::error_code(errno, std::generic_category());
  }
  if (!error)
    error = writeAll(descriptor, content);
  if (close(descriptor) != 0 && !error)
    error = std::error_code(errno, std::generic_category());
  if (!error && rename(temporary.c_str(), target.c_str()) != 0)
    error = std::error_code(errno, std::generic_category());
  if (error)
    unlink(temporary.c_str());
  llvm::sys::DontRemoveFileOnSignal(temporary);
  return error ? cannotWrite(path, error.message()) : llvm::Error::success();
}

llvm::Error checkInput(const std::string &path) {
  struct stat status;
  std::optional<std::string> target = followLinks(path);
  if (path == "-" || !target || descriptorOf(*target) >= 0 || stat(path.c_str(), &status) != 0 ||
      S_ISREG(status.st_mode))
    return llvm::Error::success();
  const char *kind = S_ISDIR(status.st_mode)    ? "folder"
                     : S_ISFIFO(status.st_mode) ? "FIFO"
                     : S_ISSOCK(status.st_mode) ? "socket"
                                                : "device";
  return llvm::createStringError("cannot read '" + path + "': got a " + kind +
                                 ", expected a regular file");
}

llvm::Error checkDistinct(llvm::ArrayRef<NamedFile> files) {
  for (const NamedFile &file : files)
    for (const NamedFile *other = files.begin(); other != &file; ++other)
      if ((file.output || other->output) && file.identity && file.identity == other->identity)
        return llvm::createStringError("got one file for " + other->option + " '" + other->path +
                                       "' and " + file.option + " '" + file.path +
                                       "', expected a separate file for each output");
  return llvm::Error::success();
}

} // namespace fsdpc
