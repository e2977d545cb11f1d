//===- ModelTest.cpp - the IR that a description becomes ------------------===//

#include "dsl/Model.h"
#include "dsl/ModelIR.h"
#include "dsl/Operations.h"
#include "mlir/IR/Verifier.h"
#include "models/lora.h"
#include <gtest/gtest.h>

using namespace fsdp::dsl;

namespace {

struct ModelTest : testing::Test {
  mlir::MLIRContext context;

  void SetUp() override {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  static std::string text(mlir::ModuleOp module) {
    std::string result;
    llvm::raw_string_ostream out(result);
    module.print(out);
    return result;
  }
  static int count(const std::string &text, const std::string &word) {
    int found = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++found;
    return found;
  }
};

TEST_F(ModelTest, EveryUseOfAParameterIsARead) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Parameter tied = model.unit("tied").parameter("weight", {4, 4}, normal(0.02));
  model.loss(mean(square(einsum("bi,io->bo", einsum("bi,io->bo", x, tied), tied))));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  EXPECT_EQ(count(text(*module), "fsdp.read @tied.weight"), 2) << text(*module);
}

TEST_F(ModelTest, InputsOfTokensHaveTheSizeOfTheVocabulary) {
  Model model(context);
  Tensor tokens = model.tokens("tokens", {6, 16}, 61);
  Tensor targets = model.targets("targets", {6, 16}, 61);
  Parameter table = model.unit("table").parameter("weight", {61, 4}, normal(0.02));
  Tensor x = embedding(table, tokens);
  model.loss(mean(crossEntropy(einsum("bsd,vd->bsv", x, table), targets)));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  EXPECT_EQ(count(text(*module), "{fsdp.tokens = 61 : i64} : tensor<6x16xi32>"), 1)
      << text(*module);
  EXPECT_EQ(count(text(*module), "{fsdp.targets = 61 : i64} : tensor<6x16xi32>"), 1);
}

TEST_F(ModelTest, AConfigIsAFileAndIsComparedWithWeights) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Parameter w = model.unit("w").parameter("weight", {4, 4}, normal(0.02));
  model.loss(mean(square(einsum("bi,io->bo", x, w))));
  ModelConfig config("config.json");
  config.note("architectures", std::vector<std::string>{"A\"B"});
  config.add("width", 4).option("--width");
  config.add("theta", 10000.0).implied(1e-6).alias("rope.theta").same(true).same("x");
  config.require("scaled", false);
  EXPECT_EQ(config.text(),
            "{\n  \"architectures\": [\"A\\\"B\"],\n  \"width\": 4,\n  \"theta\": 10000.0\n}\n");
  model.config(config);
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  const std::string printed = text(*module);
  EXPECT_EQ(count(printed, R"({names = "width", option = "--width", value = "4"})"), 1) << printed;
  EXPECT_EQ(
      count(
          printed,
          R"({implied = "1e-06", names = "theta|rope.theta", same = "[true, \22x\22]", value = "10000.0"})"),
      1)
      << printed;
  EXPECT_EQ(count(printed, R"({implied = "false", names = "scaled", value = "false"})"), 1)
      << printed;
  EXPECT_EQ(count(printed, "names = \"architectures\""), 0) << printed;
}

TEST_F(ModelTest, NamesWithADotAreEntriesOfAnObject) {
  ModelConfig config("config.json");
  config.add("scaling.type", "linear").alias("other.type");
  config.add("scaling.factor", 2.0);
  config.add("width", 4).unwritten();
  config.add("rope.theta", 1.0);
  EXPECT_EQ(config.text(),
            "{\n  \"scaling\": {\n    \"type\": \"linear\",\n    \"factor\": 2.0\n  },\n"
            "  \"rope\": {\n    \"theta\": 1.0\n  }\n}\n");
  config.note("last", nullptr);
  EXPECT_EQ(config.text().substr(config.text().find("1.0")), "1.0\n  },\n  \"last\": null\n}\n");
}

