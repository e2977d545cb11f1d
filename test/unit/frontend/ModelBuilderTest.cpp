//===- ModelBuilderTest.cpp - a front end without the DSL -----------------===//

#include "frontend/ModelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>

using namespace fsdp::frontend;

namespace {

constexpr Where kFile = {"step.txt", 7};

struct ModelBuilderTest : testing::Test {
  mlir::MLIRContext context;

  void SetUp() override {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  static mlir::fsdp::InitAttr zeros(ModelBuilder &model) {
    return mlir::fsdp::InitAttr::get(&model.context, mlir::fsdp::InitKind::constant,
                                     model.builder.getF64FloatAttr(0));
  }

  /// The sum of all elements of `value`, a matrix, in double.
  static ModelValue sum(ModelBuilder &model, const ModelValue &value) {
    return model.create(
        "sum", {value}, kFile, [&](mlir::OpBuilder &builder, mlir::Location loc) -> mlir::Value {
          auto type = mlir::RankedTensorType::get({}, builder.getF64Type());
          return mlir::nn::ReduceOp::create(builder, loc, type, mlir::nn::Reduction::sum, "a b ->",
                                            valueOf(value));
        });
  }
};

template <typename Function> void expectError(Function function, const std::string &message) {
  try {
    function();
    ADD_FAILURE() << "no error, expected: " << message;
  } catch (const ModelError &error) {
    EXPECT_EQ(error.what(), "step.txt:7: error: " + message);
  }
}

TEST_F(ModelBuilderTest, OpsAreInTheUnitOfTheirParameterAndHaveNamesAndLocations) {
  ModelBuilder model(context, kFile);
  ModelValue x = model.input("x", {6, 4}, ElementType::f32, 0, kFile);
  const Origin origin = {"fc", "fc.inner"};
  model.parameter("fc.weight", {6, 4}, zeros(model), {}, origin, /*isFrozen=*/false, kFile);
  ModelValue weight = model.read("fc.weight", origin, kFile);
  ModelValue product =
      model.create("multiply", {x, weight}, kFile,
                   [&](mlir::OpBuilder &builder, mlir::Location loc) -> mlir::Value {
                     return mlir::arith::MulFOp::create(builder, loc, valueOf(x), valueOf(weight));
                   });
  EXPECT_EQ(product.name(), "fc.inner.multiply");
  mlir::Operation *op = valueOf(product).getDefiningOp();
  EXPECT_EQ(mlir::fsdp::getStructure(op).unit.getValue(), "fc");
  auto location = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>();
  ASSERT_TRUE(location);
  EXPECT_EQ(location.getFilename().getValue(), "step.txt");
  EXPECT_EQ(location.getLine(), 7u);
  model.loss(sum(model, product), model.scalar(24, ElementType::f64, kFile), kFile);
  expectError([&] { model.take(kFile); },
              "the model has no optimizer; call 'ModelBuilder::optimizer'");
  model.optimizer("sgd", {{"lr", 0.1}}, mlir::fsdp::ScheduleKind::constant, /*warmup=*/0,
                  /*groups=*/{}, kFile);
  mlir::OwningOpRef<mlir::ModuleOp> module = model.take(kFile);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
}

TEST_F(ModelBuilderTest, ErrorsBeginWithTheLocationOfTheCaller) {
  ModelBuilder model(context, kFile);
  ModelValue x = model.input("x", {6, 4}, ElementType::f32, 0, kFile);
  expectError([&] { model.input("x", {6}, ElementType::f32, 0, kFile); },
              "input 'x' is declared twice; give each its own name");
  expectError([&] { model.loss(x, x, kFile); },
              "the loss of 'x' (6x4xf32) and 'x' (6x4xf32): expected a sum and a weight that are "
              "scalars in f64; use mean or weightedMean");
  expectError([&] { model.take(kFile); }, "the model has no loss; call 'Model::loss'");
}

} // namespace
