#include "runtime/device/IndexRange.h"

namespace fsdp::rt {

using namespace base;

Error labelOutOfRange(std::uint64_t row, std::int64_t got, std::uint64_t classes) {
  return Error(format("label of row %zu is %lld, expected 0 to %zu; correct the data or the "
                      "model's number of classes",
                      std::size_t(row), static_cast<long long>(got), std::size_t(classes) - 1));
}

Error idOutOfRange(std::uint64_t place, std::int64_t got, std::uint64_t vocabulary) {
  return Error(format("id %zu of an embedding is %lld, expected 0 to %zu; correct the data or the "
                      "model's vocabulary",
                      std::size_t(place), static_cast<long long>(got),
                      std::size_t(vocabulary) - 1));
}

Error indexOutOfRange(std::uint64_t place, std::int64_t got, std::uint64_t size) {
  return Error(format("id or label %zu is %lld, expected 0 to %zu; correct the data or the model's "
                      "vocabulary or number of classes",
                      std::size_t(place), static_cast<long long>(got), std::size_t(size) - 1));
}

} // namespace fsdp::rt
