//===- Limits.h - numbers that the compiler plans with ----------*- C++ -*-===//
//
// Constants that programs and the runtime that they link share. The compiler includes this header
// and no other of the runtime; it has a namespace of its own, since `fsdp` is another one there.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_LIMITS_H
#define FSDP_RUNTIME_PROGRAM_LIMITS_H

#include <cstddef>
#include <cstdint>

namespace limits {

/// Bytes of the step state's buffer (StepState.h): the state, and behind it the entries of skipped
/// updates, one for those of the step's own and one for deferred ones.
constexpr std::size_t kStepStateBytes = 104;
constexpr std::size_t kBadGradientsBytes = 8;
constexpr std::size_t kBadGradientBytes = 4;
constexpr std::size_t kStepBufferBytes = 128; ///< of both, a multiple of 32

/// An update rule has this many constants at most: the step state has room for them.
constexpr std::size_t kMaxUpdateConstants = 4;

/// Updates of one launch at most, by a rule of `states` states: the storages and addresses of each,
/// read and written, then fit a slot of a stream (Stream.h).
constexpr std::size_t mostUpdates(std::size_t states) { return 45 / (5 + 2 * states); }

/// A launch hands a kernel that the compiler wrote this many addresses and masks at most: its
/// closure then fits a slot of a stream (Stream.h).
constexpr std::size_t kMaxKernelArguments = 12;

/// The same of a concatenation, which also takes the size of each input.
constexpr std::size_t kMaxConcatInputs = 24;

/// Shards whose squares one launch adds up at most, which also takes the size of each.
constexpr std::size_t kMaxSquaredShards = 24;

/// The widest heads that the attention kernels of CUDA take (cuda/AttentionBlocks.h).
constexpr std::uint32_t kMaxHeadWidth = 128;

/// Ranks that share a device (--communicator=loopback).
constexpr int kMaxLoopbackRanks = 64;

/// Axes of a mesh, the parts into which one is cut counting each: as many as a list of axes has
/// room for (Mesh.h).
constexpr std::size_t kMaxMeshAxes = 8;

} // namespace limits

#endif // FSDP_RUNTIME_PROGRAM_LIMITS_H
