//===- Shadow.cpp - which accesses of a launch are ordered ------------------------===//

#include "Shadow.h"

#include "Failure.h"
#include "Memory.h"
#include "Symbols.h"

#include <algorithm>

namespace emulator {

bool accessesAreVisible = false;
__thread bool shadowIsActive = false;
__thread std::uintptr_t endOfLocalMemory = 0;

namespace {
/// Places are kept relative to this.
std::uintptr_t anchor() { return reinterpret_cast<std::uintptr_t>(&accessesAreVisible); }

bool isReleasedBefore(const Released &a, const Released &b) {
  return a.view->block < b.view->block;
}

void addAll(std::vector<Released> &to, const std::vector<Released> &from) {
  for (const Released &one : from)
    if (std::none_of(to.begin(), to.end(), [&](const Released &other) {
          return other.view == one.view && other.device == one.device && other.from == one.from;
        }))
      to.insert(std::upper_bound(to.begin(), to.end(), one, isReleasedBefore), one);
}

bool covers(const std::vector<Released> &known, const Access &access) {
  auto at = std::lower_bound(
      known.begin(), known.end(), access.block,
      [](const Released &one, std::uint32_t block) { return one.view->block < block; });
  for (; at != known.end() && at->view->block == access.block; ++at)
    if (at->view->covers(access))
      return true;
  return false;
}
} // namespace

void Shadow::beginLaunch(dim3 blockShape, const StaticShared *fixedShared,
                         MemoryRange dynamicShared, MemoryRange storage) {
  shape = blockShape;
  size = shape.x * shape.y * shape.z;
  variables = fixedShared;
  fixed = fixedShared ? fixedShared->range() : MemoryRange();
  dynamic = dynamicShared;
  dynamicStorage = storage;
  firstBlock = block + 1;
  blocks.clear();
  used = 0;
  fixedChunks.assign((fixed.bytes + kPage - 1) / kPage, nullptr);
  dynamicChunks.assign((dynamic.bytes + kPage - 1) / kPage, nullptr);
  pages.clear();
  cache.assign(4096, Cached());
  atomics.clear();
  anyReleased = false;
}

void Shadow::beginBlock(uint3 index) {
  ++block;
  blocks.push_back(index);
  sharedAtomics.clear();
  threads.assign(size, Thread());
  epoch = ~0u;
  barrier();
}

/// All clocks begin again: what was before is known to all threads by the number of the barrier.
void Shadow::barrier() {
  ++epoch;
  std::vector<Released> known;
  if (anyReleased)
    for (const Thread &thread : threads)
      addAll(known, thread.known);
  for (unsigned i = 0; i < size; ++i) {
    threads[i].clocks.fill(0);
    threads[i].clocks[i % 32] = 1;
    if (!known.empty())
      threads[i].known = known;
  }
}

void Shadow::syncWarp(unsigned firstThread, unsigned mask) {
  std::array<std::uint16_t, 32> joined{};
  std::vector<Released> known;
  const unsigned lanes = std::min(32u, size - firstThread);
  for (unsigned lane = 0; lane < lanes; ++lane)
    if (mask >> lane & 1) {
      const Thread &thread = threads[firstThread + lane];
      for (unsigned i = 0; i < 32; ++i)
        joined[i] = std::max(joined[i], thread.clocks[i]);
      if (anyReleased)
        addAll(known, thread.known);
    }
  for (unsigned lane = 0; lane < lanes; ++lane)
    if (mask >> lane & 1) {
      Thread &thread = threads[firstThread + lane];
      thread.clocks = joined;
      ++thread.clocks[lane];
      if (!known.empty())
        thread.known = known;
    }
}

View Shadow::viewOf(unsigned thread) const {
  return {block, epoch, thread / 32, threads[thread].clocks};
}

void Shadow::fence(unsigned thread, bool device) {
  Thread &self = threads[thread];
  std::vector<Released> taken;
  for (const Released &one : self.seen)
    if (one.from == block || (one.device && device))
      taken.push_back(one);
  addAll(self.known, taken);
  anyReleased = true;
  auto &released = self.released;
  released.erase(std::remove_if(released.begin(), released.end(),
                                [&](const Released &one) { return one.device == device; }),
                 released.end());
  std::vector<Released> all{{std::make_shared<View>(viewOf(thread)), block, device}};
  for (const Released &one : self.known)
    all.push_back({one.view, block, device});
  std::sort(all.begin(), all.end(), isReleasedBefore);
  addAll(released, all);
  ++self.clocks[thread % 32]; // what comes is not part of the view
}

std::string Shadow::atomic(unsigned thread, const void *address, std::size_t bytes,
                           const void *place) {
  const std::string wrong = access(thread, address, bytes, Access::Write | Access::Atomic, place);
  if (!wrong.empty() || !anyReleased)
    return wrong;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::size_t offset;
  auto &all = fixed.holds(at, offset) || dynamic.holds(at, offset) ? sharedAtomics : atomics;
  std::vector<Released> &location = all[at];
  addAll(threads[thread].seen, location);
  addAll(location, threads[thread].released);
  return "";
}

Shadow::Chunk *Shadow::newChunk(bool shared) {
  if (used == pool.size())
    pool.push_back(std::make_unique<Chunk>());
  Chunk *chunk = pool[used++].get();
  chunk->granule = 4;
  chunk->shared = shared;
  chunk->cells.assign(kPage >> chunk->granule, Cell());
  return chunk;
}

inline Shadow::Chunk *Shadow::chunkOf(std::uintptr_t address, std::size_t &offset) {
  for (auto [range, chunks] : {std::pair(&dynamic, &dynamicChunks), {&fixed, &fixedChunks}})
    if (range->holds(address, offset)) {
      Chunk *&chunk = (*chunks)[offset / kPage];
      if (!chunk)
        chunk = newChunk(true);
      offset %= kPage;
      return chunk;
    }
  offset = address % kPage;
  const std::uintptr_t page = address / kPage;
  Cached &cached = cache[page % cache.size()];
  if (cached.page != page)
    cached = {page, chunkOfPage(page)};
  return cached.chunk;
}

/// Of memory that CUDA allocated: an allocation has whole pages for itself, and ends less than 256
/// bytes before the last of them does.
Shadow::Chunk *Shadow::chunkOfPage(std::uintptr_t page) {
  const auto [at, isNew] = pages.try_emplace(page, nullptr);
  if (isNew)
    for (std::size_t offset : {kPage - 256, std::size_t(0)})
      if (allocationOf(reinterpret_cast<void *>(page * kPage + offset)).start) {
        at->second = newChunk(false);
        break;
      }
  return at->second;
}

void Shadow::refine(Chunk &chunk, unsigned granule) {
  const unsigned parts = 1u << (chunk.granule - granule);
  std::vector<Cell> finer;
  finer.reserve(chunk.cells.size() * parts);
  for (const Cell &cell : chunk.cells)
    finer.insert(finer.end(), parts, cell);
  chunk.cells = std::move(finer);
  chunk.granule = granule;
}

inline Access Shadow::now(unsigned thread, unsigned flags, const void *place) const {
  Access access;
  access.block = block;
  access.epoch = epoch;
  access.thread = static_cast<std::uint16_t>(thread & 1023);
  access.flags = static_cast<std::uint16_t>(flags & 63);
  access.clock = threads[thread].clocks[thread % 32];
  access.place = static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(place) - anchor());
  return access;
}

