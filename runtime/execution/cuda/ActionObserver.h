//===- ActionObserver.h - observers of a context's actions ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_ACTIONOBSERVER_H
#define FSDP_RUNTIME_EXECUTION_CUDA_ACTIONOBSERVER_H

#include <cstddef>

namespace fsdp::rt {

/// Observes the actions that a context issues.
class ActionObserver {
public:
  virtual ~ActionObserver() = default;
  /// The previous action has ended; `name`, a literal, is next.
  virtual void next(const char *name) = 0;
  /// The next action is on this stream.
  virtual void on(int stream) = 0;
  /// It reads or writes `bytes` bytes.
  virtual void touch(std::size_t bytes) = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_ACTIONOBSERVER_H