// Numbers of the formulas in transformers' modeling_rope_utils.py.
TEST_F(ModelTest, RopeIsScaled) {
  const RopeScaling llama = RopeScaling::llama3(8, 1, 4, 8192);
  EXPECT_EQ(llama.ramp, RopeScaling::Rate);
  EXPECT_DOUBLE_EQ(llama.from, 0.0007669903939428206); // 2 pi / 8192
  EXPECT_DOUBLE_EQ(llama.to, 0.0030679615757712823);
  RopeScaling::Yarn yarn;
  yarn.factor = 4, yarn.context = 4096;
  RopeScaling scaling = RopeScaling::yarn(yarn, 1e4, 32);
  EXPECT_EQ(scaling.ramp, RopeScaling::Index);
  EXPECT_EQ(scaling.from, 12);
  EXPECT_EQ(scaling.to, 5);
  EXPECT_DOUBLE_EQ(scaling.magnitude, 1.138629436111989);
  yarn.truncate = false, yarn.magnitude = 1;
  scaling = RopeScaling::yarn(yarn, 1e4, 32);
  EXPECT_DOUBLE_EQ(scaling.from, 11.256720318438637);
  EXPECT_DOUBLE_EQ(scaling.to, 5.236120405159013);
  EXPECT_EQ(scaling.magnitude, 1);
  // Within the indices, and never a ramp of no length.
  yarn.context = 1;
  scaling = RopeScaling::yarn(yarn, 1e4, 32);
  EXPECT_NE(scaling.from, scaling.to);
  EXPECT_EQ(scaling.to, 0);

  Model model(context);
  Tensor q = rope("b t h d", model.unit("head").parameter("q", {2, 5, 6, 32}, normal(0.02)));
  q = rope("b t h d", rope(q, 1e4, RopeScaling::linear(4)), 1e4, llama);
  model.loss(mean(rope(q, 1e4, RopeScaling::yarn({/*factor=*/4}, 1e4, 32))));
  auto module = take(model);
  const std::string printed = text(*module);
  for (const char *scaling :
       {"theta 1.000000e+04 {", "theta 1.000000e+04 factor 4.000000e+00 {",
        "factor 8.000000e+00 ramp rate from ", "factor 4.000000e+00 ramp index from "})
    EXPECT_EQ(count(printed, scaling), 1) << scaling << printed;
}

TEST_F(ModelTest, ACheckpointIsARegionWithItsResults) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Scope unit = model.unit("block");
  Parameter in = unit.parameter("in", {4, 4}, normal(0.02)),
            out = unit.parameter("out", {4, 4}, normal(0.02));
  Tensor y =
      model.checkpoint([&] { return einsum("bi,io->bo", tanh(einsum("bi,io->bo", x, in)), out); },
                       Keep::Contractions);
  auto both =
      model.checkpoint([&] { return std::vector<Tensor>{dropout(y, 0.1), dropout(y, 0.2)}; });
  EXPECT_EQ(y.shape(), (Shape{6, 4}));
  EXPECT_EQ(y.name(), "block.einsum");
  model.loss(mean(square(both[0] + both[1])));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  std::string ir = text(*module);
  EXPECT_EQ(count(ir, "fsdp.checkpoint selective : tensor<6x4xf32> {"), 1) << ir;
  EXPECT_EQ(count(ir, "fsdp.checkpoint full : tensor<6x4xf32>, tensor<6x4xf32> {"), 1) << ir;
  EXPECT_LT(ir.find("fsdp.checkpoint"), ir.find("fsdp.read @block.in")) << ir;
  // Draws are distinguished inside regions too.
  EXPECT_EQ(count(ir, "name \"block.dropout\""), 1) << ir;
  EXPECT_EQ(count(ir, "name \"block.dropout.1\""), 1) << ir;
}

