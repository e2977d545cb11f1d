//===- Symbols.h - what the program's symbol table says of kernels ----------------===//
#ifndef FSDP_EMULATOR_SYMBOLS_H
#define FSDP_EMULATOR_SYMBOLS_H

#include <cstddef>
#include <string>

namespace emulator {

/// A kernel as the program's own symbol table has it.
struct KernelSymbol {
  std::string name; ///< mangled, "" where the table does not have it
  std::size_t sharedBytes =
      0; ///< of its own shared variables; those of functions that it calls are not counted
};
KernelSymbol symbolOf(const void *kernel);

} // namespace emulator

#endif // FSDP_EMULATOR_SYMBOLS_H
