//===- Block.cpp - warps of a block, its barriers, and what its threads may access ----===//

#include "Failure.h"
#include "Machine.h"
#include "Memory.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <numeric>

namespace emulator::ptx {

namespace {
constexpr unsigned char kPoison = 0xff;
constexpr std::size_t kLargest = 1024; ///< alignment of shared memory
} // namespace

void fault(const char *format, ...) {
  char text[2000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  throw Fault{text};
}

Block::Block(const Code &code, const Grid &grid)
    : unfenced(grid.block.x * grid.block.y * grid.block.z), code(code), grid(grid),
      size(grid.block.x * grid.block.y * grid.block.z) {
  sharedSize = code.dynamicOffset + grid.dynamicBytes;
  sharedStorage.resize(sharedSize + 2 * kLargest);
  sharedStart = sharedStorage.data();
  sharedStart += (kLargest - reinterpret_cast<std::uintptr_t>(sharedStart) % kLargest) % kLargest;
  localMemory.resize(code.localBytes * size + 64);
  parameters = grid.parameters;
  copies.resize(size);
  random.seed(grid.seed);
  if (grid.followsRaces) {
    shadow = std::make_unique<Shadow>();
    shadow->names = [&code](std::int32_t place) {
      return ptx::placeOf(*code.module, *code.instructions[std::size_t(place)].statement);
    };
    shadow->beginLaunch(grid.block, nullptr, {sharedStart, sharedSize}, {});
  }
  for (unsigned i = 0; i * 32 < size; ++i)
    warps.push_back(std::make_unique<Warp>(*this, i));
}

const void *Block::placeOf(const Instruction &in) const {
  return Shadow::placeAt(static_cast<std::int32_t>(&in - code.instructions.data()));
}

std::string Block::nameOf(unsigned thread) const {
  const dim3 &b = grid.block;
  return formatted("thread (%u, %u, %u)", thread % b.x, thread / b.x % b.y, thread / b.x / b.y);
}

void Block::runAll() {
  const dim3 &g = grid.grid;
  std::vector<std::uint64_t> order(std::uint64_t(g.x) * g.y * g.z);
  std::iota(order.begin(), order.end(), std::uint64_t(0));
  if (grid.isShuffled)
    std::shuffle(order.begin(), order.end(), random);
  for (std::uint64_t number : order)
    runOne({static_cast<unsigned>(number % g.x), static_cast<unsigned>(number / g.x % g.y),
            static_cast<unsigned>(number / g.x / g.y)});
}

void Block::runOne(uint3 where) {
  index = where;
  std::memset(sharedStart, kPoison, sharedSize);
  isWritten.assign(sharedSize, false);
  unfenced.assign(size, false);
  for (AsyncCopies &copy : copies)
    copy.clear();
  if (shadow)
    shadow->beginBlock(index);
  for (auto &warp : warps)
    warp->begin();
  Warp *current = nullptr;
  try {
    std::vector<Warp *> order;
    for (auto &warp : warps)
      order.push_back(warp.get());
    while (!order.empty()) {
      if (grid.isShuffled)
        std::shuffle(order.begin(), order.end(), random);
      std::vector<Warp *> waiting;
      for (Warp *warp : order) {
        current = warp;
        if (warp->run())
          waiting.push_back(warp);
      }
      if (waiting.empty())
        break;
      current = waiting.front();
      if (waiting.size() < warps.size())
        stuck();
      order = waiting;
      release();
    }
  } catch (Fault &reason) {
    reason.text =
        formatted("kernel %s, block (%u, %u, %u): ", grid.name.c_str(), index.x, index.y, index.z) +
        (current ? nameOf(current->threadOf(current->actor)) + ": " : "") + reason.text;
    throw;
  }
}

/// All warps are at a barrier: they pass it together.
void Block::release() {
  const Instruction &in = *warps[0]->atBarrier;
  unsigned count = 0;
  for (auto &warp : warps) {
    const Instruction &other = *warp->atBarrier;
    if (other.offset != in.offset || other.option != in.option)
      stuck();
    if (warp->products.issued != warps[warp->number_ / 4 * 4]->products.issued)
      fault("%s: warps of a group have started different products",
            ptx::placeOf(*code.module, *other.statement).c_str());
    if (in.option) {
      const Lanes holds = in.isNegated ? ~warp->predicate(other.a) : warp->predicate(other.a);
      count += static_cast<unsigned>(__builtin_popcount(holds & warp->living));
    }
  }
  for (auto &warp : warps) {
    const Instruction &own = *warp->atBarrier;
    each(warp->living, [&](unsigned lane) {
      if (own.option == 1)
        warp->setNumber(own.d, lane, count);
      else if (own.option)
        warp->setNumber(own.d, lane, own.option == 2 ? count == size : count > 0);
    });
  }
  if (shadow)
    shadow->barrier();
}

void Block::stuck() {
  std::string text = "the threads of the block do not meet:";
  unsigned told = 0;
  const Instruction *last = nullptr;
  for (auto &warp : warps)
    if (const Instruction *in = warp->atBarrier; told < 4 && (!told || in != last)) {
      text += (told++ ? "; " : " ") + nameOf(warp->first);
      text += in ? " waits in " + in->statement->spelling() + ", " +
                       ptx::placeOf(*code.module, *in->statement)
                 : std::string(" has returned");
      last = in;
    }
  fault("%s", text.c_str());
}

bool Block::isAllocated(std::uint64_t address, unsigned bytes) {
  for (std::size_t i = 0; i < allocations.size(); ++i)
    if (address >= allocations[i].first && address + bytes <= allocations[i].second) {
      if (i)
        std::swap(allocations[i], allocations[i - 1]);
      return true;
    }
  const Allocation found = allocationOf(reinterpret_cast<void *>(address));
  if (!found.start)
    return false;
  const auto start = reinterpret_cast<std::uint64_t>(found.start);
  if (address + bytes > start + found.bytes)
    return false;
  allocations.insert(allocations.begin(), {start, start + found.bytes});
  return true;
}

std::uint64_t Block::genericOf(Space space, std::uint64_t address, unsigned thread) {
  if (space == Space::Shared)
    return address + reinterpret_cast<std::uint64_t>(sharedStart);
  if (space == Space::Local)
    return address + reinterpret_cast<std::uint64_t>(localMemory.data()) + code.localBytes * thread;
  if (space == Space::Parameter)
    return address + reinterpret_cast<std::uint64_t>(parameters.data());
  return address;
}

std::uint64_t Block::addressIn(Space space, std::uint64_t generic, unsigned thread) {
  return generic - genericOf(space, 0, thread);
}

char *Block::memory(Warp &warp, unsigned lane, const Instruction &in, Space space,
                    std::uint64_t address, unsigned bytes, unsigned flags) {
  const unsigned thread = warp.threadOf(lane);
  const auto refuse = [&](const std::string &what) {
    warp.actor = lane;
    fault("%s of %u bytes at %s (%s)", flags & Access::Write ? "write" : "read", bytes,
          what.c_str(), ptx::placeOf(*code.module, *in.statement).c_str());
  };
  if (address % bytes)
    refuse(formatted("%#zx: misaligned, expected a multiple of %u", std::size_t(address), bytes));
  if (space == Space::Generic) {
    const auto isIn = [&](const char *start, std::size_t length) {
      return address - reinterpret_cast<std::uint64_t>(start) < length;
    };
    if (isIn(sharedStart, sharedSize))
      space = Space::Shared;
    else if (isIn(localMemory.data(), localMemory.size()))
      space = Space::Local;
    else if (isIn(parameters.data(), parameters.size()))
      space = Space::Parameter;
    else
      space = Space::Global;
    address = addressIn(space, address, thread);
  }
  const auto within = [&](const char *name, std::size_t length) {
    if (address >= length || address + bytes > length)
      refuse(formatted("byte %lld of the %s memory, of which there are %zu",
                       static_cast<long long>(address), name, length));
  };
  char *at = reinterpret_cast<char *>(genericOf(space, address, thread));
  if (space == Space::Local) {
    within("local", code.localBytes);
    return at;
  }
  if (space == Space::Parameter) {
    within("parameters'", parameters.size());
    if (flags)
      refuse("a parameter");
    return at;
  }
  if (space == Space::Shared) {
    within("shared", sharedSize);
    const auto ownerOf = [&](std::uint64_t byte) {
      return byte < code.owners.size()   ? code.owners[byte]
             : byte < code.dynamicOffset ? 0
                                         : Code::kDynamic;
    };
    if (!ownerOf(address) || ownerOf(address) != ownerOf(address + bytes - 1))
      refuse(formatted("byte %zu of the shared memory, outside of the variables there",
                       std::size_t(address)));
    const auto first = isWritten.begin() + static_cast<std::ptrdiff_t>(address);
    if (flags & Access::Write)
      std::fill(first, first + bytes, !(flags & Access::InFlight));
    else if (std::find(first, first + bytes, false) != first + bytes)
      refuse(formatted("byte %zu of the shared memory, which nothing has written",
                       std::size_t(address)));
  } else if (space == Space::Global || space == Space::Constant) {
    bool isOfModule = false;
    for (const Variable &variable : code.module->variables)
      isOfModule =
          isOfModule || (variable.space != Space::Shared &&
                         reinterpret_cast<std::uint64_t>(at) -
                                 reinterpret_cast<std::uint64_t>(variable.contents.data()) <
                             variable.contents.size());
    if (isOfModule)
      return at;
    if (!isAllocated(address, bytes))
      refuse(formatted("%#zx, which is of no allocation", std::size_t(address)));
  }
  if (shadow) {
    const std::string wrong = flags & Access::Atomic
                                  ? shadow->atomic(thread, at, bytes, placeOf(in))
                                  : shadow->access(thread, at, bytes, flags, placeOf(in));
    if (!wrong.empty()) {
      warp.actor = lane;
      fault("%s", wrong.c_str());
    }
  }
  return at;
}

void Block::noteRead(Warp &warp, unsigned lane, const Instruction &in, const char *at,
                     unsigned bytes) {
  if (!shadow)
    return;
  const std::string wrong = shadow->access(warp.threadOf(lane), at, bytes, 0, placeOf(in));
  if (!wrong.empty()) {
    warp.actor = lane;
    fault("%s", wrong.c_str());
  }
}

void Block::startCopy(Warp &warp, unsigned lane, const Instruction &in, std::uint64_t to,
                      std::uint64_t from, unsigned bytes, unsigned sourceBytes) {
  const unsigned thread = warp.threadOf(lane);
  if (from % bytes) {
    warp.actor = lane;
    fault("cp.async from %#zx: misaligned, expected a multiple of %u (%s)", std::size_t(from),
          bytes, ptx::placeOf(*code.module, *in.statement).c_str());
  }
  if (sourceBytes) {
    const unsigned part =
        sourceBytes & (0 - sourceBytes); // aligned pieces: the source may be less than the target
    for (unsigned i = 0; i < sourceBytes; i += part)
      memory(warp, lane, in, Space::Global, from + i, part, 0);
  }
  char *target = memory(warp, lane, in, Space::Shared, to, bytes, Access::Write | Access::InFlight);
  copies[thread].start({target, reinterpret_cast<const void *>(from), bytes, sourceBytes});
}

void Block::waitForCopies(unsigned thread, std::size_t pending, bool all) {
  if (all) // wait_all: of those too that are in no group yet
    copies[thread].commit();
  copies[thread].wait(pending, [&](const AsyncCopy &copy) {
    unfenced[thread] = true;
    const auto offset = static_cast<const char *>(copy.to) - sharedStart;
    std::fill_n(isWritten.begin() + offset, copy.bytes, true);
    if (shadow)
      shadow->completeCopy(thread, copy.to, copy.bytes);
  });
}

} // namespace emulator::ptx