TEST_F(ModelTest, ConstraintsNameAxesThatTheMeshGetsLater) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Tensor y = constrain(tanh(constrain(x, "?,tensor+?")), "_,data+tensor", 2);
  EXPECT_EQ(y.shape(), (Shape{6, 4}));
  model.loss(mean(square(y * constrain(model.unit("u").parameter("w", {4}, zeros()), "_"))));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  std::string ir = text(*module);
  EXPECT_EQ(count(ir, R"(fsdp.mesh @mesh <["fsdp"=1, "tensor"=1, "data"=1]>)"), 1) << ir;
  EXPECT_EQ(count(ir, R"(<@mesh, [{?}, {"tensor", ?}]> :)"), 1) << ir;
  EXPECT_EQ(count(ir, R"(<@mesh, [{}, {"data", "tensor"}]> priorities [0, 2] :)"), 1) << ir;
  EXPECT_EQ(count(ir, R"(<@mesh, [{}]> {)"), 1) << ir;
}

TEST_F(ModelTest, ParametersAreSplitOverAxesThatTheMeshGetsLater) {
  Model model(context);
  Parameter w = model.unit("u").parameter("w", {4, 6}, zeros()).split("_,tensor+data");
  model.loss(mean(square(einsum("bi,io->bo", model.input("x", {6, 4}), w))));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  EXPECT_EQ(count(text(*module), R"(split [[], ["tensor", "data"]])"), 1) << text(*module);
}

TEST_F(ModelTest, NamesOfParametersComeFromScopes) {
  Model model(context);
  Scope block = model.unit("h0");
  EXPECT_EQ(block.scope("attn").scope("qkv").parameter("weight", {4, 3}, zeros()).name(),
            "h0.attn.qkv.weight");
  EXPECT_EQ(model.unit("layer", "").parameter("kernel", {4, 3}, zeros()).name(), "kernel");
  EXPECT_EQ(model.unit("layer", "").scope("inner").parameter("bias", {3}, zeros()).name(),
            "inner.bias");
}

TEST_F(ModelTest, OperationsAreNamedAfterTheUnit) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Scope attn = model.unit("h.0", "transformer.h.0").scope("attn");
  Parameter weight = attn.parameter("weight", {4, 3}, zeros());
  EXPECT_EQ(weight.name(), "transformer.h.0.attn.weight");
  EXPECT_EQ(einsum("bi,io->bo", x, weight).name(), "h.0.attn.einsum");
}

TEST_F(ModelTest, ShapesFollowTheNotation) {
  Model model(context);
  Tensor x = model.input("x", {2, 5, 12});
  EXPECT_EQ(rearrange("b s (h d) -> b h s d", x, {{"h", 3}}).shape(), (Shape{2, 3, 5, 4}));
  EXPECT_EQ(repeat("b s d -> s k b d", x, {{"k", 7}}).shape(), (Shape{5, 7, 2, 12}));
  EXPECT_EQ(reduceMax("b s d -> d", x).shape(), (Shape{12}));
  EXPECT_EQ(argmax(x).shape(), (Shape{2, 5}));
  EXPECT_EQ((2.0 * x - 1.0).shape(), x.shape());
  EXPECT_EQ((reduceMean("b s d -> s d", x) + x).shape(), x.shape());
}

TEST_F(ModelTest, SizesThatFollowFromEachOtherAreLeftOut) {
  Model model(context);
  Tensor x = model.input("x", {5, 6, 20});
  Parameter scale = model.unit("scale").parameter("weight", {1}, ones());
  // Both are needed to find the shape; then w is 4 as h is 2 and h w is 8.
  Tensor y = rearrange("b (h p) (w q) -> b (h w) (p q)", x, {{"h", 2}, {"w", 4}});
  EXPECT_EQ(y.shape(), (Shape{5, 8, 15}));
  Tensor back = rearrange("b (h w) (p q) -> b (h p) (w q)", y, {{"q", 5}, {"w", 4}});
  EXPECT_EQ(back.shape(), x.shape());
  EXPECT_EQ(rearrange("b (h p) w -> b h p w", x, {{"h", 2}, {"p", 3}, {"w", 20}}).shape(),
            (Shape{5, 2, 3, 20}));
  Tensor weighted = rearrange("b h w -> b (h w) 1", back) * scale;
  model.loss(mean(weighted));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  std::string printed = text(*module);
  EXPECT_EQ(count(printed, "sizes {w = 4 : i64}"), 2) << printed;
  EXPECT_EQ(count(printed, "sizes"), 2) << printed;
}

