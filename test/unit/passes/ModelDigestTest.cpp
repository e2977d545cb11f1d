//===- ModelDigestTest.cpp - what makes another model, and what does not ---===//

#include "passes/global/ModelDigest.h"
#include "dsl/Model.h"
#include "dsl/ModelIR.h"
#include "dsl/Operations.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace fsdp::dsl;

namespace {

/// A block of a language model with every knob that a digest has an opinion on.
struct Knobs {
  int64_t batch = 4, context = 6, width = 8, heads = 2, vocab = 11;
  double theta = 10000, eps = 1e-6, drop = 0, epsOfMetric = 1e-6;
  bool relu = false, tied = false, residual = true, metric = false, checkpoint = false,
       constrained = false;
  bool exchanged = false;       ///< two parameters of one shape
  bool mirrored = false;        ///< operands of sums
  std::string prefix = "block"; ///< of names
  double lossScale = 1;
};

struct ModelDigestTest : testing::Test {
  mlir::MLIRContext context;

  void SetUp() override {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  mlir::OwningOpRef<mlir::ModuleOp> build(const std::function<void(Model &)> &describe) {
    Model model(context);
    describe(model);
    return take(model);
  }
  std::string digestOf(const std::function<void(Model &)> &describe) {
    return mlir::fsdp::computeModelDigest(*build(describe));
  }
  std::string digestOf(const Knobs &k) {
    return digestOf([&](Model &model) { language(model, k); });
  }
  /// With one knob turned.
  template <typename Turn> std::string with(Turn turn) {
    Knobs knobs;
    turn(knobs);
    return digestOf(knobs);
  }

  static void language(Model &model, const Knobs &k) {
    Tensor tokens = model.tokens("tokens", {k.batch, k.context}, k.vocab);
    Tensor targets = model.targets("targets", {k.batch, k.context}, k.vocab);
    const int64_t head = k.width / k.heads;
    Scope unit = model.unit(k.prefix);
    Parameter table = unit.parameter("a.weight", {k.vocab, k.width}, normal(0.02));
    Parameter gate = unit.parameter("b.weight", {k.width, k.width}, normal(0.02));
    Parameter up = unit.parameter("c.weight", {k.width, k.width}, normal(0.02));
    Parameter query =
        unit.parameter("d.weight", {k.heads, head, k.width}, normal(0.02), {k.width, k.width});
    Parameter norm = unit.parameter("e.weight", {k.width}, ones());
    Parameter last = k.tied ? table : unit.parameter("f.weight", {k.vocab, k.width}, normal(0.02));
    Tensor x = dropout(embedding(table, tokens), k.drop);
    if (k.constrained)
      x = constrain(x, "fsdp,?,?");
    auto block = [&] {
      Tensor heads = einsum("bsd,hkd->bshk", rmsNorm(x, norm, k.eps), query);
      Tensor turned = rope("b t h d", heads, k.theta);
      Tensor mixed = rearrange("b s h k -> b s (h k)", attention("b t h d", turned, turned, heads));
      Tensor left = einsum("bsd,df->bsf", mixed, k.exchanged ? up : gate);
      Tensor right = einsum("bsd,df->bsf", mixed, k.exchanged ? gate : up);
      Tensor hidden = (k.relu ? relu(left) : silu(left)) * right;
      if (!k.residual)
        return hidden;
      return k.mirrored ? x + hidden : hidden + x;
    };
    x = k.checkpoint ? model.checkpoint([&] { return block(); }) : block();
    Tensor logits = einsum("bsd,vd->bsv", x, last);
    Tensor losses = crossEntropy(logits, targets);
    model.loss(mean(k.lossScale == 1 ? losses : losses * k.lossScale));
    if (k.metric)
      model.metric("accuracy", mean(equal(argmax(logits), targets)));
  }
};

TEST_F(ModelDigestTest, IsOfAVersionAndDigits) {
  const std::string digest = digestOf(Knobs());
  EXPECT_EQ(digest.size(), 3u + 16u) << digest;
  EXPECT_EQ(digest.substr(0, 3), "v1:");
  mlir::OwningOpRef<mlir::ModuleOp> empty = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  EXPECT_EQ(mlir::fsdp::computeModelDigest(*empty), "");
}

TEST_F(ModelDigestTest, AnotherFunctionOfTheParametersHasAnother) {
  std::set<std::string> digests = {digestOf(Knobs())};
  const auto isNew = [&](const std::string &digest) { return digests.insert(digest).second; };
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.heads = 4; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.theta = 5e5; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.eps = 1e-5; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.relu = true; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.tied = true; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.residual = false; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.exchanged = true; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.lossScale = 0.5; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.width = 16; })));
  EXPECT_TRUE(isNew(with([](Knobs &k) { k.vocab = 13; })));
}

