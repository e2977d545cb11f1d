//===- UpdateRuleTest.cpp - the expression of each rule against its reference ----===//

#include "dialect/fsdp/UpdateRule.h"
#include "base/UpdateConstants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "test/unit/interpreter/Evaluate.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

class UpdateRuleTest : public ::testing::Test {
protected:
  UpdateRuleTest() { context.loadDialect<FSDPDialect, arith::ArithDialect, math::MathDialect>(); }

  OptimizerAttr make(StringRef rule, ArrayRef<OptimizerAttr::Constant> constants) {
    auto emitError = [&] { return mlir::emitError(UnknownLoc::get(&context)); };
    return OptimizerAttr::create(emitError, &context, rule, constants, ScheduleKind::constant, 0);
  }

  /// New parameter and states, by the rule's expression in double.
  SmallVector<double> evaluateBody(OptimizerAttr optimizer, double parameter, double gradient,
                                   double lr, double scale, int64_t count, bool decays,
                                   ArrayRef<double> states) {
    Type f64 = Float64Type::get(&context);
    UpdateBody body(optimizer, f64);
    optimizer.getUpdateRule().body(body);
    SmallVector<Tensor> arguments;
    for (double value : {parameter, gradient, lr, scale, static_cast<double>(count)})
      arguments.push_back(scalar(f64, value));
    Tensor condition(RankedTensorType::get({}, IntegerType::get(&context, 1)));
    condition.mutableData()[0].i = decays;
    arguments.push_back(condition);
    for (double state : states)
      arguments.push_back(scalar(f64, state));
    for (const UpdateRule::Constant &constant : optimizer.getUpdateRule().constants)
      arguments.push_back(scalar(f64, optimizer.getConstant(constant.name)));
    SmallVector<Value> wanted = {body.newParameter.value};
    for (Number state : body.newStates)
      wanted.push_back(state.value);
    FailureOr<SmallVector<Tensor>> results = evaluate(body.block(), arguments, wanted);
    EXPECT_TRUE(succeeded(results));
    SmallVector<double> numbers;
    for (const Tensor &result : *results)
      numbers.push_back(result.data()[0].f);
    return numbers;
  }

  /// The same by its reference.
  static SmallVector<double> evaluateReference(OptimizerAttr optimizer, double parameter,
                                               double gradient, double lr, double scale,
                                               int64_t count, bool decays,
                                               ArrayRef<double> states) {
    SmallVector<double> newStates(states);
    auto constant = [&](StringRef name) { return optimizer.getConstant(name); };
    auto round = [](double value) { return value; };
    double decay = decays ? optimizer.getConstant("weight_decay") : 0;
    UpdateReference element{parameter, gradient * scale, lr,       decay,
                            count,     newStates,        constant, round};
    optimizer.getUpdateRule().reference(element);
    SmallVector<double> numbers = {element.parameter};
    llvm::append_range(numbers, newStates);
    return numbers;
  }

  static Tensor scalar(Type type, double value) {
    Tensor tensor(RankedTensorType::get({}, type));
    tensor.mutableData()[0].f = value;
    return tensor;
  }

  MLIRContext context;
};

TEST_F(UpdateRuleTest, ProgramsKnowTheConstantsOfAllRules) {
  std::set<std::string> ofRules;
  for (const UpdateRule &rule : UpdateRule::all())
    for (const UpdateRule::Constant &constant : rule.constants)
      ofRules.insert(constant.name.str());
  EXPECT_EQ(ofRules, std::set<std::string>(std::begin(base::kUpdateConstants),
                                           std::end(base::kUpdateConstants)));
}

TEST_F(UpdateRuleTest, TheExpressionOfEachRuleIsItsReference) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> fraction(0, 0.99);
  for (const UpdateRule &rule : UpdateRule::all())
    for (int draw = 0; draw < 200; ++draw) {
      SmallVector<OptimizerAttr::Constant> constants;
      for (const UpdateRule::Constant &constant : rule.constants)
        if (random() % 4 != 0)
          constants.push_back(
              {constant.name, constant.fraction ? fraction(random) : std::abs(normal(random))});
      OptimizerAttr optimizer = make(rule.name, constants);
      ASSERT_TRUE(optimizer);
      // Those that updates from zero leave: a sum of squares is never negative.
      SmallVector<double> states(optimizer.getStateNames().size());
      for (int64_t update = 1, most = random() % 4; update <= most; ++update) {
        auto after = evaluateReference(optimizer, normal(random), normal(random), /*lr=*/1,
                                       /*scale=*/1, update, /*decays=*/true, states);
        llvm::copy(llvm::drop_begin(after), states.begin());
      }
      const double parameter = normal(random), gradient = normal(random),
                   lr = std::abs(normal(random)), scale = fraction(random);
      const int64_t count = 1 + random() % 50;
      const bool decays = random() % 2;
      auto got = evaluateBody(optimizer, parameter, gradient, lr, scale, count, decays, states);
      auto expected =
          evaluateReference(optimizer, parameter, gradient, lr, scale, count, decays, states);
      ASSERT_EQ(got.size(), expected.size());
      for (auto [i, pair] : llvm::enumerate(llvm::zip_equal(got, expected))) {
        auto [value, reference] = pair;
        EXPECT_NEAR(value, reference, 1e-12 * (1 + std::abs(reference)))
            << rule.name.str() << ", result " << i << ", draw " << draw;
      }
    }
}

/// With eps 0 an element that never had a gradient stays as it is.
TEST_F(UpdateRuleTest, AnElementWithoutMomentsStays) {
  for (const UpdateRule &rule : UpdateRule::all()) {
    if (!rule.reads("eps"))
      continue;
    SCOPED_TRACE(rule.name.str());
    OptimizerAttr optimizer = make(rule.name, {{"eps", 0}});
    const SmallVector<double> zeros(optimizer.getStateNames().size());
    EXPECT_EQ(evaluateBody(optimizer, 0.5, 0, 0.1, 1, 1, false, zeros)[0], 0.5);
    EXPECT_EQ(evaluateReference(optimizer, 0.5, 0, 0.1, 1, 1, false, zeros)[0], 0.5);
    EXPECT_NE(evaluateBody(optimizer, 0.5, 1e-3, 0.1, 1, 1, false, zeros)[0], 0.5);
  }
}

} // namespace
