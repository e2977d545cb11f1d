//===- AxisPart.h - a mesh axis or a part of one ----------------*- C++ -*-===//
//
// The one type for it: shardings of the IR identify an axis by its name, propagation and resharding
// by its index in a mesh.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_AXISPART_H
#define BASE_AXISPART_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace base {

/// A mesh axis or a part of one. An axis of n = before * size * after positions is split into
/// [before, size, after], row-major, and the part is the middle: `axis:(before)size`, the notation
/// of Shardy. `Id` is the name of the axis or its index in a mesh.
template <typename Id> struct AxisPart {
  Id axis = {};
  /// Positions before the part, 1 for none: the sizes of the parts that are major to it,
  /// multiplied.
  int64_t before = 1;
  /// Positions of the part. 0 for a whole axis of which only the name is known.
  int64_t size = 0;

  bool operator==(const AxisPart &other) const {
    return axis == other.axis && before == other.before && size == other.size;
  }
  bool operator!=(const AxisPart &other) const { return !(*this == other); }

  bool isWhole() const { return size == 0; }
  /// The `before` of a part that follows directly.
  int64_t next() const { return before * size; }
  /// True if `this` is a prefix of `other`.
  bool isPrefixOf(const AxisPart &other) const {
    return axis == other.axis && before == other.before && size <= other.size;
  }
  /// True if every position of `other` is one of `this`.
  bool contains(const AxisPart &other) const {
    return axis == other.axis && before <= other.before && next() >= other.next();
  }
  /// True if both have positions of one axis in common.
  bool overlaps(const AxisPart &other) const {
    return axis == other.axis && (isWhole() || other.isWhole() || *this == other ||
                                  std::max(before, other.before) < std::min(next(), other.next()));
  }
  /// The longest prefix of `this` that overlaps no part of `other`; none if that is empty or the
  /// two cannot be parts of one split of the axis.
  std::optional<AxisPart> withoutOverlap(const AxisPart &other) const {
    if (axis != other.axis)
      return *this;
    if (!fits(other))
      return std::nullopt;
    if (!overlaps(other))
      return *this;
    if (before >= other.before)
      return std::nullopt;
    return AxisPart{axis, before, other.before / before};
  }
  /// ":(2)4", the suffix of the axis name.
  std::string range() const { return ":(" + std::to_string(before) + ")" + std::to_string(size); }

private:
  /// True if both are parts of one split of their axis.
  bool fits(const AxisPart &other) const {
    const auto [firstBefore, lastBefore] = std::minmax(before, other.before);
    const auto [firstNext, lastNext] = std::minmax({next(), other.next()});
    if (firstNext > lastBefore)
      return lastBefore % firstBefore == 0 && firstNext % lastBefore == 0 &&
             lastNext % firstNext == 0;
    return lastBefore % firstNext == 0;
  }
};

/// Appends `part` to `parts`, joined with the last one where it follows that directly.
template <typename Id> void append(std::vector<AxisPart<Id>> &parts, const AxisPart<Id> &part) {
  if (!parts.empty() && parts.back().axis == part.axis && parts.back().next() == part.before &&
      part.before > 1)
    parts.back().size *= part.size;
  else
    parts.push_back(part);
}

} // namespace base

#endif // BASE_AXISPART_H
