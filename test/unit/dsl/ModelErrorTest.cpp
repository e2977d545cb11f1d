//===- ModelErrorTest.cpp - what the author of a wrong model reads --------===//
//
// Every message begins with the line of the model that made the mistake, and names the operands.
//
//===----------------------------------------------------------------------===//

#include "dsl/Model.h"
#include "dsl/ModelIR.h"
#include "dsl/Operations.h"
#include "models/activation.h"
#include <gtest/gtest.h>

using namespace fsdp::dsl;

namespace {

struct ModelErrorTest : testing::Test {
  mlir::MLIRContext context;
  std::unique_ptr<Model> model;
  Tensor x, y, label;
  Parameter weight;

  void SetUp() override {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    model = std::make_unique<Model>(context);
    x = model->input("x", {10, 64});
    y = model->input("y", {10, 3});
    label = model->input("label", {10}, ElementType::i32);
    weight = model->unit("fc1").parameter("weight", {65, 3}, zeros());
  }
};

/// The message of the ModelError that `mistake` throws, without this file's folders.
template <typename Mistake> std::string said(Mistake mistake) {
  try {
    mistake();
  } catch (const ModelError &error) {
    std::string text = error.what();
    size_t name = text.find("ModelErrorTest.cpp:");
    return name == std::string::npos ? text : text.substr(name);
  }
  return "nothing";
}

/// The start that every message has: this file and line `line`.
std::string at(int line) { return "ModelErrorTest.cpp:" + std::to_string(line) + ": error: "; }

#define EXPECT_MISTAKE(statement, message)                                                         \
  EXPECT_EQ(said([&] { statement; }), at(__LINE__) + message)
#define EXPECT_MISTAKE_HAS(statement, words)                                                       \
  do {                                                                                             \
    std::string message = said([&] { statement; });                                                \
    EXPECT_EQ(message.rfind(at(__LINE__), 0), 0u) << message;                                      \
    EXPECT_NE(message.find(words), std::string::npos) << message;                                  \
  } while (false)

TEST_F(ModelErrorTest, CheckpointsThatLeakValuesOrContainOuterOps) {
  Tensor inside;
  model->checkpoint([&] {
    inside = relu(x);
    return inside * inside;
  });
  EXPECT_MISTAKE(relu(inside), "relu: 'relu' was computed in a checkpoint that does not return it; "
                               "return it from the function");
  EXPECT_MISTAKE(
      model->checkpoint([&] { return inside; }),
      "the checkpoint: 'relu' was computed in a checkpoint that does not return it; return "
      "it from the function");
  Average average;
  model->checkpoint([&] {
    average = mean(x);
    return relu(x);
  });
  EXPECT_MISTAKE_HAS(model->loss(average), "was computed in a checkpoint that does not return it");
  EXPECT_MISTAKE_HAS(model->metric("m", average),
                     "was computed in a checkpoint that does not return it");
  EXPECT_MISTAKE(model->checkpoint([&] { return std::vector<Tensor>(); }),
                 "the checkpoint returns no tensor; return the tensors used outside");
  EXPECT_MISTAKE(model->checkpoint([&] { return Tensor(); }),
                 "the checkpoint returns a tensor that holds no value");
  Model other(context);
  Tensor foreign = other.input("x", {10, 64});
  EXPECT_MISTAKE(model->checkpoint([&] { return foreign; }),
                 "the checkpoint returns 'x' of another model");
}

TEST_F(ModelErrorTest, CheckpointsThatHoldMoreThanOperations) {
  const std::string words =
      " is in a checkpoint, whose operations are computed twice; move it outside";
  auto within = [&](const std::function<void()> &mistake) {
    return said([&] {
      model->checkpoint([&] {
        mistake();
        return relu(x);
      });
    });
  };
  EXPECT_EQ(within([&] { model->input("z", {10}); }), at(__LINE__) + "input 'z'" + words);
  EXPECT_EQ(within([&] { model->loss(mean(x)); }), at(__LINE__) + "the loss" + words);
  EXPECT_EQ(within([&] { model->metric("m", mean(x)); }), at(__LINE__) + "metric 'm'" + words);
  EXPECT_EQ(within([&] { model->checkpoint([&] { return x; }); }),
            at(__LINE__) + "a checkpoint" + words);
}

TEST_F(ModelErrorTest, ConstraintsThatDoNotFit) {
  EXPECT_MISTAKE_HAS(constrain(x, "tensor"),
                     "'tensor' has 1 entry, expected 2, one for each dimension ('_' for an "
                     "unsharded one)");
  EXPECT_MISTAKE_HAS(constrain(x, "a,b+a"),
                     "'a,b+a' names axis 'a' twice; an axis splits one dimension");
  EXPECT_MISTAKE_HAS(constrain(x, "_,?+a"),
                     "'_,?+a' has '?+a', expected '_', or axes joined by '+' and followed by '?' "
                     "if more may be added; a part of an axis is "
                     "written as tensor:(1)2");
  EXPECT_MISTAKE_HAS(constrain(x, "_,a:2"), "'_,a:2' has 'a:2', expected '_'");
  EXPECT_MISTAKE_HAS(constrain(x, "a:(1)4,a:(2)2"),
                     "'a:(1)4,a:(2)2' names 'a:(1)4' and 'a:(2)2', which overlap; a part of an "
                     "axis splits one dimension");
  EXPECT_MISTAKE_HAS(constrain(x, "a:(1)4,a"), "'a:(1)4,a' names 'a:(1)4' and 'a', which overlap");
  EXPECT_MISTAKE_HAS(constrain(x, "_,2a"), "'_,2a' has '2a', expected '_'");
  EXPECT_MISTAKE_HAS(constrain(x, "_,a", 1001), "priority is 1001, expected 0 to 1000");
  EXPECT_MISTAKE_HAS(sequenceParallel(x, 2), "dimension is 2, expected 0 to 1");
  EXPECT_MISTAKE_HAS(sequenceParallel(x, -1), "dimension is -1, expected 0 to 1");
}

TEST_F(ModelErrorTest, SplitsThatDoNotFit) {
  const Parameter w = model->unit("u").parameter("split", {4, 2}, zeros());
  EXPECT_MISTAKE_HAS(w.split("tensor"),
                     "split of parameter 'u.split': 'tensor' has 1 entry, expected 2, one for "
                     "each dimension ('_' for an unsharded one)");
  EXPECT_MISTAKE_HAS(w.split("a,a"), "'a,a' names axis 'a' twice; an axis splits one dimension");
  EXPECT_MISTAKE_HAS(w.split("_,ten sor"),
                     "'_,ten sor' has 'ten sor', expected '_', or axes joined by '+' and followed "
                     "by '?' if more may be added; names of axes are letters, digits and '_', "
                     "and have no ' '");
  EXPECT_MISTAKE_HAS(w.split("_,?"), "'_,?' has '?', expected '_' or axes joined by '+'");
}

TEST_F(ModelErrorTest, TokensThatAreNoRows) {
  EXPECT_MISTAKE(model->tokens("tokens", {6}, 61),
                 "tokens 'tokens' have 1 dimensions and a vocabulary of 61, expected samples by "
                 "positions and at least 1");
  EXPECT_MISTAKE(model->targets("targets", {6, 16}, 0),
                 "tokens 'targets' have 2 dimensions and a vocabulary of 0, expected samples by "
                 "positions and at least 1");
}

TEST_F(ModelErrorTest, FilesForCheckpointsThatHaveNoPlaceThere) {
  for (const char *name : {"", "up/config.json", ".hidden", "manifest.json", "model.safetensors"})
    EXPECT_MISTAKE(model->checkpointFile(name, "{}"),
                   "got the file '" + std::string(name) +
                       "' for checkpoints, expected a name without '/' that does not begin with "
                       "'.' and is neither 'manifest.json' nor '*.safetensors'");
  model->checkpointFile("config.json", "{}");
  EXPECT_MISTAKE(model->checkpointFile("config.json", "{}"),
                 "the file 'config.json' for checkpoints is given twice");
  EXPECT_MISTAKE(model->config(ModelConfig("config.json")),
                 "the file 'config.json' for checkpoints is given twice");
}

TEST_F(ModelErrorTest, EinsumThatDoesNotFit) {
  EXPECT_MISTAKE_HAS(einsum("bi,io->bo", x, weight),
                     "einsum 'bi,io->bo' of 'x' (10x64xf32) and 'fc1.weight' (65x3xf32): ");
  EXPECT_MISTAKE_HAS(einsum("bi,io->bo", x, weight), "got 65, expected 64");
}

TEST_F(ModelErrorTest, EinsumOfTheWrongNotation) {
  EXPECT_MISTAKE_HAS(einsum("bi->b", x, y), "notation 'bi->b' has 1 operands, got 2");
  EXPECT_MISTAKE_HAS(einsum("bi,bo->z", x, y), "einsum 'bi,bo->z' of 'x' (10x64xf32) and 'y'");
}

TEST_F(ModelErrorTest, UndeterminedSize) {
  EXPECT_MISTAKE_HAS(repeat("b i -> b i k", x, {}), "does not determine the size of 'k'; give it");
  EXPECT_MISTAKE_HAS(rearrange("b (h d) -> b h d", x), "rearrange 'b (h d) -> b h d' of 'x'");
  EXPECT_MISTAKE_HAS(rearrange("b (h d) -> b h d", x, {{"h", 7}}), "64");
  EXPECT_MISTAKE_HAS(rearrange("(c e) (h d) -> c (e h) d", x, {{"c", 2}}),
                     "the size of 'h' does not follow from the shapes; give it in 'sizes'");
  EXPECT_MISTAKE_HAS(rearrange("b (h d) -> b h d", x, {{"h", 8}, {"k", 2}}),
                     "sizes give 'k', which notation 'b (h d) -> b h d' does not name");
  EXPECT_MISTAKE_HAS(rearrange("b (h d) -> b h d", x, {{"h", -8}}),
                     "sizes give 'h' -8, expected at least 0");
  EXPECT_MISTAKE_HAS(
      rearrange("b (g h d) -> b g h d", x, {{"g", int64_t{1} << 40}, {"h", int64_t{1} << 40}}),
      "dimension 1 of the operand: got 64, the sizes of its names multiply to 2^63 or more");
}

TEST_F(ModelErrorTest, ReduceOfAnotherRank) {
  EXPECT_MISTAKE_HAS(reduceSum("b s i -> b", x), "reduceSum 'b s i -> b' of 'x' (10x64xf32): ");
}

TEST_F(ModelErrorTest, ShapesThatDoNotFit) {
  EXPECT_MISTAKE(x + y, "add of 'x' (10x64xf32) and 'y' (10x3xf32): shapes do not fit; expected "
                        "equal shapes, or one that is the trailing part of the other (use 'repeat' "
                        "for any other broadcast)");
}

TEST_F(ModelErrorTest, ResultsAreNamedAfterTheirLayer) {
  Parameter narrow = model->unit("head").parameter("weight", {64, 3}, zeros());
  Tensor logits = relu(einsum("bi,io->bo", x, narrow));
  EXPECT_MISTAKE_HAS(logits * x, "multiply of 'head.relu' (10x3xf32) and 'x' (10x64xf32): ");
}

TEST_F(ModelErrorTest, ElementTypesThatDiffer) {
  EXPECT_MISTAKE(x + label, "add of 'x' (10x64xf32) and 'label' (10xi32): element types differ; "
                            "expected the same on both sides");
  EXPECT_MISTAKE_HAS(equal(x, label), "element types differ; expected the same on both sides");
}

TEST_F(ModelErrorTest, IntegersWhereFloatsAreNeeded) {
  EXPECT_MISTAKE(relu(label), "relu of 'label' (10xi32): expected a float element type");
  EXPECT_MISTAKE_HAS(mean(label), "expected a float element type");
}

TEST_F(ModelErrorTest, RowsOfNothing) {
  Tensor one = model->scalar(1);
  EXPECT_MISTAKE(argmax(one),
                 "argmax of 'constant' (f32): expected at least one dimension, the row's");
}

TEST_F(ModelErrorTest, PartsThatAreNotThere) {
  EXPECT_MISTAKE(slice(x, 2, 0, 4),
                 "slice 0+4 of dimension 2 of 'x' (10x64xf32): expected a dimension below 2");
  EXPECT_MISTAKE(slice(x, 1, 0, -4),
                 "slice 0+-4 of dimension 1 of 'x' (10x64xf32): expected a non-negative size");
  EXPECT_MISTAKE_HAS(slice(x, 1, 62, 4), "has a range of 4 elements from 62 in a dimension of 64");
  EXPECT_MISTAKE_HAS(pad(x, 1, -1, 1), "pad of dimension 1 of 'x' (10x64xf32): ");
  EXPECT_MISTAKE_HAS(concat({x, y}, 0), "concat along dimension 0 of 'x' (10x64xf32) and 'y'");
  EXPECT_MISTAKE(concat({}, 0), "concat got no tensors: expected at least one tensor");
  EXPECT_MISTAKE(concat(std::vector<Tensor>(), 0),
                 "concat got no tensors: expected at least one tensor");
}

TEST_F(ModelErrorTest, RowsThatDoNotFit) {
  EXPECT_MISTAKE(layerNorm(x, y, x),
                 "layerNorm of 'x' (10x64xf32) and 'y' (10x3xf32) and 'x' "
                 "(10x64xf32): expected a scale and a bias of one type, that of "
                 "a row");
  EXPECT_MISTAKE_HAS(rmsNorm(x, y), "expected the shape of a row of");
  EXPECT_MISTAKE_HAS(embedding(x, y), "expected integer ids");
  EXPECT_MISTAKE_HAS(embedding(reduceSum("a b -> a", x), label),
                     "expected a table of two dimensions: rows and width");
  EXPECT_MISTAKE_HAS(attention(x, x, y), "expected keys and values of one type");
  EXPECT_MISTAKE_HAS(attention(x, x, x), "expected the dimensions 'b h t d'");
  EXPECT_MISTAKE_HAS(attention("b t n h d", x, x, x),
                     "got the order 'b t n h d', expected b, h and t with spaces between them, "
                     "then d, such as 'b t h d'");
  EXPECT_MISTAKE_HAS(attention("b t h d", x),
                     "got the order 'b t h d', expected b, h, t and n with spaces between them, "
                     "then d, such as 'b t n h d'");
  EXPECT_MISTAKE_HAS(attention("b t n h d", x), "expected the dimensions 'b t n h d'");
  const Tensor q = rearrange("b i -> b 1 1 i", x);
  AttentionOptions options;
  options.window = 0;
  EXPECT_MISTAKE_HAS(attention(q, q, q, options), "has window 0, expected a positive number");
  options.window = 2, options.causal = false;
  EXPECT_MISTAKE_HAS(attention(q, q, q, options), "has window 2 without 'causal', expected both");
  options = {}, options.softcap = 0;
  EXPECT_MISTAKE_HAS(attention(q, q, q, options), "has softcap 0.000000e+00, expected a positive");
  options = {}, options.documents = x;
  EXPECT_MISTAKE_HAS(attention(q, q, q, options), "has documents of type ");
  options = {}, options.bias = x;
  EXPECT_MISTAKE_HAS(attention(q, q, q, options),
                     "has a bias of type '10x64xf32', expected '1x1x1xf32', one for all heads");
  EXPECT_MISTAKE(alibi(*model, 0, 4, 4), "alibi got 0 heads: expected at least 1");
  EXPECT_MISTAKE(alibi(*model, 4, 4, 0), "alibi got 0 keys: expected at least 1");
  EXPECT_MISTAKE(relativeBias(x, -2, 4), "relativeBias got -2 queries: expected at least 1");
  EXPECT_MISTAKE(relativeBias(q, 4, 4),
                 "relativeBias got a table of 4 dimensions: expected (buckets, heads)");
  EXPECT_MISTAKE(relativeBias(slice(x, 0, 0, 1), 4, 4),
                 "relativeBias got 1 buckets: expected at least 2");
  EXPECT_MISTAKE(relativeBias(slice(x, 0, 0, 7), 4, 4, {/*causal=*/false}),
                 "relativeBias got 7 buckets: expected an even number of at least 4, half of them "
                 "for keys behind the query");
  EXPECT_MISTAKE(relativeBias(x, 4, 4, {/*causal=*/true, /*maxDistance=*/5}),
                 "relativeBias got a greatest distance of 5: expected more than 5, which have "
                 "buckets of their own");
  EXPECT_MISTAKE_HAS(documentIds(x, 3), "expected tokens that are integers, i32 or i64");
  EXPECT_MISTAKE_HAS(documentIds(label, 3), "expected the dimensions batch and positions");
  EXPECT_MISTAKE_HAS(documentPositions(label, 3), "documentPositions of 'label' (10xi32): ");
  EXPECT_MISTAKE_HAS(documentMask(x, 3), "expected tokens that are integers, i32 or i64");
  EXPECT_MISTAKE_HAS(rope(y),
                     "has width 3, expected an even number, because pairs of elements are rotated");
  EXPECT_MISTAKE_HAS(rope("b s d", y), "got the order 'b s d', expected a letter for each "
                                       "dimension, t for the positions");
  EXPECT_MISTAKE_HAS(rope("d t", x), "takes positions from dimension 1");
  Tensor tokens = model->input("tokens", {10, 4}, ElementType::i32);
  const Tensor turned = rearrange("b (t d) -> t b d", x, {{"t", 4}});
  EXPECT_MISTAKE_HAS(rope("t b d", turned, tokens),
                     "got the order 't b d', expected the batch first: 'b t h d'");
  EXPECT_MISTAKE_HAS(rope("b t d", rearrange("b (t d) -> b t d", x, {{"t", 2}}), tokens),
                     "'positions' has type ");
}

TEST_F(ModelErrorTest, Spans) {
  Tensor tokens = model->input("tokens", {10, 4}, ElementType::i32);
  EXPECT_MISTAKE_HAS(spanMask(label, {3}), "expected the dimensions batch and positions");
  EXPECT_MISTAKE_HAS(spanMask(tokens, {}), "expected at least one token after which spans begin");
  const char *limits = "expected at most 16 tokens in a row, none of them below 0";
  EXPECT_MISTAKE_HAS(spanMask(tokens, std::vector<int64_t>(17, 3)), limits);
  EXPECT_MISTAKE_HAS(spanMask(tokens, {3}, std::vector<int64_t>(17, 3)), limits);
  EXPECT_MISTAKE_HAS(spanMask(tokens, {-1}), limits);
  EXPECT_MISTAKE_HAS(documentPositions(tokens, -1), "has the token -1, expected none below 0");
  const char *both = "of which neither end with the others";
  EXPECT_MISTAKE_HAS(spanMask(tokens, {1, 2}, {2}), both);
  EXPECT_MISTAKE_HAS(spanMask(tokens, {2}, {1, 2}), both);
  EXPECT_MISTAKE_HAS(spanMask(tokens, {1, 2}, {3}, 2), both);
}

TEST_F(ModelErrorTest, Activation) {
  EXPECT_MISTAKE_HAS(fsdp::models::activate("tanhshrink", x),
                     "got the activation 'tanhshrink', expected one of models/activation.cpp");
}

TEST_F(ModelErrorTest, ScanSum) {
  EXPECT_MISTAKE_HAS(scanSum("b s", "t", x), "scanSum 'b s' along 't'");
  EXPECT_MISTAKE_HAS(scanSum("b s", "t", x), "sums along 't', expected one of the names of 'b s'");
}

TEST_F(ModelErrorTest, Dropout) {
  dropout(x, 0.1, "drop");
  EXPECT_MISTAKE_HAS(dropout(x, 0.1, "drop"),
                     "dropout name 'drop' is already in use; give each dropout its own name");
  EXPECT_MISTAKE_HAS(dropout(x, 1), "has rate 1.000000e+00, expected at least 0 and less than 1");
}

TEST_F(ModelErrorTest, LabelsOfOtherRows) {
  Tensor labels = model->input("labels", {9}, ElementType::i32);
  EXPECT_MISTAKE_HAS(crossEntropy(y, labels),
                     "crossEntropy of 'y' (10x3xf32) and 'labels' (9xi32)");
}

TEST_F(ModelErrorTest, AveragesOfNothing) {
  Tensor empty = model->input("empty", {4, 0});
  EXPECT_MISTAKE_HAS(mean(empty), "there are no elements to average");
}

TEST_F(ModelErrorTest, WeightsOfAnotherShape) {
  EXPECT_MISTAKE(weightedMean(x, y), "weightedMean of 'x' (10x64xf32) and 'y' (10x3xf32): shapes "
                                     "differ; expected one weight for each value");
}

TEST_F(ModelErrorTest, OperandsOfTwoModels) {
  Model other(context);
  Tensor z = other.input("z", {10, 64});
  EXPECT_MISTAKE_HAS(x * z, "operands belong to different models");
}

TEST_F(ModelErrorTest, ValuesThatAreNot) {
  Tensor none;
  Parameter undeclared;
  EXPECT_MISTAKE(relu(none), "this tensor has no value; assign one before it is used");
  EXPECT_MISTAKE(relu(undeclared),
                 "this parameter was not declared; create it with 'Scope::parameter'");
}

TEST_F(ModelErrorTest, Inputs) {
  EXPECT_MISTAKE(model->input("x", {10}), "input 'x' is declared twice; give each its own name");
  EXPECT_MISTAKE_HAS(model->input("none", {0, 4}), "holds 0 samples, expected at least 1");
  EXPECT_MISTAKE(model->input("z", {10, -1}),
                 "input 'z' has a dimension of size -1, expected at least 0");
  const int64_t wide = int64_t(1) << 32;
  EXPECT_MISTAKE(
      model->input("z", {wide, wide}),
      "input 'z' (4294967296x4294967296xf32) takes more than 2^48 bytes; make it smaller");
  EXPECT_MISTAKE(model->unit("big").parameter("weight", {wide, wide}, zeros()),
                 "parameter 'big.weight' (4294967296x4294967296xf32) takes more than "
                 "2^48 bytes; make it smaller");
  Tensor row = model->input("row", {1, wide});
  EXPECT_MISTAKE_HAS(einsum("bi,bj->ij", row, row),
                     "result #0 must be statically shaped tensor (at most 2^48 bytes)");
  Optimizer optimizer;
  optimizer.lr = 1e39;
  EXPECT_MISTAKE(
      model->optimizer(optimizer),
      "optimizer constant 'lr' is 1.000000e+39, expected a finite f32 number of at least "
      "0");
  optimizer = Optimizer();
  optimizer.lrScales = {{"fc1.*", -2}};
  EXPECT_MISTAKE(model->optimizer(optimizer),
                 "optimizer 'lr_scale': the factor of 'fc1.*': got '-2', expected a finite f32 "
                 "number >= 0");
  EXPECT_MISTAKE(model->input("z", {10, 2}, ElementType::f32, 2),
                 "input 'z' counts samples along dimension 2, expected a dimension below 2");
}

TEST_F(ModelErrorTest, Parameters) {
  Scope fc1 = model->unit("fc1");
  EXPECT_MISTAKE(fc1.parameter("weight", {3}, zeros()),
                 "parameter 'fc1.weight' is declared twice; give each its own name");
  EXPECT_MISTAKE(fc1.parameter("bias", {-3}, zeros()),
                 "parameter 'fc1.bias' has a dimension of size -3, expected at least 0");
  EXPECT_MISTAKE_HAS(fc1.parameter("bias", {4, 3}, zeros(), {13}), "parameter 'fc1.bias': ");
}

TEST_F(ModelErrorTest, LossesAndMetrics) {
  EXPECT_MISTAKE(take(*model), "the model has no loss; call 'Model::loss'");
  model->loss(mean(x));
  EXPECT_MISTAKE(model->loss(mean(y)), "the model has two losses; add them first");
  model->metric("accuracy", mean(x));
  EXPECT_MISTAKE(model->metric("accuracy", mean(y)),
                 "metric 'accuracy' is given twice; give each its own name");
}

TEST_F(ModelErrorTest, PatternsOfParameters) {
  model->loss(mean(x));
  Optimizer optimizer;
  optimizer.noDecay = {"fc1.*", "fc2.*"};
  const int line = __LINE__ + 1;
  model->optimizer(optimizer);
  EXPECT_EQ(said([&] { take(*model); }),
            at(line) + "'no_decay' of the optimizer: no parameter matches 'fc2.*', expected the "
                       "name of one, or names with '*' for any part of them; this model has "
                       "'fc1.weight'");
}

TEST_F(ModelErrorTest, PrintsAndChecks) {
  print(x, "x");
  check(x, "x");
  EXPECT_MISTAKE(print(y, "x"), "print 'x' is given twice; give each its own name");
  EXPECT_MISTAKE(check(y, "x"), "check 'x' is given twice; give each its own name");
  model->checkpoint([&] {
    print(x, "inside");
    return relu(x);
  });
  EXPECT_MISTAKE(print(x, "inside"), "print 'inside' is given twice; give each its own name");
  EXPECT_MISTAKE(check(model->input("ids", {10}, ElementType::i32), "ids"),
                 "check 'ids' of 'ids' (10xi32): expected floats: integers are always finite; "
                 "leave it out");
  Tensor inside;
  model->checkpoint([&] { return inside = relu(x); });
  Tensor hidden;
  model->checkpoint([&] {
    hidden = relu(x);
    return hidden * hidden;
  });
  EXPECT_MISTAKE(print(hidden, "hidden"),
                 "print 'hidden': 'relu' was computed in a checkpoint that does not return it; "
                 "return it from the function");
}

TEST_F(ModelErrorTest, NamesOfPrintsAreThoseOfNothingElseInTheLog) {
  EXPECT_MISTAKE_HAS(print(x, "val_x"), "print 'val_x': is called 'val_x', a key that is reserved");
  print(y, "y");
  EXPECT_MISTAKE_HAS(model->metric("y.mean", mean(x)),
                     "metric 'y.mean': 'y.mean' appears twice in a step");
}

TEST_F(ModelErrorTest, SumsThatAreNoScalars) {
  EXPECT_MISTAKE(model->loss({x, x}),
                 "the loss of 'x' (10x64xf32) and 'x' (10x64xf32): expected a sum and a weight "
                 "that are scalars in f64; use mean or weightedMean");
  EXPECT_MISTAKE_HAS(model->metric("m", {mean(x).sum, x}),
                     "metric 'm' of 'mean' (f64) and 'x' (10x64xf32): expected a sum and a weight "
                     "that are scalars");
}

TEST_F(ModelErrorTest, WordsAreThoseOfTheModel) {
  EXPECT_MISTAKE(crossEntropy(y, x),
                 "crossEntropy of 'y' (10x3xf32) and 'x' (10x64xf32): expected labels that are "
                 "integers, i32 or i64");
  EXPECT_MISTAKE(layerNorm(y, x, x),
                 "layerNorm of 'y' (10x3xf32) and 'x' (10x64xf32) and 'x' (10x64xf32): 'scale' has "
                 "type '10x64xf32', expected the shape of a row of '10x3xf32'");
  EXPECT_MISTAKE(concat({x, label}, 0),
                 "concat along dimension 0 of 'x' (10x64xf32) and 'label' (10xi32): maps "
                 "'20x64xf32' to '10xi32', expected the same shape except in dimension 0");
}

TEST_F(ModelErrorTest, NamesThatCannotBePrinted) {
  Scope unit = model->unit("fc\n1");
  EXPECT_MISTAKE(unit.parameter("weight", {3}, zeros()),
                 "parameter 'fc\\0A1.weight': name 'fc\\0A1.weight' cannot be printed, "
                 "expected UTF-8 without control characters");
  EXPECT_MISTAKE_HAS(model->unit("", "w").parameter("bias", {3}, zeros()),
                     "parameter 'w.bias': name 'unit' is empty; give it a name");
  EXPECT_MISTAKE_HAS(model->input("\xff", {4}), "input '\\FF': name '\\FF' cannot be printed");
  EXPECT_MISTAKE_HAS(model->input(std::string(10000, 'n'), {4}),
                     "nnn...' has 10000 bytes, expected at most 1024");
}

TEST_F(ModelErrorTest, NamesThatMeanSomething) {
  EXPECT_MISTAKE(model->input("__metadata__", {4}),
                 "input '__metadata__': is called '__metadata__', a name that is reserved in data "
                 "files; choose another");
  EXPECT_MISTAKE_HAS(model->unit("u", "").parameter("__metadata__", {4}, zeros()),
                     "a name that is reserved in weight files; choose another");
  for (const char *key : {"step",          "loss",
                          "grad_norm",     "lr",
                          "tokens_per_s",  "step_ms",
                          "peak_bytes",    "workspace",
                          "library_bytes", "run",
                          "val_loss",      "val_",
                          "seconds",       "tokens",
                          "epoch",         "tflops",
                          "mfu",           "restart",
                          "rollback",      "samples_digest",
                          "loss_limit",    "grad_norm_limit",
                          "spike"})
    EXPECT_MISTAKE(model->metric(key, mean(x)),
                   "metric '" + std::string(key) + "': is called '" + key +
                       "', a key that is reserved in the training log; choose another name");
  model->metric("value", mean(x));
}

TEST_F(ModelErrorTest, NothingToTrain) {
  Model bare(context);
  bare.loss(mean(bare.input("x", {4})));
  EXPECT_MISTAKE(take(bare), "the model has no parameter; there is nothing to train");
}

} // namespace
