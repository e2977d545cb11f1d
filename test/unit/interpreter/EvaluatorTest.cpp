//===- EvaluatorTest.cpp - what pure ops compute --------------------------===//

#include "test/unit/interpreter/Evaluate.h"

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

class EvaluatorTest : public testing::Test {
protected:
  EvaluatorTest() {
    DialectRegistry registry;
    registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
    nn::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The results of the last op of `text`, all ops before it being evaluated too.
  SmallVector<Tensor> run(StringRef text, Numerics numerics = Numerics::exact) {
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    if (!module)
      return {};
    Operation &last = module->getBody()->back();
    SmallVector<Value> wanted(last.getResults());
    auto results = evaluate(*module->getBody(), {}, wanted, numerics);
    return failed(results) ? SmallVector<Tensor>() : *results;
  }

  std::vector<double> numbers(StringRef text, Numerics numerics = Numerics::exact) {
    std::vector<double> list;
    SmallVector<Tensor> results = run(text, numerics);
    if (results.empty())
      return list;
    for (int64_t i = 0; i < results[0].size(); ++i)
      list.push_back(results[0].getNumber(i));
    return list;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

using List = std::vector<double>;

TEST_F(EvaluatorTest, EinsumContracts) {
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %w = arith.constant dense<[[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]]> : tensor<2x3xf32>
    %y = nn.einsum "bi,io->ob" %x, %w : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  )"),
            (List{1, 3, 2, 4, 8, 18}));
}

TEST_F(EvaluatorTest, RearrangeSplitsAndTransposes) {
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]> : tensor<2x6xi32>
    %y = nn.rearrange "b (h d) -> h b d" %x : tensor<2x6xi32> -> tensor<3x2x2xi32>
  )"),
            (List{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
}

TEST_F(EvaluatorTest, RepeatBroadcasts) {
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %y = nn.repeat "d -> d b" %x : tensor<2xf32> -> tensor<2x3xf32>
  )"),
            (List{1, 1, 1, 2, 2, 2}));
}

TEST_F(EvaluatorTest, ReduceSumMeanMax) {
  StringRef text = R"(
    %x = arith.constant dense<[[1.0, 5.0, 3.0], [-1.0, -5.0, -3.0]]> : tensor<2x3xf32>
    %y = nn.reduce KIND "a b -> a" %x : tensor<2x3xf32> -> tensor<2xf64>
  )";
  auto with = [&](StringRef kind) {
    std::string copy = text.str();
    copy.replace(copy.find("KIND"), 4, kind.str());
    return numbers(copy);
  };
  EXPECT_EQ(with("sum"), (List{9, -9}));
  EXPECT_EQ(with("mean"), (List{3, -3}));
  EXPECT_EQ(with("max"), (List{5, -1}));
}

TEST_F(EvaluatorTest, ScanSumAddsUpAlongItsDimension) {
  auto scan = [&](StringRef options) {
    return numbers((R"(
      %x = arith.constant dense<[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
                                 [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]]]> : tensor<2x3x2xf32>
      %y = nn.scan_sum "b s d" )" +
                    options + " : tensor<2x3x2xf32>")
                       .str());
  };
  EXPECT_EQ(scan(R"(along "s" %x)"), (List{1, 2, 4, 6, 9, 12, 0.5, 1.5, 3, 5, 7.5, 10.5}));
  EXPECT_EQ(scan(R"(along "s" %x exclusive)"), (List{0, 0, 1, 2, 4, 6, 0, 0, 0.5, 1.5, 3, 5}));
  EXPECT_EQ(scan(R"(along "s" %x reverse)"), (List{9, 12, 8, 10, 5, 6, 7.5, 10.5, 7, 9, 4.5, 5.5}));
  EXPECT_EQ(scan(R"(along "s" %x exclusive reverse)"),
            (List{8, 10, 5, 6, 0, 0, 7, 9, 4.5, 5.5, 0, 0}));
  EXPECT_EQ(scan(R"(along "d" %x)"), (List{1, 3, 3, 7, 5, 11, 0.5, 2, 2.5, 6, 4.5, 10}));
  EXPECT_EQ(scan(R"(along "b" %x)"), (List{1, 2, 3, 4, 5, 6, 1.5, 3.5, 5.5, 7.5, 9.5, 11.5}));
}

