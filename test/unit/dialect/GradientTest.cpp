//===- GradientTest.cpp - reverse mode against finite differences ---------===//
//
// Every op with a derivative, on random shapes (sizes 0 and 1 among them), in double
// precision: the cotangents that buildCotangents builds equal central differences of
// sum(results * cotangents). An op that is registered as differentiable and has no case here
// fails the test.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <map>
#include <random>
#include <set>

using namespace mlir;
using namespace mlir::fsdp::interpreter;

namespace {

using Shape = std::vector<int64_t>;

/// A reproducible source of shapes and values.
struct Random {
  std::mt19937_64 engine;

  /// Uniform in [low, high).
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(engine() >> 11) * 0x1.0p-53;
  }
  /// Uniform in [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  /// A size: 0 and 1 often enough to meet both in every case.
  int64_t size() { return std::vector<int64_t>{0, 1, 1, 2, 2, 3, 3, 4, 5, 5}[integer(0, 9)]; }
  Shape shape() {
    Shape shape(integer(0, 3));
    for (int64_t &size : shape)
      size = this->size();
    return shape;
  }
  template <typename T> void shuffle(T &items) {
    for (size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[integer(0, i - 1)]);
  }
};

std::string tensor(const Shape &shape, StringRef element = "f64") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element.str() + ">";
}

/// One operand: its type and the range its values are drawn from (negated at random where
/// `bothSigns`).
struct Operand {
  std::string type;
  double low = -2, high = 2;
  bool bothSigns = false;
};

/// One op on operands %a, %b, %c.
struct Case {
  std::string text;
  std::vector<Operand> operands;
};

using Generator = std::function<Case(Random &)>;

/// A name stands for a dimension; the sizes are drawn once per case.
struct Names {
  std::vector<std::string> names;
  std::map<std::string, int64_t> sizes;

  explicit Names(Random &random, int64_t most) {
    for (int64_t i = random.integer(0, most); i > 0; --i) {
      names.push_back(std::string(1, static_cast<char>('a' + names.size())));
      sizes[names.back()] = random.size();
    }
  }
  std::vector<std::string> subset(Random &random) const {
    std::vector<std::string> chosen;
    for (const std::string &name : names)
      if (random.integer(0, 1))
        chosen.push_back(name);
    random.shuffle(chosen);
    return chosen;
  }
  Shape shape(const std::vector<std::string> &of) const {
    Shape shape;
    for (const std::string &name : of)
      shape.push_back(sizes.at(name));
    return shape;
  }
};

std::string joined(const std::vector<std::string> &names, StringRef separator) {
  return llvm::join(names, separator);
}

/// "lhs -> rhs" in canonical spelling.
std::string arrow(const std::string &from, const std::string &to) {
  return from + (from.empty() ? "->" : " ->") + (to.empty() ? "" : " ") + to;
}

/// An elementwise op of `arith` or `math` whose operands have the given ranges.
Generator elementwise(std::string op, std::vector<Operand> ranges) {
  return [=](Random &random) {
    Case c{op, ranges};
    std::string type = tensor(random.shape());
    for (auto [index, operand] : llvm::enumerate(c.operands)) {
      operand.type = type;
      c.text += std::string(index ? ", %" : " %") + static_cast<char>('a' + index);
    }
    c.text += " : " + type;
    return c;
  };
}

Generator cast(std::string op, StringRef from, StringRef to) {
  return [=, from = from.str(), to = to.str()](Random &random) {
    Shape shape = random.shape();
    return Case{op + " %a : " + tensor(shape, from) + " to " + tensor(shape, to),
                {{tensor(shape, from)}}};
  };
}

Case makeSelect(Random &random) {
  Shape shape = random.shape();
  return {"arith.select %a, %b, %c : " + tensor(shape, "i1") + ", " + tensor(shape),
          {{tensor(shape, "i1"), 0, 2}, {tensor(shape)}, {tensor(shape)}}};
}

