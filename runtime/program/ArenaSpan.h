//===- ArenaSpan.h - typed pieces of the arena ----------------------------------===//
//
// The compiler fixes every byte offset, so a buffer is a constant: an offset and a count. A slice
// has no address; a `Context` turns it into one.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_PROGRAM_ARENASPAN_H
#define FSDP_RUNTIME_PROGRAM_ARENASPAN_H

#include "runtime/numerics/BFloat16.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// Element types that collectives and files support.
enum class DType : std::uint8_t { F32, F64, I32, I64, Bool, BF16 };

struct DTypeRow {
  const char *name;
  std::size_t bytes;
};
/// By the number of the type; the last row is that of any other number.
constexpr DTypeRow kDTypes[] = {{"f32", 4},  {"f64", 8},  {"i32", 4}, {"i64", 8},
                                {"bool", 1}, {"bf16", 2}, {"?", 0}};
constexpr const DTypeRow &rowOf(DType type) {
  return kDTypes[type <= DType::BF16 ? static_cast<std::size_t>(type) : 6];
}
template <class T> struct NoDType;

constexpr std::size_t sizeInBytes(DType type) { return rowOf(type).bytes; }
/// "f32", "i64", ...
constexpr const char *nameOf(DType type) { return rowOf(type).name; }

template <class T> constexpr DType dtypeOf = NoDType<T>::value;
template <> inline constexpr DType dtypeOf<float> = DType::F32;
template <> inline constexpr DType dtypeOf<double> = DType::F64;
template <> inline constexpr DType dtypeOf<std::int32_t> = DType::I32;
template <> inline constexpr DType dtypeOf<std::int64_t> = DType::I64;
template <> inline constexpr DType dtypeOf<bool> = DType::Bool;
template <> inline constexpr DType dtypeOf<bf16> = DType::BF16;

/// A slice without its type, for logs and checks.
struct ByteRange {
  std::size_t offset;
  std::size_t bytes;
};

/// `count` elements of type T at `offset` bytes from the start of the arena.
template <class T> struct ArenaSpan {
  std::size_t offset;
  std::size_t count;

  constexpr std::size_t bytes() const { return count * sizeof(T); }
  constexpr std::size_t end() const { return offset + bytes(); }
  constexpr ByteRange range() const { return {offset, bytes()}; }
};

/// Operands of a launch: its kernel gets `const T *` for each, in this order.
template <class... T> struct Reads {
  ByteRange ranges[sizeof...(T) ? sizeof...(T) : 1];
};

/// Results of a launch: its kernel gets `T *` for each, after the operands.
template <class... T> struct Writes {
  ByteRange ranges[sizeof...(T) ? sizeof...(T) : 1];
};

template <class... T> constexpr Reads<T...> reads(ArenaSpan<T>... slices) {
  return {{{slices.offset, slices.bytes()}...}};
}
template <class... T> constexpr Writes<T...> writes(ArenaSpan<T>... slices) {
  return {{{slices.offset, slices.bytes()}...}};
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_ARENASPAN_H
