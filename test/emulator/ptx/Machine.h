//===- Machine.h - a warp and its block while a kernel runs -------------------------===//
//
// The lanes of a warp run together where they are at the same instruction. Of those that are not,
// the lanes at the smallest place run, until they come to where others are: code of structured
// loops and branches comes together again where the source does. Lanes that wait, for a barrier or
// for other lanes of their warp, let the others run.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_MACHINE_H
#define FSDP_EMULATOR_PTX_MACHINE_H

#include "AsyncCopies.h"
#include "Code.h"
#include "Failure.h"
#include "Products.h"
#include "Shadow.h"
#include "SharedMemory.h"

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace emulator::ptx {

/// An action of a thread that a device would not perform, without the thread's name.
struct Fault {
  std::string text;
};

using Addresses = std::array<std::uint64_t, 32>; ///< of each lane
using Places = std::array<char *, 32>;

class Warp {
public:
  Warp(Block &block, unsigned number);

  template <class T> T *at(Ref ref) const {
    return reinterpret_cast<T *>(bases[ref.base] + ref.offset);
  }
  Lanes predicate(Ref ref) const { return predicates[ref.offset]; }
  void setPredicate(Ref ref, Lanes lanes, Lanes value) {
    Lanes &old = predicates[ref.offset];
    old = (old & ~lanes) | (value & lanes);
  }
  unsigned threadOf(unsigned lane) const { return first + lane; }
  /// Of an operand [a + offset], in all lanes.
  Addresses addressesOf(Ref a, std::int64_t offset) const;
  /// Ends the kernel: this lane did at `in` what a device would not perform.
  [[noreturn]] void fail(const Instruction &in, unsigned lane, const std::string &what);

  Block &block;
  const Code &code;
  const unsigned number_, first; ///< first thread
  const Lanes existing;          ///< lanes of the block
  unsigned actor = 0;            ///< the lane whose work is done: a fault is of its thread
  Lanes carry = 0;               ///< the condition code of .cc
  Products products;

private:
  friend class Block;
  struct Group {
    std::uint32_t pc;
    Lanes lanes;
    bool waits;
  };
  void begin();
  /// Runs until all lanes have ended or wait. True: all that live are at a barrier.
  bool run();
  bool runGroup(std::size_t index);
  void put(std::uint32_t pc, Lanes lanes, bool waits = false);
  bool mayMeet(const Instruction &instruction, Lanes lanes);
  void end(Lanes lanes);
  void checkResults(const Instruction &in);
  [[noreturn]] void neverMeet();

  char *bases[2];
  std::vector<char> registers;
  std::vector<Lanes> predicates;
  std::vector<Group> groups; ///< in the order of their places
  Lanes living = 0;
  const Instruction *atBarrier = nullptr; ///< all lanes wait at it
};

/// The parts of a launch that Block needs.
struct Grid {
  dim3 grid, block;
  std::size_t dynamicBytes;
  std::vector<char> parameters; ///< as the function declares them
  std::uint64_t seed;
  bool isShuffled, followsRaces;
  std::string name; ///< of the kernel
};

/// One block at a time, with everything that belongs to it.
class Block {
public:
  Block(const Code &code, const Grid &grid);
  /// Throws Fault with the whole text.
  void runAll();

  /// Where addresses of a space are, after the checks of an access with these flags of Access.
  void access(Warp &warp, const Instruction &in, Lanes lanes, Space space,
              const Addresses &addresses, unsigned bytes, unsigned flags, Places &at);
  /// Tells the shadow of accesses.
  void noteAccesses(Warp &warp, const Instruction &in, Lanes lanes, const Places &at,
                    unsigned bytes, unsigned flags);
  std::uint64_t genericOf(Space space, std::uint64_t address, unsigned thread);
  std::uint64_t addressIn(Space space, std::uint64_t generic, unsigned thread) {
    return generic - genericOf(space, 0, thread);
  }

  std::vector<AsyncCopies> copies; ///< of each thread
  void waitForCopies(unsigned thread, std::size_t pending);
  /// Threads whose copies have arrived since their last fence.proxy.async.
  std::vector<bool> unfenced;
  void syncWarp(unsigned firstThread, Lanes lanes) {
    if (shadow)
      shadow->syncWarp(firstThread, lanes);
  }
  const char *shared() const { return sharedStart; }
  std::size_t sharedBytes() const { return sharedSize; }

  const Code &code;
  const Grid &grid;
  const unsigned size; ///< threads
  uint3 index{};       ///< of the block that runs

private:
  void runOne(uint3 index);
  void release();
  char *memory(Warp &warp, unsigned lane, const Instruction &in, Space space, std::uint64_t address,
               unsigned bytes, unsigned flags);
  unsigned ownerOf(std::uint64_t byte) const;
  bool isAllocated(std::uint64_t address, std::uint64_t bytes);
  std::string nameOf(unsigned thread) const;
  [[noreturn]] void stuck();

  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<char> parameters, localMemory;
  std::vector<char> sharedStorage;
  char *sharedStart = nullptr;
  std::size_t sharedSize = 0;
  std::vector<char> isWritten; ///< of each byte of shared memory
  std::unique_ptr<Shadow> shadow;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      allocations; ///< from, to: of the last accesses
  std::mt19937_64 random;
};

/// Ends the kernel for the thread of the warp's `actor`.
[[noreturn]] void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// Calls `work(lane)` for each lane of the mask.
template <class Work> inline void each(Lanes lanes, Work work) {
  if (lanes == kAllLanes) {
    for (unsigned lane = 0; lane < 32; ++lane)
      work(lane);
    return;
  }
  for (; lanes; lanes &= lanes - 1)
    work(static_cast<unsigned>(__builtin_ctz(lanes)));
}

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_MACHINE_H
