//===- ShardingRuleTest.cpp - factors and costs of ops --------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/ProductCost.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::nn;

namespace {

struct ShardingRuleTest : testing::Test {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string message;
  ScopedDiagnosticHandler handler{&context, [this](Diagnostic &diagnostic) {
                                    message = diagnostic.str();
                                    return success();
                                  }};

  void SetUp() override {
    DialectRegistry registry;
    registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<NNDialect, arith::ArithDialect, math::MathDialect>();
    context.allowUnregisteredDialects();
  }

  /// Parses `op`, whose operands %a, %b, ... have the types `types`.
  Operation *parse(StringRef op, ArrayRef<StringRef> types) {
    std::string text;
    for (auto [index, type] : llvm::enumerate(types)) {
      std::string name = "%";
      name += static_cast<char>('a' + index);
      text += name + " = \"test.value\"() : () -> " + type.str() + "\n";
    }
    module = parseSourceString<ModuleOp>(text + op.str(), &context);
    EXPECT_TRUE(module) << message;
    return &module->getBody()->back();
  }

  /// "operands -> results": per dimension its factors, as name:size with ! for whole, + for
  /// sumReduction, ^ for maxReduction, & for combined, and # where it is indexed.
  std::string rule(StringRef op, ArrayRef<StringRef> types) {
    Operation *parsed = parse(op, types);
    ShardingRule rule = cast<ShardingRuleOpInterface>(parsed).getShardingRule();
    EXPECT_TRUE(succeeded(rule.verify(parsed))) << message;
    std::string text;
    llvm::raw_string_ostream os(text);
    auto print = [&](const TensorFactors &dims) {
      os << '[';
      llvm::interleave(
          dims, os,
          [&](const DimFactors &dim) {
            llvm::interleave(
                dim, os,
                [&](int64_t index) {
                  const Factor &factor = rule.factors[index];
                  os << factor.name << ':' << factor.size;
                  if (factor.kind != FactorKind::parallel)
                    os << " +^&!"[static_cast<int>(factor.kind)];
                  if (factor.indexed)
                    os << '#';
                },
                "*");
          },
          " ");
      os << ']';
    };
    llvm::interleave(rule.operands, os, print, ", ");
    os << " -> ";
    llvm::interleave(rule.results, os, print, ", ");
    return text;
  }

  std::string cost(StringRef op, ArrayRef<StringRef> types) {
    Cost cost = cast<CostOpInterface>(parse(op, types)).getCost();
    return std::to_string(cost.flops) + " flops " + std::to_string(cost.bytesRead) + " read " +
           std::to_string(cost.bytesWritten) + " written";
  }