TEST_F(ModelDigestTest, ChoicesOfTrainingAndPlacementAreExcluded) {
  const std::string digest = digestOf(Knobs());
  for (int64_t batch : {1, 2, 6, 8, 11})
    for (int64_t length : {1, 2, 4, 8, 11, 16}) {
      Knobs knobs;
      knobs.batch = batch;
      knobs.context = length;
      EXPECT_EQ(digestOf(knobs), digest) << batch << " x " << length;
    }
  EXPECT_EQ(with([](Knobs &k) { k.drop = 0.1; }), digest);
  EXPECT_EQ(with([](Knobs &k) { k.metric = true; }), digest);
  EXPECT_EQ(with([](Knobs &k) { k.checkpoint = true; }), digest);
  EXPECT_EQ(with([](Knobs &k) { k.constrained = true; }), digest);
  EXPECT_EQ(with([](Knobs &k) { k.mirrored = true; }), digest);
  EXPECT_EQ(with([](Knobs &k) { k.prefix = "another"; }), digest);
}

TEST_F(ModelDigestTest, TheTextOfAModelHasItsDigest) {
  Knobs knobs;
  knobs.theta = 12345.678;
  knobs.eps = 1.0 / 3;
  knobs.checkpoint = true;
  mlir::OwningOpRef<mlir::ModuleOp> module = build([&](Model &model) { language(model, knobs); });
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_EQ(mlir::fsdp::computeModelDigest(*parsed), mlir::fsdp::computeModelDigest(*module));
}

/// The ops that compute a loss from rows (batch, length, 4) and a weight (4, 3).
using Rows = std::function<Average(Tensor x, Tensor projected, double samples, double length)>;

struct DataSizesTest : ModelDigestTest {
  std::string digestFor(const Rows &rows, int64_t batch, int64_t length) {
    return digestOf([&](Model &model) {
      Tensor x = model.input("x", {batch, length, 4});
      Parameter w = model.unit("w").parameter("weight", {4, 3}, normal(0.02));
      model.loss(rows(x, einsum("bsi,io->bso", x, w), static_cast<double>(batch),
                      static_cast<double>(length)));
    });
  }
  /// Whether the digest is the same for batches and lengths of any size.
  testing::AssertionResult isOne(const Rows &rows) {
    const std::string digest = digestFor(rows, 6, 10);
    for (auto [batch, length] :
         {std::pair(12, 10), std::pair(6, 20), std::pair(5, 7), std::pair(30, 3)})
      if (digestFor(rows, batch, length) != digest)
        return testing::AssertionFailure() << batch << " x " << length;
    return testing::AssertionSuccess();
  }
};

TEST_F(DataSizesTest, ConstantsMadeOfThemDoNotCount) {
  EXPECT_TRUE(isOne([](Tensor, Tensor y, double, double) { return mean(square(y)); }));
  // Divided by hand: by all, by samples, by positions.
  EXPECT_TRUE(isOne([](Tensor, Tensor y, double b, double s) {
    return mean(square(reduceSum("b s o -> o", y) / (b * s)));
  }));
  EXPECT_TRUE(isOne([](Tensor, Tensor y, double, double s) {
    return mean(square(reduceSum("b s o -> b o", y) * (1 / s)));
  }));
  EXPECT_TRUE(isOne([](Tensor, Tensor y, double b, double) {
    return mean(square(reduceSum("b s o -> o", y) * (1 / b)));
  }));
  EXPECT_TRUE(isOne([](Tensor, Tensor y, double, double) {
    return mean(square(reduceMean("b s o -> b o", y)));
  }));
}

