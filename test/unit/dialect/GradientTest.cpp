//===- GradientTest.cpp - reverse mode against finite differences ---------===//
//
// Every op with a derivative, on random shapes (sizes 0 and 1 among them), in double
// precision: the cotangents that buildCotangents builds equal central differences of
// sum(results * cotangents). An op that is registered as differentiable and has no case here
// fails the test.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/dialect/GradientCases.h"
#include "test/unit/interpreter/Evaluate.h"
#include "gtest/gtest.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::fsdp::interpreter;
using namespace gradient_test;

namespace {

class GradientTest : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    nn::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<nn::NNDialect, fsdp::FSDPDialect, arith::ArithDialect, math::MathDialect,
                        func::FuncDialect>();
  }

  /// Parses a function whose arguments are the operands of the op and then one cotangent for
  /// each of its results. Returns the op.
  Operation *parse(const Case &c) {
    std::vector<std::string> arguments;
    for (auto [index, operand] : llvm::enumerate(c.operands))
      arguments.push_back(std::string("%") + static_cast<char>('a' + index) + ": " + operand.type);
    std::string text = "fsdp.mesh @mesh <[\"fsdp\"=2]>\nfunc.func private @f(" +
                       llvm::join(arguments, ", ") + ") {\n  %r:" + std::to_string(c.results) +
                       " = " + c.text + "\n  return\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return nullptr;
    func::FuncOp function = *module->getOps<func::FuncOp>().begin();
    Block &body = function.getBody().front();
    Operation *op = &body.front();
    for (Value result : op->getResults())
      body.addArgument(result.getType(), result.getLoc());
    function.setFunctionType(FunctionType::get(&context, body.getArgumentTypes(), {}));
    return op;
  }

  SmallVector<Tensor> draw(const Case &c, Operation *op, Random &random) {
    SmallVector<Tensor> values;
    for (auto [index, type] : llvm::enumerate(op->getBlock()->getArgumentTypes())) {
      Operand range = index < c.operands.size() ? c.operands[index] : Operand{};
      Tensor value(llvm::cast<RankedTensorType>(type));
      for (int64_t i = 0; i < value.size(); ++i) {
        double number = random.real(range.low, range.high);
        value.setNumber(i, range.bothSigns && random.integer(0, 1) ? -number : number);
      }
      values.push_back(value);
    }
    return values;
  }

  /// sum(results * cotangents); `values` are operands and cotangents.
  double pairing(Operation *op, ArrayRef<Tensor> values) {
    auto results = evaluate(op, values.take_front(op->getNumOperands()));
    EXPECT_TRUE(succeeded(results));
    double sum = 0;
    for (auto [result, cotangent] : llvm::zip(*results, values.drop_front(op->getNumOperands())))
      for (int64_t i = 0; i < result.size(); ++i)
        sum += result.getFloat(i) * cotangent.getFloat(i);
    return sum;
  }

  /// The cotangents of the operands; `needed` and `given` are bit masks over operands and
  /// results. Checks that types fit and that nothing is built in vain.
  SmallVector<Value> differentiate(Operation *op, unsigned needed, unsigned given) {
    Block *block = op->getBlock();
    SmallVector<Value> cotangents;
    SmallVector<bool> mask;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      cotangents.push_back((given >> i) & 1 ? block->getArgument(op->getNumOperands() + i)
                                            : Value());
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      mask.push_back((needed >> i) & 1);
    Operation *terminator = block->getTerminator();
    OpBuilder builder(terminator);
    Operation *last = terminator->getPrevNode();
    nn::Cotangents built =
        llvm::cast<nn::DifferentiableOpInterface>(op).buildCotangents(builder, cotangents, mask);
    EXPECT_TRUE(succeeded(built));
    SmallVector<Value> operandCotangents = *built;
    EXPECT_EQ(operandCotangents.size(), op->getNumOperands());
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Value operand = op->getOperand(i), cotangent = operandCotangents[i];
      bool wanted = mask[i] && given && isa<FloatType>(getElementTypeOrSelf(operand));
      EXPECT_EQ(bool(cotangent), wanted) << "operand " << i;
      if (cotangent) {
        EXPECT_EQ(cotangent.getType(), operand.getType());
      }
    }
    for (Operation *next = last->getNextNode(); next != terminator; next = next->getNextNode())
      EXPECT_TRUE(!next->use_empty() ||
                  llvm::any_of(operandCotangents,
                               [&](Value value) { return value && value.getDefiningOp() == next; }))
          << "built in vain: " << next->getName().getStringRef().str();
    EXPECT_TRUE(succeeded(mlir::verify(*module)));
    return operandCotangents;
  }

  void check(const Case &c, Random &random) {
    SCOPED_TRACE(c.text);
    Operation *op = parse(c);
    ASSERT_TRUE(op);
    SmallVector<Tensor> values = draw(c, op, random);
    unsigned operands = op->getNumOperands(), results = op->getNumResults();
    for (unsigned given = 0; given < (1u << results); ++given) {
      if (given & ~c.differentiable)
        continue;
      for (unsigned needed = 0; needed < (1u << operands); ++needed) {
        op = parse(c);
        SmallVector<Value> cotangents = differentiate(op, needed, given);
        SmallVector<Tensor> at(values);
        for (unsigned i = 0; i < results; ++i)
          if (!((given >> i) & 1))
            at[operands + i] = Tensor(at[operands + i].getType());
        for (unsigned i = 0; i < operands; ++i) {
          if (!cotangents[i])
            continue;
          auto computed = evaluate(*op->getBlock(), at, {cotangents[i]});
          ASSERT_TRUE(succeeded(computed));
          compare(op, at, i, computed->front());
        }
      }
    }
  }

  /// Compares `cotangent` of operand `index` with central differences.
  void compare(Operation *op, SmallVector<Tensor> &at, unsigned index, const Tensor &cotangent) {
    constexpr double step = 1e-5, tolerance = 2e-8;
    for (int64_t i = 0; i < cotangent.size(); ++i) {
      Tensor original = at[index], moved = original;
      moved.setNumber(i, original.getFloat(i) + step);
      at[index] = moved;
      double above = pairing(op, at);
      moved.setNumber(i, original.getFloat(i) - step);
      at[index] = moved;
      double below = pairing(op, at);
      at[index] = original;
      double expected = (above - below) / (2 * step);
      ASSERT_NEAR(cotangent.getFloat(i), expected, tolerance * (1 + std::abs(expected)))
          << "operand " << index << ", element " << i;
      ++compared;
    }
  }

  /// The cotangents for the cotangent 1 of the only result, at given values of the operands.
  std::vector<std::vector<double>> at(const std::string &text,
                                      const std::vector<std::vector<double>> &operands) {
    Case c{text, {}};
    for (const std::vector<double> &operand : operands)
      c.operands.push_back({tensor({static_cast<int64_t>(operand.size())})});
    Operation *op = parse(c);
    SmallVector<Tensor> values = [&] {
      SmallVector<Tensor> values;
      for (Type type : op->getBlock()->getArgumentTypes())
        values.push_back(Tensor::splat(llvm::cast<RankedTensorType>(type), 1));
      return values;
    }();
    for (auto [index, operand] : llvm::enumerate(operands))
      for (auto [i, number] : llvm::enumerate(operand))
        values[index].setNumber(i, number);
    SmallVector<Value> cotangents = differentiate(op, ~0u, ~0u);
    auto computed = evaluate(*op->getBlock(), values, cotangents);
    std::vector<std::vector<double>> numbers;
    for (const Tensor &value : *computed) {
      numbers.emplace_back();
      for (int64_t i = 0; i < value.size(); ++i)
        numbers.back().push_back(value.getFloat(i));
    }
    return numbers;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  int64_t compared = 0;
};

