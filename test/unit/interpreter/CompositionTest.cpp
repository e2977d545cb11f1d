//===- CompositionTest.cpp - ops against what they are composed of --------===//
//
// Each op with a separate kernel computes the same result as structured ops and arithmetic composed
// according to its description.
//
//===----------------------------------------------------------------------===//

#include "test/unit/interpreter/Evaluate.h"

#include "dialect/nn/NNDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace mlir::fsdp::interpreter;

namespace {

class CompositionTest : public testing::Test {
protected:
  CompositionTest() {
    DialectRegistry registry;
    nn::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<nn::NNDialect, arith::ArithDialect, math::MathDialect, func::FuncDialect>();
  }

  /// The largest magnitude among the elements of the last value of `body`, which is a difference,
  /// for random values of the arguments; integers lie in [0, classes).
  double largest(StringRef arguments, StringRef body, int64_t classes = 1) {
    module = parseSourceString<ModuleOp>(
        ("func.func private @f(" + arguments + ") {\n" + body + "\nreturn\n}\n").str(),
        ParserConfig(&context));
    if (!module)
      return INFINITY;
    Block &block = (*module->getOps<func::FuncOp>().begin()).getBody().front();
    std::mt19937_64 random(7);
    SmallVector<Tensor> values;
    for (Type type : block.getArgumentTypes()) {
      Tensor value(cast<RankedTensorType>(type));
      for (int64_t i = 0; i < value.size(); ++i)
        value.setNumber(i, value.isFloat() ? static_cast<double>(random() % 4001) / 1000 - 2
                                           : static_cast<double>(random() % classes));
      values.push_back(value);
    }
    auto results = evaluate(block, values, {block.getTerminator()->getPrevNode()->getResult(0)});
    if (failed(results))
      return INFINITY;
    double most = 0;
    for (int64_t i = 0; i < results->front().size(); ++i)
      most = std::max(most, std::abs(results->front().getFloat(i)));
    return most;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr double rounding = 1e-13;

TEST_F(CompositionTest, Softmax) {
  EXPECT_LT(largest("%x: tensor<3x4xf64>", R"(
    %y = nn.softmax %x : tensor<3x4xf64>
    %e = math.exp %x : tensor<3x4xf64>
    %s = nn.reduce sum "a b -> a" %e : tensor<3x4xf64> -> tensor<3xf64>
    %r = nn.repeat "a -> a b" %s : tensor<3xf64> -> tensor<3x4xf64>
    %q = arith.divf %e, %r : tensor<3x4xf64>
    %d = arith.subf %y, %q : tensor<3x4xf64>
  )"),
            rounding);
}

/// y, mean, rstd of rows, from means: the value of `wanted` is compared.
std::string layerNorm(const std::string &difference) {
  return R"(
    %y, %m, %r = nn.layer_norm %x, %s, %b eps 0.25 : tensor<3x5xf64>, tensor<5xf64> -> tensor<3xf64>
    %mean = nn.reduce mean "a b -> a" %x : tensor<3x5xf64> -> tensor<3xf64>
    %means = nn.repeat "a -> a b" %mean : tensor<3xf64> -> tensor<3x5xf64>
    %c = arith.subf %x, %means : tensor<3x5xf64>
    %cc = arith.mulf %c, %c : tensor<3x5xf64>
    %var = nn.reduce mean "a b -> a" %cc : tensor<3x5xf64> -> tensor<3xf64>
    %eps = arith.constant dense<0.25> : tensor<3xf64>
    %shifted = arith.addf %var, %eps : tensor<3xf64>
    %rstd = math.rsqrt %shifted : tensor<3xf64>
    %rstds = nn.repeat "a -> a b" %rstd : tensor<3xf64> -> tensor<3x5xf64>
    %n = arith.mulf %c, %rstds : tensor<3x5xf64>
    %ss = nn.repeat "b -> a b" %s : tensor<5xf64> -> tensor<3x5xf64>
    %bs = nn.repeat "b -> a b" %b : tensor<5xf64> -> tensor<3x5xf64>
    %scaled = arith.mulf %n, %ss : tensor<3x5xf64>
    %expected = arith.addf %scaled, %bs : tensor<3x5xf64>
  )" + difference;
}

TEST_F(CompositionTest, LayerNorm) {
  for (std::string difference :
       {"%d = arith.subf %y, %expected : tensor<3x5xf64>",
        "%d = arith.subf %m, %mean : tensor<3xf64>", "%d = arith.subf %r, %rstd : tensor<3xf64>"})
    EXPECT_LT(
        largest("%x: tensor<3x5xf64>, %s: tensor<5xf64>, %b: tensor<5xf64>", layerNorm(difference)),
        rounding)
        << difference;
}

TEST_F(CompositionTest, RmsNorm) {
  EXPECT_LT(largest("%x: tensor<3x5xf64>, %s: tensor<5xf64>", R"(
    %y, %r = nn.rms_norm %x, %s eps 0.25 : tensor<3x5xf64>, tensor<5xf64> -> tensor<3xf64>
    %xx = arith.mulf %x, %x : tensor<3x5xf64>
    %square = nn.reduce mean "a b -> a" %xx : tensor<3x5xf64> -> tensor<3xf64>
    %eps = arith.constant dense<0.25> : tensor<3xf64>
    %shifted = arith.addf %square, %eps : tensor<3xf64>
    %rstd = math.rsqrt %shifted : tensor<3xf64>
    %rstds = nn.repeat "a -> a b" %rstd : tensor<3xf64> -> tensor<3x5xf64>
    %n = arith.mulf %x, %rstds : tensor<3x5xf64>
    %ss = nn.repeat "b -> a b" %s : tensor<5xf64> -> tensor<3x5xf64>
    %expected = arith.mulf %n, %ss : tensor<3x5xf64>
    %d = arith.subf %y, %expected : tensor<3x5xf64>
  )"),
            rounding);
}

// Four heads in two groups, more keys than queries: query t sees the keys up to t + 2.
TEST_F(CompositionTest, Attention) {
  for (bool causal : {false, true}) {
    std::string mask =
        causal ? "[[0.0, 0.0, 0.0, -1.0e300, -1.0e300], [0.0, 0.0, 0.0, 0.0, -1.0e300], "
                 "[0.0, 0.0, 0.0, 0.0, 0.0]]"
               : "0.0";
    std::string body =
        R"(
      %o, %l = nn.attention %q, %k, %v scale 0.6 )" +
        std::string(causal ? "causal" : "") +
        R"( : (tensor<2x4x3x6xf64>, tensor<2x2x5x6xf64>, tensor<2x2x5x6xf64>) -> (tensor<2x4x3x6xf64>, tensor<2x4x3xf64>)
      %gq = nn.rearrange "b (g r) t d -> b g r t d" %q : tensor<2x4x3x6xf64> -> tensor<2x2x2x3x6xf64>
      %p = nn.einsum "bgrtd,bgsd->bgrts" %gq, %k : (tensor<2x2x2x3x6xf64>, tensor<2x2x5x6xf64>) -> tensor<2x2x2x3x5xf64>
      %scale = arith.constant dense<0.6> : tensor<2x2x2x3x5xf64>
      %ps = arith.mulf %p, %scale : tensor<2x2x2x3x5xf64>
      %mask = arith.constant dense<)" +
        mask + R"(> : tensor<3x5xf64>
      %masks = nn.repeat "t s -> b g r t s" %mask : tensor<3x5xf64> -> tensor<2x2x2x3x5xf64>
      %m = arith.addf %ps, %masks : tensor<2x2x2x3x5xf64>
      %w = nn.softmax %m : tensor<2x2x2x3x5xf64>
      %wv = nn.einsum "bgrts,bgsd->bgrtd" %w, %v : (tensor<2x2x2x3x5xf64>, tensor<2x2x5x6xf64>) -> tensor<2x2x2x3x6xf64>
      %expected = nn.rearrange "b g r t d -> b (g r) t d" %wv : tensor<2x2x2x3x6xf64> -> tensor<2x4x3x6xf64>
      %e = math.exp %m : tensor<2x2x2x3x5xf64>
      %sum = nn.reduce sum "b g r t s -> b g r t" %e : tensor<2x2x2x3x5xf64> -> tensor<2x2x2x3xf64>
      %log = math.log %sum : tensor<2x2x2x3xf64>
      %lse = nn.rearrange "b g r t -> b (g r) t" %log : tensor<2x2x2x3xf64> -> tensor<2x4x3xf64>
    )";
    for (std::string difference : {"%d = arith.subf %o, %expected : tensor<2x4x3x6xf64>",
                                   "%d = arith.subf %l, %lse : tensor<2x4x3xf64>"})
      EXPECT_LT(largest("%q: tensor<2x4x3x6xf64>, %k: tensor<2x2x5x6xf64>, %v: tensor<2x2x5x6xf64>",
                        body + difference),
                rounding)
          << difference << (causal ? ", causal" : "");
  }
}

