//===- Symbols.h - what the program's symbol table says of kernels ----------------===//
#ifndef FSDP_EMULATOR_SYMBOLS_H
#define FSDP_EMULATOR_SYMBOLS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulator {

/// A kernel as the program's own symbol table has it.
struct KernelSymbol {
  std::string name; ///< mangled, "" where the table does not have it
  std::size_t sharedBytes =
      0; ///< of its own shared variables; those of functions that it calls are not counted
};
KernelSymbol symbolOf(const void *kernel);
/// `symbol` as C++ writes it.
std::string demangled(const std::string &symbol);

/// A thread-local variable of the program, `offset` bytes after the first of those that a thread
/// has.
struct ThreadLocal {
  std::string name; ///< mangled
  std::size_t offset, bytes;
};
/// Those that are no gaps (Device.h); none where the program has no symbol table.
const std::vector<ThreadLocal> &sharedVariables();

/// "FILE:LINE" of the call that returns to this address, with those of the functions it is inlined
/// into; or the address in the program, where there are no debugging symbols or no symbolizer.
std::string sourcePlace(std::uintptr_t returnAddress);

} // namespace emulator

#endif // FSDP_EMULATOR_SYMBOLS_H
