//===- Shadow.h - which accesses of a launch are ordered --------------------------===//
//
// For every piece of shared and global memory the shadow holds its last write and up to three reads
// or atomic operations since, and when each of them was. Two accesses of different threads conflict
// where one of them is a write and not both are atomic. They are ordered by
//   - a barrier of the block between them, both threads of that block;
//   - __syncwarp between them with both lanes in its mask. Shuffles, votes and matrix instructions
//     do not order memory (CUDA C++ Programming Guide, "Warp shuffle functions": "do not imply a
//     memory barrier");
//   - a fence, an atomic operation, an atomic operation on the same address that comes later, a
//     fence (PTX ISA, "Memory consistency model": release and acquire patterns).
//     __threadfence_block orders threads of a block only.
// Nothing else orders blocks of one launch. A copy in the background (cp.async) writes from its
// start until its thread has waited for it: meanwhile it conflicts with that thread's accesses too.
//
// The first conflict without an order ends the launch, with both places; so does an access of
// shared memory that no variable has, or that the launch did not ask for.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_SHADOW_H
#define FSDP_EMULATOR_SHADOW_H

#include "SharedMemory.h"
#include "vector_types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace emulator {

/// One access of one thread.
struct Access {
  enum Flag : std::uint16_t { Write = 1, Atomic = 2, InFlight = 4 };

  std::uint32_t block = 0; ///< number of the block in the process, 0 for no access
  std::uint32_t epoch = 0; ///< barriers of the block before it
  std::uint16_t thread : 10, flags : 6;
  std::uint16_t clock = 0; ///< of the thread since that barrier
  std::int32_t place = 0;  ///< in the program, relative to an address in it

  Access() : thread(0), flags(0) {}
  bool has(Flag flag) const { return flags & flag; }
  unsigned warp() const { return thread / 32u; }
  unsigned lane() const { return thread % 32u; }
};
static_assert(sizeof(Access) == 16);

/// What a thread knows of accesses at a moment: all of its block before the barrier `epoch`, and of
/// its warp those that the clocks of the lanes cover.
struct View {
  std::uint32_t block, epoch;
  unsigned warp;
  std::array<std::uint16_t, 32> clocks;

  bool covers(const Access &access) const {
    return access.block == block &&
           (access.epoch < epoch || (access.epoch == epoch && access.warp() == warp &&
                                     access.clock <= clocks[access.lane()]));
  }
};

/// A view that a thread of block `from` released by a fence.
struct Released {
  std::shared_ptr<const View> view;
  std::uint32_t from;
  bool device; ///< by __threadfence; false: to threads of its block only
};

class Shadow {
public:
  /// `storage`: what holds the dynamic shared memory, nothing else of which may be accessed.
  /// `fixedShared` may be null: there are no variables of the program's then.
  void beginLaunch(dim3 blockShape, const StaticShared *fixedShared, MemoryRange dynamicShared,
                   MemoryRange storage);
  void beginBlock(uint3 index);
  void barrier();
  void syncWarp(unsigned firstThread, unsigned mask);
  void fence(unsigned thread, bool device);
  /// The error of this access, or "". `place` is an address in the program's code.
  std::string access(unsigned thread, const void *address, std::size_t bytes, unsigned flags,
                     const void *place);
  /// Accesses by lanes of the warp whose first thread this is, at their addresses. `lane`: of the
  /// error.
  std::string access(unsigned first, std::uint32_t lanes, char *const *addresses, std::size_t bytes,
                     unsigned flags, const void *place, unsigned &lane);
  std::string atomic(unsigned thread, const void *address, std::size_t bytes, const void *place);
  /// A copy in the background to here, which `thread` began, is complete.
  void completeCopy(unsigned thread, void *target, std::size_t bytes);

  /// Of places that are no addresses of code: the place that means `number`, and the text of such.
  static const void *placeAt(std::int32_t number);
  std::function<std::string(std::int32_t number)> names;

private:
  static constexpr std::size_t kPage = 4096;
  static constexpr unsigned kSlots = 4; ///< of a cell; the first is for a write that is not atomic
  using Cell = std::array<Access, kSlots>;

  /// The cells of a page, of 2^granule bytes each: of 16 at first, and of fewer once an access is
  /// smaller.
  struct Chunk {
    unsigned granule = 4;
    bool shared = false;
    std::vector<Cell> cells;
  };
  struct Thread {
    std::array<std::uint16_t, 32> clocks;        ///< of its warp's lanes that it knows
    std::vector<Released> known, seen, released; ///< seen: by atomic operations, before a fence
  };
  /// Addresses from `start` on whose accesses need no further look at the ranges.
  struct Span {
    std::uintptr_t start = 0;
    std::size_t bytes = 0;
    Chunk *chunk = nullptr; ///< null: memory of no interest
  };
  struct Cached {
    std::uintptr_t page = 0;
    Chunk *chunk = nullptr; ///< null: memory of no interest
  };

  bool isOutside(std::uintptr_t address, std::size_t bytes) const;
  std::string describeOutside(const Access &now, std::uintptr_t address, std::size_t bytes) const;
  Chunk *newChunk(bool shared);
  Chunk *chunkOf(std::uintptr_t address, std::size_t &offset);
  Span spanOf(std::uintptr_t address);
  Chunk *chunkOfPage(std::uintptr_t page);
  void refine(Chunk &chunk, unsigned granule);
  bool isPast(const Access &access, bool shared) const;
  bool isOrdered(const Access &before, unsigned thread) const;
  const Access *visit(Cell &cell, const Access &now, bool shared, bool keeps);
  const Access *visit(Chunk &chunk, std::size_t offset, std::size_t bytes, const Access &now,
                      bool keeps);
  void keep(Cell &cell, const Access &now, bool shared);
  Access now(unsigned thread, unsigned flags, const void *place) const;
  View viewOf(unsigned thread) const;
  std::string describe(const Access &before, const Access &now, std::uintptr_t address,
                       std::size_t bytes) const;
  std::string nameOf(const Access &access) const;
  std::string placeOf(const Access &access) const;

  dim3 shape;
  unsigned size = 0;
  const StaticShared *variables = nullptr; ///< those of `fixed`
  MemoryRange fixed, dynamic, dynamicStorage;
  std::uint32_t firstBlock = 1, block = 0, epoch = 0;
  std::vector<uint3> blocks; ///< of this launch, in the order in which they run
  std::vector<Thread> threads;
  bool anyReleased = false; ///< in this launch
  std::unordered_map<std::uintptr_t, std::vector<Released>> atomics, sharedAtomics;

  std::vector<std::unique_ptr<Chunk>> pool;
  std::size_t used = 0; ///< chunks of the pool
  std::vector<Chunk *> fixedChunks, dynamicChunks;
  std::unordered_map<std::uintptr_t, Chunk *> pages;
  std::vector<Cached> cache;
  unsigned turn = 0;
};

/// Whether code of this program reports its memory accesses (RaceCallbacks.cpp).
extern bool accessesAreVisible;
/// An access of code, of the calling thread of the kernel that runs with `races`.
void noteAccess(const void *address, std::size_t bytes, bool write, const void *place);
/// False outside of a kernel that runs with `races`.
extern __thread bool shadowIsActive;
/// Where the stack of the thread of the kernel ends that runs now: local memory, which no other
/// thread reaches.
extern __thread std::uintptr_t endOfLocalMemory;

} // namespace emulator

#endif // FSDP_EMULATOR_SHADOW_H