/// Whether it was of a block whose shared memory this no longer is, or is none.
[[gnu::always_inline]] inline bool Shadow::isPast(const Access &access, bool shared) const {
  return access.block < (shared ? block : firstBlock);
}

[[gnu::always_inline]] inline bool Shadow::isOrdered(const Access &before, unsigned thread) const {
  if (before.has(Access::InFlight))
    return false;
  const Thread &self = threads[thread];
  if (before.block == block) {
    if (before.thread == thread || before.epoch < epoch)
      return true;
    if (before.warp() == thread / 32 && before.clock <= self.clocks[before.lane()])
      return true;
  }
  return anyReleased && covers(self.known, before);
}

/// A write stands for all before it, as what conflicts with them conflicts with it, or is ordered.
/// Of reads, and of atomic operations, three stay that differ as much as they can: in the block,
/// then in the warp, then in the lane. With no fences, and with warps that synchronize as a whole,
/// a later write that conflicts with any conflicts with one that stays.
[[gnu::always_inline]] inline void Shadow::keep(Cell &cell, const Access &now, bool shared) {
  if (now.has(Access::Write) && !now.has(Access::Atomic)) {
    cell.fill(Access());
    cell[0] = now;
    return;
  }
  for (unsigned i = 1; i < kSlots; ++i)
    if (isPast(cell[i], shared) || (cell[i].has(Access::Atomic) == now.has(Access::Atomic) &&
                                    isOrdered(cell[i], now.thread))) {
      cell[i] = now;
      return;
    }
  unsigned others = 0; // of other blocks
  for (unsigned i = 1; i < kSlots; ++i)
    others += cell[i].block != block;
  if (others > 1) {
    for (unsigned i = 1; i < kSlots; ++i)
      if (cell[i].block != block) {
        cell[i] = now;
        return;
      }
  }
  // Those of this block: two warps say enough.
  unsigned first = 0;
  for (unsigned i = 1; i < kSlots; ++i) {
    if (cell[i].block != block)
      continue;
    if (!first)
      first = i;
    else if (cell[i].warp() == cell[first].warp() && now.warp() != cell[i].warp()) {
      cell[i] = now;
      return;
    }
  }
  if (cell[1].has(Access::Atomic) != cell[2].has(Access::Atomic) ||
      cell[1].has(Access::Atomic) != now.has(Access::Atomic))
    cell[1 + turn++ % (kSlots - 1)] = now;
}