// A sum of bf16 is accumulated in f32: 257 is not a bf16, and 256 + 1 + 1 would stay 256.
TEST_F(EvaluatorTest, ScanSumOfBf16IsFormedInF32) {
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[256.0, 1.0, 1.0]> : tensor<3xbf16>
    %y = nn.scan_sum "s" along "s" %x : tensor<3xbf16>
  )",
                    Numerics::typed),
            (List{256, 256, 258}));
}

// No sequence continues in the next row, and occurrences may overlap.
TEST_F(EvaluatorTest, PositionsSinceASequence) {
  auto since = [&](StringRef sequence) {
    return numbers(("%x = arith.constant dense<[[7, 1, 1, 1, 7, 2], [2, 7, 7, 0, 1, 7]]> : "
                    "tensor<2x6xi64>\n%y = nn.positions_since " +
                    sequence + " in %x : tensor<2x6xi64> -> tensor<2x6xi32>")
                       .str());
  };
  EXPECT_EQ(since("[7]"), (List{0, 1, 2, 3, 0, 1, 1, 0, 0, 1, 2, 0}));
  EXPECT_EQ(since("[7] documents"), (List{0, 0, 1, 2, 3, 0, 0, 1, 0, 0, 1, 2}));
  EXPECT_EQ(since("[1, 1]"), (List{1, 2, 0, 0, 1, 2, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(since("[7, 2]"), (List{1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(since("[2, 2] documents"), (List{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
}

TEST_F(EvaluatorTest, TypedSumsRoundEachStep) {
  // 2^24 + 1 is no float: typed sums of f32 lose it, exact ones and sums in f64 do not.
  StringRef text = R"(
    %x = arith.constant dense<[16777216.0, 1.0, 1.0]> : tensor<3xf32>
    %y = nn.reduce sum "a ->" %x : tensor<3xf32> -> tensor<f32>
  )";
  EXPECT_EQ(numbers(text), (List{16777218}));
  EXPECT_EQ(numbers(text, Numerics::typed), (List{16777216}));
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[16777216.0, 1.0, 1.0]> : tensor<3xf32>
    %y = nn.reduce sum "a ->" %x : tensor<3xf32> -> tensor<f64>
  )",
                    Numerics::typed),
            (List{16777218}));
}

TEST_F(EvaluatorTest, TypedBf16RoundsToNearestEven) {
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[1.00390625, 1.01171875]> : tensor<2xf32>
    %y = arith.truncf %x : tensor<2xf32> to tensor<2xbf16>
  )",
                    Numerics::typed),
            (List{1, 1.015625}));
}

// 1 + 2^-8 is a tie between 1 and 1 + 2^-7; what is a little more is not, even where float cannot
// tell the two apart.
TEST_F(EvaluatorTest, TypedBf16RoundsOnce) {
  Type bf16 = BFloat16Type::get(&context);
  EXPECT_EQ(roundTo(1 + 0x1p-8, bf16), 1);
  EXPECT_EQ(roundTo(1 + 0x1p-8 + 0x1p-40, bf16), 1 + 0x1p-7);
  EXPECT_EQ(roundTo(-(1 + 0x1p-8 + 0x1p-40), bf16), -(1 + 0x1p-7));
  EXPECT_EQ(roundTo(1 + 0x1p-7 + 0x1p-8 - 0x1p-40, bf16), 1 + 0x1p-7);
  EXPECT_EQ(roundTo(0x1p-140, bf16), 0);
  EXPECT_EQ(roundTo(0x1.fep127, bf16), 0x1.fep127);
  EXPECT_TRUE(std::isinf(roundTo(0x1.ffp127, bf16)));
  EXPECT_TRUE(std::isinf(roundTo(1e300, bf16)));
  EXPECT_TRUE(std::isnan(roundTo(NAN, bf16)));
}

// Each op alone rounds to bf16; as one kernel they hold f32 and round what they store.
TEST_F(EvaluatorTest, TypedKernelsHoldF32) {
  StringRef chain = R"(
    %one = arith.constant dense<1.0> : tensor<1xbf16>
    %small = arith.constant dense<0.00390625> : tensor<1xbf16>
    %a = arith.addf %one, %small : tensor<1xbf16>
    %b = arith.addf %a, %small : tensor<1xbf16>
  )";
  EXPECT_EQ(numbers(chain, Numerics::typed), (List{1}));
  EXPECT_EQ(numbers(R"(
    %y = nn.fused : () -> tensor<1xbf16> {
      %one = arith.constant dense<1.0> : tensor<1xbf16>
      %small = arith.constant dense<0.00390625> : tensor<1xbf16>
      %a = arith.addf %one, %small : tensor<1xbf16>
      %b = arith.addf %a, %small : tensor<1xbf16>
      nn.yield %b : tensor<1xbf16>
    }
  )",
                    Numerics::typed),
            (List{1.0078125}));
}