TEST_F(GradientTest, EveryDifferentiableOpHasACase) {
  // Ops in the local terms of a region need ranks: test/e2e/check_manual_random.py compares them
  // with differences, and fails where one has no case.
  std::set<std::string> covered = {"fsdp.enter_manual", "fsdp.exit_manual", "fsdp.pgather",
                                   "fsdp.ppermute",     "fsdp.psum",        "fsdp.psum_scatter",
                                   "fsdp.pswap",        "fsdp.pvary"},
                        registered;
  for (const auto &[name, generator] : cases())
    covered.insert(name);
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasInterface<nn::DifferentiableOpInterface>())
      registered.insert(name.getStringRef().str());
  EXPECT_EQ(registered, covered);
}

TEST_F(GradientTest, EqualsFiniteDifferences) {
  uint64_t seed = 1;
  for (const auto &[name, generator] : cases()) {
    Random random{std::mt19937_64(seed++)};
    int64_t before = compared;
    for (int64_t round = 0; round < 100; ++round) {
      check(generator(random), random);
      if (HasFatalFailure())
        return;
    }
    EXPECT_GT(compared, before + 100) << name << " has hardly an element to compare";
  }
}

// Padding, and samples that do not count, are set to 0 in one operand of a sum: no term may remain.
TEST_F(GradientTest, ZerosInOneOperandEndASum) {
  std::set<std::string> tested;
  uint64_t seed = 1;
  for (const auto &[name, generator] : cases()) {
    Random random{std::mt19937_64(seed++)};
    for (int64_t round = 0; round < 20; ++round) {
      Case c = generator(random);
      SCOPED_TRACE(c.text);
      Operation *op = parse(c);
      ASSERT_TRUE(op);
      auto ruled = llvm::dyn_cast<nn::ShardingRuleOpInterface>(op);
      if (!ruled)
        break;
      const nn::ShardingRule rule = ruled.getShardingRule();
      auto isSummed = [&](const nn::TensorFactors &tensor) {
        return llvm::any_of(tensor, [&](const nn::DimFactors &dim) {
          return llvm::any_of(dim, [&](int64_t factor) {
            return rule.factors[factor].kind == nn::FactorKind::sumReduction;
          });
        });
      };
      SmallVector<Tensor> values = draw(c, op, random);
      values.truncate(op->getNumOperands());
      for (auto [index, operand] : llvm::enumerate(rule.operands)) {
        if (!isSummed(operand) || values[index].size() == 0 ||
            (rule.annihilator >= 0 && static_cast<int64_t>(index) != rule.annihilator))
          continue;
        SmallVector<Tensor> at(values);
        at[index] = Tensor(at[index].getType());
        auto results = evaluate(op, at);
        ASSERT_TRUE(succeeded(results));
        tested.insert(name);
        for (auto [result, tensor] : llvm::zip_equal(*results, rule.results))
          for (int64_t i = 0; !isSummed(tensor) && i < result.size(); ++i)
            ASSERT_EQ(result.getFloat(i), 0)
                << "operand " << index << " is 0, but a sum is not; make the dimension 'combined'";
      }
    }
  }
  EXPECT_GE(tested.size(), 2u);
}

