//===- Workspace.h - scratch memory outside of the arena --------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DEVICE_WORKSPACE_H
#define FSDP_RUNTIME_DEVICE_WORKSPACE_H

#include <cstddef>

namespace fsdp::rt {

/// A block that grows to the largest request, so that nothing is allocated after the first step.
class Workspace {
public:
  Workspace() = default;
  ~Workspace();
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;

  /// At least `bytes` bytes, aligned to 64, valid until the next request. The previous content may
  /// be lost.
  void *reserve(std::size_t bytes);

  /// The block that kernels on this thread share; a kernel may use it until it returns.
  static Workspace &ofThread();

private:
  void *block = nullptr;
  std::size_t size = 0;
};

/// Bytes of all workspaces of this process: of libraries and of kernels.
std::size_t workspaceBytes();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_WORKSPACE_H
