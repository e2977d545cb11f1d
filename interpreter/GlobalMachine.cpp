//===- GlobalMachine.cpp - one imaginary device ---------------------------===//

#include "dialect/fsdp/Manual.h"
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

/// Logs `value` as f32.
static void logNumber(RankContext &context, const std::string &name, double value,
                      Numerics numerics) {
  Type f32 = Float32Type::get(context.mesh.getContext());
  context.outputs[name] =
      Tensor::splat(RankedTensorType::get({}, f32), roundTo(value, f32, numerics));
}

RankKernel interpreter::detail::compileQuotient(StringRef name, Numerics numerics) {
  return infallible([=, name = name.str()](RankContext &context, In in, Out) {
    const double weight = in[1].getFloat(0);
    logNumber(context, name, in[0].getFloat(0) / (weight == 0 ? 1 : weight), numerics);
  });
}

/// Logs the numbers of a print or check, `numbersOf(statistics)`, under its names.
template <typename Op, typename Fn>
static RankKernel compileStatistics(Op op, Numerics numerics, Fn numbersOf) {
  return infallible([=, names = getLogged(op)](RankContext &context, In in, Out) {
    const SmallVector<double> numbers = numbersOf(Statistics::of(in[0]));
    for (auto [name, number] : llvm::zip_equal(names, numbers))
      logNumber(context, name, number, numerics);
  });
}

/// The parameter, rounded to the type in which it is gathered.
static RankKernel compileRead(ReadOp op, Numerics numerics) {
  std::string name = op.getParam().str();
  auto type = cast<RankedTensorType>(op.getType());
  return infallible([=](RankContext &context, In, Out out) {
    const Tensor &kept = context.kept.at({name, "parameter"});
    out[0] = kept.viewAs(type);
    if (kept.getType() == type || numerics == Numerics::exact)
      return;
    Element *to = out[0].mutableData();
    for (int64_t i = 0; i < kept.size(); ++i)
      to[i].f = roundTo(to[i].f, type.getElementType(), numerics);
  });
}

static RankKernel compileUpdate(UpdateOp op, Numerics numerics) {
  auto param = SymbolTable::lookupNearestSymbolFrom<ParamOp>(op, op.getParamAttr());
  OptimizerAttr optimizer = op.getOptimizer();
  std::string name = param.getSymName().str();
  const UpdateSetting setting = UpdateSetting::of(param, optimizer.getGroups());
  SmallVector<std::string> stateNames;
  for (StringRef state : optimizer.getStateNames())
    stateNames.push_back(state.str());
  return infallible([=](RankContext &context, In in, Out) {
    // gradient, lr, scale, ok
    if (!in[3].getInt(0))
      return;
    SmallVector<Tensor> states;
    for (const std::string &state : stateNames)
      states.push_back(std::move(context.kept[{name, state}]));
    Update update{optimizer, in[1].getFloat(0), in[2].getFloat(0), context.stepState.updates + 1,
                  numerics};
    applyUpdate(update, context.kept[{name, "parameter"}], in[0], states,
                [&](int64_t) { return setting; });
    for (auto [state, value] : llvm::zip_equal(stateNames, states))
      context.kept[{name, state}] = std::move(value);
  });
}

RankKernel interpreter::detail::compileGlobalOp(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, RankKernel>(op)
      .Case([=](ReadOp read) { return compileRead(read, numerics); })
      .Case([=](LossOp) { return compileQuotient("loss", numerics); })
      .Case([=](MetricOp metric) { return compileQuotient(metric.getName(), numerics); })
      .Case([=](PrintOp print) {
        return compileStatistics(print, numerics, [](const Statistics &all) -> SmallVector<double> {
          return {all.min, all.max, all.mean, static_cast<double>(all.notFinite)};
        });
      })
      .Case([=](CheckOp check) {
        return compileStatistics(check, numerics, [](const Statistics &all) -> SmallVector<double> {
          return {static_cast<double>(all.notFinite)};
        });
      })
      .Case([](GradientOp gradient) {
        return infallible([name = ("gradient." + gradient.getParam()).str()](
                              RankContext &context, In in, Out) { context.outputs[name] = in[0]; });
      })
      .Case([=](GlobalNormOp norm) {
        auto type = cast<RankedTensorType>(norm.getNorm().getType());
        return infallible([=](RankContext &, In in, Out out) {
          double sum = 0;
          for (const Tensor &gradient : in)
            for (int64_t i = 0; i < gradient.size(); ++i)
              sum += gradient.getFloat(i) * gradient.getFloat(i);
          double value = std::sqrt(sum);
          out[0] = Tensor::splat(type, roundTo(value, type.getElementType(), numerics));
        });
      })
      .Case([=](UpdateOp update) { return compileUpdate(update, numerics); })
      .Default([](Operation *) { return RankKernel(); });
}