Case makeEinsum(Random &random) {
  Names names(random, 5);
  std::vector<std::string> tensors[3];
  for (const std::string &name : names.names) {
    // A name stands in two or three of the tensors.
    int64_t missing = random.integer(0, 3);
    for (int64_t i = 0; i < 3; ++i)
      if (i != missing)
        tensors[i].push_back(name);
  }
  std::string types[3];
  for (int64_t i = 0; i < 3; ++i) {
    random.shuffle(tensors[i]);
    types[i] = tensor(names.shape(tensors[i]));
  }
  std::string notation =
      joined(tensors[0], "") + "," + joined(tensors[1], "") + "->" + joined(tensors[2], "");
  return {"nn.einsum \"" + notation + "\" %a, %b : (" + types[0] + ", " + types[1] + ") -> " +
              types[2],
          {{types[0]}, {types[1]}}};
}

/// Names cut into groups at random; the shape of what they name.
std::pair<std::string, Shape> grouped(Random &random, const Names &names,
                                      std::vector<std::string> order) {
  std::vector<std::string> dims;
  Shape shape;
  while (!order.empty() || random.integer(0, 4) == 0) {
    size_t count = std::min<size_t>(order.size(), random.integer(0, 3));
    int64_t size = 1;
    std::vector<std::string> group(order.begin(), order.begin() + count);
    order.erase(order.begin(), order.begin() + count);
    for (const std::string &name : group)
      size *= names.sizes.at(name);
    shape.push_back(size);
    dims.push_back(group.empty() ? "1" : count == 1 ? group[0] : "(" + joined(group, " ") + ")");
  }
  return {joined(dims, " "), shape};
}

Case makeRearrange(Random &random) {
  Names names(random, 4);
  auto [from, fromShape] = grouped(random, names, names.names);
  std::vector<std::string> order = names.names;
  random.shuffle(order);
  auto [to, toShape] = grouped(random, names, order);
  std::string notation = arrow(from, to);
  // Gives the sizes that the shapes do not tell, as few as suffice.
  nn::Notation parsed = *nn::Notation::parseEinops(notation, nullptr);
  llvm::StringMap<int64_t> known;
  for (const std::string &name : names.names)
    known[name] = names.sizes[name];
  std::string sizes;
  for (const std::string &name : names.names) {
    llvm::StringMap<int64_t> others(known);
    others.erase(name);
    if (succeeded(parsed.solveSizes({fromShape}, toShape, others, nullptr)))
      known = others;
    else
      sizes += (sizes.empty() ? "" : ", ") + name + " = " + std::to_string(names.sizes[name]);
  }
  if (!sizes.empty())
    sizes = " sizes {" + sizes + "}";
  return {"nn.rearrange \"" + notation + "\" %a" + sizes + " : " + tensor(fromShape) + " -> " +
              tensor(toShape),
          {{tensor(fromShape)}}};
}

Case makeRepeat(Random &random) {
  Names names(random, 4);
  std::vector<std::string> from = names.subset(random), to = names.names;
  random.shuffle(to);
  std::string type = tensor(names.shape(from));
  return {"nn.repeat \"" + arrow(joined(from, " "), joined(to, " ")) + "\" %a : " + type + " -> " +
              tensor(names.shape(to)),
          {{type}}};
}

Generator reduce(std::string kind, StringRef element) {
  return [=, element = element.str()](Random &random) {
    Names names(random, 4);
    std::vector<std::string> from = names.names, to = names.subset(random);
    random.shuffle(from);
    std::string type = tensor(names.shape(from), element);
    return Case{"nn.reduce " + kind + " \"" + arrow(joined(from, " "), joined(to, " ")) +
                    "\" %a : " + type + " -> " + tensor(names.shape(to)),
                {{type}}};
  };
}

Case makeCrossEntropy(Random &random) {
  Shape rows = random.shape(), logits = rows;
  logits.push_back(random.integer(1, 6));
  std::string whole = tensor(logits), row = tensor(rows), labels = tensor(rows, "i32");
  return {"nn.cross_entropy %a, %b : " + whole + ", " + labels + " -> " + row + ", " + row,
          {{whole}, {labels, 0, static_cast<double>(logits.back())}}};
}

Case makeConstraint(Random &random) {
  std::string type = tensor({random.size(), 3});
  return {"fsdp.constraint %a <@mesh, [{\"fsdp\"}, {} ]> : " + type, {{type}}};
}