// As before, of capped scores: key s is seen by query t where t - 1 < s <= t + 2, and in the second
// batch where both are before key 3, or neither is.
TEST_F(CompositionTest, AttentionInWindowsAndDocuments) {
  const std::string body = R"(
      %ids = arith.constant dense<[[7, 7, 7, 7, 7], [1, 1, 1, -4, -4]]> : tensor<2x5xi32>
      %o, %l = nn.attention %q, %k, %v, %ids scale 0.6 causal window 3 softcap 0.5 documents : (tensor<2x4x3x6xf64>, tensor<2x2x5x6xf64>, tensor<2x2x5x6xf64>, tensor<2x5xi32>) -> (tensor<2x4x3x6xf64>, tensor<2x4x3xf64>)
      %gq = nn.rearrange "b (g r) t d -> b g r t d" %q : tensor<2x4x3x6xf64> -> tensor<2x2x2x3x6xf64>
      %p = nn.einsum "bgrtd,bgsd->bgrts" %gq, %k : (tensor<2x2x2x3x6xf64>, tensor<2x2x5x6xf64>) -> tensor<2x2x2x3x5xf64>
      %scale = arith.constant dense<1.2> : tensor<2x2x2x3x5xf64>
      %ps = arith.mulf %p, %scale : tensor<2x2x2x3x5xf64>
      %cap = math.tanh %ps : tensor<2x2x2x3x5xf64>
      %half = arith.constant dense<0.5> : tensor<2x2x2x3x5xf64>
      %capped = arith.mulf %cap, %half : tensor<2x2x2x3x5xf64>
      %mask = arith.constant dense<[[[0.0, 0.0, 0.0, -1.0e300, -1.0e300], [-1.0e300, 0.0, 0.0, 0.0, -1.0e300],
                                     [-1.0e300, -1.0e300, 0.0, 0.0, 0.0]],
                                    [[0.0, 0.0, 0.0, -1.0e300, -1.0e300], [-1.0e300, -1.0e300, -1.0e300, 0.0, -1.0e300],
                                     [-1.0e300, -1.0e300, -1.0e300, 0.0, 0.0]]]> : tensor<2x3x5xf64>
      %masks = nn.repeat "b t s -> b g r t s" %mask : tensor<2x3x5xf64> -> tensor<2x2x2x3x5xf64>
      %m = arith.addf %capped, %masks : tensor<2x2x2x3x5xf64>
      %w = nn.softmax %m : tensor<2x2x2x3x5xf64>
      %wv = nn.einsum "bgrts,bgsd->bgrtd" %w, %v : (tensor<2x2x2x3x5xf64>, tensor<2x2x5x6xf64>) -> tensor<2x2x2x3x6xf64>
      %expected = nn.rearrange "b g r t d -> b (g r) t d" %wv : tensor<2x2x2x3x6xf64> -> tensor<2x4x3x6xf64>
      %d = arith.subf %o, %expected : tensor<2x4x3x6xf64>
  )";
  EXPECT_LT(
      largest("%q: tensor<2x4x3x6xf64>, %k: tensor<2x2x5x6xf64>, %v: tensor<2x2x5x6xf64>", body),
      rounding);
}

