//===- RankOps.cpp - ops that depend on the rank, the step or storage -----===//

#include "dialect/fsdp/Fill.h"
#include "interpreter/Draws.h"
#include "interpreter/Optimizer.h"
#include "interpreter/Program.h"
#include "interpreter/Rounding.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

using In = ArrayRef<Tensor>;
using Out = MutableArrayRef<Tensor>;

namespace {

/// A tensor as outer x dim x inner elements.
struct Extents {
  int64_t outer = 1, size = 1, inner = 1;
  Extents(Type type, int64_t dim) {
    for (auto [i, extent] : llvm::enumerate(cast<RankedTensorType>(type).getShape()))
      (static_cast<int64_t>(i) < dim    ? outer
       : static_cast<int64_t>(i) == dim ? size
                                        : inner) *= extent;
  }
};

} // namespace

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static Element fillElement(Type type, const APFloat &fill) {
  TypedAttr value = getFill(fill, type);
  Element element;
  if (auto number = dyn_cast<FloatAttr>(value))
    element.f = number.getValueAsDouble();
  else
    element.i = wrapTo(cast<IntegerAttr>(value).getValue().getSExtValue(), type);
  return element;
}

static RankKernel compileMaskPadding(MaskPaddingOp op) {
  Extents extents(op.getType(), op.getDim());
  int64_t whole = op.getSize();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  Element fill = fillElement(tensorType(op.getResult()).getElementType(), op.getFill());
  return [=](RankContext &context, In in, Out out) {
    out[0] = in[0];
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * extents.size;
    int64_t meaningful = std::clamp<int64_t>(whole - first, 0, extents.size);
    if (meaningful == extents.size)
      return success();
    Element *to = out[0].mutableData();
    for (int64_t o = 0; o < extents.outer; ++o)
      std::fill(to + (o * extents.size + meaningful) * extents.inner,
                to + (o + 1) * extents.size * extents.inner, fill);
    return success();
  };
}

static RankKernel compileShardIndices(ShardIndicesOp op) {
  int64_t size = op.getSize(), part = op.getPartSize();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  return [=](RankContext &context, In in, Out out) {
    out[0] = in[0];
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * part;
    Element *to = out[0].mutableData();
    for (int64_t i = 0; i < out[0].size(); ++i) {
      int64_t index = to[i].i;
      bool exists = index >= 0 && index < size, here = index >= first && index < first + part;
      to[i].i = !exists ? part : here ? index - first : -1;
    }
    return success();
  };
}

static RankKernel compileShardSize(ShardSizeOp op) {
  int64_t size = op.getSize(), part = op.getPartSize();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  RankedTensorType type = tensorType(op.getCount());
  return [=](RankContext &context, In, Out out) {
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * part;
    out[0] = Tensor::splat(type, std::clamp<int64_t>(size - first, 0, part));
    return success();
  };
}

static RankKernel compileShardOffset(ShardOffsetOp op) {
  int64_t part = op.getPartSize();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  RankedTensorType type = tensorType(op.getOffset());
  return [=](RankContext &context, In, Out out) {
    out[0] = Tensor::splat(type, context.mesh.getIndexIn(context.rank, axes) * part);
    return success();
  };
}

static RankKernel compileMaskSamples(MaskSamplesOp op) {
  Extents extents(op.getType(), op.getDim());
  int64_t rows = op.getRows(), samples = op.getShardOf().value_or(extents.size) / rows;
  SmallVector<StringAttr> axes;
  if (op.getOver())
    axes = getAxisNames(*op.getOver());
  Element fill = fillElement(tensorType(op.getResult()).getElementType(), op.getFill());
  return [=](RankContext &context, In in, Out out) {
    out[0] = in[0];
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * extents.size;
    int64_t counting = std::clamp<int64_t>(in[1].getInt(0), 0, samples) * rows;
    int64_t counted = std::clamp<int64_t>(counting - first, 0, extents.size);
    Element *to = out[0].mutableData();
    for (int64_t o = 0; o < extents.outer; ++o)
      std::fill(to + (o * extents.size + counted) * extents.inner,
                to + (o + 1) * extents.size * extents.inner, fill);
    return success();
  };
}

static RankKernel compileOutputSum(OutputSumOp op, Numerics numerics) {
  std::string name = op.getName().str();
  auto type = RankedTensorType::get({}, Float32Type::get(op.getContext()));
  return [=](RankContext &context, In in, Out) {
    const double weight = in[1].getFloat(0);
    double quotient = in[0].getFloat(0) / (weight == 0 ? 1 : weight);
    context.outputs[name] = Tensor::splat(type, roundTo(quotient, type.getElementType(), numerics));
    return success();
  };
}

