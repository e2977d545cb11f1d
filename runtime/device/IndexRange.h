//===- IndexRange.h - numbers that number something, and do not -------------===//
#ifndef FSDP_RUNTIME_DEVICE_INDEXRANGE_H
#define FSDP_RUNTIME_DEVICE_INDEXRANGE_H

#include "base/Error.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// What every target says of the label of row `row` that is none of `classes` classes, and of
/// number `place` of an embedding's ids that is no row of its table. Such as a program computes:
/// those of a data set are refused when it is opened.
base::Error labelOutOfRange(std::uint64_t row, std::int64_t got, std::uint64_t classes);
base::Error idOutOfRange(std::uint64_t place, std::int64_t got, std::uint64_t vocabulary);
/// The same of number `place` of the ids or labels into a dimension of `size` elements that ranks
/// share.
base::Error indexOutOfRange(std::uint64_t place, std::int64_t got, std::uint64_t size);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_INDEXRANGE_H
