//===- CommunicatorKey.h - which launches share a communicator --*- C++ -*-===//

#ifndef CODEGEN_COMMUNICATORKEY_H
#define CODEGEN_COMMUNICATORKEY_H

#include "dialect/fsdp/CollectiveGroup.h"
#include <tuple>

namespace mlir::fsdp {

/// A communicator of a program serves one stream and one list of axes; one of sends or of receives
/// also one offset of the peer.
struct CommunicatorKey {
  StringAttr stream;
  ArrayAttr over;
  int64_t offset = 0; ///< of the peer; 0 for collectives of all ranks of the group
  bool inRing = false, sends = false;

  /// Of the collectives that `launch` runs.
  static CommunicatorKey of(LaunchOp launch) {
    CollectiveOpInterface op = getCollectives(launch).front();
    const int64_t offset = op.getPeerOffset();
    return {launch.getStreamAttr(), getAxisArray(launch.getContext(), op.getAxes()), offset,
            op.isInRing(), offset != 0 && op.getSendValue() != nullptr};
  }

  auto asTuple() const {
    return std::tuple(stream.getAsOpaquePointer(), over.getAsOpaquePointer(), offset, inRing,
                      sends);
  }
  bool operator==(const CommunicatorKey &other) const { return asTuple() == other.asTuple(); }
  /// An order for lookups, which differs from run to run.
  bool operator<(const CommunicatorKey &other) const { return asTuple() < other.asTuple(); }
  /// True if both are equal but for the stream.
  bool matchesApartFromStream(const CommunicatorKey &other) const {
    return over == other.over && offset == other.offset && inRing == other.inRing &&
           sends == other.sends;
  }
};

} // namespace mlir::fsdp

#endif // CODEGEN_COMMUNICATORKEY_H
