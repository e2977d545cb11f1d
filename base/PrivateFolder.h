//===- PrivateFolder.h - folders that one user alone can change -*- C++ -*-===//
//
// The compiler executes what lies in its cache, and generated programs write records among
// temporary files: both folders may be in a place that users share. Plain C++: a generated program
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

/// Why somebody else may have changed what lies at `path`, in words that follow its name; empty
/// where only this user (and root) can. A link is somebody's word for another place; below a folder
/// that passes, links are this user's own.
inline std::string faultOfOwner(const std::string &path, bool linkAllowed) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0)
    return std::string("cannot be looked at: ") + std::strerror(errno);
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

/// The same of a folder, which has to be one.
inline std::string faultOfPrivateFolder(const std::string &path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode))
    return "is no folder";
  return faultOfOwner(path, /*linkAllowed=*/false);
}

/// Why somebody else may give another folder the name of one in `path`, which is no link, in words
/// that follow its name; empty where only this user and root can. A sticky folder such as /tmp lets
/// nobody else rename what is this user's, and the group that has the number of the user is the
/// user's own.
inline std::string faultOfPlace(const std::string &path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0)
    return std::string("cannot be looked at: ") + std::strerror(errno);
  if (status.st_uid != geteuid() && status.st_uid != 0)
    return "belongs to user " + std::to_string(status.st_uid) + ", not to user " +
           std::to_string(geteuid());
  const mode_t others = status.st_gid == geteuid() ? 0002 : 0022;
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 07777));
  return !(status.st_mode & S_ISVTX) && (status.st_mode & others)
             ? std::string("has mode ") + mode + ", so that others can rename what is in it"
             : std::string();
}

} // namespace base

#endif // BASE_PRIVATEFOLDER_H