TEST_F(DataSizesTest, OtherConstantsCount) {
  const auto scaled = [](double by) -> Rows {
    return [by](Tensor, Tensor y, double, double) { return mean(square(y * by)); };
  };
  EXPECT_NE(digestFor(scaled(0.5), 6, 10), digestFor(scaled(0.25), 6, 10));
  // 1/6 is no size here: nothing is summed before it.
  EXPECT_NE(digestFor(scaled(1 / 6.0), 6, 10), digestFor(scaled(1 / 12.0), 12, 10));
  EXPECT_TRUE(isOne(scaled(0.5)));
}

TEST_F(DataSizesTest, ConstantsOfWholeTensorsCountByTheirValue) {
  const auto digestOfText = [&](int batch, int label) {
    const std::string n = std::to_string(batch), rows = "tensor<" + n + "x4xf32>",
                      numbers = "tensor<" + n + "xi32>";
    const std::string text = "fsdp.param @w : tensor<3x4xf32> unit \"w\" init <normal, 2.0e-02>\n"
                             "fsdp.step @train train optimizer <sgd, lr = 0.1> {\n"
                             "%x = fsdp.input \"x\" sample_dim 0 : " +
                             rows +
                             "\n%w = fsdp.read @w : tensor<3x4xf32>\n"
                             "%y = nn.einsum \"bi,oi->bo\" %x, %w : (" +
                             rows + ", tensor<3x4xf32>) -> tensor<" + n +
                             "x3xf32>\n"
                             "%l = arith.constant dense<" +
                             std::to_string(label) + "> : " + numbers +
                             "\n"
                             "%c, %s = nn.cross_entropy %y, %l : tensor<" +
                             n + "x3xf32>, " + numbers + " -> tensor<" + n + "xf32>, tensor<" + n +
                             "xf32>\n"
                             "%sum = nn.reduce sum \"b ->\" %c : tensor<" +
                             n +
                             "xf32> -> tensor<f64>\n"
                             "%weight = arith.constant dense<" +
                             n + ".0> : tensor<f64>\nfsdp.loss %sum over %weight\n}\n";
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    return module ? mlir::fsdp::computeModelDigest(*module) : "no model: " + text;
  };
  EXPECT_EQ(digestOfText(8, 1).substr(0, 3), "v1:") << digestOfText(8, 1);
  EXPECT_EQ(digestOfText(8, 1), digestOfText(12, 1));
  EXPECT_NE(digestOfText(8, 1), digestOfText(8, 2));
}

TEST_F(DataSizesTest, PiecesOfASequenceCountFromTheNearerEnd) {
  const auto from = [](std::function<int64_t(int64_t)> begin,
                       std::function<int64_t(int64_t)> size) -> Rows {
    return [=](Tensor, Tensor y, double, double s) {
      const auto length = static_cast<int64_t>(s);
      return mean(square(slice(y, 1, begin(length), size(length))));
    };
  };
  const auto zero = [](int64_t) { return int64_t(0); };
  const auto one = [](int64_t) { return int64_t(1); };
  const auto allButOne = [](int64_t length) { return length - 1; };
  const Rows first = from(zero, one), last = from(allButOne, one), shifted = from(one, allButOne),
             cut = from(zero, allButOne);
  for (const Rows &rows : {first, last, shifted, cut})
    EXPECT_TRUE(isOne(rows));
  EXPECT_NE(digestFor(first, 6, 10), digestFor(last, 6, 10));
  EXPECT_NE(digestFor(shifted, 6, 10), digestFor(cut, 6, 10));
}

