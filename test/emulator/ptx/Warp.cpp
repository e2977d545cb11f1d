//===- Warp.cpp - which lanes of a warp run ------------------------------------------===//

#include "Machine.h"

#include <algorithm>

namespace emulator::ptx {

const std::vector<Special> &specialRegisters() {
  using B = const Block &;
  using U = unsigned;
  static const std::vector<Special> registers = {
      {"%tid.x", [](B b, U t) { return t % b.grid.block.x; }},
      {"%tid.y", [](B b, U t) { return t / b.grid.block.x % b.grid.block.y; }},
      {"%tid.z", [](B b, U t) { return t / b.grid.block.x / b.grid.block.y; }},
      {"%ntid.x", [](B b, U) { return b.grid.block.x; }},
      {"%ntid.y", [](B b, U) { return b.grid.block.y; }},
      {"%ntid.z", [](B b, U) { return b.grid.block.z; }},
      {"%ctaid.x", [](B b, U) { return b.index.x; }},
      {"%ctaid.y", [](B b, U) { return b.index.y; }},
      {"%ctaid.z", [](B b, U) { return b.index.z; }},
      {"%nctaid.x", [](B b, U) { return b.grid.grid.x; }},
      {"%nctaid.y", [](B b, U) { return b.grid.grid.y; }},
      {"%nctaid.z", [](B b, U) { return b.grid.grid.z; }}};
  return registers;
}

Warp::Warp(Block &block, unsigned number)
    : block(block), code(block.code), number_(number), first(number * 32),
      existing(block.size - first >= 32 ? kAllLanes : (Lanes(1) << (block.size - first)) - 1),
      registers(code.registerBytes, '\xff'), predicates(code.predicates, 0xaaaaaaaau) {
  bases[0] = registers.data();
  bases[1] = const_cast<char *>(code.constants.data());
  predicates[kNever] = 0;
  predicates[kAlways] = kAllLanes;
}

void Warp::fail(const Instruction &in, unsigned lane, const std::string &what) {
  actor = lane;
  fault("%s (%s)", what.c_str(), placeOf(*code.module, *in.statement).c_str());
}

Addresses Warp::addressesOf(Ref a, std::int64_t offset) const {
  Addresses addresses;
  addresses.fill(static_cast<std::uint64_t>(offset));
  for (unsigned lane = 0; lane < 32; ++lane)
    addresses[lane] += a.width == 8   ? at<std::uint64_t>(a)[lane]
                       : a.width == 4 ? at<std::uint32_t>(a)[lane]
                                      : 0;
  return addresses;
}

void Warp::begin() {
  for (const auto &[number, ref] : code.specials)
    for (unsigned lane = 0; lane < 32; ++lane)
      at<std::uint32_t>(ref)[lane] = specialRegisters()[number].valueOf(block, first + lane);
  groups.assign(1, {0, existing, false});
  living = existing;
  atBarrier = nullptr;
  products = Products();
  carry = 0;
}

/// Adds lanes at a place, together with those that are there.
void Warp::put(std::uint32_t pc, Lanes lanes, bool waits) {
  if (!lanes)
    return;
  auto at = std::find_if(groups.begin(), groups.end(),
                         [&](const Group &group) { return group.pc >= pc; });
  if (at != groups.end() && at->pc == pc) {
    at->lanes |= lanes;
    at->waits = waits;
  } else {
    groups.insert(at, {pc, lanes, waits});
  }
}

void Warp::end(Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    actor = lane;
    if (const std::size_t pending = block.copies[threadOf(lane)].pending())
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
  if (!groups.empty())
    neverMeet();
  return false;
}

void Warp::neverMeet() {
  std::string text = "lanes of a warp do not meet:";
  for (const Group &group : groups) {
    const Instruction &in = code.instructions[group.pc];
    text += formatted(" the lanes 0x%x wait in %s, %s;", group.lanes,
                      in.statement->spelling.c_str(), placeOf(*code.module, *in.statement).c_str());
  }
  actor = static_cast<unsigned>(__builtin_ctz(groups[0].lanes));
  fault("%s all that live are 0x%x", text.c_str(), living);
}

/// Whether the lanes of a group are all that an instruction of the warp waits for.
bool Warp::mayMeet(const Instruction &in, Lanes lanes) {
  if (in.kind == Kind::Warp)
    return lanes == living;
  const std::string &name = in.statement->opcode();
  bool complete = true;
  each(lanes, [&](unsigned lane) {
    const Lanes mask = at<Lanes>(in.mask)[lane];
    if (!(mask >> lane & 1))
      fail(in, lane,
           formatted("%s: the mask 0x%x lacks the calling lane %u", name.c_str(), mask, lane));
    if (const Lanes gone = mask & existing & ~living)
      fail(in, lane,
           formatted("%s: waits for the lanes 0x%x, which have returned", name.c_str(), gone));
    complete = complete && !(mask & existing & ~lanes);
  });
  return complete;
}

/// While products run, what they write may be moved, and be operands of products.
void Warp::checkResults(const Instruction &in) {
  auto &results = products.results;
  const std::string &name = in.statement->opcode();
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
    reads = reads || isResult(code.lists[in.first + i]);
  if (reads)
    fail(in, actor, name + ": uses a result of wgmma before wgmma.wait_group");
  if (isResult(in.d))
    results.erase(in.d.offset);
}

/// Runs the lanes of a group until they wait, end, branch, or come to where others are. True: all
/// of the warp are at a barrier.
bool Warp::runGroup(std::size_t which) {
  std::uint32_t pc = groups[which].pc;
  const Lanes lanes = groups[which].lanes;
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(which));
  const std::uint32_t limit = which < groups.size() ? groups[which].pc : ~std::uint32_t(0);
  for (bool isFirst = true; isFirst || pc != limit; ++pc, isFirst = false) {
    const Instruction &in = code.instructions[pc];
    Lanes active = lanes;
    if (in.guard >= 0)
      active &= in.isGuardNegated ? ~predicates[std::size_t(in.guard)]
                                  : predicates[std::size_t(in.guard)];
    if (!products.results.empty() && active) {
      actor = static_cast<unsigned>(__builtin_ctz(active));
      checkResults(in);
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
        put(pc, lanes, true);
        return false;
      }
      actor = static_cast<unsigned>(__builtin_ctz(lanes));
      put(pc, lanes, true);
      atBarrier = &in;
      return true;
    }
    if (!mayMeet(in, lanes)) {
      put(pc, lanes, true);
      return false;
    }
    in.run(*this, in, lanes);
  }
  put(pc, lanes);
  return false;
}

} // namespace emulator::ptx
