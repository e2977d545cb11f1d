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

/// Fills the elements from index `from` on along the dimension of `extents`.
static void fillFrom(int64_t from, const Extents &extents, Element fill, Tensor &tensor) {
  if (from == extents.size)
    return;
  Element *to = tensor.mutableData();
  for (int64_t o = 0; o < extents.outer; ++o)
    std::fill(to + (o * extents.size + from) * extents.inner,
              to + (o + 1) * extents.size * extents.inner, fill);
}

static RankKernel compileMaskPadding(MaskPaddingOp op) {
  const Extents extents(tensorType(op.getResult()), op.getDim());
  int64_t whole = op.getSize();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  Element fill = fillElement(tensorType(op.getResult()).getElementType(), op.getFill());
  return infallible([=](RankContext &context, In in, Out out) {
    out[0] = in[0];
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * extents.size;
    fillFrom(std::clamp<int64_t>(whole - first, 0, extents.size), extents, fill, out[0]);
  });
}

static RankKernel compileShardIndices(ShardIndicesOp op) {
  int64_t size = op.getSize(), part = op.getPartSize();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  return infallible([=](RankContext &context, In in, Out out) {
    out[0] = in[0];
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * part;
    Element *to = out[0].mutableData();
    for (int64_t i = 0; i < out[0].size(); ++i) {
      int64_t index = to[i].i;
      bool exists = index >= 0 && index < size, here = index >= first && index < first + part;
      to[i].i = !exists ? part : here ? index - first : -1;
    }
  });
}

static RankKernel compileShardSize(ShardSizeOp op) {
  int64_t size = op.getSize(), part = op.getPartSize();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  RankedTensorType type = tensorType(op.getCount());
  return infallible([=](RankContext &context, In, Out out) {
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * part;
    out[0] = Tensor::splat(type, std::clamp<int64_t>(size - first, 0, part));
  });
}

static RankKernel compileShardOffset(ShardOffsetOp op) {
  int64_t part = op.getPartSize();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  RankedTensorType type = tensorType(op.getOffset());
  return infallible([=](RankContext &context, In, Out out) {
    out[0] = Tensor::splat(type, context.mesh.getIndexIn(context.rank, axes) * part);
  });
}

static RankKernel compileMaskSamples(MaskSamplesOp op) {
  const Extents extents(tensorType(op.getResult()), op.getDim());
  int64_t rows = op.getRows(), samples = op.getShardOf().value_or(extents.size) / rows;
  SmallVector<StringAttr> axes;
  if (op.getOver())
    axes = getAxisNames(*op.getOver());
  Element fill = fillElement(tensorType(op.getResult()).getElementType(), op.getFill());
  return infallible([=](RankContext &context, In in, Out out) {
    out[0] = in[0];
    int64_t first = context.mesh.getIndexIn(context.rank, axes) * extents.size;
    int64_t counting = std::clamp<int64_t>(in[1].getInt(0), 0, samples) * rows;
    fillFrom(std::clamp<int64_t>(counting - first, 0, extents.size), extents, fill, out[0]);
  });
}

static RankKernel compileAllSlice(AllSliceOp op) {
  const int64_t dim = op.getDim();
  SmallVector<StringAttr> axes = getAxisNames(op.getOver());
  RankedTensorType type = tensorType(op.getResult());
  return infallible([=](RankContext &context, In in, Out out) {
    out[0] = takePart(in[0], type, dim, context.mesh.getIndexIn(context.rank, axes));
  });
}

/// Keeps the operand under `name` as `what`.
static RankKernel compileStore(StringRef name, StringRef what) {
  return infallible([key = std::pair(name.str(), what.str())](RankContext &context, In in, Out) {
    context.kept[key] = in[0];
  });
}