TEST_F(DataSizesTest, LengthsOfPiecesCount) {
  const auto windows = [](int64_t size) -> Rows {
    return [size](Tensor, Tensor y, double, double) {
      Tensor parts = rearrange("b (s n) o -> b s n o", y, {{"n", size}});
      return mean(square(reduceMax("b s n o -> b s o", parts)));
    };
  };
  for (int64_t size : {1, 2, 4, 6}) {
    for (auto [batch, length] :
         {std::pair(4, 12), std::pair(6, 24), std::pair(1, 36), std::pair(3, 48)})
      EXPECT_EQ(digestFor(windows(size), batch, length), digestFor(windows(size), 6, 12))
          << size << ": " << batch << " x " << length;
    EXPECT_EQ(digestFor(windows(size), 6, size), digestFor(windows(size), 6, 12)) << size;
  }
  std::set<std::string> digests;
  for (int64_t size : {1, 2, 3, 4, 6, 12})
    EXPECT_TRUE(digests.insert(digestFor(windows(size), 6, 12)).second) << size;

  const auto piece = [](int64_t begin, int64_t size) -> Rows {
    return [=](Tensor, Tensor y, double, double) { return mean(square(slice(y, 1, begin, size))); };
  };
  for (int64_t begin = 0; begin < 8; ++begin)
    for (int64_t size = 1; begin + size <= 8; ++size)
      EXPECT_TRUE(digests.insert(digestFor(piece(begin, size), 6, 8)).second)
          << begin << " + " << size;
  for (int64_t size : {1, 2, 4})
    EXPECT_EQ(digestFor(piece(0, size), 6, 8), digestFor(piece(0, size), 5, 16)) << size;

  const auto padded = [](int64_t low, int64_t high) -> Rows {
    return [=](Tensor, Tensor y, double, double) { return mean(exp(pad(y, 1, low, high))); };
  };
  for (auto [low, high] : {std::pair(0, 1), std::pair(0, 4), std::pair(1, 0), std::pair(4, 0),
                           std::pair(1, 4), std::pair(4, 1)}) {
    EXPECT_TRUE(isOne(padded(low, high))) << low << ", " << high;
    EXPECT_TRUE(digests.insert(digestFor(padded(low, high), 6, 10)).second) << low << ", " << high;
  }
}

TEST_F(DataSizesTest, OneSampleOrPositionIsASizeAsAnyOther) {
  const Rows rows = [](Tensor, Tensor y, double b, double) {
    Tensor merged = exp(rearrange("b s o -> (b s) o", y));
    return mean(square(rearrange("(b s) o -> b s o", merged, {{"b", static_cast<int64_t>(b)}})));
  };
  const Rows products = [](Tensor, Tensor y, double, double) {
    Tensor all = rearrange("b s o -> (b o) s", y);
    return mean(square(einsum("ns,nt->nst", all, all)));
  };
  const Rows one = [](Tensor, Tensor y, double, double) {
    return mean(square(rearrange("b s o -> (b s o)", y)));
  };
  for (const Rows &each : {rows, products, one})
    for (auto [batch, length] :
         {std::pair(1, 10), std::pair(6, 1), std::pair(1, 1), std::pair(1, 3), std::pair(3, 1)})
      EXPECT_EQ(digestFor(each, batch, length), digestFor(each, 6, 10)) << batch << " x " << length;
}

TEST_F(DataSizesTest, ALossOfSeveralTermsIsAveragedOverThem) {
  const auto terms = [](double by) -> Rows {
    return [by](Tensor, Tensor y, double, double) {
      Average main = mean(square(y)), other = mean(y), third = mean(exp(y));
      return Average{main.sum + other.sum * by - third.sum, main.weight};
    };
  };
  EXPECT_TRUE(isOne(terms(0.3)));
  EXPECT_NE(digestFor(terms(0.3), 6, 10), digestFor(terms(0.7), 6, 10));
}

TEST_F(DataSizesTest, MergedDimensionsKeepSizesOfTheModel) {
  EXPECT_TRUE(isOne([](Tensor, Tensor y, double, double) {
    return mean(square(rearrange("b s o -> (b s) o", y)));
  }));
  EXPECT_TRUE(isOne([](Tensor, Tensor y, double b, double) {
    return mean(square(rearrange("(b s) o -> b s o", rearrange("b s o -> (b s) o", y),
                                 {{"b", static_cast<int64_t>(b)}})));
  }));
  // Patches of 2 x 2 and of 4 x 1 channels.
  const auto patches = [&](int64_t batch, int64_t rows, int64_t p, int64_t q) {
    return digestOf([&](Model &model) {
      Tensor x = model.input("x", {batch, rows * p, 4 * q});
      Parameter w = model.unit("w").parameter("weight", {4, 3}, normal(0.02));
      Tensor parts = rearrange("b (h p) (w q) -> b (h w) (p q)", x, {{"p", p}, {"q", q}});
      model.loss(mean(square(einsum("bsi,io->bso", parts, w))));
    });
  };
  EXPECT_EQ(patches(5, 6, 2, 2), patches(7, 10, 2, 2));
  EXPECT_NE(patches(5, 6, 2, 2), patches(5, 6, 4, 1));
}

} // namespace
