//===- MappedFile.h - a file as bytes in memory -----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_FILES_MAPPEDFILE_H
#define FSDP_RUNTIME_FILES_MAPPEDFILE_H

#include <cstddef>
#include <string>

namespace fsdp::rt {

/// A regular file, mapped for reading. Throws an Error that names it if it cannot be opened.
class MappedFile {
public:
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return name; }
  const char *data() const { return base; }
  std::size_t size() const { return bytes; }
  /// Gives back the memory of what was read so far; data() is valid as before, and is read from the file again.
  void releasePages() const;

private:
  std::string name;
  const char *base = nullptr;
  std::size_t bytes = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_FILES_MAPPEDFILE_H
