#include "runtime/device/Workspace.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace fsdp::rt {

namespace {
std::atomic<std::size_t> total{0};
} // namespace

Workspace::~Workspace() { std::free(block); }

void *Workspace::reserve(std::size_t bytes) {
  if (bytes > size) {
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    std::free(block);
    block = std::aligned_alloc(64, rounded);
    if (!block) {
      size = 0;
      throw std::bad_alloc();
    }
    total += rounded - size;
    size = rounded;
  }
  return block;
}

Workspace &Workspace::ofThread() {
  thread_local Workspace workspace;
  return workspace;
}

std::size_t workspaceBytes() { return total; }

} // namespace fsdp::rt
