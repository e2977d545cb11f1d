//===- Alignment.cpp - misaligned accesses of kernels ------------------------------===//
//
// Code compiled with -fsanitize=alignment calls these where an address is not a multiple of its
// type's alignment, as a vector load on the device must have it. The structures are those of LLVM's
// compiler-rt (ubsan_handlers.h). Weak, so that a program with the sanitizer's own runtime keeps
// it.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <cstdint>

namespace {
struct TypeDescriptor {
  std::uint16_t kind, info;
  char name[1];
};
struct TypeMismatch {
  const char *file;
  std::uint32_t line, column;
  const TypeDescriptor *type;
  unsigned char logAlignment, check;
};
} // namespace

extern "C" {
__attribute__((weak)) void __ubsan_handle_type_mismatch_v1(TypeMismatch *data,
                                                           std::uintptr_t address) {
  const unsigned alignment = 1u << data->logAlignment;
  emulator::fail("%s:%u: misaligned access: address %#zx of type %s, expected a multiple of %u",
                 data->file, data->line, static_cast<std::size_t>(address), data->type->name,
                 alignment);
}
__attribute__((weak)) void __ubsan_handle_type_mismatch_v1_abort(TypeMismatch *data,
                                                                 std::uintptr_t address) {
  __ubsan_handle_type_mismatch_v1(data, address);
}
}
