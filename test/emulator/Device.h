//===- Device.h - what device code sees ------------------------------------------===//
//
// A block's threads are fibers of the OS thread that runs the grid. They run one after another,
// each as far as the next meeting: a barrier of the block or a function of the warp.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_DEVICE_H
#define FSDP_EMULATOR_DEVICE_H

#include "vector_types.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
// One section holds every shared variable, so that it can be filled with poison before a block,
// with a gap before each of them (SharedMemory.h): one declaration for each variable. gcc cannot
// put variables of templates into a named section.
#ifdef __clang__
#define FSDP_JOIN_NOW(a, b) a##b
#define FSDP_JOIN(a, b) FSDP_JOIN_NOW(a, b)
#define FSDP_IN_SHARED __attribute__((section("fsdp_shared")))
#define __shared__                                                                                 \
  FSDP_IN_SHARED                                                                                   \
  __attribute__((used)) static thread_local char FSDP_JOIN(fsdpGap, __COUNTER__)[128];             \
  FSDP_IN_SHARED static thread_local
#else
#define __shared__ static thread_local
#endif
/// Dynamic shared memory, aligned to 1024 bytes. CUDA's own way to say it, `extern __shared__`, is
/// not C++.
#define FSDP_DYNAMIC_SHARED(type, name)                                                            \
  type *name = static_cast<type *>(::emulator::dynamicShared())

