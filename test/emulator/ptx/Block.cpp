//===- Block.cpp - warps of a block, its barriers, and what its threads may access ----===//

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
  isWritten.assign(sharedSize, 0);
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
  const bool reduces = warps[0]->atBarrier->d.width == 0;
  Lanes any = 0;
  for (auto &warp : warps) {
    const Instruction &own = *warp->atBarrier;
    if ((own.d.width == 0) != reduces)
      stuck();
    if (warp->products.issued != warps[warp->number_ / 4 * 4]->products.issued)
      warp->fail(own, warp->actor, "warps of a group have started different products");
    if (reduces)
      any |= warp->predicate(own.a) & warp->living;
  }
  for (auto &warp : warps)
    if (reduces)
      warp->setPredicate(warp->atBarrier->d, warp->living, any ? kAllLanes : 0);
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
      text += in ? " waits in " + in->statement->spelling + ", " +
                       ptx::placeOf(*code.module, *in->statement)
                 : std::string(" has returned");
      last = in;
    }
  fault("%s", text.c_str());
}

bool Block::isAllocated(std::uint64_t address, std::uint64_t bytes) {
  for (std::size_t i = 0; i < allocations.size(); ++i)
    if (address >= allocations[i].first && address + bytes <= allocations[i].second) {
      if (i)
        std::swap(allocations[i], allocations[i - 1]);
      return true;
    }
  const Allocation found = allocationOf(reinterpret_cast<void *>(address));
  const auto start = reinterpret_cast<std::uint64_t>(found.start);
  if (!found.start || address + bytes > start + found.bytes)
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

/// The number of the variable of shared memory there, or 0.
unsigned Block::ownerOf(std::uint64_t byte) const {
  return byte < code.owners.size()   ? code.owners[byte]
         : byte < code.dynamicOffset ? 0
                                     : Code::kDynamic;
}

/// Checks an access of one lane, and says what is wrong with it.
char *Block::memory(Warp &warp, unsigned lane, const Instruction &in, Space space,
                    std::uint64_t address, unsigned bytes, unsigned flags) {
  const unsigned thread = warp.threadOf(lane);
  const auto refuse = [&](const std::string &what) {
    warp.fail(in, lane,
              formatted("%s of %u bytes at %s", flags & Access::Write ? "write" : "read", bytes,
                        what.c_str()));
  };
  if (address % bytes)
    refuse(formatted("%#zx: misaligned, expected a multiple of %u", std::size_t(address), bytes));
  if (space == Space::Generic) {
    const auto isIn = [&](const char *start, std::size_t length) {
      return address - reinterpret_cast<std::uint64_t>(start) < length;
    };
    space = isIn(sharedStart, sharedSize)                  ? Space::Shared
            : isIn(localMemory.data(), localMemory.size()) ? Space::Local
            : isIn(parameters.data(), parameters.size())   ? Space::Parameter
                                                           : Space::Global;
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
  } else if (space == Space::Parameter) {
    within("parameters'", parameters.size());
    if (flags)
      refuse("a parameter");
  } else if (space == Space::Shared) {
    within("shared", sharedSize);
    if (!ownerOf(address) || ownerOf(address) != ownerOf(address + bytes - 1))
      refuse(formatted("byte %zu of the shared memory, outside of the variables there",
                       std::size_t(address)));
    if (!(flags & Access::Write) && std::memchr(&isWritten[address], 0, bytes))
      refuse(formatted("byte %zu of the shared memory, which nothing has written",
                       std::size_t(address)));
  } else if (std::none_of(code.module->variables.begin(), code.module->variables.end(),
                          [&](const Variable &variable) {
                            return variable.space != Space::Shared &&
                                   std::size_t(at - variable.contents.data()) <
                                       variable.contents.size();
                          }) &&
             !isAllocated(address, bytes)) {
    refuse(formatted("%#zx, which is of no allocation", std::size_t(address)));
  }
  return at;
}

void Block::access(Warp &warp, const Instruction &in, Lanes lanes, Space space,
                   const Addresses &addresses, unsigned bytes, unsigned flags, Places &at) {
  std::uint64_t least = ~std::uint64_t(0), most = 0, bits = 0;
  each(lanes, [&](unsigned lane) {
    least = std::min(least, addresses[lane]);
    most = std::max(most, addresses[lane]);
    bits |= addresses[lane];
  });
  most += bytes;
  const bool isGeneric = space == Space::Generic, isAligned = !(bits & (bytes - 1));
  const std::uint64_t start = space == Space::Shared ? 0 : genericOf(Space::Shared, 0, 0);
  // All lanes at once where they are in one variable of shared memory or in one allocation.
  bool isOne = (isGeneric || space == Space::Shared) && isAligned && most > least &&
               least - start < sharedSize && most - start <= sharedSize && ownerOf(least - start) &&
               ownerOf(least - start) == ownerOf(most - 1 - start);
  if (isOne)
    each(lanes, [&](unsigned lane) {
      at[lane] = sharedStart + (addresses[lane] - start);
      isOne = isOne && (flags & Access::Write ||
                        !std::memchr(&isWritten[addresses[lane] - start], 0, bytes));
    });
  else if (isAligned && (isGeneric || space == Space::Global) && isAllocated(least, most - least))
    each(lanes, [&](unsigned lane) {
      isOne = true;
      at[lane] = reinterpret_cast<char *>(addresses[lane]);
    });
  if (!isOne)
    each(lanes, [&](unsigned lane) {
      at[lane] = memory(warp, lane, in, space, addresses[lane], bytes, flags);
    });
  if (flags & Access::Write)
    each(lanes, [&](unsigned lane) {
      if (const auto offset = static_cast<std::size_t>(at[lane] - sharedStart); offset < sharedSize)
        std::memset(&isWritten[offset], !(flags & Access::InFlight), bytes);
    });
  noteAccesses(warp, in, lanes, at, bytes, flags);
}

void Block::noteAccesses(Warp &warp, const Instruction &in, Lanes lanes, const Places &at,
                         unsigned bytes, unsigned flags) {
  if (!shadow)
    return;
  const auto place = Shadow::placeAt(static_cast<std::int32_t>(&in - code.instructions.data()));
  const std::string wrong =
      shadow->access(warp.first, lanes, at.data(), bytes, flags, place, warp.actor);
  if (!wrong.empty())
    fault("%s", wrong.c_str());
}

void Block::waitForCopies(unsigned thread, std::size_t pending) {
  copies[thread].wait(pending, [&](const AsyncCopy &copy) {
    unfenced[thread] = true;
    std::memset(&isWritten[static_cast<std::size_t>(static_cast<char *>(copy.to) - sharedStart)],
                true, copy.bytes);
    if (shadow)
      shadow->completeCopy(thread, copy.to, copy.bytes);
  });
}

} // namespace emulator::ptx
