//===- Recording.h - calls of a program whose work is not performed ----------------===//
#ifndef FSDP_EMULATOR_RECORDING_H
#define FSDP_EMULATOR_RECORDING_H

#include <string>

namespace emulator {

/// Whether FSDP_EMULATOR has `calls=FILE`: what is enqueued is written to the file, and not
/// performed. So programs of any size run, with memory that is never touched.
bool recordsCalls();
/// Writes a line to the file: number of the calling thread, device, number of the stream (0: of
/// none), `what`, and `details` if there are any, with tabs between them; those of a thread in the
/// order of its calls.
void recordCall(int device, int stream, const std::string &what, const std::string &details = "");

} // namespace emulator

#endif // FSDP_EMULATOR_RECORDING_H
