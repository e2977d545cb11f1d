//===- Descriptors.h - descriptors of the emulated cuDNN ---------------------------===//
#ifndef FSDP_EMULATOR_CUDNN_DESCRIPTORS_H
#define FSDP_EMULATOR_CUDNN_DESCRIPTORS_H

#include "runtime/kernels/cuda/CudnnApi.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace emulator::cudnn {

using namespace fsdp::rt::cudnn;

// cudnnStatus_t, as far as the emulated library returns them.
constexpr Status kBadParameter = 2000, kNullPointer = 2002, kNotFinalized = 2004, kWrongType = 2010,
                 kNotSupported = 3000, kUnsupportedPattern = 3001, kUnsupportedShape = 3002,
                 kFailedExecution = 5000;

/// Keeps the reason for this thread, and returns the status.
Status refuse(Status status, const std::string &reason);
const std::string &lastReason();

struct Descriptor {
  Kind kind;
  bool isFinalized = false;
  struct Value {
    Type type;
    std::int64_t count;
    std::vector<char> bytes;
  };
  std::map<Attribute, Value> values;
  /// Of a finalized plan.
  std::int64_t workspace = 0;

  bool has(Attribute attribute) const { return values.count(attribute) != 0; }
  template <class T> T get(Attribute attribute, std::size_t index = 0) const {
    T value;
    std::memcpy(&value, values.at(attribute).bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  }
  template <class T> T get(Attribute attribute, T missing, std::size_t index) const {
    return has(attribute) ? get<T>(attribute, index) : missing;
  }
  const Descriptor &part(Attribute attribute, std::size_t index = 0) const {
    return *static_cast<const Descriptor *>(get<RawDescriptor>(attribute, index));
  }
  std::vector<const Descriptor *> parts(Attribute attribute) const {
    std::vector<const Descriptor *> all;
    for (std::int64_t i = 0; has(attribute) && i < values.at(attribute).count; ++i)
      all.push_back(&part(attribute, static_cast<std::size_t>(i)));
    return all;
  }

  // Of a tensor.
  std::array<std::int64_t, 4> fourOf(Attribute attribute) const {
    std::array<std::int64_t, 4> four;
    for (std::size_t i = 0; i < 4; ++i)
      four[i] = get<std::int64_t>(attribute, i);
    return four;
  }
  std::array<std::int64_t, 4> extents() const { return fourOf(Attribute::TensorExtents); }
  std::array<std::int64_t, 4> strides() const { return fourOf(Attribute::TensorStrides); }
  std::int64_t id() const { return get<std::int64_t>(Attribute::TensorId); }
  Data data() const { return get<Data>(Attribute::TensorData); }
  bool isVirtual() const { return get<bool>(Attribute::TensorIsVirtual, false, 0); }
  bool isByValue() const { return get<bool>(Attribute::TensorIsByValue, false, 0); }
};

Descriptor *create(Kind kind);
/// The descriptor, or null if it is none or was destroyed.
Descriptor *find(RawDescriptor raw);
void destroy(Descriptor *descriptor);

Status set(Descriptor &descriptor, Attribute attribute, Type type, std::int64_t count,
           const void *values);
/// Checks what a descriptor must have, and that its parts are finalized.
Status finalize(Descriptor &descriptor);

/// The version that the library claims to be, of FSDP_CUDNN_DOUBLE=version=N (92800).
std::size_t version();

} // namespace emulator::cudnn

#endif // FSDP_EMULATOR_CUDNN_DESCRIPTORS_H
