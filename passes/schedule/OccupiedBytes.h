//===- OccupiedBytes.h - bytes of an arena over time ------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_OCCUPIEDBYTES_H
#define PASSES_SCHEDULE_OCCUPIEDBYTES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlir::fsdp::schedule {

/// Bytes [begin, end) of an arena.
struct ByteRange {
  int64_t begin = 0, end = 0;
};

/// The union of several lists of byte ranges.
class ByteRangeUnion {
public:
  void clear();
  /// Adds `ranges`, which are sorted by their beginnings.
  void add(const std::vector<ByteRange> &ranges);
  /// The bytes in any of the lists, as disjoint ranges that do not adjoin one another, upwards;
  /// valid until the next call.
  const std::vector<ByteRange> &take();

private:
  void mergeLast();

  std::vector<std::vector<ByteRange>> lists; ///< the first `count` are in use, others are spare
  std::size_t count = 0;
  std::vector<ByteRange> merged;
};

/// Which bytes of an arena are occupied at which times: a segment tree over the times 0 to
/// `times` - 1, whose nodes hold disjoint byte ranges. With few ranges per node, as placed blocks
/// adjoin one another, both operations take logarithmic time.
class OccupiedBytes {
public:
  explicit OccupiedBytes(int times);

  /// Occupies `bytes`, which are not empty, at the times from `from` up to but not including
  /// `until`, which is later.
  void occupy(int from, int until, ByteRange bytes);

  /// Adds to `ranges` the bytes that are occupied at any time from `from` up to but not including
  /// `until`.
  void collect(int from, int until, ByteRangeUnion &ranges) const;

private:
  /// Disjoint ranges that do not adjoin one another, upwards.
  using Ranges = std::vector<ByteRange>;
  /// The times of a node are those of its children, which are nodes 2i and 2i + 1.
  struct Node {
    Ranges always;    ///< bytes occupied at all times of the node, but not by its parent's `always`
    Ranges sometimes; ///< bytes occupied at any time of the node, but not by its parent's `always`
  };

  void occupy(int node, int begin, int end, int from, int until, ByteRange bytes);
  void collect(int node, int begin, int end, int from, int until, ByteRangeUnion &ranges) const;

  int leaves = 1;
  std::vector<Node> nodes;
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_OCCUPIEDBYTES_H
