//===- GlobalMachine.cpp - one imaginary device ---------------------------===//

#include "dialect/fsdp/Names.h"
#include "interpreter/Optimizer.h"
#include "interpreter/Program.h"
#include "interpreter/Rounding.h"
#include "interpreter/Statistics.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

using In = ArrayRef<Tensor>;
using Out = MutableArrayRef<Tensor>;

/// Logs sum / weight as f32, as differentiation makes it: the sum itself where the weight is 0.
static RankKernel compileQuotient(std::string name, MLIRContext *context, Numerics numerics) {
  auto type = RankedTensorType::get({}, Float32Type::get(context));
  return [=](RankContext &context, In in, Out) {
    const double weight = in[1].getFloat(0);
    double value = in[0].getFloat(0) / (weight == 0 ? 1 : weight);
    context.outputs[name] = Tensor::splat(type, roundTo(value, type.getElementType(), numerics));
    return success();
  };
}

/// Logs `values` under the names of `op`, a print or check.
static void logNumbers(RankContext &context, ArrayRef<std::string> names, ArrayRef<double> values,
                       MLIRContext *mlir, Numerics numerics) {
  auto type = RankedTensorType::get({}, Float32Type::get(mlir));
  for (auto [name, value] : llvm::zip_equal(names, values))
    context.outputs[name] = Tensor::splat(type, roundTo(value, type.getElementType(), numerics));
}

static RankKernel compilePrint(PrintOp op, Numerics numerics) {
  SmallVector<std::string> names = getLogged(op);
  MLIRContext *mlir = op.getContext();
  return [=](RankContext &context, In in, Out) {
    const Statistics all = Statistics::of(in[0]);
    logNumbers(context, names, {all.min, all.max, all.mean, static_cast<double>(all.notFinite)},
               mlir, numerics);
    return success();
  };
}

static RankKernel compileCheck(CheckOp op, Numerics numerics) {
  SmallVector<std::string> names = getLogged(op);
  MLIRContext *mlir = op.getContext();
  return [=](RankContext &context, In in, Out) {
    const int64_t bad = Statistics::of(in[0]).notFinite;
    logNumbers(context, names, {static_cast<double>(bad)}, mlir, numerics);
    return success();
  };
}

/// The parameter, rounded to the type in which it is gathered.
static RankKernel compileRead(ReadOp op, Numerics numerics) {
  std::string name = op.getParam().str();
  auto type = cast<RankedTensorType>(op.getType());
  return [=](RankContext &context, In, Out out) {
    const Tensor &kept = context.kept.at({name, "parameter"});
    out[0] = kept.viewAs(type);
    if (kept.getType() == type || numerics == Numerics::exact)
      return success();
    Element *to = out[0].mutableData();
    for (int64_t i = 0; i < kept.size(); ++i)
      to[i].f = roundTo(to[i].f, type.getElementType(), numerics);
    return success();
  };
}

static RankKernel compileUpdate(UpdateOp op, Numerics numerics) {
  auto param = SymbolTable::lookupNearestSymbolFrom<ParamOp>(op, op.getParamAttr());
  OptimizerAttr optimizer = op.getOptimizer();
  std::string name = param.getSymName().str();
  const UpdateSetting setting = UpdateSetting::of(param, optimizer.getGroups());
  SmallVector<std::string> stateNames;
  for (StringRef state : optimizer.getStateNames())
    stateNames.push_back(state.str());
  return [=](RankContext &context, In in, Out) {
    // gradient, lr, scale, ok
    if (!in[3].getInt(0))
      return success();
    SmallVector<Tensor> states;
    for (const std::string &state : stateNames)
      states.push_back(std::move(context.kept[{name, state}]));
    Update update{optimizer, in[1].getFloat(0), in[2].getFloat(0), context.stepState.updates + 1,
                  numerics};
    applyUpdate(update, context.kept[{name, "parameter"}], in[0], states,
                [&](int64_t) { return setting; });
    for (auto [state, value] : llvm::zip_equal(stateNames, states))
      context.kept[{name, state}] = std::move(value);
    return success();
  };
}

RankKernel interpreter::detail::compileGlobalOp(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, RankKernel>(op)
      .Case([=](ReadOp read) -> RankKernel { return compileRead(read, numerics); })
      .Case([=](LossOp loss) { return compileQuotient("loss", loss.getContext(), numerics); })
      .Case([=](MetricOp metric) {
        return compileQuotient(metric.getName().str(), metric.getContext(), numerics);
      })
      .Case([=](PrintOp print) { return compilePrint(print, numerics); })
      .Case([=](CheckOp check) { return compileCheck(check, numerics); })
      .Case([](GradientOp gradient) -> RankKernel {
        std::string name = ("gradient." + gradient.getParam()).str();
        return [=](RankContext &context, In in, Out) {
          context.outputs[name] = in[0];
          return success();
        };
      })
      .Case([=](GlobalNormOp norm) -> RankKernel {
        auto type = cast<RankedTensorType>(norm.getNorm().getType());
        return [=](RankContext &, In in, Out out) {
          double sum = 0;
          for (const Tensor &gradient : in)
            for (int64_t i = 0; i < gradient.size(); ++i)
              sum += gradient.getFloat(i) * gradient.getFloat(i);
          double value = std::sqrt(sum);
          out[0] = Tensor::splat(type, roundTo(value, type.getElementType(), numerics));
          return success();
        };
      })
      .Case([=](UpdateOp update) { return compileUpdate(update, numerics); })
      .Default([](Operation *) { return RankKernel(); });
}

namespace {

class GlobalMachine : public Machine {
public:
  GlobalMachine(ModuleOp module, const MachineOptions &options) : Machine(module, options) {
    context.mesh = getMesh(module);
    context.options = &this->options;
    context.isObserved = options.observe != nullptr;
  }

  LogicalResult compile() {
    for (StepOp step : module.getOps<StepOp>()) {
      FailureOr<CompiledBlock> block =
          CompiledBlock::compile(step.getBody().front(), options.numerics);
      if (failed(block))
        return failure();
      walks.push_back(step.getSymName().str());
      blocks.push_back(std::move(*block));
      step.walk([&](UpdateOp update) {
        for (StringRef state : update.getOptimizer().getStateNames())
          addState(state);
      });
    }
    return initialize();
  }

  FailureOr<Outputs> run(StringRef step, const DataSet &data) override {
    auto it = llvm::find(walks, step);
    if (it == walks.end())
      return module.emitError() << "has no step '" << step << "'";
    const CompiledBlock &block = blocks[it - walks.begin()];
    context.data = &data;
    context.batch = {stepState.step, 0};
    context.outputs.clear();
    context.stepState = stepState;
    std::vector<Tensor> values(block.numValues);
    for (const Instruction &instruction : block.instructions)
      if (failed(CompiledBlock::run(instruction, context, values)))
        return failure();
    stepState = context.stepState;
    return context.outputs;
  }

  FailureOr<Tensor> get(StringRef parameter, StringRef what) override {
    return context.kept.at({parameter.str(), what.str()});
  }
  LogicalResult set(StringRef parameter, StringRef what, const Tensor &value) override {
    context.kept[{parameter.str(), what.str()}] = value;
    return success();
  }

private:
  RankContext context;
  std::vector<CompiledBlock> blocks;
};

} // namespace

FailureOr<std::unique_ptr<Machine>>
interpreter::detail::createGlobalMachine(ModuleOp module, const MachineOptions &options) {
  auto machine = std::make_unique<GlobalMachine>(module, options);
  if (failed(machine->compile()))
    return failure();
  return std::unique_ptr<Machine>(std::move(machine));
}