/// The access that conflicts with this one without an order, or null after this one is kept.
[[gnu::always_inline]] inline const Access *Shadow::visit(Cell &cell, const Access &now,
                                                          bool shared, bool keeps) {
  for (const Access &before : cell)
    if ((before.flags | now.flags) & Access::Write && !isPast(before, shared) &&
        !(before.flags & now.flags & Access::Atomic) && !isOrdered(before, now.thread))
      return &before;
  if (keeps)
    keep(cell, now, shared);
  return nullptr;
}

inline bool Shadow::isOutside(std::uintptr_t address, std::size_t bytes) const {
  std::size_t offset;
  if (dynamic.holds(address, offset))
    return bytes > dynamic.bytes - offset;
  if (fixed.holds(address, offset))
    return !variables->areOfOneVariable(offset, bytes);
  return dynamicStorage.holds(address, offset);
}

inline const Access *Shadow::visit(Chunk &chunk, std::size_t offset, std::size_t bytes,
                                   const Access &now, bool keeps) {
  unsigned granule = chunk.granule;
  while ((offset | bytes) & ((std::size_t(1) << granule) - 1))
    --granule;
  if (granule < chunk.granule)
    refine(chunk, granule);
  for (std::size_t i = offset >> granule; i < (offset + bytes) >> granule; ++i)
    if (const Access *before = visit(chunk.cells[i], now, chunk.shared, keeps))
      return before;
  return nullptr;
}

[[gnu::flatten]] std::string Shadow::access(unsigned thread, const void *pointer, std::size_t bytes,
                                            unsigned flags, const void *place) {
  auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::uintptr_t whole = address;
  const std::size_t wholeBytes = bytes;
  const Access here = now(thread, flags, place);
  if (isOutside(address, bytes))
    return describeOutside(here, address, bytes);
  if (here.clock == 0xffff)
    return "more than 65534 calls of __syncwarp between two barriers: not followed by `races`";
  while (bytes) {
    std::size_t offset;
    Chunk *chunk = chunkOf(address, offset);
    const std::size_t part = std::min(bytes, kPage - offset);
    if (chunk)
      if (const Access *before = visit(*chunk, offset, part, here, true))
        return describe(*before, here, whole, wholeBytes);
    address += part;
    bytes -= part;
  }
  return "";
}

/// Of a page of global memory, or of the dynamic shared memory.
Shadow::Span Shadow::spanOf(std::uintptr_t address) {
  std::size_t offset, inRange;
  if (fixed.holds(address, offset) || dynamicStorage.holds(address, offset))
    return {};
  Chunk *chunk = chunkOf(address, offset);
  const bool isDynamic = dynamic.holds(address, inRange);
  return {address - offset, isDynamic ? std::min(kPage, dynamic.bytes - (inRange - offset)) : kPage,
          chunk};
}

