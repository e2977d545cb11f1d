//===- InputSource.h - the source of samples --------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DEVICE_INPUTSOURCE_H
#define FSDP_RUNTIME_DEVICE_INPUTSOURCE_H

#include <cstddef>

namespace fsdp::rt {

/// Called by one thread at a time.
class InputSource {
public:
  virtual ~InputSource() = default;
  /// Writes this rank's part of input `index` for its next load: exactly `bytes` bytes at `target`.
  /// The n-th call for an input is for the n-th (micro)batch.
  virtual void load(int index, void *target, std::size_t bytes) = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_INPUTSOURCE_H
