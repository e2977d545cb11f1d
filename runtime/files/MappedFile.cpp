//===- MappedFile.cpp -----------------------------------------------------===//

#include "runtime/files/MappedFile.h"

#include "runtime/Error.h"
#include "runtime/files/Descriptor.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

static const char *kindOf(mode_t mode) {
  return S_ISFIFO(mode)   ? "FIFO"
         : S_ISDIR(mode)  ? "folder"
         : S_ISSOCK(mode) ? "socket"
         : S_ISCHR(mode)  ? "character device"
                          : "block device";
}

MappedFile::MappedFile(std::string path) : name(std::move(path)) {
  // Without O_NONBLOCK, opening a FIFO waits for a writer, perhaps for ever.
  const Descriptor file(open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file)
    throw Error("cannot open '" + name + "': " + strerror(errno));
  struct stat status;
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw Error("cannot read '" + name + "': got a " + kindOf(status.st_mode) +
                ", expected a regular file, because it is read at any position; write its content "
                "to a file first");
  bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0)
    return; // nothing to map
  void *mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED)
    throw Error("cannot open '" + name + "': " + strerror(errno));
  base = static_cast<const char *>(mapping);
}

void MappedFile::releasePages() const {
  if (base)
    madvise(const_cast<char *>(base), bytes, MADV_DONTNEED); // only advice: failing changes nothing
}

MappedFile::~MappedFile() {
  if (base)
    munmap(const_cast<char *>(base), bytes);
}

} // namespace fsdp::rt