TEST_F(ModelTest, FrozenParameters) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Scope unit = model.unit("unit");
  Parameter fixed = unit.frozen().scope("inner").parameter("weight", {4, 3}, normal(0.02));
  Parameter bias = unit.parameter("bias", {3}, zeros());
  model.loss(mean(square(einsum("bi,io->bo", x, fixed) + bias)));
  std::string printed = text(*take(model));
  EXPECT_EQ(count(printed, "@unit.inner.weight : tensor<4x3xf32> unit \"unit\" init <normal, "
                           "2.000000e-02> frozen"),
            1)
      << printed;
  EXPECT_EQ(count(printed, " frozen"), 1) << printed;
}

// As docs/lora.md has it.
TEST_F(ModelTest, RatesAndDecayByPatterns) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Parameter w = model.unit("fc").parameter("weight", {4, 4}, normal(0.02));
  model.loss(mean(square(einsum("bi,io->bo", x, w))));
  Optimizer optimizer;
  optimizer.lrScales = {{"fc.*", 0.5}, {"*", 2}};
  optimizer.noDecay = {"fc.weight"};
  model.optimizer(optimizer);
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  EXPECT_EQ(count(text(*module), "lr_scale = [\"fc.*=0.5\", \"*=2\"], no_decay = [\"fc.weight\"]>"),
            1)
      << text(*module);
}

TEST_F(ModelTest, AdaptersOfAModelOfOnesOwn) {
  for (const char *on : {"up", "*.up", "mlp.*", "*", "down,up"}) {
    Model model(context);
    Tensor x = model.input("x", {6, 5, 4});
    fsdp::models::Lora lora(model, {/*rank=*/2, /*alpha=*/3, on});
    Scope unit = lora.base(model.unit("mlp"));
    Parameter up = unit.scope("up").parameter("weight", {7, 4}, normal(0.02)),
              down = unit.scope("down").parameter("weight", {7, 3}, normal(0.02));
    auto adapter = lora.adapt(unit.scope("up"), up, {4}, {7});
    auto other = lora.adapt(unit.scope("down"), down, {7}, {3}, /*isTransposed=*/true);
    Tensor y = lora.add(einsum("bsi,oi->bso", x, up), adapter, x);
    Tensor z = lora.add(einsum("bsi,io->bso", y, down), other, y);
    EXPECT_EQ(z.shape(), (Shape{6, 5, 3}));
    lora.finish();
    model.loss(mean(square(z)));
    auto module = take(model);
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module)));
    const std::string printed = text(*module);
    const bool both = std::string(on) != "up" && std::string(on) != "*.up";
    EXPECT_EQ(other.has_value(), both) << on;
    EXPECT_EQ(count(printed, " frozen"), 2) << printed;
    EXPECT_EQ(count(printed, "@base_model.model.mlp.up.lora_A.weight : tensor<2x4xf32> unit "
                             "\"mlp\" init <uniform, 5.000000e-01>"),
              1)
        << printed;
    EXPECT_EQ(count(printed, "scale = 1.500000e+00 : f64"), both ? 2 : 1) << printed;
    EXPECT_EQ(count(printed, "transposed = true"), both ? 1 : 0) << printed;
  }
  Model model(context);
  fsdp::models::Lora none(model, {});
  Scope unit = none.base(model.unit("mlp"));
  Parameter up = unit.parameter("weight", {7, 4}, normal(0.02));
  EXPECT_FALSE(none.adapt(unit, up, {4}, {7}));
  none.finish();
  model.loss(mean(einsum("bi,oi->bo", model.input("x", {6, 4}), up)));
  const std::string printed = text(*take(model));
  EXPECT_EQ(count(printed, "frozen") + count(printed, "adapters"), 0) << printed;
}

