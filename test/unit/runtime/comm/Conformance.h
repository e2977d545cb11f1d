//===- Conformance.h - what every communicator must do ----------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_CONFORMANCE_H
#define FSDP_TEST_UNIT_RUNTIME_CONFORMANCE_H

#include "runtime/job/Bootstrap.h"

/// Bytes of arena that the suite needs.
constexpr std::size_t kConformanceArena = std::size_t(40) << 20;

/// Runs every collective over every communicator of the job, on each rank, and compares with a
/// plain loop over all ranks' data, bit for bit. Throws at the first difference. Returns the number
/// of comparisons, which is the same on every rank of a group.
std::size_t runConformance(fsdp::rt::Job &job);

#endif // FSDP_TEST_UNIT_RUNTIME_CONFORMANCE_H