// The order determines only the positions of dimensions.
TEST_F(CompositionTest, AttentionInOtherOrders) {
  const std::string usual = R"(
    %o, %l = nn.attention %q, %k, %v scale 0.6 causal : (tensor<2x4x3x6xf64>, tensor<2x2x5x6xf64>, tensor<2x2x5x6xf64>) -> (tensor<2x4x3x6xf64>, tensor<2x4x3xf64>)
    %qr = nn.rearrange "b h t d -> b t h d" %q : tensor<2x4x3x6xf64> -> tensor<2x3x4x6xf64>
    %kr = nn.rearrange "b h t d -> b t h d" %k : tensor<2x2x5x6xf64> -> tensor<2x5x2x6xf64>
    %vr = nn.rearrange "b h t d -> b t h d" %v : tensor<2x2x5x6xf64> -> tensor<2x5x2x6xf64>
    %or, %lr = nn.attention "b t h d" %qr, %kr, %vr scale 0.6 causal : (tensor<2x3x4x6xf64>, tensor<2x5x2x6xf64>, tensor<2x5x2x6xf64>) -> (tensor<2x3x4x6xf64>, tensor<2x4x3xf64>)
    %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %l, %q scale 0.6 causal : (tensor<2x4x3x6xf64>, tensor<2x2x5x6xf64>, tensor<2x2x5x6xf64>, tensor<2x4x3x6xf64>, tensor<2x4x3xf64>, tensor<2x4x3x6xf64>) -> (tensor<2x4x3x6xf64>, tensor<2x2x5x6xf64>, tensor<2x2x5x6xf64>)
    %dqr, %dkr, %dvr = nn.attention_grad "b t h d" %qr, %kr, %vr, %or, %lr, %qr scale 0.6 causal : (tensor<2x3x4x6xf64>, tensor<2x5x2x6xf64>, tensor<2x5x2x6xf64>, tensor<2x3x4x6xf64>, tensor<2x4x3xf64>, tensor<2x3x4x6xf64>) -> (tensor<2x3x4x6xf64>, tensor<2x5x2x6xf64>, tensor<2x5x2x6xf64>)
  )";
  auto compare = [&](const std::string &text, const std::string &name, const std::string &other,
                     const std::string &type, const std::string &back) {
    EXPECT_EQ(largest("%q: tensor<2x4x3x6xf64>, %k: tensor<2x2x5x6xf64>, %v: tensor<2x2x5x6xf64>",
                      text + back + "%d = arith.subf %" + name + ", %" + other + " : " + type),
              0)
        << other;
  };
  auto back = [](const std::string &name, const std::string &from, const std::string &to) {
    return "%back = nn.rearrange \"b t h d -> b h t d\" %" + name + " : " + from + " -> " + to +
           "\n";
  };
  const std::string q = "tensor<2x4x3x6xf64>", k = "tensor<2x2x5x6xf64>",
                    qr = "tensor<2x3x4x6xf64>", kr = "tensor<2x5x2x6xf64>";
  compare(usual, "l", "lr", "tensor<2x4x3xf64>", "");
  compare(usual, "o", "back", q, back("or", qr, q));
  compare(usual, "dq", "back", q, back("dqr", qr, q));
  compare(usual, "dk", "back", k, back("dkr", kr, k));
  compare(usual, "dv", "back", k, back("dvr", kr, k));

  // Queries, keys and values in one tensor, and their gradients likewise.
  const std::string packed = R"(
    %o, %l = nn.attention "t b h d" %q, %k, %v scale 0.6 : (tensor<2x4x3x6xf64>, tensor<2x4x3x6xf64>, tensor<2x4x3x6xf64>) -> (tensor<2x4x3x6xf64>, tensor<4x3x2xf64>)
    %dq, %dk, %dv = nn.attention_grad "t b h d" %q, %k, %v, %o, %l, %q scale 0.6 : (tensor<2x4x3x6xf64>, tensor<2x4x3x6xf64>, tensor<2x4x3x6xf64>, tensor<2x4x3x6xf64>, tensor<4x3x2xf64>, tensor<2x4x3x6xf64>) -> (tensor<2x4x3x6xf64>, tensor<2x4x3x6xf64>, tensor<2x4x3x6xf64>)
    %q1 = nn.rearrange "t b h d -> t 1 b h d" %q : tensor<2x4x3x6xf64> -> tensor<2x1x4x3x6xf64>
    %k1 = nn.rearrange "t b h d -> t 1 b h d" %k : tensor<2x4x3x6xf64> -> tensor<2x1x4x3x6xf64>
    %v1 = nn.rearrange "t b h d -> t 1 b h d" %v : tensor<2x4x3x6xf64> -> tensor<2x1x4x3x6xf64>
    %all = nn.concat %q1, %k1, %v1 dim 1 : (tensor<2x1x4x3x6xf64>, tensor<2x1x4x3x6xf64>, tensor<2x1x4x3x6xf64>) -> tensor<2x3x4x3x6xf64>
    %op, %lp = nn.attention "t n b h d" %all scale 0.6 : (tensor<2x3x4x3x6xf64>) -> (tensor<2x4x3x6xf64>, tensor<4x3x2xf64>)
    %dp = nn.attention_grad "t n b h d" %all, %op, %lp, %q scale 0.6 : (tensor<2x3x4x3x6xf64>, tensor<2x4x3x6xf64>, tensor<4x3x2xf64>, tensor<2x4x3x6xf64>) -> tensor<2x3x4x3x6xf64>
  )";
  for (auto [name, start] : {std::pair("dq", 0), std::pair("dk", 1), std::pair("dv", 2)}) {
    const std::string part = "%part = nn.slice %dp dim 1 start " + std::to_string(start) +
                             " : tensor<2x3x4x3x6xf64> -> tensor<2x1x4x3x6xf64>\n"
                             "%flat = nn.rearrange \"t 1 b h d -> t b h d\" %part : "
                             "tensor<2x1x4x3x6xf64> -> tensor<2x4x3x6xf64>\n";
    EXPECT_EQ(largest("%q: " + q + ", %k: " + q + ", %v: " + q,
                      packed + part + "%d = arith.subf %" + name + ", %flat : " + q),
              0)
        << name;
  }
  EXPECT_EQ(
      largest("%q: " + q + ", %k: " + q + ", %v: " + q, packed + "%d = arith.subf %o, %op : " + q),
      0);
}

