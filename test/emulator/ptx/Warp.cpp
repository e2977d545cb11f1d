//===- Warp.cpp - which lanes of a warp run ------------------------------------------===//

#include "Failure.h"
#include "Machine.h"

#include <algorithm>

namespace emulator::ptx {

Warp::Warp(Block &block, unsigned number)
    : block(block), number_(number), first(number * 32),
      existing(block.size - first >= 32 ? ~Lanes(0) : (Lanes(1) << (block.size - first)) - 1) {
  registers.resize(block.code.registerBytes);
  predicates.resize(block.code.predicates);
  bases[0] = registers.data();
  bases[1] = const_cast<char *>(block.code.constants.data());
}

std::uint64_t Warp::number(Ref ref, unsigned lane) const {
  std::uint64_t bits = 0;
  switch (ref.width) {
  case 0:
    return predicates[ref.offset] >> lane & 1;
  case 2:
    return at<std::uint16_t>(ref)[lane];
  case 4:
    return at<std::uint32_t>(ref)[lane];
  default:
    std::memcpy(&bits, at<std::uint64_t>(ref) + lane, 8);
    return bits;
  }
}

void Warp::setNumber(Ref ref, unsigned lane, std::uint64_t bits) {
  switch (ref.width) {
  case Ref::kNone:
    return;
  case 0:
    return setPredicate(ref, Lanes(1) << lane, bits & 1 ? ~Lanes(0) : 0);
  case 2:
    at<std::uint16_t>(ref)[lane] = static_cast<std::uint16_t>(bits);
    return;
  case 4:
    at<std::uint32_t>(ref)[lane] = static_cast<std::uint32_t>(bits);
    return;
  default:
    at<std::uint64_t>(ref)[lane] = bits;
  }
}

void Warp::begin() {
  std::memset(registers.data(), 0xff, registers.size());
  std::fill(predicates.begin(), predicates.end(), 0xaaaaaaaau);
  predicates[kNever] = 0;
  predicates[kAlways] = ~Lanes(0);
  const dim3 &shape = block.grid.block, &grid = block.grid.grid;
  const auto set = [&](Special special, unsigned lane, std::uint32_t value) {
    reinterpret_cast<std::uint32_t *>(
        registers.data())[32 * static_cast<unsigned>(special) + lane] = value;
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned thread = first + lane, bit = 1u << lane;
    set(Special::TidX, lane, thread % shape.x);
    set(Special::TidY, lane, thread / shape.x % shape.y);
    set(Special::TidZ, lane, thread / shape.x / shape.y);
    set(Special::NtidX, lane, shape.x);
    set(Special::NtidY, lane, shape.y);
    set(Special::NtidZ, lane, shape.z);
    set(Special::NctaX, lane, grid.x);
    set(Special::NctaY, lane, grid.y);
    set(Special::NctaZ, lane, grid.z);
    set(Special::CtaX, lane, block.index.x);
    set(Special::CtaY, lane, block.index.y);
    set(Special::CtaZ, lane, block.index.z);
    set(Special::Lane, lane, lane);
    set(Special::WarpId, lane, number_);
    set(Special::LaneEq, lane, bit);
    set(Special::LaneLt, lane, bit - 1);
    set(Special::LaneLe, lane, bit | (bit - 1));
    set(Special::LaneGt, lane, ~(bit | (bit - 1)));
    set(Special::LaneGe, lane, ~(bit - 1));
    set(Special::DynamicShared, lane, static_cast<std::uint32_t>(block.grid.dynamicBytes));
    set(Special::TotalShared, lane, static_cast<std::uint32_t>(block.sharedBytes()));
  }
  groups.assign(1, {0, existing, false});
  living = existing;
  atBarrier = nullptr;
  products = Products();
  carry = 0;
}

/// Adds lanes at a place, together with those that are there; they run again if those wait.
void Warp::put(std::uint32_t pc, Lanes lanes) {
  if (!lanes)
    return;
  auto at = std::find_if(groups.begin(), groups.end(),
                         [&](const Group &group) { return group.pc >= pc; });
  if (at != groups.end() && at->pc == pc) {
    at->lanes |= lanes;
    at->waits = false;
  } else {
    groups.insert(at, {pc, lanes, false});
  }
}

void Warp::end(Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    actor = lane;
    if (const std::size_t pending = block.pendingCopies(threadOf(lane)))
      fault("returned while %zu of its copies in the background have not been waited for", pending);
  });
  living &= ~lanes;
  if (!products.running.empty())
    fault("returned while %zu products in the background have not been waited for",
          products.running.size());
}

