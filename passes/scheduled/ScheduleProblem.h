//===- ScheduleProblem.h - scheduled IR as plain data -----------*- C++ -*-===//

#ifndef PASSES_SCHEDULED_SCHEDULEPROBLEM_H
#define PASSES_SCHEDULED_SCHEDULEPROBLEM_H

#include "dialect/fsdp/FSDPDialect.h"
#include "passes/schedule/Checker.h"

namespace mlir::fsdp {

/// The bytes [begin, end) that `op` declares.
struct BufferRange {
  BufferOp op;
  int64_t begin, end;
};

/// The part of which buffer `buffer` (of buffer type) is, seen through subviews.
BufferRange resolveBuffer(Value buffer);

/// Bytes of one element of `type` in the arena.
int64_t getElementBytes(RankedTensorType type);

/// A module in the scheduled phase, and the ops of its launches and buffers. The only
/// translation from IR to the problem: passes, report and tests use this one.
struct ScheduleProblem {
  /// One role for each program.
  explicit ScheduleProblem(ModuleOp module);
  /// As above, but if programs send and receive, a role for each position of their ranks along
  /// the axes of these transfers, because the peers depend on it.
  static ScheduleProblem ofPlaces(ModuleOp module);

  schedule::Problem problem;
  SmallVector<ProgramOp> programs;                          ///< per role
  std::vector<std::vector<BufferOp>> buffers;               ///< [role][buffer]
  std::vector<std::vector<SegmentOp>> segments;             ///< [role][segment]
  std::vector<std::vector<std::vector<LaunchOp>>> launches; ///< [role][segment][launch]

  /// The op at one end of a finding: launch, else buffer, else segment, else program.
  Operation *getOperation(const schedule::End &end) const;

private:
  ScheduleProblem() = default;
};

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_SCHEDULEPROBLEM_H
