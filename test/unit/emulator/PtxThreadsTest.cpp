//===- PtxThreadsTest.cpp - memory, branches, warps and blocks of PTX -------------------===//

#include "PtxEvaluation.h"

namespace emulator::ptx {
namespace {

using testing::HasSubstr;

class PtxThreads : public PtxEvaluation {
protected:
  std::vector<std::uint64_t> counted(std::size_t count) {
    std::vector<std::uint64_t> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = i;
    return values;
  }
  /// The failure of a body.
  std::string failureOf(const std::string &body, unsigned threads = 32, bool followsRaces = false,
                        std::size_t dynamicBytes = 0) {
    Text text;
    text.body = body;
    text.threads = threads;
    text.followsRaces = followsRaces;
    text.dynamicBytes = dynamicBytes;
    std::vector<std::uint64_t> out(threads);
    return run(text, counted(threads), out);
  }
};

TEST_F(PtxThreads, LoadAndStoreEveryWidth) {
  Text text;
  text.threads = 1;
  text.declarations = ".const .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};";
  text.body = ".local .align 16 .b8 depot[32]; .shared .align 16 .b8 s[32];\n"
              "ld.global.s8 %r2, [%rd1]; ld.global.u8 %r3, [%rd1]; ld.global.s16 %r4, [%rd1]; "
              "ld.global.v2.u32 {%r5, %r6}, [%rd1+8];\n"
              "mov.u64 %w2, depot; cvta.local.u64 %w3, %w2; st.v4.b32 [%w3+16], {%r2, %r3, %r4, "
              "%r6}; ld.local.v2.u64 {%w4, %w5}, [depot+16];\n"
              "ld.const.u16 %h2, [table+2]; mov.u32 %r9, s; st.shared.v2.u32 [%r9+8], {%r2, %r3}; "
              "ld.shared.u64 %w6, [s+8];\n"
              "st.global.v2.u64 [%rd2], {%w4, %w5}; cvt.u64.u16 %w7, %h2; st.global.u64 [%rd2+16], "
              "%w7; st.global.u64 [%rd2+24], %w6; ret;";
  std::vector<std::uint64_t> out(4);
  ASSERT_EQ(run(text, {0xfe80, 0x0000000700000005}, out), "");
  EXPECT_EQ(out[0], 0x00000080ffffff80u);
  EXPECT_EQ(out[1], 0x00000007fffffe80u);
  EXPECT_EQ(out[2], 0x0403u);
  EXPECT_EQ(out[3], 0x00000080ffffff80u);
}

TEST_F(PtxThreads, ConvertTheLowerBitsOfWiderRegisters) {
  Text text;
  text.body = "add.s64 %w2, %rd3, 0x100000000; cvt.s64.s32 %w3, %w2; add.s64 %rd4, %rd2, %rd3; "
              "st.global.u64 [%rd4], %w3; ret;";
  std::vector<std::uint64_t> out(32);
  ASSERT_EQ(run(text, {0}, out), "");
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], 8 * lane);
}

TEST_F(PtxThreads, BranchesComeTogether) {
  // Each lane loops as often as its number says; then all sum over the warp.
  Text text;
  text.body = "mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
              "again: setp.ge.u32 %p1, %r2, %r1; @%p1 bra done; and.b32 %r4, %r2, 1; setp.eq.u32 "
              "%p2, %r4, 0; @%p2 bra even; add.s32 %r3, %r3, 100; bra next;\n"
              "even: add.s32 %r3, %r3, 1; next: add.s32 %r2, %r2, 1; bra again;\n"
              "done: shfl.sync.bfly.b32 %r5|%p3, %r3, 1, 31, -1; cvt.u64.u32 %w2, %r5; add.s64 "
              "%rd4, %rd2, %rd3; st.global.u64 [%rd4], %w2; ret;";
  std::vector<std::uint64_t> out(32);
  ASSERT_EQ(run(text, {0}, out), "");
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned loops = lane ^ 1;
    EXPECT_EQ(out[lane], loops / 2 * 100 + (loops + 1) / 2) << lane;
  }
}

