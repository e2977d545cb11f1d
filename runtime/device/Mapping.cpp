#include "runtime/device/Mapping.h"

#include "base/Error.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr std::size_t kPage = 4096;

Mapping map(int descriptor, std::size_t bytes, int flags) {
  void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, descriptor, 0);
  if (data == MAP_FAILED)
    throw Error(format("cannot map %zu bytes for the arenas of this machine's ranks: %s", bytes,
                       std::strerror(errno)));
  return Mapping(data, bytes);
}

} // namespace

Mapping Mapping::anonymous(std::size_t bytes) { return map(-1, bytes, MAP_SHARED | MAP_ANONYMOUS); }

Mapping Mapping::ofFile(int descriptor, std::size_t bytes) {
  return map(descriptor, bytes, MAP_SHARED);
}

Mapping::Mapping(Mapping &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping &Mapping::operator=(Mapping &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_)
    munmap(data_, bytes_);
}

void populate(std::byte *data, std::size_t bytes, const char *purpose, const char *remedy) {
#ifdef MADV_POPULATE_WRITE
  const auto address = reinterpret_cast<std::uintptr_t>(data), begin = address / kPage * kPage;
  const std::size_t whole = (address + bytes - begin + kPage - 1) / kPage * kPage;
  int status;
  do
    status = madvise(reinterpret_cast<void *>(begin), whole, MADV_POPULATE_WRITE);
  while (status != 0 && (errno == EINTR || errno == EAGAIN));
  if (status != 0 && errno != EINVAL)
    throw Error(
        format("cannot allocate %zu bytes for %s: %s; each rank needs that much free memory %s",
               bytes, purpose, std::strerror(errno), remedy));
#else
  (void)data, (void)bytes;
#endif
}

} // namespace fsdp::rt
