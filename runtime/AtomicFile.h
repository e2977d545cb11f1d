//===- AtomicFile.h - files that appear whole or not at all -----*- C++ -*-===//

#ifndef FSDP_RUNTIME_ATOMICFILE_H
#define FSDP_RUNTIME_ATOMICFILE_H

#include <cstddef>
#include <string>

namespace fsdp::rt {

/// Writes a file beside its destination and renames it there when it is whole.
/// If anything fails, or `commit` is never reached, the destination keeps what
/// it had and nothing is left beside it. Every failure (a full disk, a missing
/// folder) throws an Error that names the file and the system's reason.
class AtomicFile {
public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  /// Appends `bytes` bytes.
  void write(const void *data, std::size_t bytes);

  /// Flushes to the device and renames over the destination.
  void commit();

private:
  [[noreturn]] void failed(const char *doing, int reason);

  std::string path;
  std::string temporary;
  int descriptor = -1;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ATOMICFILE_H
