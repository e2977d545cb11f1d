//===- IndexRange.h - errors of indices out of range ----------------------===//
#ifndef FSDP_RUNTIME_DEVICE_INDEXRANGE_H
#define FSDP_RUNTIME_DEVICE_INDEXRANGE_H

#include "base/Error.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// Errors, the same on every target, for a label of row `row` that is not one of `classes` classes,
/// and for id number `place` of an embedding that is not a row of its table. They occur for
/// computed values: a data set is checked when it is opened.
base::Error labelOutOfRange(std::uint64_t row, std::int64_t got, std::uint64_t classes);
base::Error idOutOfRange(std::uint64_t place, std::int64_t got, std::uint64_t vocabulary);
/// The same for id or label number `place` into a dimension of `size` elements that is split over
/// ranks.
base::Error indexOutOfRange(std::uint64_t place, std::int64_t got, std::uint64_t size);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_INDEXRANGE_H
