//===- SharedMemory.h - shared memory of the blocks that a thread runs ------------===//
//
// Variables declared with `__shared__` have a gap before each of them (Device.h), and dynamic
// shared memory ends where a page without access begins. With `races` an access outside of a
// variable, or of the bytes that the launch asked for, fails at its place (Shadow.h). Without, a
// write into a gap is found when the launch ends, and an access beyond the dynamic part raises a
// signal.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_SHAREDMEMORY_H
#define FSDP_EMULATOR_SHAREDMEMORY_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulator {

struct MemoryRange {
  char *start = nullptr;
  std::size_t bytes = 0;
  bool holds(std::uintptr_t address, std::size_t &offset) const {
    offset = address - reinterpret_cast<std::uintptr_t>(start);
    return offset < bytes;
  }
};

/// The calling thread's copy of the section of all variables that are declared with `__shared__`.
class StaticShared {
public:
  /// Throws std::runtime_error where the section cannot be found.
  StaticShared();
  MemoryRange range() const { return section_; }
  /// Fills all variables.
  void poison();
  /// Whether all of these bytes of the section are of one variable. True where the program has no
  /// symbol table.
  bool areOfOneVariable(std::size_t offset, std::size_t bytes) const {
    return owners_.empty() || (offset + bytes <= owners_.size() && owners_[offset] != 0 &&
                               owners_[offset] == owners_[offset + bytes - 1]);
  }
  /// Where these bytes of the section are, which are not of one variable: "behind a or before b",
  /// the variables on both sides, or on one at the section's ends.
  std::string describeOutside(std::size_t offset, std::size_t bytes) const;
  /// Whether a gap was written since the last call, and which, as describeOutside says it.
  bool isGapWritten(std::string &where);

private:
  struct Part {
    std::size_t offset, bytes;
  };
  MemoryRange section_;
  std::vector<std::string> names_;    ///< of variables, mangled; owner n is names_[n - 1]
  std::vector<std::uint16_t> owners_; ///< of each byte: the variable's number, 0 for a gap
  std::vector<Part> variables_, gaps_;
};

/// Memory for the dynamic part of a block, which grows as launches ask for it.
class DynamicShared {
public:
  DynamicShared() = default;
  ~DynamicShared();
  DynamicShared(const DynamicShared &) = delete;
  /// `bytes` bytes, aligned to kAlignment, which end less than kAlignment bytes before 1 MiB
  /// without access. Throws std::bad_alloc.
  MemoryRange reserve(std::size_t bytes);
  /// All that is mapped, with what has no access on both sides.
  MemoryRange mapping() const { return mapping_; }
  /// Whether the bytes between the reserved ones and that were written since `reserve`.
  bool isEndWritten() const;

private:
  static constexpr std::size_t kAlignment = 1024, kPage = 4096, kGuard = 1 << 20;
  MemoryRange mapping_, reserved_;
};

} // namespace emulator

#endif // FSDP_EMULATOR_SHAREDMEMORY_H