// Width 4: the angles at position t are t and t * theta^(-1/2).
TEST_F(CompositionTest, Rope) {
  EXPECT_LT(largest("%x: tensor<2x3x4xf64>", R"(
    %y = nn.rope %x dim 1 theta 16.0 : tensor<2x3x4xf64>
    %angle = arith.constant dense<[[0.0, 0.0], [1.0, 0.25], [2.0, 0.5]]> : tensor<3x2xf64>
    %angles = nn.repeat "t i -> b t i" %angle : tensor<3x2xf64> -> tensor<2x3x2xf64>
    %cos = math.cos %angles : tensor<2x3x2xf64>
    %sin = math.sin %angles : tensor<2x3x2xf64>
    %a = nn.slice %x dim 2 start 0 : tensor<2x3x4xf64> -> tensor<2x3x2xf64>
    %b = nn.slice %x dim 2 start 2 : tensor<2x3x4xf64> -> tensor<2x3x2xf64>
    %ac = arith.mulf %a, %cos : tensor<2x3x2xf64>
    %bs = arith.mulf %b, %sin : tensor<2x3x2xf64>
    %bc = arith.mulf %b, %cos : tensor<2x3x2xf64>
    %as = arith.mulf %a, %sin : tensor<2x3x2xf64>
    %first = arith.subf %ac, %bs : tensor<2x3x2xf64>
    %second = arith.addf %bc, %as : tensor<2x3x2xf64>
    %expected = nn.concat %first, %second dim 2 : (tensor<2x3x2xf64>, tensor<2x3x2xf64>) -> tensor<2x3x4xf64>
    %d = arith.subf %y, %expected : tensor<2x3x4xf64>
  )"),
            rounding);
  EXPECT_LT(largest("%x: tensor<5x6xf64>", R"(
    %y = nn.rope %x dim 0 theta 100.0 : tensor<5x6xf64>
    %z = nn.rope %y dim 0 theta 100.0 inverse : tensor<5x6xf64>
    %d = arith.subf %z, %x : tensor<5x6xf64>
  )"),
            rounding);
}