TEST_F(PtxThreads, CallsFunctions) {
  Text text;
  text.declarations =
      ".func (.param .b32 result) twice(.param .b32 x)\n{\n.reg .b32 %r<4>; .reg .pred %p<2>;\n"
      "ld.param.b32 %r1, [x]; setp.gt.u32 %p1, %r1, 10; @%p1 bra large; add.s32 %r2, %r1, %r1; "
      "st.param.b32 [result], %r2; ret;\n"
      "large: st.param.b32 [result], %r1; ret;\n}\n";
  text.body = "{ .param .b32 param0; st.param.b32 [param0], %r1; .param .b32 retval0; call.uni "
              "(retval0), twice, (param0); ld.param.b32 %r5, [retval0]; }\n"
              "cvt.u64.u32 %w2, %r5; add.s64 %rd4, %rd2, %rd3; st.global.u64 [%rd4], %w2; ret;";
  std::vector<std::uint64_t> out(32);
  ASSERT_EQ(run(text, {0}, out), "");
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane > 10 ? lane : 2 * lane) << lane;
}

TEST_F(PtxThreads, ShuffleByTheModesOfTheIsa) {
  const auto shuffled = [&](const std::string &instruction) {
    Text text;
    text.body = "mov.u32 %r3, 99; " + instruction +
                ";\nselp.u32 %r4, 1000, 0, %p1; add.s32 %r3, %r3, %r4; cvt.u64.u32 %w2, %r3;\n"
                "add.s64 %rd4, %rd2, %rd3; st.global.u64 [%rd4], %w2; ret;";
    std::vector<std::uint64_t> out(32);
    EXPECT_EQ(run(text, {0}, out), "");
    return out;
  };
  const auto down = shuffled("shfl.sync.down.b32 %r3|%p1, %r1, 3, 31, -1");
  const auto up = shuffled("shfl.sync.up.b32 %r3|%p1, %r1, 3, 0, -1");
  const auto index =
      shuffled("shfl.sync.idx.b32 %r3|%p1, %r1, 5, 0x181f, -1"); // segments of 8: 5 of each
  const auto exchange = shuffled("shfl.sync.bfly.b32 %r3|%p1, %r1, 16, 31, -1");
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(down[lane], lane + 3 < 32 ? 1000 + lane + 3 : lane);
    EXPECT_EQ(up[lane], lane >= 3 ? 1000 + lane - 3 : lane);
    EXPECT_EQ(index[lane], 1000 + lane / 8 * 8 + 5);
    EXPECT_EQ(exchange[lane], 1000 + (lane ^ 16));
  }
}

TEST_F(PtxThreads, VoteAndBarrierReduction) {
  Text text;
  text.threads = 64;
  text.body = "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1; vote.sync.ballot.b32 %r3, %p1, -1; "
              "setp.eq.u32 %p2, %r1, 40; bar.red.or.pred %p3, 0, %p2;\n"
              "setp.eq.u32 %p2, %r1, 64; bar.red.or.pred %p4, 0, %p2; selp.u32 %r4, 1, 0, %p3; "
              "selp.u32 %r5, 2, 0, %p4; or.b32 %r4, %r4, %r5; cvt.u64.u32 %w2, %r3; "
              "cvt.u64.u32 %w3, %r4; shl.b64 %w3, %w3, 32; or.b64 %w2, %w2, %w3; add.s64 %rd4, "
              "%rd2, %rd3; st.global.u64 [%rd4], %w2; ret;";
  std::vector<std::uint64_t> out(64);
  ASSERT_EQ(run(text, {0}, out), "");
  for (std::uint64_t value : out)
    EXPECT_EQ(value, 0xaaaaaaaau | std::uint64_t(1) << 32);
}