// What forward saves for backward alone is refused as part of a loss, not silently ignored.
TEST_F(GradientTest, StatisticsHaveNoDerivative) {
  const std::string x = tensor({2, 4}), row = tensor({4}), rows = tensor({2}),
                    q = tensor({1, 1, 3, 2});
  const std::vector<std::pair<Case, std::string>> refused = {
      {{"nn.layer_norm %a, %b, %c eps 0.1 : " + x + ", " + row + " -> " + rows,
        {{x}, {row}, {row}},
        3},
       "has no derivative of 'mean' and 'rstd'; compute them with 'nn.reduce'"},
      {{"nn.rms_norm %a, %b eps 0.1 : " + x + ", " + row + " -> " + rows, {{x}, {row}}, 2},
       "has no derivative of 'rstd'; compute it with 'nn.reduce'"},
      {{"nn.attention %a, %b, %c scale 0.5 : (" + q + ", " + q + ", " + q + ") -> (" + q + ", " +
            tensor({1, 1, 3}) + ")",
        {{q}, {q}, {q}},
        2},
       "has no derivative of 'log_sum_exp'; compute it with 'nn.einsum'"},
  };
  for (const auto &[c, words] : refused) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    Operation *op = parse(c);
    ASSERT_TRUE(op) << message;
    Block *block = op->getBlock();
    OpBuilder builder(block->getTerminator());
    SmallVector<Value> cotangents(op->getNumResults());
    cotangents.back() = block->getArguments().back();
    SmallVector<bool> needed(op->getNumOperands(), true);
    EXPECT_TRUE(failed(llvm::cast<nn::DifferentiableOpInterface>(op).buildCotangents(
        builder, cotangents, needed)));
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }
}

using Numbers = std::vector<std::vector<double>>;

TEST_F(GradientTest, TiesOfExtremaAreShared) {
  EXPECT_EQ(at("arith.maximumf %a, %b : tensor<3xf64>", {{1, 2, 3}, {2, 2, 2}}),
            (Numbers{{0, 0.5, 1}, {1, 0.5, 0}}));
  EXPECT_EQ(at("arith.minimumf %a, %b : tensor<3xf64>", {{1, 2, 3}, {2, 2, 2}}),
            (Numbers{{1, 0.5, 0}, {0, 0.5, 1}}));
  EXPECT_EQ(at("nn.reduce max \"a ->\" %a : tensor<5xf64> -> tensor<f64>", {{7, 1, 7, 7, 7}}),
            (Numbers{{0.25, 0, 0.25, 0.25, 0.25}}));
}

TEST_F(GradientTest, KinksAndPoles) {
  EXPECT_EQ(at("math.absf %a : tensor<3xf64>", {{-2, 0, 2}}), (Numbers{{-1, 0, 1}}));
  // d(x^y)/dx is 0 for y = 0, even at x = 0; d(x^y)/dy is 0 for x = 0.
  EXPECT_EQ(at("math.powf %a, %b : tensor<3xf64>", {{0, 0, 3}, {0, 2, 0}}),
            (Numbers{{0, 0, 0}, {0, 0, std::log(3.0)}}));
}

} // namespace
