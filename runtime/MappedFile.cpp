//===- MappedFile.cpp -----------------------------------------------------===//

#include "runtime/MappedFile.h"

#include "runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

MappedFile::MappedFile(std::string path) : name(std::move(path)) {
  const int descriptor = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throw Error("cannot open '" + name + "': " + strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    throw Error("cannot read '" + name + "': not a regular file");
  }
  bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0) { // nothing to map
    close(descriptor);
    return;
  }
  void *mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int reason = errno;
  close(descriptor);
  if (mapping == MAP_FAILED)
    throw Error("cannot open '" + name + "': " + strerror(reason));
  base = static_cast<const char *>(mapping);
}

MappedFile::~MappedFile() {
  if (base)
    munmap(const_cast<char *>(base), bytes);
}

} // namespace fsdp::rt