  std::string product(StringRef op, ArrayRef<StringRef> types) {
    ProductCost product = getProductCost(parse(op, types));
    std::string text =
        (product.kind + " " + Twine(product.flops) + " of " + Twine(product.extent) + " ").str();
    llvm::raw_string_ostream(text) << product.elementType;
    return text;
  }
};

TEST_F(ShardingRuleTest, Epilogue) {
  auto epilogue = [&](StringRef loops, StringRef results = "tensor<8x4xbf16>") {
    const std::string op = (Twine("nn.fused %a, %b, %c : (tensor<8x16xbf16>, tensor<16x4xbf16>, "
                                  "tensor<4xbf16>) -> ") +
                            results +
                            " {\n"
                            "^bb0(%x: tensor<8x16xbf16>, %w: tensor<16x4xbf16>, %y: "
                            "tensor<4xbf16>):\n"
                            "%p = nn.einsum \"ik,kj->ij\" %x, %w : (tensor<8x16xbf16>, "
                            "tensor<16x4xbf16>) -> tensor<8x4xbf16>\n"
                            "%r = nn.repeat \"j -> i j\" %y : tensor<4xbf16> -> "
                            "tensor<8x4xbf16>\n"
                            "%s = arith.addf %p, %r : tensor<8x4xbf16>\n" +
                            loops + "}")
                               .str();
    return getEpilogue(parse(op, {"tensor<8x16xbf16>", "tensor<16x4xbf16>", "tensor<4xbf16>"}));
  };
  // Product and bias are read, the result written.
  const Epilogue bias = epilogue("nn.yield %s : tensor<8x4xbf16>\n");
  EXPECT_EQ(bias.bytes, 64 + 8 + 64);
  EXPECT_TRUE(bias.isBias);
  EXPECT_EQ(bias.remainingBytes, 0);
  const Epilogue more =
      epilogue("%t = arith.mulf %s, %s : tensor<8x4xbf16>\nnn.yield %t : tensor<8x4xbf16>\n");
  EXPECT_EQ(more.bytes, 64 + 8 + 64);
  EXPECT_FALSE(more.isBias);
  EXPECT_EQ(more.remainingBytes, more.bytes);
  // A product that is a result too is not written again.
  const Epilogue kept = epilogue("%t = arith.mulf %s, %s : tensor<8x4xbf16>\nnn.yield %p, %t : "
                                 "tensor<8x4xbf16>, tensor<8x4xbf16>\n",
                                 "(tensor<8x4xbf16>, tensor<8x4xbf16>)");
  EXPECT_EQ(kept.bytes, 64 + 8 + 64);
  // The rows of an operand are read, their sum is written; a library has it with the product.
  const Epilogue sum = getEpilogue(
      parse("nn.fused %a, %b : (tensor<16x8xbf16>, tensor<16x4xbf16>) -> (tensor<8x4xf32>, "
            "tensor<4xf32>) {\n"
            "^bb0(%x: tensor<16x8xbf16>, %y: tensor<16x4xbf16>):\n"
            "%p = nn.einsum \"ki,kj->ij\" %x, %y : (tensor<16x8xbf16>, tensor<16x4xbf16>) -> "
            "tensor<8x4xf32>\n"
            "%w = arith.extf %y : tensor<16x4xbf16> to tensor<16x4xf32>\n"
            "%s = nn.reduce sum \"k j -> j\" %w : tensor<16x4xf32> -> tensor<4xf32>\n"
            "nn.yield %p, %s : tensor<8x4xf32>, tensor<4xf32>\n}",
            {"tensor<16x8xbf16>", "tensor<16x4xbf16>"}));
  EXPECT_TRUE(sum.isOperandSum);
  EXPECT_EQ(sum.bytes, 16 * 4 * 2 + 4 * 4);
  EXPECT_EQ(sum.remainingBytes, 0);
  EXPECT_EQ(getEpilogue(parse("nn.einsum \"ik,kj->ij\" %a, %b : (tensor<8x16xf32>, "
                              "tensor<16x4xf32>) -> tensor<8x4xf32>",
                              {"tensor<8x16xf32>", "tensor<16x4xf32>"}))
                .bytes,
            0);
}

TEST_F(ShardingRuleTest, Einsum) {
  EXPECT_EQ(
      rule(
          R"(nn.einsum "bsd,df->bsf" %a, %b : (tensor<8x16x32xf32>, tensor<32x64xf32>) -> tensor<8x16x64xf32>)",
          {"tensor<8x16x32xf32>", "tensor<32x64xf32>"}),
      "[b:8 s:16 d:32+], [d:32+ f:64] -> [b:8 s:16 f:64]");
}

TEST_F(ShardingRuleTest, Rearrange) {
  EXPECT_EQ(
      rule(
          R"(nn.rearrange "b s (h d) -> b h s d" %a : tensor<8x16x96xf32> -> tensor<8x12x16x8xf32>)",
          {"tensor<8x16x96xf32>"}),
      "[b:8 s:16 h:12*d:8] -> [b:8 h:12 s:16 d:8]");
  EXPECT_EQ(
      rule(R"(nn.rearrange "1 a -> a" %a : tensor<1x4xf32> -> tensor<4xf32>)", {"tensor<1x4xf32>"}),
      "[ a:4] -> [a:4]");
}

TEST_F(ShardingRuleTest, RepeatAndReduce) {
  EXPECT_EQ(
      rule(R"(nn.repeat "d -> b d" %a : tensor<4xf32> -> tensor<8x4xf32>)", {"tensor<4xf32>"}),
      "[d:4] -> [b:8 d:4]");
  EXPECT_EQ(rule(R"(nn.reduce sum "b d -> d" %a : tensor<8x4xf32> -> tensor<4xf32>)",
                 {"tensor<8x4xf32>"}),
            "[b:8+ d:4] -> [d:4]");
  EXPECT_EQ(
      rule(R"(nn.reduce mean "b d ->" %a : tensor<8x4xf32> -> tensor<f64>)", {"tensor<8x4xf32>"}),
      "[b:8+ d:4+] -> []");
  EXPECT_EQ(rule(R"(nn.reduce max "b d -> b" %a : tensor<8x4xf32> -> tensor<8xf32>)",
                 {"tensor<8x4xf32>"}),
            "[b:8 d:4^] -> [b:8]");
}

TEST_F(ShardingRuleTest, ScanSum) {
  const char *scan = R"(nn.scan_sum "b s d" along "s" %a : tensor<2x3x5xbf16>)";
  EXPECT_EQ(rule(scan, {"tensor<2x3x5xbf16>"}), "[b:2 s:3& d:5] -> [b:2 s:3& d:5]");
  EXPECT_EQ(cost(scan, {"tensor<2x3x5xbf16>"}), "30 flops 60 read 60 written");
}

TEST_F(ShardingRuleTest, PositionsSince) {
  const char *since = "nn.positions_since [7, 2] in %a : tensor<3x5xi64> -> tensor<3x5xi32>";
  EXPECT_EQ(rule(since, {"tensor<3x5xi64>"}), "[d0:3 d1:5!] -> [d0:3 d1:5!]");
  EXPECT_EQ(cost(since, {"tensor<3x5xi64>"}), "0 flops 120 read 60 written");
}

TEST_F(ShardingRuleTest, Rows) {
  EXPECT_EQ(rule("%l, %s = nn.cross_entropy %a, %b : tensor<8x10xf32>, tensor<8xi32> -> "
                 "tensor<8xf32>, tensor<8xf32>",
                 {"tensor<8x10xf32>", "tensor<8xi32>"}),
            "[d0:8 d1:10&#], [d0:8] -> [d0:8], [d0:8]");
  EXPECT_EQ(rule("nn.cross_entropy_grad %a, %b, %c, %c : tensor<8x10xf32>, tensor<8xi32>, "
                 "tensor<8xf32>, tensor<8xf32>",
                 {"tensor<8x10xf32>", "tensor<8xi32>", "tensor<8xf32>"}),
            "[d0:8 d1:10#], [d0:8], [d0:8], [d0:8] -> [d0:8 d1:10#]");
  // A rank's computation on its part of the classes is not split further.
  EXPECT_EQ(rule("nn.cross_entropy_grad %a, %b, %c, %c of %d : tensor<8x10xf32>, tensor<8xi32>, "
                 "tensor<8xf32>, tensor<8xf32>",
                 {"tensor<8x10xf32>", "tensor<8xi32>", "tensor<8xf32>", "tensor<i64>"}),
            "[d0:8 d1:10!], [d0:8], [d0:8], [d0:8], [] -> [d0:8 d1:10!]");
  const char *partial = "%m, %s, %p = nn.partial_cross_entropy %a, %b of %c : tensor<8x10xbf16>, "
                        "tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>, tensor<8xf32>";
  EXPECT_EQ(rule(partial, {"tensor<8x10xbf16>", "tensor<8xi32>", "tensor<i64>"}),
            "[d0:8 d1:10!], [d0:8], [] -> [d0:8], [d0:8], [d0:8]");
  EXPECT_EQ(cost(partial, {"tensor<8x10xbf16>", "tensor<8xi32>", "tensor<i64>"}),
            "320 flops 200 read 96 written");
  // With their gradients, which a kernel computes from one reading of the logits.
  const char *both = "%l:3 = nn.cross_entropy %a, %b upstream %c : tensor<8x10xbf16>, "
                     "tensor<8xi32> upstream tensor<8xf32> -> tensor<8xf32>, tensor<8xf32>, "
                     "tensor<8x10xbf16>";
  EXPECT_EQ(rule(both, {"tensor<8x10xbf16>", "tensor<8xi32>", "tensor<8xf32>"}),
            "[d0:8 d1:10&#], [d0:8], [d0:8] -> [d0:8], [d0:8], [d0:8 d1:10&#]");
  EXPECT_EQ(cost(both, {"tensor<8x10xbf16>", "tensor<8xi32>", "tensor<8xf32>"}),
            "592 flops 224 read 224 written");
  const char *all = "%l:4 = nn.partial_cross_entropy %a, %b of %c upstream %d : tensor<8x10xbf16>, "
                    "tensor<8xi32> upstream tensor<8xf32> -> tensor<8xf32>, tensor<8xf32>, "
                    "tensor<8xf32>, tensor<8x10xbf16>";
  EXPECT_EQ(rule(all, {"tensor<8x10xbf16>", "tensor<8xi32>", "tensor<i64>", "tensor<8xf32>"}),
            "[d0:8 d1:10!], [d0:8], [], [d0:8] -> [d0:8], [d0:8], [d0:8], [d0:8 d1:10!]");
  EXPECT_EQ(cost(all, {"tensor<8x10xbf16>", "tensor<8xi32>", "tensor<i64>", "tensor<8xf32>"}),
            "584 flops 232 read 256 written");
  EXPECT_EQ(rule("nn.argmax %a : tensor<2x3x4xf32> -> tensor<2x3xi32>", {"tensor<2x3x4xf32>"}),
            "[d0:2 d1:3 d2:4&] -> [d0:2 d1:3]");
}

TEST_F(ShardingRuleTest, Norms) {
  StringRef x = "tensor<8x4x10xf32>", row = "tensor<10xf32>", rows = "tensor<8x4xf32>";
  EXPECT_EQ(
      rule("%y, %m, %r = nn.layer_norm %a, %b, %b eps 0.1 : tensor<8x4x10xf32>, tensor<10xf32> "
           "-> tensor<8x4xf32>",
           {x, row}),
      "[d0:8 d1:4 row:10&], [row:10&], [row:10&] -> [d0:8 d1:4 row:10&], [d0:8 d1:4], "
      "[d0:8 d1:4]");
  // Rows are summed away for the gradients of the parameters only.
  EXPECT_EQ(rule("%x, %s, %b2 = nn.layer_norm_grad %a, %b, %c, %c, %a : tensor<8x4x10xf32>, "
                 "tensor<10xf32>, tensor<8x4xf32>",
                 {x, row, rows}),
            "[d0:8+ d1:4+ row:10&], [row:10&], [d0:8+ d1:4+], [d0:8+ d1:4+], [d0:8+ d1:4+ row:10&] "
            "-> [d0:8+ d1:4+ row:10&], [row:10&], [row:10&]");
  EXPECT_EQ(rule("%x, %s = nn.rms_norm_grad %a, %b, %c, %a : tensor<8x4x10xf32>, tensor<10xf32>, "
                 "tensor<8x4xf32>",
                 {x, row, rows}),
            "[d0:8+ d1:4+ row:10&], [row:10&], [d0:8+ d1:4+], [d0:8+ d1:4+ row:10&] -> "
            "[d0:8+ d1:4+ row:10&], [row:10&]");
  EXPECT_EQ(rule("%x:3 = nn.rms_norm_grad %a, %b, %c, %a plus %a : tensor<8x4x10xf32>, "
                 "tensor<10xf32>, tensor<8x4xf32> plus tensor<8x4x10xf32> sums tensor<10xf32>",
                 {x, row, rows}),
            "[d0:8+ d1:4+ row:10&], [row:10&], [d0:8+ d1:4+], [d0:8+ d1:4+ row:10&], "
            "[d0:8+ d1:4+ row:10&] -> [d0:8+ d1:4+ row:10&], [row:10&], [row:10&]");
  EXPECT_EQ(rule("nn.softmax %a : tensor<10xf32>", {row}), "[row:10&] -> [row:10&]");
}

TEST_F(ShardingRuleTest, AttentionAndLookups) {
  EXPECT_EQ(rule("%o, %l = nn.attention %a, %b, %b scale 1.0 : (tensor<2x6x5x4xf32>, "
                 "tensor<2x3x7x4xf32>, tensor<2x3x7x4xf32>) -> (tensor<2x6x5x4xf32>, "
                 "tensor<2x6x5xf32>)",
                 {"tensor<2x6x5x4xf32>", "tensor<2x3x7x4xf32>"}),
            "[batch:2 group:3*head:2 query:5! width:4!], [batch:2 group:3 key:7! width:4!], "
            "[batch:2 group:3 key:7! width:4!] -> [batch:2 group:3*head:2 query:5! width:4!], "
            "[batch:2 group:3*head:2 query:5!]");
  EXPECT_EQ(rule("nn.attention \"b t h d\" %a, %b, %b scale 1.0 : (tensor<2x5x6x4xf32>, "
                 "tensor<2x7x3x4xf32>, tensor<2x7x3x4xf32>) -> (tensor<2x5x6x4xf32>, "
                 "tensor<2x6x5xf32>)",
                 {"tensor<2x5x6x4xf32>", "tensor<2x7x3x4xf32>"}),
            "[batch:2 query:5! group:3*head:2 width:4!], [batch:2 key:7! group:3 width:4!], "
            "[batch:2 key:7! group:3 width:4!] -> [batch:2 query:5! group:3*head:2 width:4!], "
            "[batch:2 group:3*head:2 query:5!]");
  EXPECT_EQ(rule("nn.attention_grad \"t n b h d\" %a, %b, %c, %b scale 1.0 : "
                 "(tensor<5x3x2x6x4xf32>, tensor<5x2x6x4xf32>, tensor<2x6x5xf32>, "
                 "tensor<5x2x6x4xf32>) -> tensor<5x3x2x6x4xf32>",
                 {"tensor<5x3x2x6x4xf32>", "tensor<5x2x6x4xf32>", "tensor<2x6x5xf32>"}),
            "[query:5! part:3! batch:2 group:6*head:1+ width:4!], "
            "[query:5! batch:2 group:6*head:1+ width:4!], [batch:2 group:6*head:1+ query:5!], "
            "[query:5! batch:2 group:6*head:1+ width:4!] -> "
            "[query:5! part:3! batch:2 group:6*head:1+ width:4!]");
  // Positions that ranks exchange keys for are one factor, of ids too; a bias has its rows.
  EXPECT_EQ(
      rule("%o, %l = nn.attention %a, %b, %b, %d, %c scale 1.0 bias documents exchange gather"
           " : (tensor<2x6x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, "
           "tensor<6x5x5xf32>, tensor<2x5xi32>) -> (tensor<2x6x5x4xf32>, tensor<2x6x5xf32>)",
           {"tensor<2x6x5x4xf32>", "tensor<2x3x5x4xf32>", "tensor<2x5xi32>", "tensor<6x5x5xf32>"}),
      "[batch:2 group:3*head:2 query:5& width:4!], [batch:2 group:3 query:5& width:4!], "
      "[batch:2 group:3 query:5& width:4!], [group:3*head:2 query:5& key:5!], "
      "[batch:2 query:5&] -> "
      "[batch:2 group:3*head:2 query:5& width:4!], [batch:2 group:3*head:2 query:5&]");
  // Ids follow the batch, not the heads, and in one tensor keys have the positions of queries.
  EXPECT_EQ(rule("%o, %l = nn.attention %a, %b, %b, %c scale 1.0 documents : "
                 "(tensor<2x6x5x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x7x4xf32>, tensor<2x7xi32>) "
                 "-> (tensor<2x6x5x4xf32>, tensor<2x6x5xf32>)",
                 {"tensor<2x6x5x4xf32>", "tensor<2x3x7x4xf32>", "tensor<2x7xi32>"}),
            "[batch:2 group:3*head:2 query:5! width:4!], [batch:2 group:3 key:7! width:4!], "
            "[batch:2 group:3 key:7! width:4!], [batch:2 key:7!] -> "
            "[batch:2 group:3*head:2 query:5! width:4!], [batch:2 group:3*head:2 query:5!]");
  EXPECT_EQ(rule("nn.attention_grad \"t n b h d\" %a, %d, %b, %c, %b scale 1.0 documents : "
                 "(tensor<5x3x2x6x4xf32>, tensor<2x5xi32>, tensor<5x2x6x4xf32>, "
                 "tensor<2x6x5xf32>, tensor<5x2x6x4xf32>) -> tensor<5x3x2x6x4xf32>",
                 {"tensor<5x3x2x6x4xf32>", "tensor<5x2x6x4xf32>", "tensor<2x6x5xf32>",
                  "tensor<2x5xi32>"}),
            "[query:5! part:3! batch:2 group:6*head:1+ width:4!], [batch:2 query:5!], "
            "[query:5! batch:2 group:6*head:1+ width:4!], [batch:2 group:6*head:1+ query:5!], "
            "[query:5! batch:2 group:6*head:1+ width:4!] -> "
            "[query:5! part:3! batch:2 group:6*head:1+ width:4!]");
  // A bias follows the heads, or none of the factors that are split.
  EXPECT_EQ(rule("%o, %l = nn.attention %a, %b, %b, %c scale 1.0 bias : (tensor<2x6x5x4xf32>, "
                 "tensor<2x3x7x4xf32>, tensor<2x3x7x4xf32>, tensor<6x5x7xf32>) -> "
                 "(tensor<2x6x5x4xf32>, tensor<2x6x5xf32>)",
                 {"tensor<2x6x5x4xf32>", "tensor<2x3x7x4xf32>", "tensor<6x5x7xf32>"}),
            "[batch:2 group:3*head:2 query:5! width:4!], [batch:2 group:3 key:7! width:4!], "
            "[batch:2 group:3 key:7! width:4!], [group:3*head:2 query:5! key:7!] -> "
            "[batch:2 group:3*head:2 query:5! width:4!], [batch:2 group:3*head:2 query:5!]");
  // Its gradient is a sum over the batch, and over the heads where it is one for all.
  const std::string gradient = "nn.attention_bias_grad %a, %b, %b, %c, %a, %d, %a scale 1.0 : "
                               "(tensor<2x6x5x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x7x4xf32>, ",
                    behind = ", tensor<2x6x5x4xf32>, tensor<2x6x5xf32>, tensor<2x6x5x4xf32>) -> ";
  auto biasRule = [&](const std::string &type) {
    return rule(gradient + type + behind + type,
                {"tensor<2x6x5x4xf32>", "tensor<2x3x7x4xf32>", type, "tensor<2x6x5xf32>"});
  };
  EXPECT_EQ(biasRule("tensor<6x5x7xf32>"),
            "[batch:2+ group:3*head:2 query:5! width:4!], [batch:2+ group:3 key:7! width:4!], "
            "[batch:2+ group:3 key:7! width:4!], [group:3*head:2 query:5! key:7!], "
            "[batch:2+ group:3*head:2 query:5! width:4!], [batch:2+ group:3*head:2 query:5!], "
            "[batch:2+ group:3*head:2 query:5! width:4!] -> [group:3*head:2 query:5! key:7!]");
  EXPECT_EQ(biasRule("tensor<1x5x7xf32>"),
            "[batch:2+ group:3+*head:2+ query:5! width:4!], [batch:2+ group:3+ key:7! width:4!], "
            "[batch:2+ group:3+ key:7! width:4!], [ query:5! key:7!], "
            "[batch:2+ group:3+*head:2+ query:5! width:4!], [batch:2+ group:3+*head:2+ query:5!], "
            "[batch:2+ group:3+*head:2+ query:5! width:4!] -> [ query:5! key:7!]");
  EXPECT_EQ(rule("nn.rope %a dim 1 theta 10.0 : tensor<2x3x5x4xf32>", {"tensor<2x3x5x4xf32>"}),
            "[d0:2 d1:3! d2:5 d3:4!] -> [d0:2 d1:3! d2:5 d3:4!]");
  EXPECT_EQ(rule("nn.embedding %a, %b : tensor<9x4xf32>, tensor<2x3xi32> -> tensor<2x3x4xf32>",
                 {"tensor<9x4xf32>", "tensor<2x3xi32>"}),
            "[row:9+# width:4], [d0:2 d1:3] -> [d0:2 d1:3 width:4]");
  EXPECT_EQ(rule("nn.embedding partial %a, %b : tensor<9x4xf32>, tensor<2xi32> -> tensor<2x4xf32>",
                 {"tensor<9x4xf32>", "tensor<2xi32>"}),
            "[row:9! width:4], [d0:2] -> [d0:2 width:4]");
  EXPECT_EQ(rule("nn.embedding_grad %a, %b : tensor<2x3xi32>, tensor<2x3x4xf32> -> tensor<9x4xf32>",
                 {"tensor<2x3xi32>", "tensor<2x3x4xf32>"}),
            "[d0:2+ d1:3+], [d0:2+ d1:3+ width:4] -> [row:9# width:4]");
  EXPECT_EQ(
      rule("nn.embedding_grad partial %a, %b : tensor<2xi32>, tensor<2x4xf32> -> tensor<9x4xf32>",
           {"tensor<2xi32>", "tensor<2x4xf32>"}),
      "[d0:2+], [d0:2+ width:4] -> [row:9! width:4]");
  EXPECT_EQ(
      rule("nn.slice %a dim 1 start 2 : tensor<8x5xf32> -> tensor<8x3xf32>", {"tensor<8x5xf32>"}),
      "[d0:8 in0:5!] -> [d0:8 d1:3!]");
  EXPECT_EQ(rule("nn.concat %a, %a dim 0 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>",
                 {"tensor<3x4xf32>"}),
            "[in0:3! d1:4], [in1:3! d1:4] -> [d0:6! d1:4]");
}

// Tokens of one sample are few, and each has its own position: neither they nor the kept positions
// are split. Heads and samples are.
TEST_F(ShardingRuleTest, Generation) {
  const std::vector<StringRef> table = {"tensor<2x3x9x4xf32>", "tensor<2x3x5x4xf32>",
                                        "tensor<2x5xi32>"};
  const char *write = "nn.write_rows %a, %b, %c dim 2 : tensor<2x3x9x4xf32>, "
                      "tensor<2x3x5x4xf32>, tensor<2x5xi32>";
  EXPECT_EQ(rule(write, table), "[d0:2 d1:3 d2:9! d3:4], [d0:2 d1:3 row:5! d3:4], [d0:2 row:5!] -> "
                                "[d0:2 d1:3 d2:9! d3:4]");
  // The rows alone are read and written: 2 * 3 * 5 * 4 numbers of 4 bytes.
  EXPECT_EQ(cost(write, table), "0 flops 480 read 480 written");
  EXPECT_EQ(rule("nn.write_rows %a, %b, %c dim 1 : tensor<2x9xf32>, tensor<2x5xf32>, "
                 "tensor<2x5xi32>",
                 {"tensor<2x9xf32>", "tensor<2x5xf32>", "tensor<2x5xi32>"}),
            "[d0:2 d1:9!], [d0:2 row:5!], [d0:2 row:5!] -> [d0:2 d1:9!]");

  const std::vector<StringRef> attended = {"tensor<2x5x6x4xf32>", "tensor<2x3x9x4xf32>",
                                           "tensor<2x5xi32>"};
  const char *attention = "nn.cached_attention \"b t h d\" %a, %b, %b, %c scale 1.0 window 2 : "
                          "tensor<2x5x6x4xf32>, tensor<2x3x9x4xf32>, tensor<2x5xi32>";
  EXPECT_EQ(rule(attention, attended),
            "[batch:2 query:5! group:3*head:2 width:4!], [batch:2 group:3 key:9! width:4!], "
            "[batch:2 group:3 key:9! width:4!], [batch:2 query:5!] -> "
            "[batch:2 query:5! group:3*head:2 width:4!]");
  // 240 numbers of queries by 9 keys, two products of each; 240 + 2 * 216 + 10 numbers are read.
  EXPECT_EQ(cost(attention, attended), "8640 flops 2728 read 960 written");
  EXPECT_EQ(rule("nn.cached_attention \"b h t d\" %a, %b, %b, %c scale 1.0 : "
                 "tensor<2x6x5x4xf32>, tensor<2x3x9x4xf32>, tensor<2x5xi32>",
                 {"tensor<2x6x5x4xf32>", "tensor<2x3x9x4xf32>", "tensor<2x5xi32>"}),
            "[batch:2 group:3*head:2 query:5! width:4!], [batch:2 group:3 key:9! width:4!], "
            "[batch:2 group:3 key:9! width:4!], [batch:2 query:5!] -> "
            "[batch:2 group:3*head:2 query:5! width:4!]");

  const std::vector<StringRef> turned = {"tensor<2x6x5x4xf32>", "tensor<2x5xi32>"};
  const char *rope =
      "nn.rope %a at %b : tensor<2x5xi32> dim 2 theta 10.0 inverse : tensor<2x6x5x4xf32>";
  EXPECT_EQ(rule(rope, turned), "[d0:2 d1:6 d2:5 d3:4!], [d0:2 d2:5] -> [d0:2 d1:6 d2:5 d3:4!]");
  EXPECT_EQ(cost(rope, turned), "720 flops 1000 read 960 written");
}

TEST_F(ShardingRuleTest, Elementwise) {
  EXPECT_EQ(rule("arith.addf %a, %b : tensor<2x3xf32>", {"tensor<2x3xf32>", "tensor<2x3xf32>"}),
            "[d0:2 d1:3], [d0:2 d1:3] -> [d0:2 d1:3]");
  EXPECT_EQ(rule("arith.select %a, %b, %b : tensor<2xi1>, tensor<2xf32>",
                 {"tensor<2xi1>", "tensor<2xf32>"}),
            "[d0:2], [d0:2], [d0:2] -> [d0:2]");
  EXPECT_EQ(rule("math.exp %a : tensor<f32>", {"tensor<f32>"}), "[] -> []");
}

TEST_F(ShardingRuleTest, Constants) {
  EXPECT_EQ(rule("arith.constant dense<1.0> : tensor<2x3xf32>", {}), " -> [d0:2 d1:3]");
  EXPECT_EQ(rule("arith.constant dense<[1.0, 2.0]> : tensor<2xf32>", {}), " -> [d0:2!]");
}

TEST_F(ShardingRuleTest, VerifyRefuses) {
  Operation *op =
      parse("arith.addf %a, %b : tensor<2x3xf32>", {"tensor<2x3xf32>", "tensor<2x3xf32>"});
  auto refused = [&](auto spoil) {
    ShardingRule rule = ShardingRule::elementwise(op);
    spoil(rule);
    message.clear();
    EXPECT_TRUE(failed(rule.verify(op)));
    return message;
  };
  EXPECT_EQ(refused([](ShardingRule &rule) { rule.factors[1].size = 4; }),
            "'arith.addf' op sharding rule gives dimension 1 of operand #0 the size 4, expected 3");
  EXPECT_EQ(refused([](ShardingRule &rule) { rule.results[0].pop_back(); }),
            "'arith.addf' op sharding rule has 1 dimensions for result #0, expected 2");
  EXPECT_EQ(refused([](ShardingRule &rule) { rule.operands.pop_back(); }),
            "'arith.addf' op sharding rule has 1 operands and 1 results, expected 2 and 1");
}

TEST_F(ShardingRuleTest, Costs) {
  EXPECT_EQ(
      cost(
          R"(nn.einsum "ab,bc->ac" %a, %b : (tensor<2x3xf32>, tensor<3x5xbf16>) -> tensor<2x5xf64>)",
          {"tensor<2x3xf32>", "tensor<3x5xbf16>"}),
      "60 flops 54 read 80 written");
  EXPECT_EQ(cost(R"(nn.reduce mean "a b -> a" %a : tensor<2x3xf32> -> tensor<2xf32>)",
                 {"tensor<2x3xf32>"}),
            "8 flops 24 read 8 written");
  EXPECT_EQ(cost("arith.cmpf oeq, %a, %a : tensor<4xf32>", {"tensor<4xf32>"}),
            "4 flops 32 read 4 written");
  EXPECT_EQ(cost("arith.extf %a : tensor<4xf32> to tensor<4xf64>", {"tensor<4xf32>"}),
            "0 flops 16 read 32 written");
  // Causal: of 3 queries and 4 keys, 2 + 3 + 4 pairs are seen.
  EXPECT_EQ(cost("%o, %l = nn.attention %a, %b, %b scale 1.0 causal : (tensor<1x2x3x4xf32>, "
                 "tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x3x4xf32>, "
                 "tensor<1x2x3xf32>)",
                 {"tensor<1x2x3x4xf32>", "tensor<1x1x4x4xf32>"}),
            "288 flops 224 read 120 written");
  // In a window of 3: 2 + 3 + 3 pairs; of all 4 keys, or more: the same as without.
  for (auto [window, flops] :
       {std::pair("3", "256"), {"2", "192"}, {"1", "96"}, {"4", "288"}, {"9", "288"}})
    EXPECT_EQ(cost(std::string("%o, %l = nn.attention %a, %b, %b scale 1.0 causal window ") +
                       window +
                       " : (tensor<1x2x3x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> "
                       "(tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)",
                   {"tensor<1x2x3x4xf32>", "tensor<1x1x4x4xf32>"}),
              std::string(flops) + " flops 224 read 120 written");
  // Of ranks with queries before their keys, among them and behind them the last one.
  for (auto [places, flops] : {std::pair("at [-3, 4]", "384"),
                               {"at [0, 1]", "288"},
                               {"at [-3, -1]", "96"},
                               {"at [4, -1]", "96"},
                               {"at [-1, -3]", "0"},
                               {"at [-9, -8]", "0"},
                               {"window 2 at [4, 0]", "160"},
                               {"window 2 at [0, 4]", "32"},
                               {"window 5 at [5, 3]", "352"},
                               {"window 5 at [3, 5]", "192"}})
    EXPECT_EQ(cost(std::string("%o, %l = nn.attention %a, %b, %b scale 1.0 causal ") + places +
                       " over [\"context\"] : (tensor<1x2x3x4xf32>, tensor<1x1x4x4xf32>, "
                       "tensor<1x1x4x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)",
                   {"tensor<1x2x3x4xf32>", "tensor<1x1x4x4xf32>"}),
              std::string(flops) + " flops 224 read 120 written");
  EXPECT_EQ(cost("nn.embedding %a, %b : tensor<100x4xf32>, tensor<2xi32> -> tensor<2x4xf32>",
                 {"tensor<100x4xf32>", "tensor<2xi32>"}),
            "0 flops 40 read 32 written");
  EXPECT_EQ(
      cost("nn.slice %a dim 0 start 1 : tensor<100xf32> -> tensor<10xf32>", {"tensor<100xf32>"}),
      "0 flops 40 read 40 written");
  EXPECT_EQ(cost(R"(nn.fused %a : (tensor<4xf32>) -> tensor<f32> {
    ^bb0(%x: tensor<4xf32>):
      %e = math.exp %x : tensor<4xf32>
      %s = nn.reduce sum "a ->" %e : tensor<4xf32> -> tensor<f32>
      nn.yield %s : tensor<f32>
    })",
                 {"tensor<4xf32>"}),
            "8 flops 16 read 4 written");
}

