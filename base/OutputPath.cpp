#include "base/OutputPath.h"

#include "base/Error.h"
#include "base/FileSystem.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>

namespace base {

namespace {

constexpr int kMaxLinks = 40; // as the system

[[noreturn]] void cannot(const char *doing, const std::string &path, const std::string &why) {
  throw Error(std::string("cannot ") + doing + " '" + path + "': " + why);
}

/// The number of the open descriptor that `path` names, as /dev/fd/3 does, or -1.
int descriptorOf(const std::string &path) {
  char folder[PATH_MAX];
  if (!realpath(folderOf(path).c_str(), folder) ||
      folder != "/proc/" + std::to_string(getpid()) + "/fd")
    return -1;
  const std::string name = nameIn(path);
  char *end = nullptr;
  const long number = std::strtol(name.c_str(), &end, 10);
  return name.empty() || *end || number < 0 || number > INT_MAX ? -1 : static_cast<int>(number);
}

/// `path` with the links at its last name followed, except links of /proc to pipes and the like,
/// which do not lead to a path. Nothing if links form a cycle.
std::optional<std::string> followLinks(std::string path) {
  for (int links = 0; links < kMaxLinks; ++links) {
    struct stat status, behind;
    char text[PATH_MAX];
    ssize_t length;
    if (descriptorOf(path) >= 0 || lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode) ||
        (length = readlink(path.c_str(), text, sizeof(text))) <= 0)
      return path;
    std::string next(text, static_cast<std::size_t>(length));
    if (next[0] != '/')
      next = folderOf(path) + "/" + next;
    if (lstat(next.c_str(), &status) != 0 && stat(path.c_str(), &behind) == 0)
      return path;
    path = next;
  }
  return std::nullopt;
}

FileIdentity identityOf(const struct stat &status, std::string newName = "") {
  const bool null = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
  return {status.st_dev, status.st_ino, std::move(newName), !null};
}

} // namespace

FileIdentity identityOf(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0)
    return identityOf(status);
  const std::optional<std::string> target = followLinks(path);
  if (target && stat(folderOf(*target).c_str(), &status) == 0)
    return identityOf(status, nameIn(*target));
  return {};
}

FileIdentity identityOfDescriptor(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 ? identityOf(status) : FileIdentity();
}

OutputPath::OutputPath(std::string name) : path(std::move(name)) {
  const std::optional<std::string> end = followLinks(path);
  if (!end)
    cannot("write", path, std::strerror(ELOOP));
  target = *end;
  if (const int number = descriptorOf(target); number >= 0) {
    inherit(number);
    return;
  }
  struct stat status;
  if (stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      cannot("write", path, "it is a folder, expected a file or nothing");
    if (S_ISSOCK(status.st_mode) || S_ISBLK(status.st_mode))
      cannot("write", path,
             std::string("it is a ") + (S_ISSOCK(status.st_mode) ? "socket" : "block device") +
                 ", expected a file, a FIFO, a character device or nothing");
    if (!S_ISREG(status.st_mode)) {
      openStream(target, S_ISFIFO(status.st_mode));
      return;
    }
    if (access(target.c_str(), W_OK) != 0 && errno != ENOENT) // renamed by another run: as none
      cannot("write", path, std::strerror(errno));
  } else if (errno == ENAMETOOLONG) {
    cannot("create", path, std::strerror(errno));
  } else if (nameIn(target).empty()) {
    cannot("create", path, "it names a folder, expected a file");
  }
  const std::string folder = folderOf(target);
  const bool isThere = stat(folder.c_str(), &status) == 0;
  if (isThere && !S_ISDIR(status.st_mode))
    cannot("create", path, "'" + folder + "' is a file, expected a folder");
  if (!isThere && (errno == ENOENT || errno == ENOTDIR))
    cannot("create", path, "there is no folder '" + folder + "'; create it first");
  if (!isThere || access(folder.c_str(), W_OK | X_OK) != 0)
    cannot("create", path, "folder '" + folder + "': " + std::strerror(errno));
  constexpr std::size_t kMax = PATH_MAX - 1 - 32; // room for the ending that AtomicFile appends
  if (target.size() > kMax)
    cannot("create", path,
           "its path has " + std::to_string(target.size()) + " bytes, expected at most " +
               std::to_string(kMax) + ", because a temporary file is written beside it first");
}

void OutputPath::openStream(const std::string &at, bool fifo) {
  // Without O_NONBLOCK, opening a FIFO waits for a reader.
  descriptor = Descriptor(open(at.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!descriptor && errno == ENXIO && fifo)
    cannot("write", path, "no process reads this FIFO; start its reader first");
  if (!descriptor)
    cannot("write", path, std::strerror(errno));
  fcntl(descriptor.get(), F_SETFL, fcntl(descriptor.get(), F_GETFL) & ~O_NONBLOCK);
}

void OutputPath::inherit(int number) {
  const int flags = fcntl(number, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
    throw Error("cannot write " + describe() + ": it is open for reading only");
  descriptor = Descriptor(fcntl(number, F_DUPFD_CLOEXEC, 3));
  if (!descriptor)
    throw Error("cannot write " + describe() + ": " + std::strerror(errno));
}

OutputPath OutputPath::standardOutput() {
  OutputPath output;
  output.path = "-";
  output.isStandardOutput = true;
  output.inherit(STDOUT_FILENO);
  return output;
}

std::string OutputPath::describe() const {
  return isStandardOutput ? "to standard output" : "'" + path + "'";
}

FileIdentity OutputPath::identity() const {
  return descriptor ? identityOfDescriptor(descriptor.get()) : identityOf(target);
}

NamedFile NamedFile::input(std::string option, std::string path) {
  FileIdentity identity = identityOf(path);
  return {std::move(option), std::move(path), std::move(identity), Input};
}

NamedFile NamedFile::output(std::string option, const OutputPath &path) {
  return {std::move(option), path.name(), path.identity(), path.stream() < 0 ? Replaced : Stream};
}

void requireReadable(const std::string &path) {
  struct stat status;
  const std::optional<std::string> target = followLinks(path);
  if (!target || descriptorOf(*target) >= 0 || stat(path.c_str(), &status) != 0 ||
      S_ISREG(status.st_mode))
    return;
  const char *kind = S_ISDIR(status.st_mode)    ? "folder"
                     : S_ISFIFO(status.st_mode) ? "FIFO"
                     : S_ISSOCK(status.st_mode) ? "socket"
                                                : "device";
  cannot("read", path, std::string("got a ") + kind + ", expected a regular file");
}

void requireDistinct(const std::vector<NamedFile> &files) {
  for (std::size_t i = 0; i < files.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((files[i].role != NamedFile::Input || files[j].role != NamedFile::Input) &&
          files[i].identity == files[j].identity)
        throw Error("got one file for " + files[j].option + " '" + files[j].path + "' and " +
                        files[i].option + " '" + files[i].path +
                        "', expected a separate file for each output",
                    kExitBadCommandLine);
}

void checkDistinct(const std::vector<NamedFile> &files) {
  requireDistinct(files);
  for (const NamedFile &file : files) {
    struct stat status;
    for (int number : {STDOUT_FILENO, STDERR_FILENO})
      if (file.role == NamedFile::Replaced && fstat(number, &status) == 0 &&
          S_ISREG(status.st_mode) && identityOf(status) == file.identity)
        throw Error("got " + file.option + " '" + file.path + "', the file that standard " +
                        (number == STDOUT_FILENO ? "output" : "error") +
                        " goes to, expected a separate file for each output",
                    kExitBadCommandLine);
  }
}

} // namespace base
