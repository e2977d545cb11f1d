//===- Matrices.cpp - mma.sync and ldmatrix ------------------------------------------------===//
//
// The layouts of fragments are those of the PTX ISA, "Warp level matrix multiply-accumulate
// instructions": lane = 4 g + t.
//
//===----------------------------------------------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

/// mma.m16n8k16 of bf16: registers d0..d3, a0..a3, b0, b1, c0..c3 in the list.
void multiplyBf16(Warp &warp, const Instruction &in, Lanes) {
  const Ref *list = &warp.code.lists[in.first];
  float a[16][16], b[16][8], d[16][8] = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned g = lane / 4, t = lane % 4;
    // a: rows g and g + 8, columns 2t and 2t + 1, then columns 8 on.
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t pair = warp.at<std::uint32_t>(list[4 + i])[lane];
      float *to = &a[g + (i & 1) * 8][2 * t + (i >> 1) * 8];
      to[0] = lowHalf(pair);
      to[1] = highHalf(pair);
    }
    // b: column g, rows 2t and 2t + 1, then rows 8 on.
    for (unsigned i = 0; i < 2; ++i) {
      const std::uint32_t pair = warp.at<std::uint32_t>(list[8 + i])[lane];
      b[2 * t + 8 * i][g] = lowHalf(pair);
      b[2 * t + 8 * i + 1][g] = highHalf(pair);
    }
  }
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned column = 0; column < 8; ++column)
        d[row][column] += a[row][k] * b[k][column];
  // c and d: rows g and g + 8, columns 2t and 2t + 1.
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i)
      warp.at<float>(list[i])[lane] =
          warp.at<float>(list[10 + i])[lane] + d[lane / 4 + (i >> 1) * 8][lane % 4 * 2 + (i & 1)];
}

/// ldmatrix of 8 x 8 matrices of 16 bits: lane l has the address of row l % 8 of matrix l / 8, and
/// gets elements of row l / 4, transposed of the rows 2 (l % 4) and the next one.
template <bool isTransposed> void loadMatrices(Warp &warp, const Instruction &in, Lanes lanes) {
  Places rows, own;
  const Lanes named = in.count == 4 ? kAllLanes : (Lanes(1) << 8 * in.count) - 1;
  warp.block.access(warp, in, named, Space::Shared, warp.addressesOf(in.a, in.offset), 16, 0, rows);
  for (unsigned i = 0; i < in.count; ++i) {
    auto *to = warp.at<std::uint32_t>(warp.code.lists[in.first + i]);
    for (unsigned half = 0; half < (isTransposed ? 2 : 1); ++half) {
      each(lanes, [&](unsigned lane) {
        own[lane] = rows[8 * i + (isTransposed ? lane % 4 * 2 + half : lane / 4)];
      });
      warp.block.noteAccesses(warp, in, lanes, own, 16, 0);
      each(lanes, [&](unsigned lane) {
        std::uint32_t pair = half ? to[lane] : 0;
        if (isTransposed)
          std::memcpy(reinterpret_cast<char *>(&pair) + 2 * half, own[lane] + lane / 4 * 2, 2);
        else
          std::memcpy(&pair, own[lane] + lane % 4 * 4, 4);
        to[lane] = pair;
      });
    }
  }
}

} // namespace

void addMatrices(Rows &rows) {
  const auto add = [&](const char *count, const char *operands) {
    const char *name = "ldmatrix.sync.aligned.m8n8.";
    rows.add({name, count, ".b16"}, {loadMatrices<false>, operands, Kind::Warp});
    rows.add({name, count, ".trans.b16"}, {loadMatrices<true>, operands, Kind::Warp});
  };
  add("x1", "D4x1 [");
  add("x2", "D4x2 [");
  add("x4", "D4x4 [");
  rows.add({"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
           {multiplyBf16, "D4x4 S4x4 S4x2 S4x4", Kind::Warp});
}

} // namespace emulator::ptx
