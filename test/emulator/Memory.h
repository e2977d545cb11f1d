//===- Memory.h - what the emulator knows of addresses ---------------------------===//
#ifndef FSDP_EMULATOR_MEMORY_H
#define FSDP_EMULATOR_MEMORY_H

#include "cuda_runtime.h"

#include <cstddef>
#include <string>

namespace emulator {

enum class MemoryKind { Pageable, Pinned, Device };

struct Allocation {
  char *start = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::Pageable;
  int device = 0;
  bool fromNccl = false; ///< by ncclMemAlloc
};

/// The allocation that holds the address; of kind Pageable where there is none.
Allocation allocationOf(const void *address);
/// "", or why [address, address+bytes) is not memory of this kind. `role` names the operand.
std::string checkRange(const char *role, const void *address, std::size_t bytes, MemoryKind kind);
/// As checkRange with the kinds that a copy says it has. cudaMemcpyDefault takes any.
std::string checkCopy(const void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind);
/// Says whether the allocation that begins here is ncclMemAlloc's: cudaFree refuses those, and
/// windows are made of no others.
void setFromNccl(void *pointer, bool fromNccl);
/// Bytes that are allocated, and those of libraries.
std::size_t bytesInUse(int device);
/// Adds to the bytes that libraries take of a device beside what they allocate by CUDA's calls.
void addLibraryBytes(int device, std::ptrdiff_t change);

/// While one lives, the device's memory can be touched: by what a stream performs. Otherwise the
/// setting `guard` takes it away from everybody.
class DeviceAccess {
public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess &) = delete;
};

} // namespace emulator

#endif // FSDP_EMULATOR_MEMORY_H
