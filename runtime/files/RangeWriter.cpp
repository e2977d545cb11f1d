#include "runtime/files/RangeWriter.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace fsdp::rt {

using namespace base;

constexpr std::uint64_t kPage = FileSystem::kDirectAlignment;

RangeWriter::RangeWriter(FileSystem &system, const Sizes &sizes)
    : system(system), sizes(sizes),
      buffer(static_cast<char *>(std::aligned_alloc(kPage, sizes.buffer)), std::free) {
  if (!buffer)
    throw std::bad_alloc();
}

RangeWriter::~RangeWriter() {
  close(direct);
  close(file);
}

int RangeWriter::close(int &descriptor) {
  return descriptor < 0 ? 0 : system.close(std::exchange(descriptor, -1));
}

int RangeWriter::open(const std::string &path) {
  first = begin = end = 0;
  if (const int reason = system.open(path, FileSystem::Open::Existing, file)) {
    file = -1;
    return reason;
  }
  const int reason = system.open(path, FileSystem::Open::Direct, direct);
  if (reason)
    direct = -1;
  return reason == EINVAL ? 0 : reason;
}

int RangeWriter::write(const void *data, std::size_t bytes, std::uint64_t offset) {
  if (offset != end || begin == end) {
    if (const int reason = flush())
      return reason;
    first = offset / kPage * kPage;
    begin = end = offset;
  }
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    const std::size_t now = std::min<std::uint64_t>(bytes, first + sizes.buffer - end);
    std::memcpy(buffer.get() + (end - first), next, now);
    end += now, next += now, bytes -= now;
    if (end == first + sizes.buffer) {
      if (const int reason = flush())
        return reason;
      first = begin = end;
    }
  }
  return 0;
}

int RangeWriter::flush() {
  const auto at = [&](std::uint64_t byte) { return buffer.get() + (byte - first); };
  const auto through = [&](std::uint64_t from, std::uint64_t to) {
    return from < to ? system.write(file, at(from), to - from, from) : 0;
  };
  const std::uint64_t page = (begin + kPage - 1) / kPage * kPage, last = end / kPage * kPage;
  if (direct < 0 || last < page + sizes.direct)
    return through(begin, end);
  if (const int reason = through(begin, page))
    return reason;
  if (const int reason = writeDirectly(at(page), last - page, page))
    return reason;
  return through(last, end);
}

int RangeWriter::writeDirectly(const char *data, std::size_t bytes, std::uint64_t offset) {
  const int reason = system.write(direct, data, bytes, offset);
  if (reason != EINVAL)
    return reason;
  // Some file systems report only now that they do not support it, or need a larger alignment.
  if (const int other = close(direct))
    return other;
  return system.write(file, data, bytes, offset);
}

int RangeWriter::finish() {
  int reason = flush();
  if (!reason)
    reason = system.sync(file);
  if (!reason)
    reason = close(direct);
  return reason ? reason : close(file);
}

} // namespace fsdp::rt
