//===- Kernels.h - kernels of a folder of PTX -------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_KERNELS_H
#define FSDP_EMULATOR_PTX_KERNELS_H

#include "Grid.h"

#include <string>

namespace emulator::ptx {

/// Runs a launch by the PTX of FOLDER/*.ptx that has its kernel, as nvcc names it. Returns what
/// went wrong, or "".
std::string runGrid(const Launch &launch, const std::string &folder);

/// Runs the kernel `name` of a text, for tests of instructions. Throws Refusal; returns what went
/// wrong, or "".
std::string runText(const std::string &text, const std::string &name, const Launch &launch,
                    bool followsRaces);

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_KERNELS_H