bool Warp::run() {
  if (atBarrier) { // released
    Group released = groups[0];
    atBarrier = nullptr;
    groups.clear();
    put(released.pc + 1, released.lanes);
  }
  for (;;) {
    std::size_t next = 0;
    while (next < groups.size() && groups[next].waits)
      ++next;
    if (next == groups.size())
      break;
    if (runGroup(next))
      return true;
  }
  if (groups.empty())
    return false;
  std::string text = "lanes of a warp do not meet:";
  for (const Group &group : groups) {
    const Instruction &in = block.code.instructions[group.pc];
    text +=
        formatted(" the lanes 0x%x wait in %s, %s;", group.lanes, in.statement->spelling().c_str(),
                  placeOf(*block.code.module, *in.statement).c_str());
  }
  actor = static_cast<unsigned>(__builtin_ctz(groups[0].lanes));
  fault("%s all that live are 0x%x", text.c_str(), living);
}

/// Whether the lanes of a group are all that an instruction of the warp waits for.
bool Warp::mayMeet(const Instruction &in, Lanes lanes) {
  if (in.isAligned)
    return lanes == living;
  bool complete = true;
  each(lanes, [&](unsigned lane) {
    const auto mask = static_cast<Lanes>(number(in.c, lane));
    actor = lane;
    if (!(mask >> lane & 1))
      fault("%s, %s: the mask 0x%x lacks the calling lane %u", in.statement->spelling().c_str(),
            placeOf(*block.code.module, *in.statement).c_str(), mask, lane);
    if (const Lanes gone = mask & existing & ~living)
      fault("%s, %s: waits for the lanes 0x%x, which have returned",
            in.statement->spelling().c_str(), placeOf(*block.code.module, *in.statement).c_str(),
            gone);
    complete = complete && !(mask & existing & ~lanes);
  });
  return complete;
}

/// While products run, what they write may be moved, and be operands of products.
static void checkResults(Warp &warp, const Instruction &in) {
  auto &results = warp.products.results;
  const std::string &name = in.statement->opcode;
  if (name == "wgmma" || in.kind == Kind::Branch || in.kind == Kind::Barrier)
    return;
  const auto isResult = [&](Ref ref) {
    return ref.base == 0 && ref.width != 0 && ref.width != Ref::kNone && results.count(ref.offset);
  };
  bool reads = isResult(in.a) || isResult(in.b) || isResult(in.c) || isResult(in.e);
  if (name == "mov" && !in.count) {
    if (reads)
      results[in.d.offset] = results[in.a.offset];
    else if (in.d.width != 0)
      results.erase(in.d.offset);
    return;
  }
  for (std::uint32_t i = 0; i < in.count; ++i)
    reads = reads || isResult(warp.block.code.lists[in.first + i]);
  if (reads)
    fault("%s, %s: uses a result of wgmma before wgmma.wait_group",
          in.statement->spelling().c_str(),
          placeOf(*warp.block.code.module, *in.statement).c_str());
  if (isResult(in.d))
    results.erase(in.d.offset);
}

/// Runs the lanes of a group until they wait, end, branch, or come to where others are. True: all
/// of the warp are at a barrier.
bool Warp::runGroup(std::size_t which) {
  const std::vector<Instruction> &code = block.code.instructions;
  std::uint32_t pc = groups[which].pc;
  const Lanes lanes = groups[which].lanes;
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(which));
  const std::uint32_t limit = which < groups.size() ? groups[which].pc : ~std::uint32_t(0);
  for (bool isFirst = true; isFirst || pc != limit; ++pc, isFirst = false) {
    const Instruction &in = code[pc];
    Lanes active = lanes;
    if (in.guard >= 0)
      active &= in.isGuardNegated ? ~predicates[std::size_t(in.guard)]
                                  : predicates[std::size_t(in.guard)];
    if (!products.results.empty() && active) {
      actor = static_cast<unsigned>(__builtin_ctz(active));
      checkResults(*this, in);
    }
    switch (in.kind) {
    case Kind::Plain:
      if (active)
        in.run(*this, in, active);
      continue;
    case Kind::Branch:
      if (!active)
        continue;
      put(in.target, active);
      put(pc + 1, lanes & ~active);
      return false;
    case Kind::Exit:
      end(active);
      put(pc + 1, lanes & ~active);
      return false;
    default:
      break;
    }
    if (!active)
      continue;
    if (active != lanes) { // the others go on
      put(pc, active);
      put(pc + 1, lanes & ~active);
      return false;
    }
    if (in.kind == Kind::Barrier) {
      if (lanes != living) {
        put(pc, lanes);
        std::find_if(groups.begin(), groups.end(), [&](const Group &g) {
          return g.pc == pc;
        })->waits = true;
        return false;
      }
      actor = static_cast<unsigned>(__builtin_ctz(lanes));
      put(pc, lanes);
      groups[0].waits = true;
      atBarrier = &in;
      return true;
    }
    if (!mayMeet(in, lanes)) {
      put(pc, lanes);
      std::find_if(groups.begin(), groups.end(), [&](const Group &g) {
        return g.pc == pc;
      })->waits = true;
      return false;
    }
    in.run(*this, in, lanes);
  }
  put(pc, lanes);
  return false;
}

} // namespace emulator::ptx