static RankKernel compileOptimizerStep(OptimizerStepOp op, Numerics numerics) {
  auto storage = op->getParentOfType<ModuleOp>().lookupSymbol<StorageOp>(op.getStorage());
  auto layout = std::make_shared<StorageLayout>(storage);
  OptimizerAttr optimizer = op.getOptimizer();
  base::ParameterGroups groups = optimizer.getGroups();
  bool deferred = op.getDeferred(); // the step state has counted the update
  return infallible([=](RankContext &context, In in, Out out) {
    // parameter, gradient, states..., lr, scale, ok
    size_t numStates = in.size() - 5;
    out[0] = in[0];
    for (size_t i = 0; i < numStates; ++i)
      out[1 + i] = in[2 + i];
    if (!in[4 + numStates].getInt(0))
      return;
    const std::vector<UpdateSetting> settings =
        layout->updateSettings(groups, context.mesh, context.rank);
    Update update{optimizer, in[2 + numStates].getFloat(0), in[3 + numStates].getFloat(0),
                  context.stepState.updates + (deferred ? 0 : 1), numerics};
    applyUpdate(update, out[0], in[1], out.drop_front(), [&](int64_t i) { return settings[i]; });
  });
}

static RankKernel compileDropout(DropoutOp op, Numerics numerics) {
  return infallible([=](RankContext &context, In in, Out out) mutable {
    Draws draws(context.options->seed, op.getName(), context.stepState.step + 1);
    out[0] = drop(
        op, numerics, draws, in[0], op.getMicrobatch().value_or(context.stepState.microbatch),
        [&](ArrayRef<StringAttr> axes) { return context.mesh.getIndexIn(context.rank, axes); });
  });
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
  return infallible(
      [ofRanks, axes = getAxisNames(*op.getOver())](RankContext &context, In in, Out out) {
        ofRanks[context.mesh.getIndexIn(context.rank, axes)](in, out);
      });
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
      .Case([](OutputOp output) {
        return infallible([=](RankContext &context, In in, Out) mutable {
          context.outputs[output.getName().str()] = in[0];
        });
      })
      .Case([=](OutputSumOp output) { return compileQuotient(output.getName(), numerics); })
      .Case([](SampleCountOp samples) {
        RankedTensorType type = tensorType(samples.getCount());
        int64_t batch = samples.getBatch();
        return infallible([=](RankContext &context, In, Out out) {
          out[0] = Tensor::splat(type, std::min(batch, context.options->samples));
        });
      })
      .Case([](MicrobatchSamplesOp samples) {
        RankedTensorType type = tensorType(samples.getCount());
        int64_t batch = samples.getBatch(), parts = samples.getMicrobatches();
        SmallVector<StringAttr> axes = getAxisNames(samples.getOver());
        bool counts = samples.getCounted();
        std::optional<uint64_t> number = samples.getMicrobatch();
        return infallible([=](RankContext &context, In, Out out) {
          int64_t rows = llvm::divideCeil(batch, context.mesh.getSize(axes));
          int64_t part = llvm::divideCeil(rows, parts);
          int64_t counted = counts ? std::min(batch, context.options->samples) : batch;
          int64_t ofRank =
              std::min(rows, counted - rows * context.mesh.getIndexIn(context.rank, axes));
          int64_t left =
              ofRank - part * static_cast<int64_t>(number.value_or(context.stepState.microbatch));
          out[0] = Tensor::splat(type, std::clamp<int64_t>(left, 0, part));
        });
      })
      .Case([](NextMicrobatchOp next) {
        return infallible([count = next.getMicrobatches()](RankContext &context, In, Out) {
          context.stepState.microbatch = (context.stepState.microbatch + 1) % count;
        });
      })
      .Case([=](LearningRateOp rate) {
        RankedTensorType type = tensorType(rate.getLr());
        return infallible([=](RankContext &context, In, Out out) mutable {
          double lr = learningRate(rate.getOptimizer(), context.stepState, *context.options);
          out[0] = Tensor::splat(type, roundTo(lr, type.getElementType(), numerics));
        });
      })
      .Case([](AdvanceOp) {
        return infallible([](RankContext &context, In in, Out) {
          StepState &state = context.stepState;
          bool ok = in[0].getInt(0);
          ++state.step;
          state.updates += ok;
          state.badSteps = ok ? 0 : state.badSteps + 1;
        });
      })
      .Case([](LoadOp load) {
        std::pair<std::string, std::string> key(load.getStorage().str(), load.getWhat().str());
        return infallible(
            [=](RankContext &context, In, Out out) { out[0] = context.kept.at(key); });
      })
      .Case([](StoreOp store) { return compileStore(store.getStorage(), store.getWhat()); })
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
      .Case([](CarryStoreOp store) { return compileStore(store.getCarried(), "carried"); })
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