static RankKernel compileAllSlice(AllSliceOp op) {
  Extents whole(op.getInput().getType(), op.getDim()), part(op.getType(), op.getDim());
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  RankedTensorType type = tensorType(op.getResult());
  return [=](RankContext &context, In in, Out out) {
    out[0] = Tensor(type);
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * part.size;
    int64_t count = std::clamp<int64_t>(whole.size - first, 0, part.size);
    Element *to = out[0].mutableData();
    for (int64_t o = 0; o < whole.outer; ++o) {
      const Element *from = in[0].data() + (o * whole.size + first) * whole.inner;
      if (count)
        std::copy(from, from + count * whole.inner, to + o * part.size * part.inner);
    }
    return success();
  };
}

static RankKernel compileOptimizerStep(OptimizerStepOp op, Numerics numerics) {
  auto storage = op->getParentOfType<ModuleOp>().lookupSymbol<StorageOp>(op.getStorage());
  auto layout = std::make_shared<StorageLayout>(storage);
  OptimizerAttr optimizer = op.getOptimizer();
  base::ParameterGroups groups = optimizer.getGroups();
  bool deferred = op.getDeferred(); // the step state has counted the update
  return [=](RankContext &context, In in, Out out) {
    // parameter, gradient, states..., lr, scale, ok
    size_t numStates = in.size() - 5;
    out[0] = in[0];
    for (size_t i = 0; i < numStates; ++i)
      out[1 + i] = in[2 + i];
    if (!in[4 + numStates].getInt(0))
      return success();
    const std::vector<UpdateSetting> settings =
        layout->updateSettings(groups, context.mesh, context.rank);
    Update update{optimizer, in[2 + numStates].getFloat(0), in[3 + numStates].getFloat(0),
                  context.stepState.updates + (deferred ? 0 : 1), numerics};
    applyUpdate(update, out[0], in[1], out.drop_front(), [&](int64_t i) { return settings[i]; });
    return success();
  };
}

static RankKernel compileDropout(DropoutOp op, Numerics numerics) {
  return [=](RankContext &context, In in, Out out) {
    Draws draws(context.options->seed, DropoutOp(op).getName(), context.stepState.step + 1);
    out[0] = drop(
        op, numerics, draws, in[0],
        DropoutOp(op).getMicrobatch().value_or(context.stepState.microbatch),
        [&](ArrayRef<StringAttr> axes) { return context.mesh.getIndexIn(context.rank, axes); });
    return success();
  };
}

/// True if the step or segment of `op` reads the number of valid samples.
static bool countsSamples(Operation *op) {
  Operation *whole = op->getParentOfType<SegmentOp>();
  if (!whole)
    whole = op->getParentOfType<StepOp>();
  auto counts = [](Operation *inner) {
    auto samples = dyn_cast<MicrobatchSamplesOp>(inner);
    bool found = isa<SampleCountOp>(inner) || (samples && samples.getCounted());
    return found ? WalkResult::interrupt() : WalkResult::advance();
  };
  return whole && whole->walk(counts).wasInterrupted();
}

/// An attention whose queries have places of their own on each rank; null for others.
template <typename Op> static RankKernel compileSharedAttention(Op op, Numerics numerics) {
  if (!op.getAt())
    return RankKernel();
  std::vector<Kernel> ofRanks;
  for (size_t rank = 0; rank < op.getAt()->size(); ++rank)
    ofRanks.push_back(interpreter::detail::compileAttention(op, numerics, rank));
  return [ofRanks, axes = getAxisNames(*op.getOver())](RankContext &context, In in, Out out) {
    ofRanks[context.mesh.getIndexIn(context.rank, axes)](in, out);
    return success();
  };
}

