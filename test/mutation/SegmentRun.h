//===- SegmentRun.h - one order in which all roles run a segment -*- C++ -*-===//

#ifndef TEST_MUTATION_SEGMENTRUN_H
#define TEST_MUTATION_SEGMENTRUN_H

#include "dialect/fsdp/FSDPDialect.h"

#include <random>

namespace fsdp::mutation {

/// A run of one segment by all roles from idle streams, in which launches complete one after the
/// other; messages and collectives at once in all roles. The order is drawn.
class SegmentRun {
public:
  SegmentRun(mlir::ModuleOp module, mlir::StringRef segment, std::mt19937 &random);

  /// On every rank that runs both, `first` completes before `second` starts.
  bool precedes(mlir::fsdp::LaunchOp first, mlir::fsdp::LaunchOp second) const {
    auto one = ends.find(first), other = ends.find(second);
    return one != ends.end() && other != ends.end() && one->second.second < other->second.first;
  }

private:
  /// When a launch completes: the first and the last of the ranks that run it. From 1.
  mlir::DenseMap<mlir::Operation *, std::pair<int, int>> ends;
};

} // namespace fsdp::mutation

#endif // TEST_MUTATION_SEGMENTRUN_H
