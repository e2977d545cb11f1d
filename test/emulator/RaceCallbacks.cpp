//===- RaceCallbacks.cpp - what instrumented kernels call -------------------------===//
//
// clang's -fsanitize=thread, given where a source is compiled but not where the program is linked,
// puts a call before every access to memory that another thread may reach. The emulator defines the
// functions; the sanitizer's own library is not linked. Atomic operations and fences are not
// instrumented (-tsan-instrument-atomics=0): those of kernels come through Device.h.
//
//===----------------------------------------------------------------------===//

#include "Shadow.h"

#include <cstring>

using emulator::noteAccess;

namespace {
inline void note(const void *address, std::size_t bytes, bool write, const void *place) {
  if (__builtin_expect(!emulator::shadowIsActive, 1))
    return;
  // Two of three accesses are of local arrays, such as a tile's registers.
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at >= reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) &&
      at < emulator::endOfLocalMemory)
    return;
  noteAccess(address, bytes, write, place);
}
} // namespace

extern "C" {

void __tsan_init() { emulator::accessesAreVisible = true; }
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void **) {}
void __tsan_vptr_update(void **, void *) {}

#define FSDP_ACCESSES(bytes)                                                                       \
  void __tsan_read##bytes(void *p) { note(p, bytes, false, __builtin_return_address(0)); }         \
  void __tsan_write##bytes(void *p) { note(p, bytes, true, __builtin_return_address(0)); }         \
  void __tsan_unaligned_read##bytes(void *p) {                                                     \
    note(p, bytes, false, __builtin_return_address(0));                                            \
  }                                                                                                \
  void __tsan_unaligned_write##bytes(void *p) { note(p, bytes, true, __builtin_return_address(0)); }
FSDP_ACCESSES(1)
FSDP_ACCESSES(2)
FSDP_ACCESSES(4)
FSDP_ACCESSES(8)
FSDP_ACCESSES(16)
#undef FSDP_ACCESSES

void *__tsan_memcpy(void *to, const void *from, std::size_t bytes) {
  note(from, bytes, false, __builtin_return_address(0));
  note(to, bytes, true, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, std::size_t bytes) {
  note(from, bytes, false, __builtin_return_address(0));
  note(to, bytes, true, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int value, std::size_t bytes) {
  note(to, bytes, true, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}
}
