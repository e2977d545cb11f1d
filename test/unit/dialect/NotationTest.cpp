//===- NotationTest.cpp - einsum and einops strings -----------------------===//

#include "dialect/nn/Notation.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::nn;

namespace {

/// Collects the diagnostics.
struct NotationTest : testing::Test {
  MLIRContext context;
  std::string message;
  ScopedDiagnosticHandler handler{&context, [this](Diagnostic &diagnostic) {
                                    message = diagnostic.str();
                                    return success();
                                  }};

  InFlightDiagnostic emit() { return emitError(UnknownLoc::get(&context)); }

  Notation einsum(StringRef text) {
    return *Notation::parseEinsum(text, [&] { return emit(); });
  }
  Notation einops(StringRef text) {
    return *Notation::parseEinops(text, [&] { return emit(); });
  }

  /// The sizes as "a=1 b=2" in order of appearance, or the message of the failure.
  std::string solve(const Notation &notation, ArrayRef<ArrayRef<int64_t>> operands,
                    ArrayRef<int64_t> result, llvm::StringMap<int64_t> known = {}) {
    message.clear();
    auto sizes = notation.solveSizes(operands, result, known, [&] { return emit(); });
    if (failed(sizes))
      return message;
    std::string text;
    for (const std::string &name : notation.names())
      text += (text.empty() ? "" : " ") + name + "=" + std::to_string(sizes->lookup(name));
    return text;
  }
};

TEST_F(NotationTest, EinsumRoundTrips) {
  for (StringRef text : {"bsd,df->bsf", ",a->a", "a,a->", ",->", "aB,Bc->ca"})
    EXPECT_EQ(einsum(text).printEinsum(), text);
  EXPECT_EQ(einsum(" b s d , d f -> b s f ").printEinsum(), "bsd,df->bsf");
}

TEST_F(NotationTest, EinopsRoundTrips) {
  for (StringRef text :
       {"b s (h d) -> b h s d", "->", "a ->", "-> a", "1 a -> a 1", "head_0 x1 -> (x1 head_0)"})
    EXPECT_EQ(einops(text).printEinops(), text);
  EXPECT_EQ(einops("  a(b c)()(d)->(1 a)1 b c d").printEinops(), "a (b c) 1 d -> a 1 b c d");
}

TEST_F(NotationTest, EinopsGroups) {
  Notation notation = einops("b (h d) 1 -> h");
  ASSERT_EQ(notation.operands.size(), 1u);
  EXPECT_EQ(notation.operands[0], (NotationTensor{{"b"}, {"h", "d"}, {}}));
  EXPECT_EQ(notation.result, (NotationTensor{{"h"}}));
  EXPECT_EQ(notation.names(), (SmallVector<std::string>{"b", "h", "d"}));
}

TEST_F(NotationTest, RefusesWithoutCallback) {
  EXPECT_TRUE(failed(Notation::parseEinsum("ab", nullptr)));
  EXPECT_TRUE(failed(Notation::parseEinops("(a -> a", nullptr)));
  EXPECT_TRUE(failed(einops("a -> a").solveSizes({{2}}, {3}, {}, nullptr)));
}

TEST_F(NotationTest, SolvesSizes) {
  EXPECT_EQ(solve(einsum("bsd,df->bsf"), {{8, 16, 32}, {32, 64}}, {8, 16, 64}),
            "b=8 s=16 d=32 f=64");
  EXPECT_EQ(solve(einops("b s (h d) -> b h s d"), {{2, 3, 20}}, {2, 4, 3, 5}), "b=2 s=3 h=4 d=5");
  EXPECT_EQ(solve(einops("(a b c) -> (b c) a"), {{24}}, {12, 2}, {{"c", 3}}), "a=2 b=4 c=3");
  EXPECT_EQ(solve(einops("-> a"), {{}}, {7}), "a=7");
}

TEST_F(NotationTest, SolvesSizesOfZero) {
  EXPECT_EQ(solve(einops("(a b) -> a b"), {{0}}, {0, 3}), "a=0 b=3");
  EXPECT_EQ(solve(einops("(a b) c -> a (b c)"), {{0, 2}}, {3, 0}), "a=3 b=0 c=2");
  EXPECT_EQ(solve(einops("(a b) -> (b a)"), {{0}}, {0}, {{"a", 0}}),
            "the size of 'b' does not follow from the shapes; give it in 'sizes'");
}

TEST_F(NotationTest, RefusesShapes) {
  EXPECT_EQ(solve(einsum("ab,bc->ac"), {{2, 3}}, {2, 4}), "notation has 2 operands, got 1");
  EXPECT_EQ(solve(einsum("ab,bc->ac"), {{2, 3}, {4}}, {2, 4}),
            "operand 1 has rank 1, the notation names 2 dimensions");
  EXPECT_EQ(solve(einops("a 1 -> a"), {{2, 3}}, {2}),
            "dimension 1 of the operand: got 3, expected 1");
  EXPECT_EQ(solve(einops("(a b) -> (b a)"), {{6}}, {6}, {{"a", 4}}),
            "dimension 0 of the operand is 6, expected a multiple of 4 to solve 'b'");
  EXPECT_EQ(solve(einops("a -> a"), {{2}}, {2}, {{"a", 3}}),
            "dimension 0 of the operand: got 2, expected 3 ('a' is 3 by sizes)");
}

TEST_F(NotationTest, Shapes) {
  llvm::StringMap<int64_t> sizes{{"a", 2}, {"b", 3}};
  EXPECT_EQ(shapeOf(einops("(a b) 1 a ->").operands[0], sizes), (SmallVector<int64_t>{6, 1, 2}));
}

} // namespace
