//===- PrivateFolder.h - folders that only one user can change --*- C++ -*-===//
// The compiler executes files of its cache, and generated programs write records among temporary
// files: both folders may be in a shared place. Plain C++: a generated program
// carries a copy of this folder.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_PRIVATEFOLDER_H
#define BASE_PRIVATEFOLDER_H

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace base {

/// The reason why another user may have changed `path`, as text that follows its name; empty if
/// only this user and root can. A link may lead to a file of another user; links in a private
/// folder belong to this user.
inline std::string faultOfOwner(const std::string &path, bool linkAllowed) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0)
    return std::string("cannot be examined: ") + std::strerror(errno);
  const bool link = S_ISLNK(status.st_mode);
  if (link && !linkAllowed)
    return "is a link";
  if (status.st_uid != geteuid())
    return "belongs to user " + std::to_string(status.st_uid) + ", not to user " +
           std::to_string(geteuid());
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 07777));
  return !link && (status.st_mode & 022)
             ? std::string("has mode ") + mode + ", so that others can write to it"
             : std::string();
}

/// The same for a folder; anything else is a fault.
inline std::string faultOfPrivateFolder(const std::string &path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode))
    return "is not a folder";
  return faultOfOwner(path, /*linkAllowed=*/false);
}

/// The reason why another user may replace a folder in `path`, which is not a link, as text that
/// follows its name; empty if only this user and root can. In a sticky folder such as /tmp other
/// users cannot rename this user's files, and the group with the number of the user is private.
inline std::string faultOfPlace(const std::string &path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0)
    return std::string("cannot be examined: ") + std::strerror(errno);
  if (status.st_uid != geteuid() && status.st_uid != 0)
    return "belongs to user " + std::to_string(status.st_uid) + ", not to user " +
           std::to_string(geteuid());
  const mode_t others = status.st_gid == geteuid() ? 0002 : 0022;
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 07777));
  return !(status.st_mode & S_ISVTX) && (status.st_mode & others)
             ? std::string("has mode ") + mode + ", so that others can rename its files"
             : std::string();
}

} // namespace base

#endif // BASE_PRIVATEFOLDER_H