namespace {

/// One device; a value in the local terms of a manual region is one tensor for each rank of the
/// manual axes.
class GlobalMachine : public Machine {
public:
  GlobalMachine(ModuleOp module, const MachineOptions &options) : Machine(module, options) {
    context.mesh = getMesh(module);
    context.options = &this->options;
    context.isObserved = options.observe != nullptr;
  }

  LogicalResult compile() override {
    bool hasRegions = false;
    module.walk([&](ManualOp) { hasRegions = true; });
    if (hasRegions) {
      inlined = module.clone();
      module = *inlined;
    }
    for (StepOp step : module.getOps<StepOp>()) {
      inlineManual(step);
      const ManualAxes manual(step);
      if (failed(manual.verify(step)))
        return failure();
      manualMeshes.push_back(meshOf(manual.getAll()));
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
    return success();
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
    if (failed(run(block, manualMeshes[it - walks.begin()])))
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

protected:
  void clear() override { context.kept.clear(); }

private:
  /// The mesh of the axes `axes` alone.
  MeshAttr meshOf(ArrayRef<StringAttr> axes) {
    SmallVector<int64_t> sizes =
        llvm::map_to_vector(axes, [&](StringAttr axis) { return context.mesh.getAxisSize(axis); });
    return MeshAttr::get(module.getContext(), axes, sizes, ArrayRef<int64_t>());
  }

  LogicalResult run(const CompiledBlock &block, MeshAttr manual);

  RankContext context;
  OwningOpRef<ModuleOp> inlined; ///< the module without regions, where it has some
  std::vector<CompiledBlock> blocks;
  std::vector<MeshAttr> manualMeshes; ///< of the manual axes of each block
};

} // namespace

LogicalResult GlobalMachine::run(const CompiledBlock &block, MeshAttr manual) {
  // A value that is the same for all ranks has one tensor.
  std::vector<std::vector<Tensor>> values(block.numValues);
  const int64_t ranks = manual.getNumRanks();
  auto ofRank = [&](unsigned value, int64_t rank) -> const Tensor & {
    return values[value].size() == 1 ? values[value].front() : values[value][rank];
  };
  auto store = [&](const Instruction &instruction, int64_t rank, ArrayRef<Tensor> results) {
    context.rank = rank;
    for (unsigned i = 0; i < instruction.numResults; ++i) {
      values[instruction.firstResult + i].push_back(results[i]);
      if (context.isObserved)
        options.observe(rank, instruction.op, i, results[i]);
    }
    context.rank = 0;
  };
  for (const Instruction &instruction : block.instructions) {
    if (!instruction.kernel) {
      std::vector<Tensor> operands;
      for (int64_t rank = 0; rank < ranks && !instruction.operands.empty(); ++rank)
        operands.push_back(ofRank(instruction.operands.front(), rank));
      FailureOr<std::vector<Tensor>> results =
          performInLocalTerms(instruction.op, manual, operands, options.numerics);
      if (failed(results))
        return failure();
      // A value that leaves local terms is one tensor again, unless it is in an outer region.
      const bool isWhole =
          isa<ExitManualOp>(instruction.op) && llvm::all_of(*results, [&](const Tensor &other) {
            return other.equals(results->front());
          });
      for (int64_t rank = 0; rank < (isWhole ? 1 : ranks); ++rank)
        store(instruction, rank, (*results)[rank]);
    } else {
      const bool isLocal = llvm::any_of(
          instruction.operands, [&](unsigned operand) { return values[operand].size() > 1; });
      for (int64_t rank = 0; rank < (isLocal ? ranks : 1); ++rank) {
        SmallVector<Tensor, 4> operands, results(instruction.numResults);
        for (unsigned operand : instruction.operands)
          operands.push_back(ofRank(operand, rank));
        if (failed(instruction.kernel(context, operands, results)))
          return failure();
        store(instruction, rank, results);
      }
    }
    for (unsigned dead : instruction.dead)
      values[dead].clear();
  }
  return success();
}

std::unique_ptr<Machine> interpreter::detail::makeGlobalMachine(ModuleOp module,
                                                                const MachineOptions &options) {
  return std::make_unique<GlobalMachine>(module, options);
}