// The product of bf16 matrices is summed in f32 and rounded once, to the type of the result.
TEST_F(EvaluatorTest, TypedProductsOfBf16) {
  auto product = [](StringRef result) {
    return (R"(
    %a = arith.constant dense<[256.0, 1.0, 1.0]> : tensor<3xbf16>
    %b = arith.constant dense<1.0> : tensor<3xbf16>
    %y = nn.einsum "a,a->" %a, %b : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<)" +
            result + ">\n")
        .str();
  };
  EXPECT_EQ(numbers(product("f32"), Numerics::typed), (List{258}));
  EXPECT_EQ(numbers(product("bf16"), Numerics::typed), (List{258}));
}

TEST_F(EvaluatorTest, CrossEntropyAndItsGradient) {
  SmallVector<Tensor> results = run(R"(
    %x = arith.constant dense<[[0.0, 1.0, 2.0]]> : tensor<1x3xf32>
    %l = arith.constant dense<[1]> : tensor<1xi32>
    %loss, %lse = nn.cross_entropy %x, %l : tensor<1x3xf32>, tensor<1xi32> -> tensor<1xf32>, tensor<1xf32>
  )");
  ASSERT_EQ(results.size(), 2u);
  double lse = std::log(1 + std::exp(1.0) + std::exp(2.0));
  EXPECT_NEAR(results[0].getFloat(0), lse - 1, 1e-15);
  EXPECT_NEAR(results[1].getFloat(0), lse, 1e-15);
  List gradient = numbers(R"(
    %x = arith.constant dense<[[0.0, 0.0]]> : tensor<1x2xf32>
    %l = arith.constant dense<[1]> : tensor<1xi32>
    %loss, %lse = nn.cross_entropy %x, %l : tensor<1x2xf32>, tensor<1xi32> -> tensor<1xf32>, tensor<1xf32>
    %d = arith.constant dense<[2.0]> : tensor<1xf32>
    %g = nn.cross_entropy_grad %x, %l, %lse, %d : tensor<1x2xf32>, tensor<1xi32>, tensor<1xf32>, tensor<1xf32>
  )");
  ASSERT_EQ(gradient.size(), 2u);
  EXPECT_NEAR(gradient[0], 1, 1e-15);
  EXPECT_NEAR(gradient[1], -1, 1e-15);
}

TEST_F(EvaluatorTest, LossesWithTheirGradients) {
  List gradient = numbers(R"(
    %x = arith.constant dense<[[0.5, 2.0, -1.0]]> : tensor<1x3xf32>
    %l = arith.constant dense<[1]> : tensor<1xi32>
    %d = arith.constant dense<[2.0]> : tensor<1xf32>
    %loss, %lse, %g = nn.cross_entropy %x, %l upstream %d
        : tensor<1x3xf32>, tensor<1xi32> upstream tensor<1xf32> -> tensor<1xf32>, tensor<1xf32>, tensor<1x3xf32>
    %e = nn.cross_entropy_grad %x, %l, %lse, %d : tensor<1x3xf32>, tensor<1xi32>, tensor<1xf32>, tensor<1xf32>
    %n = arith.constant dense<2> : tensor<i64>
    %p:4 = nn.partial_cross_entropy %x, %l of %n upstream %d
        : tensor<1x3xf32>, tensor<1xi32> upstream tensor<1xf32> -> tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x3xf32>
    %s = nn.concat %g, %e, %p#3 dim 0 : (tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
  )");
  ASSERT_EQ(gradient.size(), 9u);
  const double all = std::exp(0.5) + std::exp(2.0) + std::exp(-1.0);
  const double two = std::exp(0.5) + std::exp(2.0);
  const double expected[] = {2 * std::exp(0.5) / all, 2 * (std::exp(2.0) / all - 1),
                             2 * std::exp(-1.0) / all};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(gradient[i], expected[i], 1e-15);
    EXPECT_EQ(gradient[3 + i], gradient[i]);
  }
  EXPECT_NEAR(gradient[6], 2 * std::exp(0.5) / two, 1e-15);
  EXPECT_NEAR(gradient[7], 2 * (std::exp(2.0) / two - 1), 1e-15);
  EXPECT_EQ(gradient[8], 0) << "padding";
}