TEST_F(CompositionTest, ScaledRope) {
  // Rates 1, 1/4, 1/16 and 1/64, divided by 8 but for a share.
  for (const auto &[scaling, rates] :
       {std::pair<std::string, std::string>("factor 8.0", "0.125, 0.03125, 0.0078125, 0.001953125"),
        // Shares 1, 1, 1/2 and 0.
        {"factor 8.0 ramp index from 3.0 to 1.0", "1.0, 0.25, 0.03515625, 0.001953125"},
        // Shares 1, 1/2, 1/8 and 1/32.
        {"factor 8.0 ramp rate from 0.0 to 0.5", "1.0, 0.140625, 0.0146484375, 0.00238037109375"}})
    EXPECT_LT(largest("%x: tensor<3x8xf64>", R"(
    %y = nn.rope %x dim 0 theta 256.0 )" + scaling +
                                                 R"( magnitude 1.5 : tensor<3x8xf64>
    %rate = arith.constant dense<[)" + rates + R"(]> : tensor<4xf64>
    %rates = nn.repeat "i -> t i" %rate : tensor<4xf64> -> tensor<3x4xf64>
    %t = arith.constant dense<[0.0, 1.0, 2.0]> : tensor<3xf64>
    %ts = nn.repeat "t -> t i" %t : tensor<3xf64> -> tensor<3x4xf64>
    %angles = arith.mulf %ts, %rates : tensor<3x4xf64>
    %cos = math.cos %angles : tensor<3x4xf64>
    %sin = math.sin %angles : tensor<3x4xf64>
    %a = nn.slice %x dim 1 start 0 : tensor<3x8xf64> -> tensor<3x4xf64>
    %b = nn.slice %x dim 1 start 4 : tensor<3x8xf64> -> tensor<3x4xf64>
    %ac = arith.mulf %a, %cos : tensor<3x4xf64>
    %bs = arith.mulf %b, %sin : tensor<3x4xf64>
    %bc = arith.mulf %b, %cos : tensor<3x4xf64>
    %as = arith.mulf %a, %sin : tensor<3x4xf64>
    %first = arith.subf %ac, %bs : tensor<3x4xf64>
    %second = arith.addf %bc, %as : tensor<3x4xf64>
    %z = nn.concat %first, %second dim 1 : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x8xf64>
    %magnitude = arith.constant dense<1.5> : tensor<3x8xf64>
    %w = arith.mulf %z, %magnitude : tensor<3x8xf64>
    %d = arith.subf %y, %w : tensor<3x8xf64>
  )"),
              rounding)
        << scaling;
}

