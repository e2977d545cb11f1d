#include "base/Descriptor.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/file.h>
#include <unistd.h>

namespace base {

void Descriptor::reset() {
  if (number < 0)
    return;
  const int reason = errno;
  close(std::exchange(number, -1));
  errno = reason;
}

bool Descriptor::lockAgainstOtherRuns(const std::string &name) const {
  if (flock(number, LOCK_EX | LOCK_NB) == 0)
    return true;
  if (errno == EWOULDBLOCK)
    return false;
  std::fprintf(stderr, "note: '%s' cannot be locked against other runs: %s\n", name.c_str(),
               std::strerror(errno));
  return true;
}

} // namespace base