TEST_F(EvaluatorTest, PartOfTheClasses) {
  // Two classes and a column of padding; the label of the second row is elsewhere.
  SmallVector<Tensor> results = run(R"(
    %x = arith.constant dense<[[0.0, 1.0, 9.0], [3.0, 3.0, 9.0]]> : tensor<2x3xf32>
    %l = arith.constant dense<[0, -1]> : tensor<2xi32>
    %n = arith.constant dense<2> : tensor<i64>
    %max, %sum, %picked = nn.partial_cross_entropy %x, %l of %n
        : tensor<2x3xf32>, tensor<2xi32> -> tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  )");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].getFloat(0), 1);
  EXPECT_EQ(results[0].getFloat(1), 3);
  EXPECT_NEAR(results[1].getFloat(0), 1 + std::exp(-1.0), 1e-15);
  EXPECT_EQ(results[1].getFloat(1), 2);
  EXPECT_EQ(results[2].getFloat(0), 0);
  EXPECT_EQ(results[2].getFloat(1), 0);
  List gradient = numbers(R"(
    %x = arith.constant dense<[[0.0, 0.0, 9.0], [0.0, 0.0, 9.0]]> : tensor<2x3xf32>
    %l = arith.constant dense<[1, -1]> : tensor<2xi32>
    %n = arith.constant dense<2> : tensor<i64>
    %lse = arith.constant dense<0.0> : tensor<2xf32>
    %d = arith.constant dense<[2.0, 3.0]> : tensor<2xf32>
    %g = nn.cross_entropy_grad %x, %l, %lse, %d of %n
        : tensor<2x3xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>
  )");
  EXPECT_EQ(gradient, (List{2, 0, 0, 3, 3, 0}));
  // No class at all: nothing is the largest, and the sum has no terms.
  results = run(R"(
    %x = arith.constant dense<[[9.0]]> : tensor<1x1xf32>
    %l = arith.constant dense<[-1]> : tensor<1xi32>
    %n = arith.constant dense<0> : tensor<i64>
    %max, %sum, %picked = nn.partial_cross_entropy %x, %l of %n
        : tensor<1x1xf32>, tensor<1xi32> -> tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
  )");
  EXPECT_EQ(results[0].getFloat(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(results[1].getFloat(0), 0);
}

TEST_F(EvaluatorTest, PartOfTheRows) {
  EXPECT_EQ(numbers(R"(
    %t = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %i = arith.constant dense<[1, -1, 0]> : tensor<3xi32>
    %y = nn.embedding partial %t, %i : tensor<2x2xf32>, tensor<3xi32> -> tensor<3x2xf32>
  )"),
            (List{3, 4, 0, 0, 1, 2}));
  EXPECT_EQ(numbers(R"(
    %i = arith.constant dense<[1, -1, 1]> : tensor<3xi32>
    %d = arith.constant dense<[[1.0], [9.0], [2.0]]> : tensor<3x1xf32>
    %y = nn.embedding_grad partial %i, %d : tensor<3xi32>, tensor<3x1xf32> -> tensor<2x1xf32>
  )"),
            (List{0, 3}));
}

TEST_F(EvaluatorTest, ArgmaxTakesTheFirstOfEquals) {
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[[0.0, 2.0, 2.0], [3.0, 1.0, 2.0]]> : tensor<2x3xf32>
    %y = nn.argmax %x : tensor<2x3xf32> -> tensor<2xi32>
  )"),
            (List{1, 0}));
}

