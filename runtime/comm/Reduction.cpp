#include "runtime/comm/Reduction.h"
#include "base/Error.h"
#include "runtime/device/StreamingStores.h"
#include "runtime/device/Workers.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace fsdp::rt {

using namespace base;

namespace {

struct Sum {
  template <class T> static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) // wraps around, as the hardware does
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
};

struct Max {
  template <class T> static T apply(T a, T b) { return (a < b || b != b) ? b : a; }
};

// t[i] = s[0][i] op s[1][i] op ... for up to four sources, left to right. Each index is read before
// it is written, so t may be one of the sources.
template <class Op, class T> void combine(T *t, const T *const *s, int sources, std::size_t count) {
  const T *a = s[0], *b = s[sources > 1], *c = s[sources > 2 ? 2 : 0], *d = s[sources > 3 ? 3 : 0];
  switch (sources) {
  case 1:
    if (t != a)
      std::memcpy(t, a, count * sizeof(T));
    return;
  case 2:
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i)
      t[i] = Op::apply(a[i], b[i]);
    return;
  case 3:
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i)
      t[i] = Op::apply(Op::apply(a[i], b[i]), c[i]);
    return;
  default:
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i)
      t[i] = Op::apply(Op::apply(Op::apply(a[i], b[i]), c[i]), d[i]);
  }
}

/// Elements that are combined at once: a block stays in the first-level cache.
constexpr std::size_t kBlock = 2048;

template <class Op, class T>
void reduce(T *target, const void *const *sources, int sourceCount, std::size_t begin,
            std::size_t end, bool streams) {
  // More than four sources are summed in a block.
  alignas(64) T sum[kBlock];
  const T *four[4];
  for (std::size_t from = begin; from < end; from += kBlock) {
    std::size_t n = std::min(kBlock, end - from);
    int next = std::min(sourceCount, 4);
    T *last = streams ? sum : target + from;
    for (int s = 0; s < next; ++s)
      four[s] = static_cast<const T *>(sources[s]) + from;
    combine<Op, T>(sourceCount > 4 ? sum : last, four, next, n);
    while (next < sourceCount) {
      int more = std::min(sourceCount - next, 3);
      four[0] = sum;
      for (int s = 0; s < more; ++s)
        four[s + 1] = static_cast<const T *>(sources[next + s]) + from;
      next += more;
      combine<Op, T>(next == sourceCount ? last : sum, four, more + 1, n);
    }
    if (streams)
      streamCopy(target + from, sum, n * sizeof(T));
  }
}

// The sum is in float and rounded once, at the end. All of a block is read before any of it is
// written, so the target may be one of the sources.
template <class Op>
void reduceNarrow(bf16 *target, const void *const *sources, int sourceCount, std::size_t begin,
                  std::size_t end, bool) {
  alignas(64) float sum[kBlock];
  for (std::size_t from = begin; from < end; from += kBlock) {
    const std::size_t n = std::min(kBlock, end - from);
    convert(static_cast<const bf16 *>(sources[0]) + from, n, sum);
    for (int s = 1; s < sourceCount; ++s) {
      const bf16 *source = static_cast<const bf16 *>(sources[s]) + from;
#pragma omp simd
      for (std::size_t i = 0; i < n; ++i)
        sum[i] = Op::apply(sum[i], static_cast<float>(source[i]));
    }
    convert(sum, n, target + from);
  }
}

template <class T>
void reduce(void *target, const void *const *sources, int sourceCount, std::size_t count,
            ReduceOp op) {
  const auto perform = [op] {
    if constexpr (std::is_same_v<T, bf16>)
      return op == ReduceOp::Sum ? reduceNarrow<Sum> : reduceNarrow<Max>;
    else
      return op == ReduceOp::Sum ? reduce<Sum, T> : reduce<Max, T>;
  }();
  // A large sum that replaces no source bypasses the caches.
  const bool streams = count * sizeof(T) >= kStreamingBytes &&
                       std::find(sources, sources + sourceCount, target) == sources + sourceCount;
  forEachPart(count, 1, kBlock, [&](std::size_t begin, std::size_t end) {
    perform(static_cast<T *>(target), sources, sourceCount, begin, end, streams);
  });
}

} // namespace

void reduceInRankOrder(void *target, const void *const *sources, int sourceCount, std::size_t count,
                       DType type, ReduceOp op) {
  switch (type) {
  case DType::F32:
    return reduce<float>(target, sources, sourceCount, count, op);
  case DType::F64:
    return reduce<double>(target, sources, sourceCount, count, op);
  case DType::I32:
    return reduce<std::int32_t>(target, sources, sourceCount, count, op);
  case DType::I64:
    return reduce<std::int64_t>(target, sources, sourceCount, count, op);
  case DType::BF16:
    return reduce<bf16>(target, sources, sourceCount, count, op);
  case DType::Bool:
    break;
  }
  throw Error(format("reduction got elements of type %s, expected f32, f64, bf16, i32 or i64",
                     nameOf(type)));
}

} // namespace fsdp::rt