TEST_F(CompositionTest, EmbeddingIsAProductWithTheOneHot) {
  const std::string common = R"(
    %index = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
    %columns = nn.repeat "v -> n v" %index : tensor<4xi32> -> tensor<6x4xi32>
    %rows = nn.repeat "n -> n v" %ids : tensor<6xi32> -> tensor<6x4xi32>
    %is = arith.cmpi eq, %rows, %columns : tensor<6x4xi32>
    %hot = arith.uitofp %is : tensor<6x4xi1> to tensor<6x4xf64>
  )";
  EXPECT_EQ(largest("%t: tensor<4x3xf64>, %ids: tensor<6xi32>", common + R"(
    %y = nn.embedding %t, %ids : tensor<4x3xf64>, tensor<6xi32> -> tensor<6x3xf64>
    %expected = nn.einsum "nv,vd->nd" %hot, %t : (tensor<6x4xf64>, tensor<4x3xf64>) -> tensor<6x3xf64>
    %d = arith.subf %y, %expected : tensor<6x3xf64>
  )",
                    4),
            0);
  EXPECT_LT(largest("%g: tensor<6x3xf64>, %ids: tensor<6xi32>", common + R"(
    %y = nn.embedding_grad %ids, %g : tensor<6xi32>, tensor<6x3xf64> -> tensor<4x3xf64>
    %expected = nn.einsum "nv,nd->vd" %hot, %g : (tensor<6x4xf64>, tensor<6x3xf64>) -> tensor<4x3xf64>
    %d = arith.subf %y, %expected : tensor<4x3xf64>
  )",
                    4),
            rounding);
}

// Padding and slicing, or slicing and concatenating, restores the value; elements around it are
// zero.
TEST_F(CompositionTest, SlicesPadsAndJoins) {
  EXPECT_EQ(largest("%x: tensor<2x5x3xf64>", R"(
    %a = nn.slice %x dim 1 start 0 : tensor<2x5x3xf64> -> tensor<2x2x3xf64>
    %b = nn.slice %x dim 1 start 2 : tensor<2x5x3xf64> -> tensor<2x3x3xf64>
    %j = nn.concat %a, %b dim 1 : (tensor<2x2x3xf64>, tensor<2x3x3xf64>) -> tensor<2x5x3xf64>
    %d = arith.subf %j, %x : tensor<2x5x3xf64>
  )"),
            0);
  EXPECT_EQ(largest("%x: tensor<2x5x3xf64>", R"(
    %a = nn.slice %x dim 1 start 0 : tensor<2x5x3xf64> -> tensor<2x2x3xf64>
    %b = nn.slice %x dim 1 start 2 : tensor<2x5x3xf64> -> tensor<2x3x3xf64>
    %pa = nn.pad %a dim 1 low 0 : tensor<2x2x3xf64> -> tensor<2x5x3xf64>
    %pb = nn.pad %b dim 1 low 2 : tensor<2x3x3xf64> -> tensor<2x5x3xf64>
    %sum = arith.addf %pa, %pb : tensor<2x5x3xf64>
    %d = arith.subf %sum, %x : tensor<2x5x3xf64>
  )"),
            0);
}

} // namespace
