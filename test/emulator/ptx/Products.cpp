//===- Products.cpp - wgmma ---------------------------------------------------------------===//

#include "Products.h"
#include "Lanewise.h"

namespace emulator::ptx {

namespace {

/// A matrix of bf16 that a descriptor of 64 bits says, with a swizzle of 128 bytes: an address in
/// shared memory and the distances between blocks of 64 columns and of 8 rows, in units of 16
/// bytes.
struct Descriptor {
  std::uint64_t start, columnBlocks, rowBlocks;
  bool isAcross; ///< its rows are summed over

  /// Where element `column` of what is multiplied with element k of the sum lies.
  std::uint64_t addressOf(unsigned column, unsigned k) const {
    const unsigned row = isAcross ? k : column, along = isAcross ? column : k;
    const std::uint64_t address =
        start + along / 64 * columnBlocks + row / 8 * rowBlocks + row % 8 * 128 + along % 64 * 2;
    return address ^ (address >> 7 & 7) << 4;
  }
};

Descriptor descriptorOf(Warp &warp, const Instruction &in, Ref ref, Lanes lanes, bool isAcross) {
  const auto *own = warp.at<std::uint64_t>(ref);
  const std::uint64_t bits = own[0];
  each(lanes, [&](unsigned lane) {
    if (own[lane] != bits)
      warp.fail(in, lane, "wgmma: lanes have different descriptors");
  });
  if (bits >> 62 != 1 || (bits >> 49 & 7) != 0)
    warp.fail(in, 0,
              formatted("wgmma: got the descriptor %#zx, expected one with a swizzle of 128 bytes "
                        "and without an offset of its base",
                        std::size_t(bits)));
  return {(bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4, isAcross};
}

/// Elements of shared memory that a product reads, each 16 bytes once for each lane.
class Reader {
public:
  Reader(Warp &warp, const Instruction &in, Products::Product &product)
      : warp(warp), in(in), product(product), seen(warp.block.sharedBytes() / 16 + 1) {}

  float read(unsigned lane, std::uint64_t address) {
    const std::uint64_t chunk = address / 16 * 16;
    if (chunk / 16 >= seen.size() || !(seen[chunk / 16] >> lane & 1)) {
      Addresses addresses;
      addresses[lane] = chunk;
      Places at;
      warp.block.access(warp, in, Lanes(1) << lane, Space::Shared, addresses, 16, 0, at);
      seen[chunk / 16] |= Lanes(1) << lane;
      Products::Read read{at[lane], lane, {}};
      std::memcpy(read.had, at[lane], 16);
      product.reads.push_back(read);
    }
    std::uint16_t bits;
    std::memcpy(&bits, warp.block.shared() + address, 2);
    return lowHalf(bits);
  }

private:
  Warp &warp;
  const Instruction &in;
  Products::Product &product;
  std::vector<Lanes> seen; ///< of each 16 bytes, the lanes that have read them
};

/// Registers of d in the list of a product, before those of a.
unsigned resultsOf(const Instruction &in) {
  return in.a.width == Ref::kNone ? in.count - 4 : in.count;
}

/// wgmma.mma_async m64nNk16. The list: N / 2 registers of d, then four of a where they are in
/// registers; else a descriptor in `in.a`. `in.b`: that of b, `in.c` the predicate scale-d, number:
/// 1 where b's rows are summed over.
void multiply(Warp &warp, const Instruction &in, Lanes lanes) {
  Products &products = warp.products;
  if (!products.isBegun)
    warp.fail(in, warp.actor, "wgmma: expected wgmma.fence before it, after the last wait");
  for (unsigned thread = 0; thread < warp.block.size; ++thread)
    if (warp.block.unfenced[thread])
      warp.fail(in, warp.actor,
                formatted("wgmma: expected fence.proxy.async by thread %u of the block, whose "
                          "copies have arrived",
                          thread));
  const Ref *list = &warp.code.lists[in.first];
  const unsigned registers = resultsOf(in), columns = registers * 2;
  Products::Product product{&in, {}, {}};
  Reader reader(warp, in, product);
  float a[16][16]; // by k, then by row
  if (in.a.width == Ref::kNone) {
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t pair = warp.at<std::uint32_t>(list[registers + i])[lane];
        product.registers.push_back(pair);
        const unsigned row = lane / 4 + (i & 1) * 8, k = lane % 4 * 2 + (i >> 1) * 8;
        a[k][row] = lowHalf(pair);
        a[k + 1][row] = highHalf(pair);
      }
  } else {
    const Descriptor left = descriptorOf(warp, in, in.a, lanes, false);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned k = 0; k < 16; ++k)
        a[k][row] =
            reader.read(row % 8 * 4 + k / 4, left.addressOf(warp.number_ % 4 * 16 + row, k));
  }
  const Descriptor right = descriptorOf(warp, in, in.b, lanes, in.number != 0);
  const Lanes adds = warp.predicate(in.c);
  for (unsigned column = 0; column < columns; ++column) {
    float sums[16] = {};
    for (unsigned k = 0; k < 16; ++k) {
      const float b = reader.read(column % 8 / 2 + k % 8 * 4, right.addressOf(column, k));
      for (unsigned row = 0; row < 16; ++row)
        sums[row] += a[k][row] * b;
    }
    for (unsigned row = 0; row < 16; ++row) {
      const unsigned lane = row % 8 * 4 + column % 8 / 2;
      float &d = warp.at<float>(list[column / 8 * 4 + row / 8 * 2 + column % 2])[lane];
      d = adds >> lane & 1 ? d + sums[row] : sums[row];
    }
  }
  ++products.started;
  for (unsigned i = 0; i < registers; ++i)
    products.results[list[i].offset] = products.started;
  products.issued = products.issued * 31 + static_cast<std::uint64_t>(in.statement->line);
  products.running.push_back(std::move(product));
}

void begin(Warp &warp, const Instruction &, Lanes) { warp.products.isBegun = true; }
void commit(Warp &warp, const Instruction &, Lanes) {
  warp.products.groups.push_back(warp.products.running.size());
}

/// What a product has read must still be there, and no other thread may have written it.
void finish(Warp &warp, const Products::Product &product) {
  const Instruction &in = *product.instruction;
  Places at;
  for (const Products::Read &read : product.reads) {
    at[read.lane] = const_cast<char *>(read.at);
    warp.block.noteAccesses(warp, in, Lanes(1) << read.lane, at, 16, 0);
    if (std::memcmp(read.had, read.at, 16) != 0)
      warp.fail(in, read.lane,
                formatted("wgmma: byte %td of the shared memory changed before wgmma.wait_group",
                          read.at - warp.block.shared()));
  }
  const Ref *list = &warp.code.lists[in.first + resultsOf(in)];
  for (unsigned lane = 0; lane < 32 && !product.registers.empty(); ++lane)
    for (unsigned i = 0; i < 4; ++i)
      if (warp.at<std::uint32_t>(list[i])[lane] != product.registers[4 * lane + i])
        warp.fail(in, lane, "wgmma: registers of its operand changed before wgmma.wait_group");
}

void wait(Warp &warp, const Instruction &in, Lanes) {
  Products &products = warp.products;
  products.isBegun = false;
  const auto pending = static_cast<std::size_t>(in.number);
  if (products.groups.size() <= pending)
    return;
  const auto last = products.groups.end() - static_cast<std::ptrdiff_t>(pending) - 1;
  const std::size_t count = *last;
  for (std::size_t i = 0; i < count; ++i)
    finish(warp, products.running[i]);
  products.running.erase(products.running.begin(),
                         products.running.begin() + static_cast<std::ptrdiff_t>(count));
  products.groups.erase(products.groups.begin(), last + 1);
  for (std::size_t &end : products.groups)
    end -= count;
  products.ended += count;
  for (auto at = products.results.begin(); at != products.results.end();)
    at = at->second <= products.ended ? products.results.erase(at) : std::next(at);
}

} // namespace

void addProducts(Rows &rows) {
  rows.add({"wgmma.fence.sync.aligned"}, {begin, "", Kind::Warp});
  rows.add({"wgmma.commit_group.sync.aligned"}, {commit, "", Kind::Warp});
  rows.add({"wgmma.wait_group.sync.aligned"}, {wait, "i", Kind::Warp});
}

bool decodeProduct(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  if (statement.opcode() != "wgmma" || !statement.has("mma_async"))
    return false;
  const std::size_t columns = 2 * decoder.operand(0).parts.size();
  if (columns % 8 || statement.spelling != "wgmma.mma_async.sync.aligned.m64n" +
                                               std::to_string(columns) + "k16.f32.bf16.bf16")
    decoder.refuse("this shape is not supported");
  // Behind scale-d are the signs of a and b, whether a in shared memory has its rows across, which
  // is not supported, and whether b has.
  const bool inRegisters = decoder.operand(1).kind == Operand::Vector;
  decoder.take(inRegisters ? "D4 S4x4 b8 c0 1 1 i" : "D4 a8 b8 c0 1 1 0 i");
  decoder.in.run = multiply;
  decoder.in.kind = Kind::Warp;
  return true;
}

} // namespace emulator::ptx
