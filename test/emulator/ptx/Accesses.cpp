//===- Accesses.cpp - ld, st, atom, cvta, cp.async and its fence ------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

/// ld of `in.count` numbers M, in one access, to registers R.
template <class M, class R> void load(Warp &warp, const Instruction &in, Lanes lanes) {
  Places at;
  warp.block.access(warp, in, lanes, in.space, warp.addressesOf(in.a, in.offset),
                    sizeof(M) * in.count, 0, at);
  for (std::uint32_t i = 0; i < in.count; ++i) {
    R *d = warp.at<R>(warp.code.lists[in.first + i]);
    each(lanes, [&](unsigned lane) {
      M number;
      std::memcpy(&number, at[lane] + i * sizeof(M), sizeof number);
      d[lane] = static_cast<R>(number); // extended by its sign where it has one
    });
  }
}

template <class M, class R> void store(Warp &warp, const Instruction &in, Lanes lanes) {
  Places at;
  warp.block.access(warp, in, lanes, in.space, warp.addressesOf(in.a, in.offset),
                    sizeof(M) * in.count, Access::Write, at);
  for (std::uint32_t i = 0; i < in.count; ++i) {
    const R *from = warp.at<R>(warp.code.lists[in.first + i]);
    each(lanes, [&](unsigned lane) {
      const M number = static_cast<M>(from[lane]);
      std::memcpy(at[lane] + i * sizeof(M), &number, sizeof number);
    });
  }
}

template <bool isTo> void convertAddress(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    const std::uint64_t address = warp.at<std::uint64_t>(in.a)[lane];
    const unsigned thread = warp.threadOf(lane);
    warp.at<std::uint64_t>(in.d)[lane] = isTo ? warp.block.addressIn(in.space, address, thread)
                                              : warp.block.genericOf(in.space, address, thread);
  });
}

/// atom d, [a], b. Lanes in their order: kernels with sums of floats, which depend on it, are
/// refused.
template <class F, class T> void change(Warp &warp, const Instruction &in, Lanes lanes) {
  Places at;
  warp.block.access(warp, in, lanes, in.space, warp.addressesOf(in.a, in.offset), sizeof(T),
                    Access::Write | Access::Atomic, at);
  each(lanes, [&](unsigned lane) {
    T old;
    std::memcpy(&old, at[lane], sizeof old);
    const T now = F()(old, warp.at<T>(in.b)[lane]);
    std::memcpy(at[lane], &now, sizeof now);
    warp.at<T>(in.d)[lane] = old;
  });
}

template <class T> void addAtomics(Rows &rows, const std::string &type) {
  const auto add = [&](const char *name, auto function) {
    rows.add({name, type}, {change<decltype(function), T>, sizeof(T) == 4 ? "d4 [ b4" : "d8 [ b8"});
  };
  add("atom.add.", [](T old, T b) -> T { return T(std::uint64_t(old) + std::uint64_t(b)); });
  add("atom.min.", [](T old, T b) -> T { return std::min(old, b); });
  add("atom.max.", [](T old, T b) -> T { return std::max(old, b); });
}

/// cp.async [a], [b], bytes, c: c is the number of bytes of the source, 0 for zeros.
void startCopies(Warp &warp, const Instruction &in, Lanes lanes) {
  const auto bytes = static_cast<unsigned>(in.number);
  const Addresses from = warp.addressesOf(in.b, 0);
  Lanes copied = 0;
  each(lanes, [&](unsigned lane) {
    const std::uint32_t sourceBytes = warp.at<std::uint32_t>(in.c)[lane];
    if (sourceBytes && sourceBytes != bytes)
      warp.fail(
          in, lane,
          formatted("cp.async: got %u bytes of source, expected 0 or %u", sourceBytes, bytes));
    if (from[lane] % bytes)
      warp.fail(in, lane,
                formatted("cp.async from %#zx: misaligned, expected a multiple of %u",
                          std::size_t(from[lane]), bytes));
    copied |= Lanes(sourceBytes == bytes) << lane;
  });
  Places at;
  if (copied)
    warp.block.access(warp, in, copied, Space::Global, from, bytes, 0, at);
  warp.block.access(warp, in, lanes, Space::Shared, warp.addressesOf(in.a, in.offset), bytes,
                    Access::Write | Access::InFlight, at);
  each(lanes, [&](unsigned lane) {
    warp.block.copies[warp.threadOf(lane)].start(
        {at[lane], reinterpret_cast<void *>(from[lane]), bytes, copied >> lane & 1 ? bytes : 0});
  });
}
void commitCopies(Warp &warp, const Instruction &, Lanes lanes) {
  each(lanes, [&](unsigned lane) { warp.block.copies[warp.threadOf(lane)].commit(); });
}
void waitForCopies(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    warp.block.waitForCopies(warp.threadOf(lane), static_cast<std::size_t>(in.number));
  });
}
void waitForAllCopies(Warp &warp, const Instruction &in, Lanes lanes) {
  commitCopies(warp, in, lanes); // of those too that are in no group yet
  waitForCopies(warp, in, lanes);
}
void fenceProxy(Warp &warp, const Instruction &, Lanes lanes) {
  each(lanes, [&](unsigned lane) { warp.block.unfenced[warp.threadOf(lane)] = false; });
}

} // namespace

void addAccesses(Rows &rows) {
  rows.add({"cvta.u64"}, {convertAddress<false>, "d8 a8"});
  rows.add({"cvta.to.u64"}, {convertAddress<true>, "d8 a8"});
  addAtomics<std::int32_t>(rows, "s32");
  addAtomics<std::uint32_t>(rows, "u32");
  addAtomics<std::uint64_t>(rows, "u64");
  rows.add({"cp.async.ca"}, {startCopies, "[ b8 i c4"});
  rows.add({"cp.async.cg"}, {startCopies, "[ b8 i c4"});
  rows.add({"cp.async.commit_group"}, {commitCopies, ""});
  rows.add({"cp.async.wait_group"}, {waitForCopies, "i"});
  rows.add({"cp.async.wait_all"}, {waitForAllCopies, ""});
  rows.add({"fence.proxy.async"}, {fenceProxy, ""});
}

bool decodeAccess(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  const bool isLoad = statement.opcode() == "ld";
  if (!isLoad && statement.opcode() != "st")
    return false;
  std::string count = "1";
  for (std::size_t i = 1; i + 1 < statement.parts.size(); ++i) {
    const std::string &part = statement.parts[i];
    if (part == "v2" || part == "v4")
      count = part.substr(1);
    else if (spaceOf(part) == Space::Generic && part != "nc")
      decoder.refuse("the modifier ." + part + " is not supported");
  }
  const std::string &type = statement.type();
  const unsigned bytes = bytesOfType(type);
  if (!bytes)
    decoder.refuse("accesses of ." + type + " are not supported");
  const std::string list = std::to_string(bytes) + "x" + count;
  decoder.take(isLoad ? "D" + list + " [" : "[ S" + list);
  Instruction &in = decoder.in;
  const unsigned width = decoder.code.lists[in.first].width;
  for (std::uint32_t i = 1; i < in.count; ++i)
    if (decoder.code.lists[in.first + i].width != width)
      decoder.refuse("registers of different widths are not supported");
  in.run = ofWidth(bytes, [&](auto m) {
    return ofWidth(width, [&](auto r) -> Instruction::Run {
      using M = decltype(m);
      using Signed = std::make_signed_t<M>;
      return !isLoad          ? store<M, decltype(r)>
             : type[0] == 's' ? load<Signed, decltype(r)>
                              : load<M, decltype(r)>;
    });
  });
  return true;
}

} // namespace emulator::ptx
