//===- DifferentiateTest.cpp - gradients of random programs ---------------===//
//
// Random training steps (values and parameters used several times, parameters broadcast,
// cast and exponentiated, a frozen one among them): the gradients that fsdp-differentiate
// writes equal central differences of the loss that it logs.
//
//===----------------------------------------------------------------------===//

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "test/unit/interpreter/Evaluate.h"
#include "gtest/gtest.h"
#include <cmath>
#include <map>
#include <random>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

/// Writes a random step on values of type tensor<ROWSxCOLUMNSxf64>.
class ProgramWriter {
public:
  explicit ProgramWriter(uint64_t seed) : engine(seed) {
    rows = integer(1, 4);
    columns = integer(1, 4);
  }

  std::string write() {
    std::string type = whole();
    define("fsdp.input \"x\" sample_dim 0 : " + type);
    pool.push_back(last());
    // At least one parameter, whatever follows.
    affine();
    for (int64_t i = integer(2, 9); i > 0; --i)
      step();
    // Every value that nothing uses goes into the loss, so that every parameter influences it.
    std::string sum;
    for (const std::string &value : pool) {
      if (used[value])
        continue;
      define("nn.reduce sum \"a b ->\" " + value + " : " + type + " -> tensor<f64>");
      std::string part = last();
      sum = sum.empty() ? part : define("arith.addf " + sum + ", " + part + " : tensor<f64>");
    }
    define("arith.constant dense<7.0> : tensor<f64>");
    body += "  fsdp.loss " + sum + " over " + last() + "\n";
    return declarations + "fsdp.step @train train optimizer <sgd, lr = 0.1> {\n" + body + "}\n";
  }

private:
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  std::string whole() const {
    return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf64>";
  }
  std::string row() const { return "tensor<" + std::to_string(columns) + "xf64>"; }
  std::string last() const { return "%v" + std::to_string(values - 1); }
  std::string define(const std::string &op) {
    body += "  %v" + std::to_string(values++) + " = " + op + "\n";
    return last();
  }
  std::string pick() {
    std::string value = pool[integer(0, pool.size() - 1)];
    used[value] = true;
    return value;
  }
  /// A read of a parameter of `type`: an old one where there is one, often.
  std::string read(const std::string &type) {
    std::vector<std::string> &names = params[type];
    std::string name;
    if (!names.empty() && integer(0, 2) != 0) {
      name = names[integer(0, names.size() - 1)];
    } else {
      name = "p" + std::to_string(count++);
      names.push_back(name);
      declarations += "fsdp.param @" + name + " : " + type + " unit \"u\" init <constant, 0.0>" +
                      (integer(0, 5) == 0 && count > 1 ? " frozen" : "") + "\n";
    }
    return define("fsdp.read @" + name + " : " + type);
  }
  /// A parameter of one row, broadcast, possibly after some arithmetic.
  std::string broadcast() {
    std::string value = read(row());
    if (integer(0, 1))
      value = define("math.exp " + value + " : " + row());
    return define("nn.repeat \"b -> a b\" " + value + " : " + row() + " -> " + whole());
  }
  void affine() {
    std::string square =
        "tensor<" + std::to_string(columns) + "x" + std::to_string(columns) + "xf64>";
    std::string value = pick(), weight = read(square);
    define("nn.einsum \"ab,bc->ac\" " + value + ", " + weight + " : (" + whole() + ", " + square +
           ") -> " + whole());
    pool.push_back(define("math.tanh " + last() + " : " + whole()));
  }
  void step() {
    switch (integer(0, 5)) {
    case 0:
      return affine();
    case 1: {
      std::string lhs = pick(), rhs = pick();
      pool.push_back(define("arith.mulf " + lhs + ", " + rhs + " : " + whole()));
      return;
    }
    case 2: {
      std::string lhs = pick(), rhs = broadcast();
      pool.push_back(define("arith.mulf " + lhs + ", " + rhs + " : " + whole()));
      return;
    }
    case 3: {
      std::string lhs = pick(), rhs = broadcast();
      pool.push_back(define("arith.subf " + rhs + ", " + lhs + " : " + whole()));
      return;
    }
    case 4: {
      std::string value = pick();
      std::string mean = "tensor<" + std::to_string(rows) + "xf64>";
      define("nn.reduce mean \"a b -> a\" " + value + " : " + whole() + " -> " + mean);
      define("nn.repeat \"a -> a b\" " + last() + " : " + mean + " -> " + whole());
      pool.push_back(define("arith.addf " + last() + ", " + value + " : " + whole()));
      return;
    }
    default: {
      std::string lhs = pick(), rhs = pick();
      define("math.sin " + lhs + " : " + whole());
      pool.push_back(define("arith.addf " + last() + ", " + rhs + " : " + whole()));
      return;
    }
    }
  }

