//===- Table.h - a constant array and its length --------------------------===//
#ifndef FSDP_RUNTIME_PROGRAM_TABLE_H
#define FSDP_RUNTIME_PROGRAM_TABLE_H

#include <cstddef>

namespace fsdp::rt {

/// A view of a constant array, so that a generated program's tables are `constexpr` data:
/// `constexpr const char *names[] = {"compute"}; constexpr Table<const char *> streams(names);`
template <class T> struct Table {
  const T *data = nullptr;
  std::size_t count = 0;

  constexpr Table() = default;
  constexpr Table(const T *data, std::size_t count) : data(data), count(count) {}
  template <std::size_t N> constexpr Table(const T (&array)[N]) : data(array), count(N) {}

  constexpr std::size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr const T *begin() const { return data; }
  constexpr const T *end() const { return data + count; }
  constexpr const T &operator[](std::size_t i) const { return data[i]; }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_TABLE_H
