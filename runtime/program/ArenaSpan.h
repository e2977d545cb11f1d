//===- ArenaSpan.h - typed pieces of the arena ----------------------------------===//
//
// The compiler fixes every byte offset, so a buffer is a constant: an offset and a count. A slice
// has no address; a `Context` turns it into one.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_PROGRAM_ARENASPAN_H
#define FSDP_RUNTIME_PROGRAM_ARENASPAN_H

#include "runtime/numerics/BFloat16.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// Element types that collectives and files support.
enum class DType : std::uint8_t { F32, F64, I32, I64, Bool, BF16 };

constexpr std::size_t sizeInBytes(DType type) {
  switch (type) {
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::BF16:
    return 2;
  case DType::Bool:
    return 1;
  }
  return 0;
}

/// "f32", "i64", ...
constexpr const char *nameOf(DType type) {
  switch (type) {
  case DType::F32:
    return "f32";
  case DType::F64:
    return "f64";
  case DType::I32:
    return "i32";
  case DType::I64:
    return "i64";
  case DType::Bool:
    return "bool";
  case DType::BF16:
    return "bf16";
  }
  return "?";
}

template <class T> struct DTypeOf;
template <> struct DTypeOf<float> {
  static constexpr DType value = DType::F32;
};
template <> struct DTypeOf<double> {
  static constexpr DType value = DType::F64;
};
template <> struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::I32;
};
template <> struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::I64;
};
template <> struct DTypeOf<bool> {
  static constexpr DType value = DType::Bool;
};
template <> struct DTypeOf<bf16> {
  static constexpr DType value = DType::BF16;
};
template <class T> constexpr DType dtypeOf = DTypeOf<T>::value;

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
  std::array<ByteRange, sizeof...(T)> ranges;
};

/// Results of a launch: its kernel gets `T *` for each, after the operands.
template <class... T> struct Writes {
  std::array<ByteRange, sizeof...(T)> ranges;
};

template <class... T> constexpr Reads<T...> reads(ArenaSpan<T>... slices) {
  return {{{slices.range()...}}};
}
template <class... T> constexpr Writes<T...> writes(ArenaSpan<T>... slices) {
  return {{{slices.range()...}}};
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_ARENASPAN_H
