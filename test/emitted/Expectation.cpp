//===- Expectation.cpp ----------------------------------------------------===//

#include "test/emitted/Expectation.h"

#include "interpreter/Machine.h"
#include "interpreter/RoundingNoise.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;
using ::fsdp::emitted::Case;
using ::fsdp::emitted::Expected;
using ::fsdp::emitted::Numbers;

namespace {

constexpr double kUnits = 4;  ///< of noise, in units in the last place of an f32
constexpr double kSpread = 4; ///< from the noise of so few runs to its possible maximum
constexpr double kFloor = 4;  ///< units in the last place of an f32

/// The results of a run, in the order of `Case`.
struct Trace {
  std::vector<std::vector<Numbers>> outputs;
  std::vector<Numbers> tensors;
};

} // namespace

static Numbers numbersOf(std::string name, const Tensor &tensor) {
  Numbers numbers{std::move(name), {}};
  for (int64_t i = 0; i < tensor.size(); ++i)
    numbers.values.push_back(tensor.getNumber(i));
  return numbers;
}

static FailureOr<Trace> trace(ModuleOp module, const DataSet &data, const Case &wanted) {
  MachineOptions options;
  options.numerics = Numerics::typed;
  options.seed = wanted.seed;
  options.totalSteps = wanted.totalSteps;
  options.samples = wanted.evaluated;
  FailureOr<std::unique_ptr<Machine>> machine = Machine::create(module, options);
  if (failed(machine))
    return failure();
  for (const Numbers &parameter : wanted.parameters) {
    FailureOr<Tensor> value = (*machine)->get(parameter.name, "parameter");
    if (failed(value))
      return failure();
    for (auto [i, number] : llvm::enumerate(parameter.values))
      value->setNumber(i, number);
    if (failed((*machine)->set(parameter.name, "parameter", *value)))
      return failure();
  }
  Trace trace;
  for (StringRef segment : {"train", "train", "evaluate"}) {
    FailureOr<Outputs> outputs = (*machine)->run(segment, data);
    if (failed(outputs))
      return failure();
    std::vector<Numbers> &logged = trace.outputs.emplace_back();
    for (const auto &[name, value] : *outputs)
      logged.push_back(numbersOf(name, value));
  }
  for (const Numbers &parameter : wanted.parameters) {
    SmallVector<std::string> whats{"parameter"};
    llvm::append_range(whats, (*machine)->getStates());
    for (const std::string &what : whats) {
      FailureOr<Tensor> value = (*machine)->get(parameter.name, what);
      if (failed(value))
        return failure();
      trace.tensors.push_back(numbersOf(parameter.name + "." + what, *value));
    }
  }
  return trace;
}

/// Infinite if one of them is NaN.
static double distanceOf(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<double>::infinity();
  return a == b ? 0 : std::fabs(a - b);
}

/// How far a program may be from each of `values`, given the same numbers of runs with noise.
static std::vector<double> tolerance(ArrayRef<double> values,
                                     ArrayRef<const std::vector<double> *> noisy) {
  std::vector<double> distance(values.size(), 0);
  double squares = 0;
  for (auto [i, value] : llvm::enumerate(values)) {
    for (const std::vector<double> *run : noisy)
      distance[i] = std::max(distance[i], distanceOf((*run)[i], value));
    squares += distance[i] * distance[i];
  }
  double mean = values.empty() ? 0 : std::sqrt(squares / static_cast<double>(values.size()));
  for (auto [i, value] : llvm::enumerate(values)) {
    double unit = std::max(std::fabs(value) * 0x1p-23, 0x1p-149);
    distance[i] = kSpread * std::max(distance[i], mean) + kFloor * unit;
  }
  return distance;
}

static Expected expected(const Numbers &right, ArrayRef<const Numbers *> tight,
                         ArrayRef<const Numbers *> loose) {
  auto values = [](ArrayRef<const Numbers *> runs) {
    SmallVector<const std::vector<double> *> lists;
    for (const Numbers *run : runs)
      lists.push_back(&run->values);
    return lists;
  };
  Expected result{right.name, right.values, tolerance(right.values, values(tight)),
                  tolerance(right.values, values(loose))};
  for (size_t i = 0; i < right.values.size(); ++i)
    result.loose[i] = std::max(result.loose[i], result.tight[i]);
  return result;
}

/// Whether anything is rounded to a 16-bit float.
static bool hasNarrow(ModuleOp module) {
  auto isNarrow = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isBF16();
  };
  return module
      .walk([&](Operation *op) {
        return llvm::any_of(op->getResultTypes(), isNarrow) ? WalkResult::interrupt()
                                                            : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult mlir::fsdp::expect(ModuleOp module, const DataSet &data, int runs, Case &wanted) {
  FailureOr<Trace> right = trace(module, data, wanted);
  if (failed(right))
    return failure();
  constexpr RoundingNoise::Narrow kinds[] = {RoundingNoise::Narrow::compute,
                                             RoundingNoise::Narrow::store};
  std::vector<Trace> noisy[2];
  for (size_t kind = 0; kind < (hasNarrow(module) ? 2 : 1); ++kind)
    for (int run = 0; run < runs; ++run) {
      RoundingNoise noise(wanted.seed * 1000 + run, kUnits, kinds[kind]);
      FailureOr<Trace> one = trace(module, data, wanted);
      if (failed(one))
        return failure();
      noisy[kind].push_back(std::move(*one));
    }
  auto both = [&](const Numbers &number, auto select) {
    SmallVector<const Numbers *> of[2];
    for (size_t i = 0; i < 2; ++i)
      for (const Trace &trace : noisy[i])
        of[i].push_back(&select(trace));
    return expected(number, of[0], of[1]);
  };
  wanted.outputs.clear(), wanted.tensors.clear();
  for (auto [segment, logged] : llvm::enumerate(right->outputs)) {
    std::vector<Expected> &outputs = wanted.outputs.emplace_back();
    for (auto [i, number] : llvm::enumerate(logged))
      outputs.push_back(both(number, [s = segment, i = i](const Trace &trace) -> const Numbers & {
        return trace.outputs[s][i];
      }));
  }
  for (auto [i, number] : llvm::enumerate(right->tensors))
    wanted.tensors.push_back(
        both(number, [i = i](const Trace &trace) -> const Numbers & { return trace.tensors[i]; }));
  return success();
}
