//===- PtxInstructionsTest.cpp - what single instructions of PTX compute ----------------===//
//
// Expected numbers are from the PTX ISA's definitions, worked out by hand or by another way to
// compute them.
//
//===----------------------------------------------------------------------===//

#include "PtxEvaluation.h"

#include <cmath>
#include <limits>

namespace emulator::ptx {
namespace {

class PtxInstructions : public PtxEvaluation {};

constexpr std::uint64_t kNan = 0x7fffffff, kInfinity = 0x7f800000, kMinusZero = 0x80000000;

TEST_F(PtxInstructions, AddMultiplyAndDivideIntegers) {
  expect("add.s32 %r9, %r2, %r3", {0x7fffffff, 1}, 0x80000000);
  expect("add.s64 %w9, %w2, -1", {0}, ~std::uint64_t(0));
  expect("sub.s32 %r9, %r2, %r3", {3, 5}, 0xfffffffe);
  expect("add.s16 %h9, %h2, %h3", {0xffff, 2}, 1);
  expect("mul.lo.s32 %r9, %r2, %r3", {0x10001, 0x10001}, 0x20001);
  expect("mul.lo.s64 %w9, %w2, %w3", {std::uint64_t(-3), 7}, std::uint64_t(-21));
  expect("mul.hi.u32 %r9, %r2, %r3", {0xffffffff, 0xffffffff}, 0xfffffffe);
  expect("mul.hi.s32 %r9, %r2, %r3", {0xffffffff, 2}, 0xffffffff);
  expect("mul.hi.u64 %w9, %w2, %w3", {~std::uint64_t(0), ~std::uint64_t(0)}, ~std::uint64_t(1));
  expect("mul.wide.s32 %w9, %r2, 8", {0xfffffffe}, std::uint64_t(-16));
  expect("mul.wide.u32 %w9, %r2, 8", {0xfffffffe}, 0x7fffffff0);
  expect("mad.lo.s32 %r9, %r2, %r3, %r4", {5, 7, 0xffffffff}, 34);
  expect("mad.wide.u32 %w9, %r2, %r3, %w4", {0x80000000, 2, 5}, 0x100000005);
  expect("div.s32 %r9, %r2, %r3", {std::uint64_t(-7), 2}, 0xfffffffd);
  expect("div.u32 %r9, %r2, %r3", {0xfffffff9, 2}, 0x7ffffffc);
  expect("rem.s64 %w9, %w2, %w3", {std::uint64_t(-7), 2}, std::uint64_t(-1));
  expect("rem.u32 %r9, %r2, %r3", {7, 4}, 3);
  expect("min.s32 %r9, %r2, %r3", {0xffffffff, 1}, 0xffffffff);
  expect("max.u32 %r9, %r2, %r3", {0xffffffff, 1}, 0xffffffff);
  expect("neg.s64 %w9, %w2", {5}, std::uint64_t(-5));
  expect("abs.s32 %r9, %r2", {std::uint64_t(-5)}, 5);
}

TEST_F(PtxInstructions, CarryBetweenWords) {
  Text text;
  text.threads = 1;
  text.body = "add.cc.u32 %r2, 0xffffffff, 1; addc.cc.u32 %r3, 0xffffffff, 0; addc.u32 %r4, 5, 0;\n"
              "sub.cc.u32 %r5, 0, 1; subc.u32 %r6, 7, 0;\n"
              "mad.lo.cc.u32 %r7, 0xffffffff, 0xffffffff, 0xffffffff; madc.hi.u32 %r8, 0xffffffff, "
              "0xffffffff, 0;\n"
              "st.global.u32 [%rd2], %r2; st.global.u32 [%rd2+4], %r3; st.global.u32 [%rd2+8], "
              "%r4; st.global.u32 [%rd2+12], %r5;\n"
              "st.global.u32 [%rd2+16], %r6; st.global.u32 [%rd2+20], %r7; st.global.u32 "
              "[%rd2+24], %r8; ret;";
  std::vector<std::uint64_t> out(4);
  ASSERT_EQ(run(text, {0}, out), "");
  EXPECT_EQ(out[0], 0u);                       // 0xffffffff + 1, then 0xffffffff + 0 + 1
  EXPECT_EQ(out[1], 0xffffffff00000006u);      // 5 + the carry; 0 - 1
  EXPECT_EQ(out[2], 0x0000000000000006u);      // 7 - the borrow; 1 + 0xffffffff = 0 with a carry
  EXPECT_EQ(out[3] & 0xffffffff, 0xffffffffu); // 0xfffffffe + the carry
}

TEST_F(PtxInstructions, RoundFloatsOnce) {
  expect("add.rn.f32 %f9, %f2, %f3", {bits(1.0f), bits(0x1p-24f)}, bits(1.0f)); // a tie, to even
  expect("mul.rn.f32 %f9, %f2, %f3", {bits(1 + 0x1p-12f), bits(1 + 0x1p-12f)}, bits(1 + 0x1p-11f));
  expect("fma.rn.f32 %f9, %f2, %f3, %f4",
         {bits(1 + 0x1p-12f), bits(1 + 0x1p-12f), bits(-1 - 0x1p-11f)}, bits(0x1p-24f));
  expect("fma.rm.f32 %f9, %f2, %f3, %f4", {bits(1.0f), bits(1.0f), bits(-0x1p-60f)},
         bits(1 - 0x1p-24f));
  expect("fma.rm.f32 %f9, %f2, %f3, %f4", {bits(1.0f), bits(1.0f), bits(0x1p-24f)}, bits(1.0f));
  expect("sub.rn.f64 %d9, %d2, %d3", {bits(1.0), bits(0x1p-54)}, bits(1.0));
  expect("div.rn.f32 %f9, %f2, %f3", {bits(1.0f), bits(3.0f)}, 0x3eaaaaab);
  expect("rcp.rn.f32 %f9, %f2", {bits(3.0f)}, 0x3eaaaaab);
  expect("sqrt.rn.f64 %d9, %d2", {bits(2.0)}, 0x3ff6a09e667f3bcd);
}

TEST_F(PtxInstructions, TreatNanZeroAndSubnormalNumbersOfFloats) {
  expect("add.rn.f32 %f9, %f2, %f3", {kInfinity, kInfinity | kMinusZero}, kNan);
  expect("add.rn.f32 %f9, %f2, %f3", {1, 1}, 2); // subnormal numbers are kept
  expect("add.ftz.f32 %f9, %f2, %f3", {1, 1}, 0);
  expect("mul.ftz.f32 %f9, %f2, %f3", {bits(-0x1p-100f), bits(0x1p-100f)}, kMinusZero);
  expect("max.f32 %f9, %f2, %f3", {kNan, bits(2.0f)}, bits(2.0f));
  expect("max.f32 %f9, %f2, %f3", {kMinusZero, 0}, 0);
  expect("min.f32 %f9, %f2, %f3", {0, kMinusZero}, kMinusZero);
  expect("neg.f32 %f9, %f2", {0}, kMinusZero);
  expect("abs.f32 %f9, %f2", {bits(-2.0f)}, bits(2.0f));
  expect("copysign.f32 %f9, %f2, %f3", {bits(-1.0f), bits(3.0f)}, bits(-3.0f));
}

TEST_F(PtxInstructions, ApproximateWithinWhatIsDocumented) {
  for (float x : {0.1f, 0.7f, 1.0f, 3.14159f, 10.5f, 100.25f, 12345.678f}) {
    const auto relative = [&](const char *name, double exact, double bound) {
      const double got = asFloat(evaluate(std::string(name) + " %f9, %f2", {bits(x)}));
      EXPECT_LE(std::fabs(got - exact), bound * std::fabs(exact)) << name << " of " << x;
    };
    if (x < 120)
      relative("ex2.approx.ftz.f32", std::exp2(double(x)), 0x1p-22);
    relative("rcp.approx.ftz.f32", 1 / double(x), 0x1p-23);
    relative("sqrt.approx.f32", std::sqrt(double(x)), 0x1p-23);
    relative("rsqrt.approx.f32", 1 / std::sqrt(double(x)), 0x1p-22);
    relative("tanh.approx.f32", std::tanh(double(x)), 0x1p-11);
    EXPECT_LE(
        std::fabs(asFloat(evaluate("lg2.approx.f32 %f9, %f2", {bits(x)})) - std::log2(double(x))),
        std::max(1.0, std::fabs(std::log2(double(x)))) * 0x1p-22);
  }
  expect("ex2.approx.ftz.f32 %f9, %f2", {kMinusZero}, bits(1.0f));
  expect("ex2.approx.ftz.f32 %f9, %f2", {kInfinity | kMinusZero}, 0);
  expect("ex2.approx.ftz.f32 %f9, %f2", {bits(-130.0f)}, 0); // subnormal
  expect("ex2.approx.f32 %f9, %f2", {kNan}, kNan);
  expect("rcp.approx.ftz.f32 %f9, %f2", {kMinusZero}, kInfinity | kMinusZero);
  expect("lg2.approx.f32 %f9, %f2", {0}, kInfinity | kMinusZero);
  expect("lg2.approx.f32 %f9, %f2", {bits(-1.0f)}, kNan);
  expect("rcp.approx.ftz.f64 %d9, %d2", {bits(4.0)}, bits(0.25));
  // Not the nearest number in all cases: who relies on that relies on more than is documented.
  int different = 0;
  for (int i = 1; i < 40; ++i) {
    const float x = 0.37f * static_cast<float>(i);
    different += evaluate("ex2.approx.ftz.f32 %f9, %f2", {bits(x)}) !=
                 bits(static_cast<float>(std::exp2(double(x))));
  }
  EXPECT_GT(different, 5);
}

TEST_F(PtxInstructions, WorkOnBits) {
  expect("and.b32 %r9, %r2, %r3", {0xff00ff, 0xffff}, 0xff);
  expect("or.b64 %w9, %w2, %w3", {1, std::uint64_t(1) << 63}, 0x8000000000000001);
  expect("xor.b32 %r9, %r2, %r3", {0xff, 0xf}, 0xf0);
  expect("not.b32 %r9, %r2", {0xff}, 0xffffff00);
  expect("shl.b32 %r9, %r2, %r3", {1, 31}, 0x80000000);
  expect("shl.b32 %r9, %r2, %r3", {1, 32}, 0);
  expect("shr.s32 %r9, %r2, %r3", {0x80000000, 40}, 0xffffffff);
  expect("shr.u32 %r9, %r2, %r3", {0x80000000, 31}, 1);
  expect("shr.u64 %w9, %w2, %r3", {std::uint64_t(1) << 63, 64}, 0);
  expect("bfi.b32 %r9, %r2, %r3, 8, 4", {0xff, 0}, 0xf00);
  expect("bfi.b32 %r9, %r2, %r3, 16, 16", {0x1234, 0xabcdef01}, 0x1234ef01);
  expect("popc.b32 %r9, %r2", {0xf0f}, 8);
  expect("clz.b32 %r9, %r2", {0x100}, 23);
  expect("clz.b64 %r9, %w2", {0}, 64);
}

TEST_F(PtxInstructions, CompareAndSelect) {
  expect("setp.lt.s32 %p7, %r2, %r3", {0xffffffff, 0}, 1);
  expect("setp.lt.u32 %p7, %r2, %r3", {0xffffffff, 0}, 0);
  expect("setp.eq.s16 %p7, %h2, %h3", {0x10001, 1}, 1);
  expect("setp.lt.f32 %p7, %f2, %f3", {kNan, 0}, 0);
  expect("setp.ne.f32 %p7, %f2, %f3", {kNan, 0}, 0);
  expect("setp.ltu.f32 %p7, %f2, %f3", {kNan, 0}, 1);
  expect("setp.neu.f32 %p7, %f2, %f3", {kNan, kNan}, 1);
  expect("setp.nan.f32 %p7, %f2, %f3", {0, kNan}, 1);
  expect("setp.eq.f32 %p7, %f2, %f3", {0, kMinusZero}, 1);
  expect("and.pred %p7, %p2, %p3", {1, 0}, 0);
  expect("xor.pred %p7, %p2, %p3", {1, 0}, 1);
  expect("not.pred %p7, %p2", {0}, 1);
  expect("mov.pred %p7, -1", {}, 1);
  expect("selp.b32 %r9, %r2, %r3, %p4", {5, 6, 1}, 5);
  expect("selp.f32 %f9, %f2, %f3, %p4", {5, 6, 0}, 6);
}

TEST_F(PtxInstructions, ConvertBetweenTypes) {
  expect("cvt.s64.s32 %w9, %r2", {0xffffffff}, ~std::uint64_t(0));
  expect("cvt.u64.u32 %w9, %r2", {0xffffffff}, 0xffffffff);
  expect("cvt.rn.f32.s32 %f9, %w2", {0x1ffffffff},
         bits(-1.0f)); // of a wider register the lower bits
  expect("cvt.u32.u64 %r9, %w2", {0x123456789}, 0x23456789);
  expect("cvt.s32.s8 %r9, %r2", {0x1ff}, 0xffffffff);
  expect("cvt.rn.f32.s32 %f9, %r2", {0x1000001}, bits(16777216.0f));
  expect("cvt.rn.f64.u64 %d9, %w2", {~std::uint64_t(0)}, bits(18446744073709551616.0));
  expect("cvt.rn.f32.f64 %f9, %d2", {bits(1 + 0x1p-24)}, bits(1.0f));
  expect("cvt.f64.f32 %d9, %f2", {bits(0.5f)}, bits(0.5));
  expect("cvt.rni.s32.f32 %r9, %f2", {bits(2.5f)}, 2);
  expect("cvt.rni.s32.f32 %r9, %f2", {bits(3e9f)}, 0x7fffffff);
  expect("cvt.rzi.s32.f32 %r9, %f2", {bits(-2.9f)}, 0xfffffffe);
  expect("cvt.rzi.u32.f32 %r9, %f2", {bits(-2.9f)}, 0);
  expect("cvt.rzi.s32.f32 %r9, %f2", {kNan}, 0);
  expect("cvt.rni.f64.f64 %d9, %d2", {bits(-1.5)}, bits(-2.0));
  expect("cvt.sat.f32.f32 %f9, %f2", {bits(1.5f)}, bits(1.0f));
  expect("cvt.sat.f32.f32 %f9, %f2", {kNan}, 0);
  expect("cvt.rn.bf16.f32 %h9, %f2", {bits(1 + 0x1p-8f)}, 0x3f80);     // a tie, to even
  expect("cvt.rn.bf16.f32 %h9, %f2", {bits(1 + 3 * 0x1p-8f)}, 0x3f82); // and the other way
  expect("cvt.rn.bf16.f32 %h9, %f2", {kInfinity + 1}, 0x7fff);
  expect("cvt.rn.bf16x2.f32 %r9, %f2, %f3", {bits(1.0f), bits(2.0f)},
         0x3f804000); // the first is the upper half
  expect("mov.b32 %r9, {%h2, %h3}", {0x1111, 0x2222}, 0x22221111);
  expect("mov.b64 %w9, {%r2, %r3}", {1, 2}, 0x200000001);
}

TEST_F(PtxInstructions, RefuseUnsupportedText) {
  const auto refusal = [&](const std::string &body, const std::string &declarations = "") {
    Text text;
    text.declarations = declarations;
    text.body = body;
    std::vector<std::uint64_t> out(1);
    try {
      run(text, {0}, out);
    } catch (const Refusal &refused) {
      return std::string(refused.what());
    }
    return std::string("nothing");
  };
  const std::pair<const char *, const char *> instructions[] = {
      {"tex.1d.v4.f32.s32 %r1, %r2;", "tex.1d.v4.f32.s32: the instruction is not supported"},
      {"ld.mmio.global.u32 %r2, [%rd1];",
       "ld.mmio.global.u32: the modifier .mmio is not supported"},
      {"ld.global.b128 %w1, [%rd1];", "ld.global.b128: accesses of .b128 are not supported"},
      {"add.s32 %r1, %w1, 1;", "add.s32: register %w1: got 64 bits, expected 32 bits"},
      {"add.s32 %r1, %p1, 1;", "add.s32: register %p1: got a predicate, expected 32 bits"},
      {"add.s32 %r1, %r2;", "add.s32: got 2 operands, expected more"},
      {"add.s32 %r1, %r2, 0x123456789;", "add.s32: the number 4886718345 has more than 32 bits"},
      {"add.s32 %r1, %r2, nothing;", "add.s32: got 'nothing', expected a register or a variable"},
      {"add.s32 5, %r1, %r2;", "add.s32: expected a register"},
      {"add.s64 %w1, %w2, %tid.x;", "add.s64: %tid.x has 32 bits"},
      {"ld.global.u32 %r1, %rd1;", "ld.global.u32: expected an address"},
      {"ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];",
       "ld.global.v2.u32: got 3 registers, expected 2"},
      {"ld.global.v2.u16 {%h1, %r2}, [%rd1];",
       "ld.global.v2.u16: registers of different widths are not supported"},
      {"mov.b32 %r1, {%h1, %h2, %h3};", "mov.b32: got 3 parts, expected parts of 16 or 32 bits"},
      {"call missing;", "call: the function 'missing' is not in the module"},
      {"atom.global.add.f32 %f1, [%rd1], %f2;",
       "atom.global.add.f32: the instruction is not supported"},
      {"cp.async.bulk.shared.global [%r1], [%rd1], 16;",
       "cp.async.bulk.shared.global: the instruction is not supported"},
      {"fence.sc.cluster;", "fence.sc.cluster: the instruction is not supported"},
      {"setp.eq.f16 %p1, %h1, %h2;", "setp.eq.f16: the instruction is not supported"},
      {"setp.near.u32 %p1, %r1, %r2;", "setp.near.u32: the instruction is not supported"},
      {"cvt.rn.f16.f32 %h1, %f1;", "cvt.rn.f16.f32: the instruction is not supported"},
      {"cvt.rz.bf16.f32 %h1, %f1;", "cvt.rz.bf16.f32: the instruction is not supported"},
      {"bar.sync 0, 32;", "bar.sync: got 2 operands, expected 1"},
      {"bar.sync 1;", "bar.sync: got the operand '1', expected 0"},
      {"cp.async.wait_group %r1;",
       "cp.async.wait_group: got the operand '%r10', expected a number"},
      {"shfl.sync.any.b32 %r2, %r3, 1, 31, -1;",
       "shfl.sync.any.b32: the instruction is not supported"},
      {"ldmatrix.sync.aligned.m8n8.x2.shared.b8 {%r2, %r3}, [%r1];",
       "ldmatrix.sync.aligned.m8n8.x2.shared.b8: the instruction is not supported"},
      {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d3}, {%d4}, {%d1, %d2};",
       "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64: the instruction is not supported"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %w1, %w2, 1, 1, 1, "
       "0, 0;",
       "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16: this shape is not supported"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %w1, %w2, 1, -1, "
       "1, 0, 0;",
       "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16: got the operand '-1', expected 1"},
  };
  for (const auto &[body, message] : instructions)
    EXPECT_EQ(refusal(body), std::string("text.ptx:10: kernel k: ") + message);
  EXPECT_EQ(refusal("bra nowhere;"),
            "text.ptx:10: kernel k: bra: got the label 'nowhere', which is nowhere");
  EXPECT_EQ(refusal("add.s32 %r1, %r2"), "text.ptx:11: got '}', expected ','");
  EXPECT_EQ(
      refusal(".reg .b128 %q<2>; ret;"),
      "text.ptx:10: got '%q', expected registers of 16, 32 or 64 bits: .b128 is not supported");
  EXPECT_EQ(refusal("@%r1 ret;"), "text.ptx:10: got '%r1', expected a register of predicates");
  EXPECT_EQ(refusal("ret;", ".global .align 8 .u64 table[1] = {dynamic};"),
            "text.ptx:5: got 'dynamic', expected a number");
  EXPECT_EQ(refusal("ret;", ".global .u64 table[0x1g];"),
            "text.ptx:5: got '0x1g', expected a number");
  EXPECT_EQ(refusal("ret;", ".global .f16 table;"),
            "text.ptx:5: got ';', expected a variable with a type");
  EXPECT_EQ(refusal("ret;", ".func f(.reg .b32 %a) { ret; }"),
            "text.ptx:5: got '.reg', expected a state space");
  EXPECT_EQ(refusal("ret;", ".alias a, b;"),
            "text.ptx:5: got '.alias', expected a directive of a module");
  const std::string calls = ".func again() { call again; ret; }";
  EXPECT_EQ(refusal("call again; ret;", calls),
            "text.ptx:5: kernel k: call: recursion is not supported");
  EXPECT_EQ(refusal("@%p1 call again; ret;", calls),
            "text.ptx:10: kernel k: call: a call with a guard is not supported");
}

} // namespace
} // namespace emulator::ptx
