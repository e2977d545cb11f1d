//===- CudnnLibrary.h - cuDNN, opened at run time ----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_KERNELS_CUDA_CUDNNLIBRARY_H
#define FSDP_RUNTIME_KERNELS_CUDA_CUDNNLIBRARY_H

#include "runtime/kernels/cuda/CudnnApi.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::rt::cudnn {

/// The functions of libcudnn.so.9, which stays open until the process ends.
class Library {
public:
  static constexpr const char *kFile = "libcudnn.so.9";
  /// The first version whose graphs of attention have been looked at.
  static constexpr std::size_t kOldest = 91900;

  /// Error (no device): the file is not found, lacks a function, or is older than kOldest; the
  /// message gives the version to install.
  static const Library &open();

  /// As cudnnGetVersion: 92800 is 9.28.0.
  std::size_t version() const { return version_; }
  /// Throws unless `status` is success: "cuDNN reports CUDNN_STATUS_..., while ...: ...".
  void check(Status status, const std::string &doing) const;
  /// The text of `status`, and the reason that the library gave last, on this thread.
  std::string describe(Status status) const;

  Functions call;

private:
  Library();

  std::size_t version_ = 0;
};

/// "9.28.0"
std::string versionText(std::size_t version);

/// A descriptor of the backend API.
class Descriptor {
public:
  Descriptor() = default;
  Descriptor(const Library &library, Kind kind);
  ~Descriptor();
  Descriptor(Descriptor &&other) noexcept { *this = std::move(other); }
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(library_, other.library_);
    std::swap(kind_, other.kind_);
    std::swap(raw_, other.raw_);
    return *this;
  }

  explicit operator bool() const { return raw_ != nullptr; }
  RawDescriptor raw() const { return raw_; }

  // Errors: those of the library, which name the attribute.
  void set(Attribute attribute, Type type, std::int64_t count, const void *values);
  void set(Attribute attribute, std::int64_t value) { set(attribute, Type::Int64, 1, &value); }
  void set(Attribute attribute, const std::vector<std::int64_t> &values) {
    set(attribute, Type::Int64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(Attribute attribute, bool value) { set(attribute, Type::Boolean, 1, &value); }
  void set(Attribute attribute, Data value) { set(attribute, Type::DataType, 1, &value); }
  void set(Attribute attribute, const Descriptor &value) {
    set(attribute, Type::Descriptor, 1, &value.raw_);
  }
  void set(Attribute attribute, const std::vector<Descriptor> &values);
  void finalize();
  /// As finalize(), but returns the library's status.
  Status tryFinalize();
  /// As the library's: writes at most `room` elements, returns how many there are.
  std::int64_t get(Attribute attribute, Type type, std::int64_t room, void *values) const;

private:
  const Library *library_ = nullptr;
  Kind kind_ = Kind::Tensor;
  RawDescriptor raw_ = nullptr;
};

} // namespace fsdp::rt::cudnn

#endif // FSDP_RUNTIME_KERNELS_CUDA_CUDNNLIBRARY_H
