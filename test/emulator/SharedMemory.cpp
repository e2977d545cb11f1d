//===- SharedMemory.cpp - shared memory of the blocks that a thread runs ----------===//

#include "SharedMemory.h"

#include "Symbols.h"

#include <algorithm>
#include <cstring>
#include <link.h>
#include <new>
#include <stdexcept>
#include <sys/mman.h>

// Where the linker put the shared variables of all kernels; absent if there are none.
extern "C" __attribute__((weak)) char __start_fsdp_shared[], __stop_fsdp_shared[];

namespace emulator {

namespace {

constexpr char kPoison = char(0xff);

bool isPoison(const char *start, std::size_t bytes) {
  return std::all_of(start, start + bytes, [](char byte) { return byte == kPoison; });
}

} // namespace

#ifdef __clang__
// Behind the last variable: the emulator is linked after the kernels.
__attribute__((section("fsdp_shared"), used)) static thread_local char fsdpGap[128];
#endif

StaticShared::StaticShared() {
  char *first = __start_fsdp_shared, *last = __stop_fsdp_shared;
  if (!first || first == last)
    return;
  section_.bytes = static_cast<std::size_t>(last - first);
  struct Search {
    char *start = nullptr;          ///< of the thread's copy
    std::size_t offsetInThread = 0; ///< of the section, in what a thread has
  } search;
  dl_iterate_phdr(
      [](dl_phdr_info *object, std::size_t, void *data) {
        auto *found = static_cast<Search *>(data);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto &header = object->dlpi_phdr[i];
          char *image = reinterpret_cast<char *>(object->dlpi_addr + header.p_vaddr);
          if (header.p_type != PT_TLS || __start_fsdp_shared < image ||
              __start_fsdp_shared >= image + header.p_memsz)
            continue;
          found->offsetInThread = static_cast<std::size_t>(__start_fsdp_shared - image);
          found->start = static_cast<char *>(object->dlpi_tls_data) + found->offsetInThread;
        }
        return 0;
      },
      &search);
  if (!search.start)
    throw std::runtime_error("found no shared variables of this thread");
  section_.start = search.start;
  std::memset(section_.start, kPoison, section_.bytes);
  std::vector<std::uint16_t> owners(section_.bytes);
  for (const ThreadLocal &variable : sharedVariables()) {
    const std::size_t offset = variable.offset - search.offsetInThread;
    if (variable.offset < search.offsetInThread || offset + variable.bytes > section_.bytes)
      continue; // of another section
    names_.push_back(variable.name);
    variables_.push_back({offset, variable.bytes});
    std::fill_n(owners.begin() + static_cast<std::ptrdiff_t>(offset), variable.bytes,
                static_cast<std::uint16_t>(names_.size()));
  }
  if (names_.empty()) { // no symbol table: one variable
    variables_.push_back({0, section_.bytes});
    return;
  }
  owners_ = std::move(owners);
  for (std::size_t at = 0; at < owners_.size();) {
    std::size_t end = at;
    while (end < owners_.size() && !owners_[end])
      ++end;
    if (end > at)
      gaps_.push_back({at, end - at});
    at = std::max(end, at + 1);
  }
}

void StaticShared::poison() {
  for (const Part &variable : variables_)
    std::memset(section_.start + variable.offset, kPoison, variable.bytes);
}

std::string StaticShared::describeOutside(std::size_t offset, std::size_t bytes) const {
  const auto ownerAt = [&](std::size_t at) { return at < owners_.size() ? owners_[at] : 0; };
  int before = 0, after = 0;
  for (std::size_t at = offset + 1; at-- > 0 && !before;)
    before = ownerAt(at);
  for (std::size_t at = offset + bytes; at < owners_.size() && !after; ++at)
    after = ownerAt(at);
  std::string text;
  for (auto [owner, side] : {std::pair(before, "behind "), {after, "before "}})
    if (owner)
      text += (text.empty() ? "" : " or ") + std::string(side) +
              demangled(names_[static_cast<std::size_t>(owner) - 1]);
  return text.empty() ? "outside of shared variables" : text;
}

bool StaticShared::isGapWritten(std::string &where) {
  for (const Part &gap : gaps_) {
    if (isPoison(section_.start + gap.offset, gap.bytes))
      continue;
    where = describeOutside(gap.offset, gap.bytes);
    std::memset(section_.start + gap.offset, kPoison, gap.bytes);
    return true;
  }
  return false;
}

DynamicShared::~DynamicShared() {
  if (mapping_.start)
    munmap(mapping_.start, mapping_.bytes);
}

MemoryRange DynamicShared::reserve(std::size_t bytes) {
  const std::size_t aligned = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (!mapping_.start || aligned + 2 * kGuard > mapping_.bytes) {
    if (mapping_.start)
      munmap(mapping_.start, mapping_.bytes);
    mapping_ = {};
    const std::size_t pages = (aligned + kPage - 1) / kPage * kPage, needed = pages + 2 * kGuard;
    void *memory = mmap(nullptr, needed, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    mapping_ = {static_cast<char *>(memory), needed};
    mprotect(mapping_.start + kGuard, pages, PROT_READ | PROT_WRITE);
  }
  reserved_ = {mapping_.start + mapping_.bytes - kGuard - aligned, bytes};
  std::memset(reserved_.start + bytes, kPoison, aligned - bytes);
  return reserved_;
}

bool DynamicShared::isEndWritten() const {
  const char *end = reserved_.start + reserved_.bytes;
  return reserved_.start &&
         !isPoison(end, static_cast<std::size_t>(mapping_.start + mapping_.bytes - kGuard - end));
}

} // namespace emulator