RankKernel interpreter::detail::compileRankOp(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, RankKernel>(op)
      .Case([](InputOp input) -> RankKernel {
        SmallVector<StringAttr> axes;
        if (input.getOver())
          axes = getAxisNames(*input.getOver());
        bool counts = countsSamples(input);
        int64_t shards = input.getOver() ? getMesh(input).getSize(axes) : 1;
        return [=](RankContext &context, In, Out out) -> LogicalResult {
          int64_t counted = counts ? context.options->samples : std::numeric_limits<int64_t>::max();
          FailureOr<Tensor> batch = context.data->take(
              input, context.batch, {context.mesh.getIndexIn(context.rank, axes), shards}, counted,
              context.options->poison);
          if (failed(batch))
            return failure();
          out[0] = std::move(*batch);
          return success();
        };
      })
      .Case([](OutputOp output) -> RankKernel {
        return [=](RankContext &context, In in, Out) mutable {
          context.outputs[output.getName().str()] = in[0];
          return success();
        };
      })
      .Case([=](OutputSumOp output) { return compileOutputSum(output, numerics); })
      .Case([](SampleCountOp samples) -> RankKernel {
        RankedTensorType type = tensorType(samples.getCount());
        int64_t batch = samples.getBatch();
        return [=](RankContext &context, In, Out out) {
          out[0] = Tensor::splat(type, std::min(batch, context.options->samples));
          return success();
        };
      })
      .Case([](MicrobatchSamplesOp samples) -> RankKernel {
        RankedTensorType type = tensorType(samples.getCount());
        int64_t batch = samples.getBatch(), parts = samples.getMicrobatches();
        SmallVector<StringAttr> axes = getAxisNames(samples.getOver());
        bool counts = samples.getCounted();
        std::optional<uint64_t> number = samples.getMicrobatch();
        return [=](RankContext &context, In, Out out) {
          int64_t rows = llvm::divideCeil(batch, context.mesh.getSize(axes));
          int64_t part = llvm::divideCeil(rows, parts);
          int64_t counted = counts ? std::min(batch, context.options->samples) : batch;
          int64_t ofRank =
              std::min(rows, counted - rows * context.mesh.getIndexIn(context.rank, axes));
          int64_t left =
              ofRank - part * static_cast<int64_t>(number.value_or(context.stepState.microbatch));
          out[0] = Tensor::splat(type, std::clamp<int64_t>(left, 0, part));
          return success();
        };
      })
      .Case([](NextMicrobatchOp next) -> RankKernel {
        int64_t count = next.getMicrobatches();
        return [=](RankContext &context, In, Out) {
          context.stepState.microbatch = (context.stepState.microbatch + 1) % count;
          return success();
        };
      })
      .Case([=](LearningRateOp rate) -> RankKernel {
        RankedTensorType type = tensorType(rate.getLr());
        return [=](RankContext &context, In, Out out) mutable {
          double lr = learningRate(rate.getOptimizer(), context.stepState, *context.options);
          out[0] = Tensor::splat(type, roundTo(lr, type.getElementType(), numerics));
          return success();
        };
      })
      .Case([](AdvanceOp) -> RankKernel {
        return [](RankContext &context, In in, Out) {
          StepState &state = context.stepState;
          bool ok = in[0].getInt(0);
          ++state.step;
          state.updates += ok;
          state.badSteps = ok ? 0 : state.badSteps + 1;
          return success();
        };
      })
      .Case([](LoadOp load) -> RankKernel {
        std::pair<std::string, std::string> key(load.getStorage().str(), load.getWhat().str());
        return [=](RankContext &context, In, Out out) {
          out[0] = context.kept.at(key);
          return success();
        };
      })
      .Case([](StoreOp store) -> RankKernel {
        std::pair<std::string, std::string> key(store.getStorage().str(), store.getWhat().str());
        return [=](RankContext &context, In in, Out) {
          context.kept[key] = in[0];
          return success();
        };
      })
      .Case([](CarryLoadOp load) -> RankKernel {
        std::pair<std::string, std::string> key(load.getCarried().str(), "carried");
        auto carried = load->getParentOfType<ModuleOp>().lookupSymbol<CarriedOp>(load.getCarried());
        RankedTensorType type = carried.getTensorType();
        bool zeroed = carried.getZeroed();
        return [=](RankContext &context, In, Out out) -> LogicalResult {
          auto found = context.kept.find(key);
          if (found == context.kept.end() && zeroed)
            found = context.kept.try_emplace(key, Tensor(type)).first;
          if (found == context.kept.end())
            return CarryLoadOp(load).emitOpError()
                   << "loads '" << key.first << "' before a value is stored in it";
          out[0] = found->second;
          return success();
        };
      })
      .Case([](CarryStoreOp store) -> RankKernel {
        std::pair<std::string, std::string> key(store.getCarried().str(), "carried");
        return [=](RankContext &context, In in, Out) {
          context.kept[key] = in[0];
          return success();
        };
      })
      .Case([](MaskPaddingOp mask) { return compileMaskPadding(mask); })
      .Case([](MaskSamplesOp mask) { return compileMaskSamples(mask); })
      .Case([](ShardIndicesOp indices) { return compileShardIndices(indices); })
      .Case([](ShardSizeOp size) { return compileShardSize(size); })
      .Case([](ShardOffsetOp offset) { return compileShardOffset(offset); })
      .Case<nn::AttentionOp, nn::AttentionGradOp, nn::AttentionBiasGradOp>(
          [=](auto attention) { return compileSharedAttention(attention, numerics); })
      .Case([=](DropoutOp dropout) { return compileDropout(dropout, numerics); })
      .Case([](AllSliceOp slice) { return compileAllSlice(slice); })
      .Case([=](OptimizerStepOp step) { return compileOptimizerStep(step, numerics); })
      .Default([](Operation *) { return RankKernel(); });
}
