//===- Mapping.h - pages of memory ------------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DEVICE_MAPPING_H
#define FSDP_RUNTIME_DEVICE_MAPPING_H

#include <cstddef>

namespace fsdp::rt {

/// Owns mapped pages, which are zero at the start.
class Mapping {
public:
  Mapping() = default;
  /// Takes ownership of pages from mmap.
  Mapping(void *data, std::size_t bytes) : data_(static_cast<std::byte *>(data)), bytes_(bytes) {}
  /// Anonymous pages, shared with processes that are forked later.
  static Mapping anonymous(std::size_t bytes);
  /// Pages of the open file `descriptor`, shared with other mappings of it.
  static Mapping ofFile(int descriptor, std::size_t bytes);
  Mapping(Mapping &&other) noexcept;
  Mapping &operator=(Mapping &&other) noexcept;
  ~Mapping();

  std::byte *data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

private:
  std::byte *data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Takes the pages of [data, data + bytes) from the system now and in one call, instead of at the
/// first write to each in the first step, which costs a fault a page: two to four times as much
/// time in the system. Contents stay. Does nothing on systems without this (Linux before 5.14).
/// Throws an Error with the purpose and a remedy if the memory is not available: better here than
/// in the middle of a step.
void populate(std::byte *data, std::size_t bytes, const char *purpose, const char *remedy);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_MAPPING_H