TEST_F(ModelTest, ShapesOfRowsAndParts) {
  Model model(context);
  Tensor q = model.input("q", {2, 6, 5, 8}), k = model.input("k", {2, 3, 7, 8});
  Tensor ids = model.input("ids", {2, 5}, ElementType::i32);
  Scope head = model.unit("head");
  Parameter table = head.parameter("table", {11, 8}, zeros());
  Parameter scale = head.parameter("scale", {8}, ones()),
            bias = head.parameter("bias", {8}, zeros());
  EXPECT_EQ(attention(rope(q), k, k).shape(), q.shape());
  EXPECT_EQ(embedding(table, ids).shape(), (Shape{2, 5, 8}));
  EXPECT_EQ(layerNorm(q, scale, bias).name(), "head.layerNorm");
  EXPECT_EQ(rmsNorm(q, scale).shape(), q.shape());
  EXPECT_EQ(softmax(silu(gelu(geluErf(q)))).shape(), q.shape());
  EXPECT_EQ(scanSum("b h t d", "t", q, {/*exclusive=*/true}).shape(), q.shape());
  EXPECT_EQ(slice(q, 3, 2, 4).shape(), (Shape{2, 6, 5, 4}));
  EXPECT_EQ(pad(q, 2, 1, 2).shape(), (Shape{2, 6, 8, 8}));
  EXPECT_EQ(concat({q, pad(q, 1, 0, 1)}, 1).shape(), (Shape{2, 13, 5, 8}));
  const std::vector<Tensor> parts(3, q);
  EXPECT_EQ(concat(parts, 1).shape(), (Shape{2, 18, 5, 8}));
  model.loss(mean(attention(q, q, q, {/*causal=*/false, /*scale=*/0.5})));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  std::string printed = text(*module);
  EXPECT_EQ(count(printed, "scale 5.000000e-01 :"), 1) << printed;
  EXPECT_EQ(count(printed, " causal : "), 1) << printed;
}

TEST_F(ModelTest, AttentionTakesOptions) {
  Model model(context);
  Tensor q = model.input("q", {2, 6, 5, 8}), all = model.input("all", {2, 5, 3, 4, 8});
  Tensor ids = model.input("ids", {2, 5}, ElementType::i32);
  Tensor y = attention(q, q, q, {.documents = ids, .window = 3, .softcap = 50});
  Tensor z = attention("b t n h d", all, {.causal = false, .documents = ids});
  Parameter scale = model.unit("head").parameter("scale", {8}, ones());
  Tensor sum = y + rearrange("b t h d -> b h t d", concat({z, slice(z, 2, 0, 2)}, 2));
  model.loss(mean(sum * scale));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  std::string printed = text(*module);
  EXPECT_EQ(count(printed, " causal window 3 softcap 5.000000e+01 documents : "), 1) << printed;
  EXPECT_EQ(count(printed, "scale 0.35355339059327373 documents : "), 1) << printed;
}