TEST_F(EvaluatorTest, WriteRowsReplacesRowsOfEachSample) {
  auto written = [&](StringRef positions) {
    return numbers((R"(
      %t = arith.constant dense<[[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]> : tensor<2x3x2xi32>
      %table = arith.sitofp %t : tensor<2x3x2xi32> to tensor<2x3x2xf32>
      %rows = arith.constant dense<[[[0.5, 1.5], [2.5, 3.5]], [[4.5, 5.5], [6.5, 7.5]]]> : tensor<2x2x2xf32>
      %p = arith.constant dense<)" +
                    positions + R"(> : tensor<2x2xi32>
      %y = nn.write_rows %table, %rows, %p dim 1 : tensor<2x3x2xf32>, tensor<2x2x2xf32>, tensor<2x2xi32>
    )")
                       .str());
  };
  EXPECT_EQ(written("[[2, 0], [1, 2]]"),
            (List{2.5, 3.5, 3, 4, 0.5, 1.5, 7, 8, 4.5, 5.5, 6.5, 7.5}));
  // Rows outside the table are skipped; of two at one position the last is stored.
  EXPECT_EQ(written("[[-1, 3], [1, 1]]"), (List{1, 2, 3, 4, 5, 6, 7, 8, 6.5, 7.5, 11, 12}));
  // A dimension between the samples and the rows has the positions of its sample.
  EXPECT_EQ(numbers(R"(
    %table = arith.constant dense<0.0> : tensor<2x2x2xf32>
    %rows = arith.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>
    %p = arith.constant dense<[[1], [0]]> : tensor<2x1xi32>
    %y = nn.write_rows %table, %rows, %p dim 2 : tensor<2x2x2xf32>, tensor<2x2x1xf32>, tensor<2x1xi32>
  )"),
            (List{0, 1, 0, 2, 3, 0, 4, 0}));
}

// Queries of zeros see all their keys alike: results are means of values.
TEST_F(EvaluatorTest, CachedAttentionSeesKeysUpToItsPosition) {
  auto means = [&](StringRef order, int64_t groups, StringRef positions, StringRef window = "") {
    const StringRef values = groups == 2 ? "[[1.0], [3.0], [5.0], [7.0]], [[10.0], [30.0], [50.0], "
                                           "[70.0]]"
                                         : "[[1.0], [3.0], [5.0], [7.0]]";
    const std::string k = ("tensor<1x" + Twine(groups) + "x4x1xf32>").str();
    return numbers((R"(
      %q = arith.constant dense<0.0> : tensor<1x2x2x1xf32>
      %k = arith.constant dense<9.0> : )" +
                    k + "\n%v = arith.constant dense<[[" + values + "]]> : " + k +
                    "\n%p = arith.constant dense<[" + positions + R"(]> : tensor<1x2xi32>
      %y = nn.cached_attention ")" +
                    order + R"(" %q, %k, %v, %p scale 0.5 )" + window + " : tensor<1x2x2x1xf32>, " +
                    k + ", tensor<1x2xi32>")
                       .str());
  };
  EXPECT_EQ(means("b t h d", 2, "[1, 2]"), (List{2, 20, 3, 30}));
  EXPECT_EQ(means("b h t d", 2, "[1, 2]"), (List{2, 3, 20, 30}));
  EXPECT_EQ(means("b t h d", 1, "[1, 2]"), (List{2, 2, 3, 3}));
  EXPECT_EQ(means("b t h d", 2, "[0, 1]"), (List{1, 10, 2, 20}));
  EXPECT_EQ(means("b t h d", 2, "[1, 2]", "window 2"), (List{2, 20, 4, 40}));
  EXPECT_EQ(means("b t h d", 1, "[2, 3]", "window 1"), (List{5, 5, 7, 7}));
  EXPECT_EQ(means("b t h d", 1, "[1, 2]", "window 9"), (List{2, 2, 3, 3}));
  // The first position counts, and it is moved to where each query has a key.
  EXPECT_EQ(means("b t h d", 1, "[1, 0]"), (List{2, 2, 3, 3}));
  EXPECT_EQ(means("b t h d", 1, "[7, 8]"), (List{3, 3, 4, 4}));
  EXPECT_EQ(means("b t h d", 1, "[-5, -4]"), (List{1, 1, 2, 2}));
}