/// The cases of each op.
const std::vector<std::pair<std::string, Generator>> &cases() {
  const Operand any, positive{"", 0.3, 3}, nonzero{"", 0.4, 2.5, true};
  static const std::vector<std::pair<std::string, Generator>> cases = {
      {"nn.einsum", makeEinsum},
      {"nn.rearrange", makeRearrange},
      {"nn.repeat", makeRepeat},
      {"nn.reduce", reduce("sum", "f64")},
      {"nn.reduce", reduce("mean", "f64")},
      {"nn.reduce", reduce("max", "f64")},
      {"nn.reduce", reduce("sum", "f32")},
      {"nn.reduce", reduce("mean", "f32")},
      {"nn.reduce", reduce("max", "f32")},
      {"nn.cross_entropy", makeCrossEntropy},
      {"fsdp.constraint", makeConstraint},
      {"arith.addf", elementwise("arith.addf", {any, any})},
      {"arith.subf", elementwise("arith.subf", {any, any})},
      {"arith.mulf", elementwise("arith.mulf", {any, any})},
      {"arith.divf", elementwise("arith.divf", {any, nonzero})},
      {"arith.negf", elementwise("arith.negf", {any})},
      {"arith.maximumf", elementwise("arith.maximumf", {any, any})},
      {"arith.minimumf", elementwise("arith.minimumf", {any, any})},
      {"arith.select", makeSelect},
      {"arith.extf", cast("arith.extf", "f32", "f64")},
      {"arith.truncf", cast("arith.truncf", "f64", "f32")},
      {"math.exp", elementwise("math.exp", {any})},
      {"math.log", elementwise("math.log", {positive})},
      {"math.log1p", elementwise("math.log1p", {{"", -0.6, 2}})},
      {"math.sqrt", elementwise("math.sqrt", {positive})},
      {"math.rsqrt", elementwise("math.rsqrt", {positive})},
      {"math.tanh", elementwise("math.tanh", {any})},
      {"math.erf", elementwise("math.erf", {any})},
      {"math.absf", elementwise("math.absf", {nonzero})},
      {"math.sin", elementwise("math.sin", {any})},
      {"math.cos", elementwise("math.cos", {any})},
      {"math.powf", elementwise("math.powf", {positive, any})},
      {"math.fma", elementwise("math.fma", {any, any, any})},
  };
  return cases;
}

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
    bool two = StringRef(c.text).starts_with("nn.cross_entropy");
    std::string text = "fsdp.mesh @mesh <[\"fsdp\"=2]>\nfunc.func private @f(" +
                       joined(arguments, ", ") + ") {\n  " + (two ? "%r:2 = " : "%r = ") + c.text +
                       "\n  return\n}\n";
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
    SmallVector<Value> cotangents, operandCotangents;
    SmallVector<bool> mask;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      cotangents.push_back((given >> i) & 1 ? block->getArgument(op->getNumOperands() + i)
                                            : Value());
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      mask.push_back((needed >> i) & 1);
    Operation *terminator = block->getTerminator();
    OpBuilder builder(terminator);
    Operation *last = terminator->getPrevNode();
    EXPECT_TRUE(succeeded(llvm::cast<nn::DifferentiableOpInterface>(op).buildCotangents(
        builder, cotangents, mask, operandCotangents)));
    EXPECT_EQ(operandCotangents.size(), op->getNumOperands());
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Value operand = op->getOperand(i), cotangent = operandCotangents[i];
      bool wanted = mask[i] && given && isa<FloatType>(getElementTypeOrSelf(operand));
      EXPECT_EQ(bool(cotangent), wanted) << "operand " << i;
      if (cotangent) {
        EXPECT_EQ(cotangent.getType(), operand.getType());
      }
    }
    for (Operation *built = last->getNextNode(); built != terminator; built = built->getNextNode())
      EXPECT_TRUE(
          !built->use_empty() ||
          llvm::any_of(operandCotangents,
                       [&](Value value) { return value && value.getDefiningOp() == built; }))
          << "built in vain: " << built->getName().getStringRef().str();
    EXPECT_TRUE(succeeded(mlir::verify(*module)));
    return operandCotangents;
  }

  void check(const Case &c, Random &random) {
    SCOPED_TRACE(c.text);
    Operation *op = parse(c);
    ASSERT_TRUE(op);
    SmallVector<Tensor> values = draw(c, op, random);
    unsigned operands = op->getNumOperands(), results = op->getNumResults();
    for (unsigned given = 0; given < (1u << results); ++given)
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
  std::set<std::string> covered, registered;
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
