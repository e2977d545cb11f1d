//===- Matrices.cpp - mma.sync and ldmatrix
//------------------------------------------------------===//
//
// The layouts of fragments are those of the PTX ISA, "Warp level matrix multiply-accumulate
// instructions": lane = 4 g + t.
//
//===----------------------------------------------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

float lowHalf(std::uint32_t pair) { return bitsOf<float>(pair << 16); }
float highHalf(std::uint32_t pair) { return bitsOf<float>(pair & 0xffff0000u); }

/// mma.m16n8k16 of bf16: registers d0..d3, a0..a3, b0, b1, c0..c3 in the list.
void multiplyBf16(Warp &warp, const Instruction &in, Lanes) {
  const Ref *list = &warp.block.code.lists[in.first];
  float a[16][16], b[8][16], d[16][8];
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
      b[g][2 * t + 8 * i] = lowHalf(pair);
      b[g][2 * t + 8 * i + 1] = highHalf(pair);
    }
  }
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      float sum = 0;
      for (unsigned k = 0; k < 16; ++k)
        sum += a[row][k] * b[column][k];
      d[row][column] = sum;
    }
  // c and d: rows g and g + 8, columns 2t and 2t + 1.
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i)
      warp.at<float>(list[i])[lane] =
          warp.at<float>(list[10 + i])[lane] + d[lane / 4 + (i >> 1) * 8][lane % 4 * 2 + (i & 1)];
}

/// ldmatrix of 8 x 8 matrices of 16 bits: lane l has the address of row l % 8 of matrix l / 8.
void loadMatrices(Warp &warp, const Instruction &in, Lanes lanes) {
  const Ref *to = &warp.block.code.lists[in.first];
  const char *rows[32];
  for (unsigned lane = 0; lane < 8 * in.count; ++lane)
    rows[lane] =
        warp.block.memory(warp, lane, in, Space::Shared,
                          warp.number(in.a, lane) + static_cast<std::uint64_t>(in.offset), 16, 0);
  each(lanes, [&](unsigned lane) {
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < in.count; ++i) {
      std::uint16_t elements[2];
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned row = in.option ? 2 * t + half : g, column = in.option ? g : 2 * t + half;
        const char *from = rows[8 * i + row] + 2 * column;
        warp.block.noteRead(warp, lane, in, from, 2);
        std::memcpy(&elements[half], from, 2);
      }
      warp.at<std::uint32_t>(to[i])[lane] = elements[0] | std::uint32_t(elements[1]) << 16;
    }
  });
}

void append(Decoder &decoder, const Operand &operand, unsigned parts, bool isResult) {
  decoder.list(operand, 4, isResult);
  if (decoder.in.count != parts)
    decoder.refuse("got " + std::to_string(decoder.in.count) + " registers, expected " +
                   std::to_string(parts));
}

} // namespace

bool decodeMatrices(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  if (statement.opcode == "ldmatrix") {
    const unsigned count = statement.has("x4") ? 4 : statement.has("x2") ? 2 : 1;
    if (!statement.has("m8n8") || statement.last() != "b16" ||
        !(statement.has("shared") || statement.has("shared::cta")))
      decoder.refuse("this shape is not supported");
    append(decoder, decoder.operand(0), count, true);
    decoder.address(decoder.operand(1), Space::Shared);
    in.option = statement.has("trans");
    in.run = loadMatrices;
  } else if (statement.opcode == "mma") {
    if (statement.spelling() != "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
      decoder.refuse("this shape is not supported");
    append(decoder, decoder.operand(0), 4, true);
    const std::uint32_t first = in.first;
    append(decoder, decoder.operand(1), 4, false);
    append(decoder, decoder.operand(2), 2, false);
    append(decoder, decoder.operand(3), 4, false);
    in.first = first;
    in.count = 14;
    in.run = multiplyBf16;
  } else {
    return false;
  }
  in.kind = Kind::Warp;
  in.isAligned = true;
  return true;
}

} // namespace emulator::ptx
