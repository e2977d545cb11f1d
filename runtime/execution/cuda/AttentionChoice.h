//===- AttentionChoice.h - which kernels compute attention -------*- C++ -*-===//
//
// FSDP_ATTENTION of rank 0: "own", the default, or "cudnn". All ranks follow it, as results differ
// by roundings.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_ATTENTIONCHOICE_H
#define FSDP_RUNTIME_EXECUTION_CUDA_ATTENTIONCHOICE_H

#include "runtime/comm/Communicator.h"

#include <cstddef>

namespace fsdp::rt {

/// That of this process' library; see cudnn::Library::open().
std::size_t versionOfCudnn();

/// The version of cuDNN whose attention all ranks use, as cudnnGetVersion gives it; 0: the
/// program's own kernels. Called by all ranks together. Errors: another value of the variable, no
/// library on rank 0, another version on this rank. `findVersion` opens the library: that of this
/// process, but in tests.
std::size_t chooseCudnn(Communicator &world, std::size_t (*findVersion)() = versionOfCudnn);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_ATTENTIONCHOICE_H
