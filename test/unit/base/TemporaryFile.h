//===- TemporaryFile.h - a file that a test writes ----------------*- C++ -*-===//

#ifndef FSDP_TEST_UNIT_RUNTIME_TEMPORARYFILE_H
#define FSDP_TEST_UNIT_RUNTIME_TEMPORARYFILE_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace fsdp::rt {

/// A new folder, removed with its contents.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &name = "file", const std::string &parent = "/tmp") {
    folder = parent + "/fsdp-test-XXXXXX";
    if (!mkdtemp(folder.data()))
      throw std::runtime_error("cannot create '" + folder + "'");
    path = folder + "/" + name;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  void write(const std::string &bytes) const {
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
  }
  std::string read() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder, path;
};

/// The bytes of a safetensors file with this header and this data.
inline std::string safetensors(const std::string &header, const std::string &data) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

/// The bytes of some numbers.
template <typename T> std::string bytesOf(std::initializer_list<T> values) {
  return {reinterpret_cast<const char *>(values.begin()), values.size() * sizeof(T)};
}

/// The message of the error that `call` throws, or "no error".
template <typename Call> std::string messageOf(Call call) {
  try {
    call();
  } catch (const std::exception &error) {
    return error.what();
  }
  return "no error";
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_RUNTIME_TEMPORARYFILE_H