TEST_F(PtxThreads, AtomicOperationsReturnWhatWas) {
  Text text;
  text.threads = 64;
  text.body = ".shared .align 4 .u32 counter; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 "
              "[counter], 7; bar.sync 0;\n"
              "atom.shared.add.u32 %r2, [counter], 1; atom.global.min.u32 %r3, [%rd1], %r1; "
              "cvt.u64.u32 %w2, %r2; add.s64 %rd4, %rd2, %rd3; st.global.u64 [%rd4], %w2; ret;";
  std::vector<std::uint64_t> out(64);
  ASSERT_EQ(run(text, {5}, out), "");
  std::uint64_t sum = 0;
  for (std::uint64_t value : out)
    sum += value;
  EXPECT_EQ(sum, 64u * 7 + 63 * 64 / 2);
}

TEST_F(PtxThreads, MultiplyMatricesInTheLayoutsOfTheIsa) {
  // a[row][k] = row + 1 + k % 3, b[k][column] = k + 2 column, c[row][column] = 1000 row + column:
  // exact in bf16 and f32.
  const auto a = [](unsigned row, unsigned k) { return static_cast<float>(row + 1 + k % 3); };
  const auto b = [](unsigned k, unsigned column) { return static_cast<float>(k + 2 * column); };
  const auto half = [](float x) { return static_cast<std::uint32_t>(bits(x) >> 16); };
  std::vector<std::uint32_t> words;
  for (unsigned lane = 0; lane < 32; ++lane) {
    // PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": element i of a has
    // row = group (+ 8 for i in 2, 3, 6, 7) and column = 2 thread + i % 2 (+ 8 for i >= 4).
    const unsigned group = lane >> 2, thread = lane % 4;
    for (unsigned i = 0; i < 8; i += 2) {
      const unsigned row = group + (i % 4 >= 2 ? 8 : 0), k = 2 * thread + (i >= 4 ? 8 : 0);
      words.push_back(half(a(row, k)) | half(a(row, k + 1)) << 16);
    }
    // b: row = 2 thread + i % 2 (+ 8 for i >= 2), column = group.
    for (unsigned i = 0; i < 4; i += 2) {
      const unsigned k = 2 * thread + (i >= 2 ? 8 : 0);
      words.push_back(half(b(k, group)) | half(b(k + 1, group)) << 16);
    }
    words.push_back(0), words.push_back(0);
  }
  std::vector<std::uint64_t> in(words.size() / 2);
  std::memcpy(in.data(), words.data(), words.size() * 4);
  Text text;
  text.body = "shl.b64 %w2, %rd3, 2; add.s64 %w2, %rd1, %w2; ld.global.v4.u32 {%r2, %r3, %r4, "
              "%r5}, [%w2]; ld.global.v2.u32 {%r6, %r7}, [%w2+16];\n"
              "mov.f32 %f4, 0f3f800000; mov.f32 %f5, 0f40000000; mov.f32 %f6, 0f40400000; mov.f32 "
              "%f7, 0f40800000;\n"
              "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r2, "
              "%r3, %r4, %r5}, {%r6, %r7}, {%f4, %f5, %f6, %f7};\n"
              "shl.b64 %w3, %rd3, 1; add.s64 %w3, %rd2, %w3; st.global.v4.f32 [%w3], {%f0, %f1, "
              "%f2, %f3}; ret;";
  std::vector<std::uint64_t> out(64);
  ASSERT_EQ(run(text, in, out), "");
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = (lane >> 2) + (i >= 2 ? 8 : 0), column = lane % 4 * 2 + i % 2;
      double expected = i + 1; // c
      for (unsigned k = 0; k < 16; ++k)
        expected += double(a(row, k)) * b(k, column);
      EXPECT_EQ(asFloat(out[lane * 2 + i / 2] >> (32 * (i % 2))), expected) << lane << " " << i;
    }
}

