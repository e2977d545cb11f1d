//===- LoadedLibrary.h - for libraries that programs open at run time --------------===//
//
// A shared object such as cudnn/ finds these in the program that opens it: `cuda_emulator` exports
// them from each program that links it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_LOADEDLIBRARY_H
#define FSDP_EMULATOR_LOADEDLIBRARY_H

#include "cuda_runtime.h"

#include <cstddef>

extern "C" {
/// `perform(operand)` is called when the stream comes to it; not with `calls=FILE`, where it is
/// written to the file.
cudaError_t emulatorEnqueue(cudaStream_t stream, const char *what, void (*perform)(void *),
                            void *operand);
/// Null, or why [address, address+bytes) is not memory of a device. `role` names the operand. The
/// text is the thread's, until its next call.
const char *emulatorCheckDeviceRange(const char *role, const void *address, std::size_t bytes);
}

#endif // FSDP_EMULATOR_LOADEDLIBRARY_H