TEST_F(ShardingRuleTest, ProductCosts) {
  // 4 matrices of 2 rows, 5 columns and 3 terms.
  EXPECT_EQ(product(R"(nn.einsum "xab,xbc->xac" %a, %b : (tensor<4x2x3xbf16>, tensor<4x3x5xbf16>))"
                    " -> tensor<4x2x5xf32>",
                    {"tensor<4x2x3xbf16>", "tensor<4x3x5xbf16>"}),
            "matrix 240 of 2 bf16");
  // Without a sum it is not a product.
  EXPECT_EQ(product(R"(nn.einsum "ab,b->ab" %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> )"
                    "tensor<2x3xf32>",
                    {"tensor<2x3xf32>", "tensor<3xf32>"}),
            " 0 of 0 <<NULL TYPE>>");
  EXPECT_EQ(product("%o, %l = nn.attention %a, %b, %b scale 1.0 causal : (tensor<1x2x3x4xf32>, "
                    "tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x3x4xf32>, "
                    "tensor<1x2x3xf32>)",
                    {"tensor<1x2x3x4xf32>", "tensor<1x1x4x4xf32>"}),
            "attention 288 of 4 f32");
  for (auto [window, keys] : {std::pair("", 4), {"window 3", 3}, {"window 9", 4}})
    EXPECT_EQ(getProductCost(
                  parse(std::string("%o, %l = nn.attention %a, %b, %b scale 1.0 causal ") + window +
                            " : (tensor<1x2x3x4xf32>, tensor<1x1x4x4xf32>, "
                            "tensor<1x1x4x4xf32>) -> (tensor<1x2x3x4xf32>, "
                            "tensor<1x2x3xf32>)",
                        {"tensor<1x2x3x4xf32>", "tensor<1x1x4x4xf32>"}))
                  .keys,
              keys);
  EXPECT_EQ(product("nn.attention_grad \"t n b h d\" %a, %b, %c, %b scale 1.0 : "
                    "(tensor<5x3x2x6x4xf32>, tensor<5x2x6x4xf32>, tensor<2x6x5xf32>, "
                    "tensor<5x2x6x4xf32>) -> tensor<5x3x2x6x4xf32>",
                    {"tensor<5x3x2x6x4xf32>", "tensor<5x2x6x4xf32>", "tensor<2x6x5xf32>"}),
            "attention_grad 12000 of 4 f32");
  // Of a kernel, the product that it begins with.
  EXPECT_EQ(product(R"(nn.fused %a, %b : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32> {
    ^bb0(%x: tensor<2x3xf32>, %y: tensor<3x5xf32>):
      %p = nn.einsum "ab,bc->ac" %x, %y : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
      %e = math.exp %p : tensor<2x5xf32>
      nn.yield %e : tensor<2x5xf32>
    })",
                    {"tensor<2x3xf32>", "tensor<3x5xf32>"}),
            "matrix 60 of 2 f32");
}

} // namespace