TEST_F(PtxThreads, LoadMatricesPlainAndTransposed) {
  // Element (matrix, row, column) of four 8 x 8 matrices is its number; lane l stores row l % 8 of
  // matrix l / 8.
  for (bool transposed : {false, true}) {
    Text text;
    text.body = ".shared .align 16 .b8 s[512]; shl.b32 %r2, %r1, 3; mov.u32 %r3, s; shl.b32 %r4, "
                "%r1, 4; add.s32 %r3, %r3, %r4; mov.u32 %r5, 0;\n"
                "fill: add.s32 %r6, %r2, %r5; cvt.u16.u32 %h2, %r6; shl.b32 %r7, %r5, 1; add.s32 "
                "%r7, %r3, %r7; st.shared.u16 [%r7], %h2; add.s32 %r5, %r5, 1;\n"
                "setp.lt.u32 %p1, %r5, 8; @%p1 bra fill; bar.warp.sync -1;\n"
                "ldmatrix.sync.aligned.m8n8.x4" +
                std::string(transposed ? ".trans" : "") +
                ".shared.b16 {%r8, %r9, %r10, %r11}, [%r3];\n"
                "shl.b64 %w3, %rd3, 1; add.s64 %w3, %rd2, %w3; st.global.v4.u32 [%w3], {%r8, %r9, "
                "%r10, %r11}; ret;";
    text.followsRaces = true;
    std::vector<std::uint64_t> out(64);
    ASSERT_EQ(run(text, {0}, out), "");
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = lane / 4, column = lane % 4 * 2;
        const auto number = [&](unsigned r, unsigned c) {
          return transposed ? 64 * i + 8 * c + r : 64 * i + 8 * r + c;
        };
        EXPECT_EQ(out[lane * 2 + i / 2] >> (32 * (i % 2)) & 0xffffffff,
                  number(row, column) | number(row, column + 1) << 16)
            << lane << " " << i;
      }
  }
}

const char *const kCopy = ".shared .align 16 .b8 s[256]; mov.u32 %r2, s; shl.b32 %r3, %r1, 3; "
                          "add.s32 %r2, %r2, %r3; add.s64 %w2, %rd1, %rd3;\n"
                          "cp.async.ca.shared.global [%r2], [%w2], 8, %r4;\n";

TEST_F(PtxThreads, CopiesArriveAtTheirWait) {
  Text text;
  text.body = "mov.u32 %r4, 8; setp.eq.u32 %p1, %r1, 3; selp.u32 %r4, 0, %r4, %p1;\n" +
              std::string(kCopy) +
              "cp.async.commit_group; cp.async.wait_group 0; ld.shared.u64 %w3, [%r2]; add.s64 "
              "%rd4, %rd2, %rd3; st.global.u64 [%rd4], %w3; ret;";
  std::vector<std::uint64_t> in(32, 77), out(32);
  ASSERT_EQ(run(text, in, out), "");
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane == 3 ? 0 : 77);
}

TEST_F(PtxThreads, FindsCopiesThatAreNotWaitedFor) {
  const std::string copy = "mov.u32 %r4, 8; " + std::string(kCopy);
  const std::string use = "ld.shared.u64 %w3, [%r2]; cp.async.wait_all; ret;";
  EXPECT_THAT(failureOf(copy + "cp.async.commit_group; cp.async.wait_group 1; " + use),
              HasSubstr("shared memory, which nothing has written"));
  EXPECT_THAT(failureOf(copy + "cp.async.wait_group 0; " + use),
              HasSubstr("shared memory, which nothing has written")); // in no group
  EXPECT_THAT(
      failureOf(copy + "cp.async.commit_group; ret;"),
      HasSubstr("returned while 1 of its copies in the background have not been waited for"));
  EXPECT_THAT(failureOf("mov.u32 %r4, 9; " + std::string(kCopy) + "ret;"),
              HasSubstr("cp.async: got 9 bytes of source, expected 0 or 8"));
}