TEST_F(EvaluatorTest, CachedAttentionWeighsByScaledAndLimitedProducts) {
  // Scores are 0 and 1 once scaled, and with the limit, which is far below 1000, 0 and 1.
  for (StringRef options : {"scale 0.5 : ", "scale 500.0 softcap 1.0 : "}) {
    List y = numbers((R"(
      %q = arith.constant dense<2.0> : tensor<2x1x1x1xf32>
      %k = arith.constant dense<[[[[0.0], [1.0]]], [[[0.0], [1.0]]]]> : tensor<2x1x2x1xf32>
      %v = arith.constant dense<[[[[3.0], [5.0]]], [[[3.0], [5.0]]]]> : tensor<2x1x2x1xf32>
      %p = arith.constant dense<[[0], [1]]> : tensor<2x1xi32>
      %y = nn.cached_attention "b h t d" %q, %k, %v, %p )" +
                      options + "tensor<2x1x1x1xf32>, tensor<2x1x2x1xf32>, tensor<2x1xi32>")
                         .str());
    ASSERT_EQ(y.size(), 2u);
    EXPECT_EQ(y[0], 3);
    EXPECT_NEAR(y[1], (3 + 5 * std::exp(1.0)) / (1 + std::exp(1.0)), 1e-14);
  }
}

// A number that is none shows, and only where it is seen.
TEST_F(EvaluatorTest, CachedAttentionOfNaN) {
  List y = numbers(R"(
    %q = arith.constant dense<1.0> : tensor<1x1x2x1xf32>
    %k = arith.constant dense<[[[[0.0], [0x7FC00000], [0.0]]]]> : tensor<1x1x3x1xf32>
    %p = arith.constant dense<[[0, 1]]> : tensor<1x2xi32>
    %y = nn.cached_attention "b h t d" %q, %k, %k, %p scale 1.0
        : tensor<1x1x2x1xf32>, tensor<1x1x3x1xf32>, tensor<1x2xi32>
  )");
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0], 0);
  EXPECT_TRUE(std::isnan(y[1]));
}

// Points (1, 0), turned by their positions.
TEST_F(EvaluatorTest, RopeTurnsByGivenPositions) {
  auto check = [&](StringRef text, std::vector<double> angles, double magnitude = 1) {
    List y = numbers(text);
    ASSERT_EQ(y.size(), 2 * angles.size()) << text.str();
    for (size_t i = 0; i < angles.size(); ++i) {
      EXPECT_NEAR(y[2 * i], magnitude * std::cos(angles[i]), 1e-14) << i;
      EXPECT_NEAR(y[2 * i + 1], magnitude * std::sin(angles[i]), 1e-14) << i;
    }
  };
  auto turned = [](StringRef options, StringRef shape) {
    return (R"(
      %e = arith.constant dense<[1.0, 0.0]> : tensor<2xf32>
      %x = nn.repeat "d -> b h t d" %e : tensor<2xf32> -> )" +
            shape + R"(
      %p = arith.constant dense<[[3, 1000, -2], [0, 0, 7]]> : tensor<2x3xi32>
      %y = nn.rope %x at %p : tensor<2x3xi32> )" +
            options + " : " + shape)
        .str();
  };
  check(turned("dim 1 theta 100.0", "tensor<2x3x1x2xf32>"), {3, 1000, -2, 0, 0, 7});
  check(turned("dim 1 theta 100.0", "tensor<2x3x2x2xf32>"),
        {3, 3, 1000, 1000, -2, -2, 0, 0, 0, 0, 7, 7});
  check(turned("dim 2 theta 100.0", "tensor<2x2x3x2xf32>"),
        {3, 1000, -2, 3, 1000, -2, 0, 0, 7, 0, 0, 7});
  check(turned("dim 1 theta 100.0 inverse", "tensor<2x3x1x2xf32>"), {-3, -1000, 2, 0, 0, -7});
  check(turned("dim 1 theta 100.0 factor 4.0 magnitude 1.25", "tensor<2x3x1x2xf32>"),
        {0.75, 250, -0.5, 0, 0, 1.75}, 1.25);
}