/// Of reads of one address by lanes that follow one another two stay: a write that conflicts with
/// one of them conflicts with one of the two.
[[gnu::flatten]] std::string Shadow::access(unsigned first, std::uint32_t lanes,
                                            char *const *addresses, std::size_t bytes,
                                            unsigned flags, const void *place, unsigned &lane) {
  std::uintptr_t previous = 0;
  Access here = now(first, flags, place);
  Span span;
  while (lanes) {
    lane = static_cast<unsigned>(__builtin_ctz(lanes));
    lanes &= lanes - 1;
    const auto address = reinterpret_cast<std::uintptr_t>(addresses[lane]);
    const unsigned thread = first + lane;
    if (address - span.start >= span.bytes)
      span = spanOf(address);
    here.clock = threads[thread].clocks[thread % 32];
    if (flags & Access::Atomic || here.clock == 0xffff || address - span.start >= span.bytes ||
        bytes > span.bytes - (address - span.start)) {
      std::string wrong = flags & Access::Atomic
                              ? atomic(thread, addresses[lane], bytes, place)
                              : access(thread, addresses[lane], bytes, flags, place);
      if (!wrong.empty())
        return wrong;
      continue;
    }
    if (!span.chunk)
      continue;
    here.thread = static_cast<std::uint16_t>(thread & 1023);
    const bool isSame =
        address == previous && lanes && addresses[__builtin_ctz(lanes)] == addresses[lane];
    previous = address;
    if (const Access *before =
            visit(*span.chunk, address - span.start, bytes, here, flags & Access::Write || !isSame))
      return describe(*before, here, address, bytes);
  }
  return "";
}

void Shadow::completeCopy(unsigned thread, void *target, std::size_t bytes) {
  const Access done = now(thread, Access::Write, nullptr);
  auto address = reinterpret_cast<std::uintptr_t>(target);
  for (const std::uintptr_t end = address + bytes; address < end;) {
    std::size_t offset;
    Chunk *chunk = chunkOf(address, offset);
    Access &write = chunk->cells[offset >> chunk->granule][0];
    const std::int32_t place = write.place;
    write = done;
    write.place = place;
    address += std::uintptr_t(1) << chunk->granule;
  }
}

std::string Shadow::nameOf(const Access &access) const {
  const unsigned t = access.thread;
  std::string text =
      formatted("thread (%u, %u, %u)", t % shape.x, t / shape.x % shape.y, t / shape.x / shape.y);
  if (access.block != block) {
    const uint3 &index = blocks[access.block - firstBlock];
    text += formatted(" of block (%u, %u, %u)", index.x, index.y, index.z);
  }
  return text;
}

namespace {
const char *verb(const Access &access, bool past) {
  if (access.has(Access::InFlight))
    return past ? "began a copy in the background to" : "begins a copy in the background to";
  if (access.has(Access::Atomic))
    return past ? "changed (atomically)" : "changes (atomically)";
  if (access.has(Access::Write))
    return past ? "wrote" : "writes";
  return past ? "read" : "reads";
}
} // namespace

std::string Shadow::placeOf(const Access &access) const {
  return names ? names(access.place)
               : sourcePlace(anchor() + static_cast<std::intptr_t>(access.place));
}

const void *Shadow::placeAt(std::int32_t number) {
  return reinterpret_cast<const void *>(anchor() + static_cast<std::intptr_t>(number));
}

std::string Shadow::describeOutside(const Access &now, std::uintptr_t address,
                                    std::size_t bytes) const {
  std::size_t offset;
  const std::string where =
      fixed.holds(address, offset)
          ? variables->describeOutside(offset, bytes)
          : formatted("at byte %td of the dynamic shared memory, of which the launch asked for %zu",
                      reinterpret_cast<char *>(address) - dynamic.start, dynamic.bytes);
  return nameOf(now) + formatted(" %s %zu bytes ", verb(now, false), bytes) + where + " (" +
         placeOf(now) + ")";
}

std::string Shadow::describe(const Access &before, const Access &now, std::uintptr_t address,
                             std::size_t bytes) const {
  std::size_t offset;
  std::string where;
  if (dynamic.holds(address, offset))
    where = formatted("byte %zu of the dynamic shared memory", offset);
  else if (fixed.holds(address, offset))
    where = formatted("byte %zu of the static shared memory", offset);
  else {
    const Allocation a = allocationOf(reinterpret_cast<void *>(address));
    where = formatted("byte %zu of an allocation of %zu bytes",
                      static_cast<std::size_t>(address - reinterpret_cast<std::uintptr_t>(a.start)),
                      a.bytes);
  }
  const char *missing = before.has(Access::InFlight) ? ": that copy has not been waited for"
                        : before.block != block      ? ": nothing orders blocks of one launch here"
                                                     : ": no barrier between them";
  return nameOf(now) + formatted(" %s %zu bytes at ", verb(now, false), bytes) + where + " (" +
         placeOf(now) + "), which " + nameOf(before) + " " + verb(before, true) + " (" +
         placeOf(before) + ")" + missing;
}

} // namespace emulator