TEST_F(ModelTest, AttentionTakesABias) {
  Model model(context);
  Tensor q = model.input("q", {2, 6, 5, 8}), all = model.input("all", {2, 5, 3, 6, 8});
  Tensor ids = model.input("ids", {2, 5}, ElementType::i32);
  Scope head = model.unit("head");
  Parameter table = head.parameter("table", {8, 6}, zeros()),
            one = head.parameter("one", {1, 5, 5}, zeros());
  Tensor slopes = alibi(model, 6, 5, 5), relative = relativeBias(table, 5, 5);
  EXPECT_EQ(slopes.shape(), (Shape{6, 5, 5}));
  EXPECT_EQ(relative.shape(), (Shape{6, 5, 5}));
  EXPECT_EQ(alibi(model, 4, 2, 5).shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(relativeBias(table, 3, 7, {/*causal=*/false, /*maxDistance=*/16}).shape(),
            (Shape{6, 3, 7}));
  Tensor y = attention(q, q, q, {.documents = ids, .softcap = 50, .bias = slopes + relative});
  Tensor z = attention("b t n h d", all, {.bias = one});
  model.loss(mean(y + rearrange("b t h d -> b h t d", z)));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  std::string printed = text(*module);
  EXPECT_EQ(count(printed, " causal softcap 5.000000e+01 bias documents {"), 1) << printed;
  EXPECT_EQ(count(printed, " causal bias {"), 1) << printed;
  EXPECT_EQ(count(printed, " : (tensor<2x5x3x6x8xf32>, tensor<1x5x5xf32>)"), 1) << printed;
}

TEST_F(ModelTest, DocumentsEndWithAToken) {
  Model model(context);
  Tensor tokens = model.input("tokens", {2, 5}, ElementType::i32);
  Tensor q = model.input("q", {2, 6, 5, 8}), ids = documentIds(tokens, 7);
  EXPECT_EQ(ids.shape(), tokens.shape());
  Parameter scale = model.unit("head").parameter("scale", {8}, ones());
  model.loss(mean(attention(q * scale, q, q, {.documents = ids})));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  std::string printed = text(*module);
  EXPECT_EQ(count(printed, "arith.constant dense<7> : tensor<2x5xi32>"), 1) << printed;
  EXPECT_EQ(count(printed, "nn.scan_sum \"b t\" along \"t\""), 1) << printed;
  EXPECT_EQ(count(printed, "to tensor<2x5xi32>"), 1) << printed;
}

TEST_F(ModelTest, TokensHavePositionsAndMasks) {
  Model model(context);
  Tensor tokens = model.input("tokens", {2, 5}, ElementType::i64);
  Tensor q = model.input("q", {2, 5, 6, 8}), at = documentPositions(tokens, 7);
  Parameter scale = model.unit("head").parameter("scale", {8}, ones());
  Tensor turned = rope("b t h d", q * scale, at, 500);
  EXPECT_TRUE(typeOf(at).getElementType().isInteger(32));
  Tensor open = spanMask(tokens, {4, 5}), closed = spanMask(tokens, {4}, {6, 6}, 7);
  for (const Tensor &mask : {documentMask(tokens, 7), open, closed}) {
    EXPECT_EQ(mask.shape(), tokens.shape());
    EXPECT_TRUE(typeOf(mask).getElementType().isF32());
  }
  model.loss(weightedMean(reduceMean("b t h d -> b t", turned), open * closed));
  auto module = take(model);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  std::string printed = text(*module);
  EXPECT_EQ(count(printed, "nn.rope %"), 1) << printed;
  EXPECT_EQ(count(printed, " at %"), 1) << printed;
  for (const char *sequence : {"[7] documents in", "[4, 5] in", "[9223372036854775807] in",
                               "[4] in", "[6, 6] in", "[7] in"})
    EXPECT_EQ(count(printed, std::string("nn.positions_since ") + sequence), 1)
        << sequence << " of " << printed;
}

TEST_F(ModelTest, EveryDropoutHasSeparateDraws) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Parameter weight = model.unit("fc1").parameter("weight", {4, 3}, zeros());
  Tensor y = einsum("bi,io->bo", x, weight);
  EXPECT_EQ(valueOf(dropout(y, 0)), valueOf(y));
  y = dropout(dropout(dropout(y, 0.5), 0.5), 0.25, "mine");
  EXPECT_EQ(y.name(), "fc1.dropout");
  model.loss(mean(y));
  std::string printed = text(*take(model));
  EXPECT_EQ(count(printed, "fsdp.dropout"), 3) << printed;
  EXPECT_EQ(count(printed, "name \"fc1.dropout\" {"), 1) << printed;
  EXPECT_EQ(count(printed, "name \"fc1.dropout.1\" {"), 1) << printed;
  EXPECT_EQ(count(printed, "name \"mine\" {"), 1) << printed;
}