namespace emulator {

void *dynamicShared();

/// The source location of a synchronization.
struct Site {
  const char *what, *file;
  int line;
};
/// Meets all threads of the block.
void meetBlock(Site site);
/// Meets all threads of the block and returns in how many of them `predicate` holds.
int countInBlock(Site site, bool predicate);
/// Meets the lanes of `mask`. The last to come calls `body` with what each lane brought, null for
/// those that take no part. What lanes bring stays where it is until all have met.
void meetWarp(Site site, unsigned mask, void *mine, void (*body)(void *const lanes[32]));
/// Ends the kernel with a failure that names this thread.
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/// Index of the calling thread in its warp.
unsigned lane();
/// In the body of a function of the warp: what follows accesses memory for this lane.
void actFor(unsigned lane);

/// cp.async: copies into shared memory in the background. Bytes behind `sourceBytes` become zero.
/// Both addresses are multiples of `bytes`.
void copyInBackground(void *to, const void *from, std::size_t bytes, std::size_t sourceBytes);
/// cp.async.commit_group, of the calling thread.
void commitCopies();
/// cp.async.wait_group: for all groups of the calling thread but the last `pendingGroups`.
void waitForCopies(unsigned pendingGroups);

/// A matrix of bf16 in the layout of a wgmma descriptor with a swizzle of 128 bytes: consecutive
/// blocks of 8 rows of 128 bytes, and `columnBlocks` bytes from 64 columns to the next.
struct SharedMatrix {
  const void *start;
  unsigned columnBlocks;
  bool acrossRows; ///< the rows are summed over
};
/// wgmma.mma_async m64nNk16 with N `columns`, of the calling thread's part of d; `a` is four
/// registers, or null where rows of it begin at `inShared`.
void multiplyInBackground(const char *file, int line, float *d, int columns, bool adds,
                          const std::uint32_t *a, const void *inShared, SharedMatrix b);
/// fence.proxy.async; wgmma.fence, commit_group and wait_group.
void fenceSharedWrites();
void beginProducts();
void commitProducts();
void waitForProducts(unsigned pendingGroups);

/// What instrumentation does not see, see Shadow.h.
void noteAtomic(const void *address, std::size_t bytes);
void noteFence(bool device);

struct Shuffle {
  std::uint64_t value, result;
  unsigned from;
};
std::uint64_t shuffle(Site site, unsigned mask, std::uint64_t value, unsigned from);
/// Bit of every lane of the mask in which `predicate` holds.
unsigned ballot(Site site, unsigned mask, bool predicate);

template <class T> T shuffleAs(Site site, unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = shuffle(site, mask, bits, from);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

} // namespace emulator

// Not thread_local: the compiler would ask at every use whether they have been constructed.
extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;
constexpr int warpSize = 32;

#define FSDP_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(FSDP_SITE) { ::emulator::meetBlock({"__syncthreads", file, line}); }
inline int __syncthreads_count(int p, FSDP_SITE) {
  return ::emulator::countInBlock({"__syncthreads_count", file, line}, p != 0);
}
inline int __syncthreads_or(int p, FSDP_SITE) {
  return ::emulator::countInBlock({"__syncthreads_or", file, line}, p != 0) != 0;
}
inline int __syncthreads_and(int p, FSDP_SITE) {
  return ::emulator::countInBlock({"__syncthreads_and", file, line}, p == 0) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, FSDP_SITE) {
  ::emulator::meetWarp({"__syncwarp", file, line}, mask, nullptr, nullptr);
}
template <class T> T __shfl_sync(unsigned mask, T v, int from, int width = 32, FSDP_SITE) {
  const unsigned lane = ::emulator::lane(), low = lane & ~unsigned(width - 1);
  return ::emulator::shuffleAs({"__shfl_sync", file, line}, mask, v,
                               low | (unsigned(from) & unsigned(width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, FSDP_SITE) {
  const unsigned lane = ::emulator::lane(), from = lane ^ unsigned(bits);
  const bool outside = from >= (lane & ~unsigned(width - 1)) + unsigned(width);
  return ::emulator::shuffleAs({"__shfl_xor_sync", file, line}, mask, v, outside ? lane : from);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, FSDP_SITE) {
  const unsigned lane = ::emulator::lane(), low = lane & ~unsigned(width - 1);
  return ::emulator::shuffleAs({"__shfl_down_sync", file, line}, mask, v,
                               lane + by < low + unsigned(width) ? lane + by : lane);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, FSDP_SITE) {
  const unsigned lane = ::emulator::lane(), low = lane & ~unsigned(width - 1);
  return ::emulator::shuffleAs({"__shfl_up_sync", file, line}, mask, v,
                               lane >= low + by ? lane - by : lane);
}
inline unsigned __ballot_sync(unsigned mask, int p, FSDP_SITE) {
  return ::emulator::ballot({"__ballot_sync", file, line}, mask, p != 0);
}
inline int __any_sync(unsigned mask, int p, FSDP_SITE) {
  return ::emulator::ballot({"__any_sync", file, line}, mask, p != 0) != 0;
}
inline int __all_sync(unsigned mask, int p, FSDP_SITE) {
  return ::emulator::ballot({"__all_sync", file, line}, mask, p == 0) == 0;
}
#undef FSDP_SITE

#ifdef FSDP_EMULATOR_RACES
#define FSDP_NOTE_ATOMIC(p) ::emulator::noteAtomic(p, sizeof(*p))
#define FSDP_NOTE_FENCE(device) ::emulator::noteFence(device)
#else
#define FSDP_NOTE_ATOMIC(p) static_cast<void>(0)
#define FSDP_NOTE_FENCE(device) static_cast<void>(0)
#endif

inline void __threadfence() {
  FSDP_NOTE_FENCE(true);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  FSDP_NOTE_FENCE(false);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// Atomics whose result does not depend on the order: there are none of floats.
template <class T> using FsdpInteger = std::enable_if_t<std::is_integral<T>::value, T>;
template <class T> FsdpInteger<T> atomicAdd(T *p, std::common_type_t<T> v) {
  FSDP_NOTE_ATOMIC(p);
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
template <class T> FsdpInteger<T> atomicOr(T *p, std::common_type_t<T> v) {
  FSDP_NOTE_ATOMIC(p);
  return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}
template <class T> FsdpInteger<T> atomicAnd(T *p, std::common_type_t<T> v) {
  FSDP_NOTE_ATOMIC(p);
  return __atomic_fetch_and(p, v, __ATOMIC_RELAXED);
}
template <class T> FsdpInteger<T> atomicExch(T *p, std::common_type_t<T> v) {
  FSDP_NOTE_ATOMIC(p);
  return __atomic_exchange_n(p, v, __ATOMIC_RELAXED);
}
template <class T>
FsdpInteger<T> atomicCAS(T *p, std::common_type_t<T> expected, std::common_type_t<T> v) {
  FSDP_NOTE_ATOMIC(p);
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <class T> FsdpInteger<T> atomicMax(T *p, std::common_type_t<T> v) {
  FSDP_NOTE_ATOMIC(p);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old < v &&
         !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
template <class T> FsdpInteger<T> atomicMin(T *p, std::common_type_t<T> v) {
  FSDP_NOTE_ATOMIC(p);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (v < old &&
         !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}

#undef FSDP_NOTE_ATOMIC
#undef FSDP_NOTE_FENCE

#define FSDP_MIN_MAX(T)                                                                            \
  inline T min(T a, T b) { return b < a ? b : a; }                                                 \
  inline T max(T a, T b) { return a < b ? b : a; }
FSDP_MIN_MAX(int)
FSDP_MIN_MAX(unsigned)
FSDP_MIN_MAX(long)
FSDP_MIN_MAX(unsigned long)
FSDP_MIN_MAX(long long)
FSDP_MIN_MAX(unsigned long long)
#undef FSDP_MIN_MAX
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __saturatef(float a) { return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }

namespace emulator {
template <class To, class From> To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}
} // namespace emulator
inline unsigned __float_as_uint(float x) { return ::emulator::bitsAs<unsigned>(x); }
inline int __float_as_int(float x) { return ::emulator::bitsAs<int>(x); }
inline float __uint_as_float(unsigned x) { return ::emulator::bitsAs<float>(x); }
inline float __int_as_float(int x) { return ::emulator::bitsAs<float>(x); }
inline long long __double_as_longlong(double x) { return ::emulator::bitsAs<long long>(x); }
inline double __longlong_as_double(long long x) { return ::emulator::bitsAs<double>(x); }
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline int __float2int_rn(float x) { return int(rintf(x)); }
inline float __double2float_rn(double x) { return float(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((std::uint64_t(a) * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)(a)*b) >> 64);
}
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> void __stcs(T *p, T v) { *p = v; }
template <class T> void __stcg(T *p, T v) { *p = v; }

#endif // FSDP_EMULATOR_DEVICE_H