  std::mt19937_64 engine;
  int64_t rows, columns, values = 0, count = 0;
  std::string declarations, body;
  std::vector<std::string> pool;
  std::map<std::string, bool> used;
  std::map<std::string, std::vector<std::string>> params;
};

/// Tensors by name.
using Values = std::map<std::string, Tensor>;

struct DifferentiateTest : testing::Test {
  void SetUp() override {
    DialectRegistry registry;
    nn::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
  }

  /// Runs the step; returns the logged loss and leaves the gradients in `gradients`.
  double run(StepOp step, const Values &params, const Tensor &input, Values &gradients) {
    DenseMap<Value, Tensor> values;
    double loss = std::nan("");
    for (Operation &op : step.getBody().front()) {
      if (auto read = dyn_cast<ReadOp>(op)) {
        values[read.getResult()] = params.at(read.getParam().str());
      } else if (auto in = dyn_cast<InputOp>(op)) {
        values[in.getResult()] = input;
      } else if (auto gradient = dyn_cast<GradientOp>(op)) {
        EXPECT_TRUE(
            gradients.insert({gradient.getParam().str(), values[gradient.getValue()]}).second)
            << "two gradients of " << gradient.getParam().str();
      } else if (auto output = dyn_cast<OutputOp>(op)) {
        loss = values[output.getValue()].getFloat(0);
      } else {
        SmallVector<Tensor> operands;
        for (Value operand : op.getOperands())
          operands.push_back(values[operand]);
        auto results = evaluate(&op, operands);
        EXPECT_TRUE(succeeded(results));
        for (auto [result, tensor] : llvm::zip(op.getResults(), *results))
          values[result] = tensor;
      }
    }
    return loss;
  }

  /// No value computed from parameters alone crosses from forward (before `seed`) into backward.
  void checkReads(StepOp step) {
    Block &body = step.getBody().front();
    DenseSet<Operation *> backward;
    bool passed = false;
    for (Operation &op : body) {
      // The quotient that seeds backward is the first division of the step.
      passed |= isa<arith::DivFOp>(op);
      if (passed)
        backward.insert(&op);
    }
    for (ReadOp read : body.getOps<ReadOp>())
      for (Operation *user : read->getUsers())
        EXPECT_EQ(backward.contains(read), backward.contains(user))
            << "a read of '" << read.getParam().str() << "' crosses into backward";
  }

  Tensor draw(RankedTensorType type, std::mt19937_64 &engine) {
    Tensor tensor(type);
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.setNumber(i, static_cast<double>(engine() >> 11) * 0x1.0p-52 - 1);
    return tensor;
  }

  MLIRContext context;
};

TEST_F(DifferentiateTest, RandomProgramsEqualFiniteDifferences) {
  int64_t compared = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    std::string text = ProgramWriter(seed).write();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    auto module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    PassManager manager(&context);
    manager.addNestedPass<StepOp>(createDifferentiatePass());
    ASSERT_TRUE(succeeded(manager.run(*module)));

    StepOp step = *module->getOps<StepOp>().begin();
    checkReads(step);
    std::mt19937_64 engine(seed);
    Values params;
    for (ParamOp param : module->getOps<ParamOp>())
      params[param.getSymName().str()] = draw(param.getTensorType(), engine);
    InputOp in = *step.getBody().front().getOps<InputOp>().begin();
    Tensor input = draw(cast<RankedTensorType>(in.getType()), engine);
    Values gradients;
    ASSERT_TRUE(std::isfinite(run(step, params, input, gradients)));

    for (ParamOp param : module->getOps<ParamOp>()) {
      std::string name = param.getSymName().str();
      ASSERT_EQ(gradients.count(name), param.getFrozen() ? 0u : 1u) << name;
      if (param.getFrozen())
        continue;
      Tensor original = params[name];
      for (int64_t i = 0; i < original.size(); ++i) {
        constexpr double distance = 1e-5;
        auto lossAt = [&](double offset) {
          Tensor moved = original;
          moved.setNumber(i, original.getFloat(i) + offset);
          params[name] = moved;
          Values ignored;
          return run(step, params, input, ignored);
        };
        double expected = (lossAt(distance) - lossAt(-distance)) / (2 * distance);
        params[name] = original;
        ASSERT_NEAR(gradients[name].getFloat(i), expected, 1e-7 * (1 + std::abs(expected)))
            << name << " at " << i;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

} // namespace