TEST_F(EvaluatorTest, IntegersWrapAndConvert) {
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[2147483647, -3]> : tensor<2xi32>
    %y = arith.addi %x, %x : tensor<2xi32>
  )"),
            (List{-2, -6}));
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[true, false]> : tensor<2xi1>
    %y = arith.uitofp %x : tensor<2xi1> to tensor<2xf32>
  )"),
            (List{1, 0}));
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[true, false]> : tensor<2xi1>
    %y = arith.extsi %x : tensor<2xi1> to tensor<2xi32>
  )"),
            (List{-1, 0}));
}

TEST_F(EvaluatorTest, FusedRunsItsBody) {
  EXPECT_EQ(numbers(R"(
    %x = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %b = arith.constant dense<[10.0, 20.0]> : tensor<2xf32>
    %r = nn.fused %x, %b : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<f64> {
    ^bb0(%a: tensor<2x2xf32>, %c: tensor<2xf32>):
      %d = nn.repeat "d -> b d" %c : tensor<2xf32> -> tensor<2x2xf32>
      %s = arith.addf %a, %d : tensor<2x2xf32>
      %t = nn.reduce sum "b d ->" %s : tensor<2x2xf32> -> tensor<f64>
      nn.yield %t : tensor<f64>
    }
  )"),
            (List{70}));
}

TEST_F(EvaluatorTest, FusedContinuesWithARoundedProduct) {
  // 1 + 2^-9 has no place in bf16, neither in a result nor before the 1 is taken off again.
  const char *text = R"(
    %x = arith.constant dense<[[1.0, 0.001953125]]> : tensor<1x2xbf16>
    %w = arith.constant dense<[[1.0], [1.0]]> : tensor<2x1xbf16>
    %r = nn.fused %x, %w : (tensor<1x2xbf16>, tensor<2x1xbf16>) -> tensor<1x1xbf16> {
    ^bb0(%a: tensor<1x2xbf16>, %b: tensor<2x1xbf16>):
      %z = nn.einsum "ij,jk->ik" %a, %b : (tensor<1x2xbf16>, tensor<2x1xbf16>) -> tensor<1x1xbf16>
      %one = arith.constant dense<1.0> : tensor<1x1xbf16>
      %s = arith.subf %z, %one : tensor<1x1xbf16>
      nn.yield %s : tensor<1x1xbf16>
    }
  )";
  EXPECT_EQ(numbers(text, Numerics::typed), (List{0}));
  EXPECT_EQ(numbers(text, Numerics::exact), (List{0.001953125}));
}

TEST_F(EvaluatorTest, ValuesFromOutsideAreRefused) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  module = parseSourceString<ModuleOp>(R"(
    fsdp.step @s evaluate {
      %x = arith.constant dense<1.0> : tensor<f32>
      %y = arith.negf %x : tensor<f32>
    })",
                                       ParserConfig(&context));
  ASSERT_TRUE(module);
  auto step = *module->getOps<StepOp>().begin();
  // The verifier would refuse it.
  step.getBody().front().front().moveBefore(step);
  EXPECT_TRUE(failed(evaluate(step.getBody().front(), {}, {})));
  EXPECT_NE(message.find("an operand is defined outside of its block"), std::string::npos);
}

TEST_F(EvaluatorTest, UnknownOpFailsByName) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  EXPECT_TRUE(run(R"(
    %x = arith.constant dense<[1.0]> : tensor<1xf32>
    %y = math.atan %x : tensor<1xf32>
  )")
                  .empty());
  EXPECT_NE(message.find("the evaluator does not implement 'math.atan'; add it there"),
            std::string::npos)
      << message;
  message.clear();
  EXPECT_TRUE(run(R"(
    %x = arith.constant 1.0 : f32
    %y = math.exp %x : f32
  )")
                  .empty());
  EXPECT_NE(message.find("operands and results must be ranked tensors of static shape"),
            std::string::npos)
      << message;
}

} // namespace
