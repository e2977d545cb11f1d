//===- Symbols.h - what the program's symbol table says of kernels ----------------===//
#ifndef FSDP_EMULATOR_SYMBOLS_H
#define FSDP_EMULATOR_SYMBOLS_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace emulator {

/// A kernel as the program's own symbol table has it.
struct KernelSymbol {
  std::string name; ///< mangled, "" where the table does not have it
  std::size_t sharedBytes =
      0; ///< of its own shared variables; those of functions that it calls are not counted
};
KernelSymbol symbolOf(const void *kernel);

/// "FILE:LINE" of the call that returns to this address, with those of the functions it is inlined
/// into; or the address in the program, where there are no debugging symbols or no symbolizer.
std::string sourcePlace(std::uintptr_t returnAddress);

} // namespace emulator

#endif // FSDP_EMULATOR_SYMBOLS_H
