#include "base/FileSystem.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace base {

namespace {

int reasonOf(int result) { return result == 0 ? 0 : errno; }

class RealFileSystem final : public FileSystem {
public:
  int open(const std::string &path, Open how, int &file) override {
    const int way = how == Open::CreateNew ? O_CREAT | O_EXCL
                    : how == Open::Create  ? O_CREAT
                    : how == Open::Direct  ? O_DIRECT
                                           : 0;
    file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | way, 0666);
    return file >= 0 ? 0 : errno;
  }
  int write(int file, const void *data, std::size_t bytes, std::uint64_t offset) override {
    const char *next = static_cast<const char *>(data);
    while (bytes > 0) {
      const ssize_t written = pwrite(file, next, bytes, static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR)
        continue;
      if (written <= 0)
        return written < 0 ? errno : ENOSPC;
      next += written;
      bytes -= static_cast<std::size_t>(written);
      offset += static_cast<std::uint64_t>(written);
    }
    return 0;
  }
  int resize(int file, std::uint64_t bytes) override {
    if (ftruncate(file, static_cast<off_t>(bytes)) != 0)
      return errno;
    while (bytes > 0 && fallocate(file, 0, 0, static_cast<off_t>(bytes)) != 0)
      if (errno == EOPNOTSUPP || errno == ENOSYS)
        break;
      else if (errno != EINTR)
        return errno;
    return 0;
  }
  int sync(int file) override { return reasonOf(fsync(file)); }
  int close(int file) override { return reasonOf(::close(file)); }
  int rename(const std::string &from, const std::string &to) override {
    return reasonOf(std::rename(from.c_str(), to.c_str()));
  }
  int makeFolder(const std::string &path) override { return reasonOf(mkdir(path.c_str(), 0777)); }
  int removeFile(const std::string &path) override { return reasonOf(unlink(path.c_str())); }
  int removeFolder(const std::string &path) override { return reasonOf(rmdir(path.c_str())); }
  int syncFolder(const std::string &path) override {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
      return errno;
    // Some file systems do not support this, as they keep no order of writes.
    const int reason = fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
    ::close(folder);
    return reason;
  }
  bool isLink(const std::string &path) override {
    struct stat status;
    return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  }
  int list(const std::string &path, std::vector<std::string> &names) override {
    names.clear();
    DIR *folder = opendir(path.c_str());
    if (!folder)
      return errno;
    errno = 0;
    while (const dirent *entry = readdir(folder))
      if (const std::string_view name = entry->d_name; name != "." && name != "..")
        names.emplace_back(name);
    const int reason = errno;
    closedir(folder);
    std::sort(names.begin(), names.end());
    return reason;
  }
};

} // namespace

FileSystem &FileSystem::real() {
  static RealFileSystem system;
  return system;
}

std::string folderOf(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string nameIn(const std::string &path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

bool fileExists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

std::string withEnding(const std::string &path, const std::string &ending) {
  constexpr std::size_t kUsual = 255;
  const long most = pathconf(folderOf(path).c_str(), _PC_NAME_MAX);
  const std::size_t limit = most > 0 ? static_cast<std::size_t>(most) : kUsual;
  const std::size_t name = path.size() - nameIn(path).size();
  if (path.size() - name + ending.size() <= limit)
    return path + ending;
  std::size_t end = name + limit - std::min(limit, ending.size());
  while (end > name && (path[end] & 0xc0) == 0x80) // inside a UTF-8 character
    --end;
  return path.substr(0, end) + ending;
}

} // namespace base