TEST_F(PtxThreads, NamesThreadAndPlaceOfWrongAccesses) {
  EXPECT_EQ(failureOf("add.s64 %w2, %rd1, %rd3; ld.global.u64 %w3, [%w2+4]; ret;").substr(0, 61),
            "kernel at (nil), block (0, 0, 0): thread (0, 0, 0): read of 8");
  EXPECT_THAT(failureOf("add.s64 %w2, %rd1, %rd3; ld.global.u64 %w3, [%w2+4]; ret;"),
              HasSubstr("misaligned, expected a multiple of 8 (text.ptx:10)"));
  EXPECT_THAT(failureOf("ld.global.u64 %w3, [16]; ret;"),
              HasSubstr("0x10, which is of no allocation"));
  EXPECT_THAT(
      failureOf("shl.b64 %w2, %rd3, 4; add.s64 %w2, %rd1, %w2; ld.global.u64 %w3, [%w2]; ret;"),
      HasSubstr("thread (3, 0, 0): read of 8 bytes")); // the buffer ends before
  EXPECT_THAT(failureOf(".shared .align 4 .b8 s[8]; ld.shared.u32 %r2, [s+4]; ret;"),
              HasSubstr("byte 4 of the shared memory, which nothing has written"));
  EXPECT_THAT(failureOf(".shared .align 4 .b8 s[8]; .shared .align 4 .b8 t[8]; st.shared.u32 "
                        "[s+8], %r1; st.shared.u32 [t], %r1; ret;"),
              HasSubstr("outside of the variables there"));
  EXPECT_THAT(failureOf("st.shared.u32 [dynamic+16], %r1; ret;", 32, false, 16),
              HasSubstr("of the shared memory, of which there are"));
  EXPECT_THAT(failureOf("st.local.u32 [0], %r1; ret;"),
              HasSubstr("of the local memory, of which there are 0"));
  EXPECT_THAT(failureOf("trap;"), HasSubstr("trap (text.ptx:10)"));
}

TEST_F(PtxThreads, FindsRacesAndBarriersThatNotAllReach) {
  const std::string write = ".shared .align 8 .b8 s[512]; mov.u32 %r2, s; shl.b32 %r3, %r1, 3; "
                            "add.s32 %r3, %r2, %r3; st.shared.u64 [%r3], %rd3;\n";
  const std::string read = "xor.b32 %r4, %r1, 32; shl.b32 %r4, %r4, 3; add.s32 %r4, %r2, %r4; "
                           "ld.shared.u64 %w2, [%r4]; ret;";
  EXPECT_EQ(failureOf(write + "bar.sync 0; " + read, 64, true), "");
  EXPECT_THAT(
      failureOf(write + read, 64, true),
      testing::AnyOf(HasSubstr("no barrier between them"), HasSubstr("which nothing has written")));
  const std::string neighbour = "xor.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 3; add.s32 %r4, %r2, %r4; "
                                "ld.shared.u64 %w2, [%r4]; ret;";
  EXPECT_EQ(failureOf(write + "bar.warp.sync -1; " + neighbour, 32, true), "");
  EXPECT_THAT(failureOf(write + neighbour, 32, true), HasSubstr("no barrier between them"));
  EXPECT_THAT(failureOf("setp.lt.u32 %p1, %r1, 32; @%p1 bra away; bar.sync 0; away: ret;", 64),
              HasSubstr("has returned"));
  EXPECT_THAT(failureOf("setp.lt.u32 %p1, %r1, 16; @%p1 bra away; bar.sync 0; away: ret;", 64),
              testing::Not(""));
  EXPECT_THAT(failureOf("setp.lt.u32 %p1, %r1, 16; @%p1 bra away; bar.warp.sync -1; away: ret;"),
              HasSubstr("lanes of a warp do not meet"));
  EXPECT_THAT(
      failureOf("setp.lt.u32 %p1, %r1, 16; @!%p1 bra meet; ret; meet: bar.warp.sync -1; ret;"),
      HasSubstr("waits for the lanes 0xffff, which have returned"));
  EXPECT_THAT(failureOf("setp.lt.u32 %p1, %r1, 16; @%p1 bra away; bar.warp.sync -1; bra end; away: "
                        "bar.warp.sync -1; end: ret;"),
              HasSubstr("lanes of a warp do not meet"));
  EXPECT_THAT(failureOf("bar.warp.sync 1; ret;"), HasSubstr("lacks the calling lane 1"));
}

} // namespace
} // namespace emulator::ptx