TEST_F(ModelTest, AMeanIsASumAndACount) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Tensor importance = model.input("importance", {6, 4});
  Average average = mean(x), weighted = weightedMean(x, importance);
  EXPECT_EQ(average.sum.rank(), 0);
  EXPECT_TRUE(typeOf(average.sum).getElementType().isF64());
  EXPECT_TRUE(typeOf(weighted.weight).getElementType().isF64());
}

TEST_F(ModelTest, OperationsHaveTheirLineAndTheirLayer) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Parameter weight = model.unit("fc1").parameter("weight", {4, 4}, zeros());
  Tensor product = einsum("bi,io->bo", x, weight);
  int line = __LINE__ - 1;
  EXPECT_EQ(product.name(), "fc1.einsum");
  auto name = llvm::dyn_cast<mlir::NameLoc>(valueOf(product).getLoc());
  ASSERT_TRUE(name);
  EXPECT_EQ(name.getName(), "fc1.einsum");
  auto place = llvm::dyn_cast<mlir::FileLineColLoc>(name.getChildLoc());
  ASSERT_TRUE(place);
  EXPECT_EQ(static_cast<int>(place.getLine()), line);
  EXPECT_TRUE(place.getFilename().getValue().ends_with("ModelTest.cpp"));
}

TEST_F(ModelTest, OperationsBelongToTheirUnit) {
  Model model(context);
  Tensor x = model.input("x", {6, 4});
  Scope block = model.unit("h.0", "transformer.h.0");
  Parameter weight = block.scope("mlp").parameter("weight", {4, 4}, zeros());
  Parameter bias = model.unit("head").parameter("bias", {4}, zeros());
  Tensor square = x * x, product = einsum("bi,io->bo", square, weight), doubled = product * 2.0;
  Tensor sum = product + bias;
  model.loss(mean(sum + doubled));
  auto module = take(model);
  auto unitOf = [](const Tensor &tensor) {
    mlir::fsdp::Structure structure = mlir::fsdp::getStructure(valueOf(tensor).getDefiningOp());
    EXPECT_EQ(structure.direction, mlir::fsdp::Direction::forward);
    return structure.unit ? structure.unit.getValue().str() : std::string();
  };
  // Nothing is of a unit before a parameter is used.
  EXPECT_EQ(unitOf(x), "");
  EXPECT_EQ(unitOf(square), "");
  EXPECT_EQ(unitOf(product), "h.0");
  EXPECT_EQ(unitOf(doubled), "h.0");
  EXPECT_EQ(unitOf(sum), "head");
  // Reads and broadcasts belong to the operation that needs them; constants have no unit.
  std::string printed = text(*module);
  EXPECT_EQ(count(printed, "{fsdp.structure = #fsdp.structure<\"h.0\">}"), 4) << printed;
  EXPECT_EQ(count(printed, "{fsdp.structure = #fsdp.structure<\"head\">}"), 5) << printed;
  EXPECT_EQ(count(printed, "fsdp.structure ="), 9) << printed;
}

TEST_F(ModelTest, TheSameDescriptionIsTheSameText) {
  auto describe = [&] {
    Model model(context);
    Tensor x = model.input("x", {6, 4});
    Tensor label = model.input("label", {6}, ElementType::i32);
    Parameter weight = model.unit("head").parameter("weight", {4, 3}, uniform(0.5));
    Tensor logits = einsum("bi,io->bo", select(greater(x, model.scalar(0)), x, -x), weight);
    model.loss(mean(crossEntropy(logits, label)));
    model.metric("accuracy", mean(equal(argmax(logits), label)));
    return text(*take(model));
  };
  EXPECT_EQ(describe(), describe());
}

} // namespace
