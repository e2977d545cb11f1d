//===- Calls.cpp ----------------------------------------------------------===//

#include "codegen/Calls.h"
#include "dialect/fsdp/Deferred.h"

#include "codegen/Elementwise.h"
#include "codegen/FusedProduct.h"
#include "codegen/MatrixProduct.h"
#include "codegen/ShapeArguments.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Finds the call for the one op of a launch.
class CallFinder {
public:
  CallFinder(const ScheduledProgram &program, LaunchOp launch, Call &call)
      : program(program), launch(launch), call(call) {}
  LogicalResult find(Operation *op);

private:
  // Where an operand comes from and where a result goes; null for constants and unused results.
  Value source(Value operand);
  Value target(Value result);

  LogicalResult input(InputOp op);
  LogicalResult output(OutputOp op);
  LogicalResult outputSum(OutputSumOp op);
  LogicalResult sampleCount(SampleCountOp op);
  LogicalResult microbatchSamples(MicrobatchSamplesOp op);
  LogicalResult nextMicrobatch(NextMicrobatchOp op);
  LogicalResult shardIndices(ShardIndicesOp op);
  LogicalResult shardSize(ShardSizeOp op);
  LogicalResult shardOffset(ShardOffsetOp op);
  LogicalResult collective(CollectiveOpInterface op);
  LogicalResult allSlice(AllSliceOp op);
  LogicalResult tiled(Operation *op, RankedTensorType piece, RankedTensorType whole, uint64_t dim);
  LogicalResult einsum(nn::EinsumOp op);
  LogicalResult fused(nn::FusedOp op);
  LogicalResult runtimeCall(nn::KernelOpInterface op);
  LogicalResult dropout(DropoutOp op);
  LogicalResult squareSum(SquareSumOp op);
  LogicalResult learningRate(LearningRateOp op);
  LogicalResult allFinite(AllFiniteOp op);
  LogicalResult optimizerStep(OptimizerStepOp op);
  LogicalResult advance(AdvanceOp op);

  /// Reads or writes `buffer` and passes it on.
  void read(Value buffer);
  void write(Value buffer);
  /// Passes on the place behind the step state that the runtime's function `place` gives.
  void note(std::string place) {
    call.arguments.push_back({CallArgument::noted, launch.getStepState(), std::move(place)});
  }
  void pass(std::string text) {
    call.arguments.push_back({CallArgument::constant, {}, std::move(text)});
  }

  bool allFromBuffers(Operation *op);
  /// Of the last results `optional` may have no buffer.
  LogicalResult needBuffers(Operation *op, unsigned optional = 0);
  LogicalResult needF32(Operation *op, Type type) const;
  LogicalResult needSingle(Operation *op) const;

  const ScheduledProgram &program;
  LaunchOp launch;
  Call &call;
};

} // namespace

Value CallFinder::source(Value operand) {
  auto argument = dyn_cast<BlockArgument>(operand);
  return argument ? launch.getIns()[argument.getArgNumber()] : Value();
}

Value CallFinder::target(Value result) {
  Operation *yield = launch.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(yield->getOperands()))
    if (value == result)
      return launch.getOuts()[index];
  return nullptr;
}

void CallFinder::read(Value buffer) {
  call.reads.push_back(buffer);
  call.arguments.push_back({CallArgument::read, buffer, {}});
}

void CallFinder::write(Value buffer) {
  call.writes.push_back(buffer);
  call.arguments.push_back({CallArgument::written, buffer, {}});
}

bool CallFinder::allFromBuffers(Operation *op) {
  return llvm::all_of(op->getOperands(), [&](Value operand) { return source(operand); });
}

LogicalResult CallFinder::needBuffers(Operation *op, unsigned optional) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (!source(operand))
      return op->emitOpError() << "has operand #" << index
                               << " that is not in a buffer; store the constant in a buffer first";
  for (auto [index, result] : llvm::enumerate(op->getResults().drop_back(optional)))
    if (!target(result))
      return op->emitOpError() << "has result #" << index << " that is not in a buffer; yield it";
  return success();
}

LogicalResult CallFinder::needF32(Operation *op, Type type) const {
  if (Type element = getElementTypeOrSelf(type); !element.isF32())
    return op->emitOpError() << "works on " << element
                             << ", which the runtime of this target has no function for; use f32";
  return success();
}

/// The first float type of `op` that is neither f32 nor bf16, which is computed with as f32; null
/// if there is none.
static Type findOtherFloat(Operation *op) {
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()),
                                         SmallVector<Value>(op->getResults())))
    if (Type element = getElementTypeOrSelf(value.getType());
        isa<FloatType>(element) && !computeType(element).isF32())
      return element;
  return nullptr;
}

LogicalResult CallFinder::needSingle(Operation *op) const {
  if (Type element = findOtherFloat(op))
    return op->emitOpError() << "works on " << element
                             << ", which the runtime of this target has no function for; use f32 "
                                "or bf16";
  return success();
}

//===----------------------------------------------------------------------===//
// Host and collectives
//===----------------------------------------------------------------------===//

LogicalResult CallFinder::input(InputOp op) {
  call.function = "load_input";
  call.onDevice = DeviceCall::copyIn;
  pass(program.names.input(op.getNameAttr()));
  if (failed(needBuffers(op)))
    return failure();
  write(target(op.getResult()));
  return success();
}

LogicalResult CallFinder::output(OutputOp op) {
  call.function = "output";
  call.onDevice = DeviceCall::copyOut;
  if (failed(needBuffers(op)))
    return failure();
  pass(program.names.output(op->getParentOfType<SegmentOp>(), op.getNameAttr()));
  read(source(op.getValue()));
  return success();
}

LogicalResult CallFinder::outputSum(OutputSumOp op) {
  call.function = "output";
  call.onDevice = DeviceCall::copyOut;
  if (failed(needBuffers(op)))
    return failure();
  pass(program.names.output(op->getParentOfType<SegmentOp>(), op.getNameAttr()));
  read(source(op.getSum()));
  read(source(op.getWeight()));
  return success();
}

LogicalResult CallFinder::sampleCount(SampleCountOp op) {
  call.function = "sample_count";
  if (failed(needBuffers(op)))
    return failure();
  read(launch.getStepState());
  write(target(op.getCount()));
  return success();
}

LogicalResult CallFinder::microbatchSamples(MicrobatchSamplesOp op) {
  call.function = "microbatch_samples";
  if (failed(needBuffers(op)))
    return failure();
  const int64_t batch = op.getBatch();
  const int64_t rows = llvm::divideCeil(batch, program.mesh.getSize(getAxisNames(op.getOver())));
  pass("Microbatches{/*part=*/" + std::to_string(llvm::divideCeil(rows, op.getMicrobatches())) +
       ", /*batch=*/" + std::to_string(batch) + ", /*rows=*/" + std::to_string(rows) +
       ", /*index=*/" + rankIndex(program, op.getOver()) + "}");
  read(launch.getStepState());
  write(target(op.getCount()));
  return success();
}

LogicalResult CallFinder::nextMicrobatch(NextMicrobatchOp op) {
  call.function = "next_microbatch";
  pass(std::to_string(op.getMicrobatches()));
  read(launch.getStepState());
  call.writes.push_back(launch.getStepState());
  return success();
}

LogicalResult CallFinder::shardIndices(ShardIndicesOp op) {
  call.function = "shard_indices";
  if (failed(needBuffers(op)))
    return failure();
  const int64_t size = op.getSize(), part = op.getPartSize();
  pass("IndexShard{/*count=*/" +
       std::to_string(cast<RankedTensorType>(op.getType()).getNumElements()) + ", /*size=*/" +
       std::to_string(size) + ", /*part=*/" + std::to_string(part) + ", /*index=*/" +
       rankIndex(program, op.getOver()) + "}");
  read(source(op.getIndices()));
  write(target(op.getResult()));
  return success();
}

LogicalResult CallFinder::shardSize(ShardSizeOp op) {
  call.function = "shard_size";
  if (failed(needBuffers(op)))
    return failure();
  const int64_t size = op.getSize(), part = op.getPartSize();
  pass("ShardLayout{1, " + std::to_string(part) + ", 1, " + std::to_string(size) + "}.held(" +
       rankIndex(program, op.getOver()) + ")");
  write(target(op.getCount()));
  return success();
}

LogicalResult CallFinder::shardOffset(ShardOffsetOp op) {
  call.function = "shard_offset";
  if (failed(needBuffers(op)))
    return failure();
  pass("std::int64_t(" + std::to_string(op.getPartSize()) + ") * (" +
       rankIndex(program, op.getOver()) + ")");
  write(target(op.getOffset()));
  return success();
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// "Name{/*field=*/value, ...}"
static std::string spellFields(StringRef name, ArrayRef<std::pair<StringRef, int64_t>> fields) {
  std::string text = (name + "{").str();
  for (auto [index, field] : llvm::enumerate(fields))
    text += (index ? ", /*" : "/*") + field.first.str() + "=*/" + std::to_string(field.second);
  return text + "}";
}

/// The runtime's layout of what the ranks exchange (runtime/program/ExchangeLayout.h).
static std::string exchangeLayout(AllToAllOp op) {
  ArrayRef<int64_t> from = typeOf(op.getInput()).getShape(), to = typeOf(op.getResult()).getShape();
  size_t split = op.getSplit(), concat = op.getConcat();
  size_t first = std::min(split, concat), last = std::max(split, concat);
  int64_t outer = product(from.take_front(first)), inner = product(from.drop_front(last + 1));
  if (split == concat)
    return spellFields(
        "RecutLayout",
        {{"outer", outer}, {"given", from[split]}, {"inner", inner}, {"received", to[split]}});
  std::string text =
      spellFields("AllToAllLayout", {{"outer", outer},
                                     {"middle", product(from.slice(first + 1, last - first - 1))},
                                     {"inner", inner},
                                     {"splitLocal", to[split]},
                                     {"splitTotal", from[split]},
                                     {"concatLocal", from[concat]},
                                     {"concatTotal", to[concat]}});
  text.pop_back();
  return text + ", /*splitFirst=*/" + (split < concat ? "true}" : "false}");
}

static std::string sourceRanks(ArrayRef<int64_t> from) {
  std::string text = "SourceRanks<";
  for (auto [index, rank] : llvm::enumerate(from))
    text += (index ? ", " : "") + std::to_string(rank);
  return text + ">()";
}

/// Every collective in which ranks meet: what it gives and receives, its axes, and what is its own.
LogicalResult CallFinder::collective(CollectiveOpInterface op) {
  if (failed(needBuffers(op)))
    return failure();
  call.function = call.collective = op->getName().stripDialect();
  call.over = getAxisArray(op.getContext(), op.getAxes());
  Value from = op.getSendValue(), to = op.getRecvValue();
  if (from)
    read(source(from));
  if (to)
    write(target(to));
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](AllGatherOp op) { return tiled(op, typeOf(from), typeOf(to), op.getDim()); })
      .Case([&](ReduceScatterOp op) { return tiled(op, typeOf(to), typeOf(from), op.getDim()); })
      .Case([&](AllReduceOp op) {
        call.maximum = op.getKind() == ReduceKind::max;
        if (call.maximum)
          pass("ReduceOp::Max");
        return success();
      })
      .Case([&](AllToAllOp op) {
        pass(exchangeLayout(op));
        return success();
      })
      .Case([&](CollectivePermuteOp op) {
        pass(sourceRanks(op.getFrom()));
        return success();
      })
      .Case([&](BroadcastOp op) {
        pass("/*root=*/" + std::to_string(op.getFrom()));
        return success();
      })
      .Case<SendOp, ReceiveOp>([&](auto op) {
        pass("/*offset=*/" + std::to_string(op.getPeerOffset()));
        return success();
      })
      .Default([](Operation *op) {
        return op->emitOpError() << "is a collective that the runtime has no function for";
      });
}

/// The dimension that is cut, as the runtime sees it: what lies outside of it and inside of it.
LogicalResult CallFinder::tiled(Operation *op, RankedTensorType piece, RankedTensorType whole,
                                uint64_t dim) {
  int64_t outer = product(whole.getShape().take_front(dim)),
          inner = product(whole.getShape().drop_front(dim + 1));
  call.tile = {outer, piece.getDimSize(dim), inner, whole.getDimSize(dim)};
  pass(call.tile->spell());
  return success();
}

std::string CallTile::spell() const {
  return "ShardLayout{/*outer=*/" + std::to_string(outer) + ", /*local=*/" + std::to_string(local) +
         ", /*inner=*/" + std::to_string(inner) + ", /*total=*/" + std::to_string(total) + "}";
}

std::string mlir::fsdp::rankIndex(const ScheduledProgram &program, ArrayAttr over) {
  std::string text;
  for (StringAttr axis : getAxisNames(over)) {
    std::string own = "c.coordinate(" + program.names.axis(axis) + ")";
    text = text.empty()
               ? own
               : "(" + text + ") * " + std::to_string(program.mesh.getAxisSize(axis)) + " + " + own;
  }
  return text.empty() ? "0" : text;
}

LogicalResult CallFinder::allSlice(AllSliceOp op) {
  call.function = "all_slice";
  if (failed(needBuffers(op)))
    return failure();
  pass(rankIndex(program, op.getOver()));
  read(source(op.getInput()));
  write(target(op.getResult()));
  return tiled(op, cast<RankedTensorType>(op.getType()),
               cast<RankedTensorType>(op.getInput().getType()), op.getDim());
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

static std::string strides(const MatrixProduct::Strides &s) {
  std::string text = "{" + std::to_string(s.row) + ", " + std::to_string(s.column) + ", {";
  if (s.batch != std::array<int64_t, 3>{0, 0, 0})
    for (int i = 0; i < 3; ++i)
      text += (i ? ", " : "") + std::to_string(s.batch[i]);
  return text + "}}";
}

static std::string shapeOf(const MatrixProduct &p) {
  return "Gemm{/*m=*/" + std::to_string(p.m) + ", /*n=*/" + std::to_string(p.n) + ", /*k=*/" +
         std::to_string(p.k) + ", /*batch=*/{" + std::to_string(p.batch[0]) + ", " +
         std::to_string(p.batch[1]) + ", " + std::to_string(p.batch[2]) + "}, /*a=*/" +
         strides(p.a) + ", /*b=*/" + strides(p.b) + ", /*c=*/" + strides(p.c) + "}";
}

/// A matrix product where it is one; otherwise the loops of a kernel, which are correct but slow.
LogicalResult CallFinder::einsum(nn::EinsumOp op) {
  FailureOr<MatrixProduct> product = MatrixProduct::of(op);
  if (failed(product) || !allFromBuffers(op))
    return success();
  call.function = "gemm";
  call.onDevice = DeviceCall::product;
  pass(shapeOf(*product));
  read(source(op.getLhs()));
  read(source(op.getRhs()));
  write(target(op.getResult()));
  return success();
}

/// A product and what goes on with its rows; everything else that is fused is a kernel alone.
LogicalResult CallFinder::fused(nn::FusedOp op) {
  std::optional<FusedProduct> fused = FusedProduct::of(launch);
  if (!fused || failed(needBuffers(op)))
    return success(!fused);
  FailureOr<MatrixProduct> product = MatrixProduct::of(fused->product);
  if (failed(product))
    return success();
  call.function = "gemm";
  call.onDevice = DeviceCall::product;
  call.hasEpilogue = true;
  pass(shapeOf(*product));
  read(fused->lhs);
  read(fused->rhs);
  llvm::append_range(call.reads, fused->ins);
  write(target(op->getResult(0)));
  for (Value result : op->getResults().drop_front())
    call.writes.push_back(target(result));
  return success();
}

/// What the op says of the runtime's function for it; loops of a kernel where it has none.
LogicalResult CallFinder::runtimeCall(nn::KernelOpInterface op) {
  nn::KernelCall kernel = op.getKernelCall();
  if (kernel.callee.empty() || (kernel.hasLoops && (!allFromBuffers(op) || findOtherFloat(op))))
    return success();
  call.function = kernel.callee;
  if (!kernel.anyElement && failed(needSingle(op)))
    return failure();
  if (failed(needBuffers(op, kernel.optionalResults)))
    return failure();
  pass(spell(kernel.shape, op.getContext()));
  auto results = [&] {
    for (Value result : op->getResults())
      if (Value buffer = target(result))
        write(buffer);
  };
  if (kernel.resultsFirst)
    results();
  for (Value operand : op->getOperands())
    read(source(operand));
  if (!kernel.resultsFirst)
    results();
  return success();
}

LogicalResult CallFinder::dropout(DropoutOp op) {
  call.function = "dropout";
  if (failed(needSingle(op)) || failed(needBuffers(op)))
    return failure();
  // Behind how many elements of the whole tensor this rank's part begins.
  std::string first;
  int64_t stride = 1;
  ArrayRef<int64_t> whole = op.getGlobalShape();
  auto type = cast<RankedTensorType>(op.getType());
  for (int64_t dim = type.getRank() - 1; dim >= 0; stride *= whole[dim--])
    if (SmallVector<StringAttr> axes = op.getAxes(dim); !axes.empty())
      first += (first.empty() ? "" : " + ") +
               ("std::int64_t{" + std::to_string(op.getRankDimSize(dim) * stride) + "} * (") +
               rankIndex(program, getAxisArray(op.getContext(), axes)) + ")";
  pass(dropoutMask(op, first.empty() ? "0" : first));
  read(launch.getStepState());
  read(source(op.getInput()));
  write(target(op.getResult()));
  return success();
}

LogicalResult CallFinder::squareSum(SquareSumOp op) {
  call.function = "square_sum";
  call.onDevice = DeviceCall::counted;
  if (failed(needF32(op, op.getInput().getType())) || failed(needBuffers(op)))
    return failure();
  read(source(op.getInput()));
  write(target(op.getResult()));
  return success();
}

//===----------------------------------------------------------------------===//
// The end of a step
//===----------------------------------------------------------------------===//

LogicalResult CallFinder::learningRate(LearningRateOp op) {
  call.function = "learning_rate";
  if (failed(needBuffers(op)))
    return failure();
  std::string kind = stringifyScheduleKind(op.getOptimizer().getSchedule()).str();
  kind.front() = llvm::toUpper(kind.front());
  pass("Schedule{Schedule::" + kind + ", /*warmup=*/" +
       std::to_string(op.getOptimizer().getWarmup()) + "}");
  read(launch.getStepState());
  write(target(op.getLr()));
  return success();
}

LogicalResult CallFinder::allFinite(AllFiniteOp op) {
  call.function = "all_finite";
  if (failed(needBuffers(op)))
    return failure();
  write(target(op.getOk()));
  for (Value value : op.getValues()) {
    if (cast<RankedTensorType>(value.getType()).getRank() != 0)
      return op.emitOpError() << "takes " << value.getType() << ", expected scalars";
    read(source(value));
  }
  return success();
}

/// True where `value` is the constant 1: then a gradient is not scaled.
static bool isOne(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto number = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return number && number.getSplatValue<APFloat>().isExactlyValue(1.0);
}

LogicalResult CallFinder::optimizerStep(OptimizerStepOp op) {
  call.function = "optimizer_step";
  call.takesKernel = true;
  if (failed(needF32(op, op.getParameter().getType())))
    return failure();
  SmallVector<Value> before = {op.getParameter()}, after = {op.getNewParameter()};
  llvm::append_range(before, op.getStates());
  llvm::append_range(after, op.getNewStates());
  for (auto [from, to] : llvm::zip_equal(before, after))
    if (!source(from) || source(from) != target(to))
      return op.emitOpError() << "does not work in place; give parameter and states the same "
                                 "buffers in ins and outs";
  bool scaled = !isOne(op.getScale());
  if (!source(op.getGradient()) || !source(op.getLr()) || !source(op.getOk()) ||
      (scaled && !source(op.getScale())))
    return needBuffers(op);
  call.arguments.push_back(
      {CallArgument::storage,
       {},
       "storages[" + program.names.storage(op.getStorageAttr().getAttr()) + "]"});
  pass(std::string("/*deferred=*/") + (isDeferred(op) ? "true" : "false"));
  call.arguments.push_back({CallArgument::kernel, {}, {}});
  read(source(op.getParameter()));
  read(source(op.getGradient()));
  for (Value state : op.getStates())
    read(source(state));
  read(source(op.getLr()));
  if (scaled)
    read(source(op.getScale()));
  else
    call.arguments.push_back({CallArgument::absent, {}, "scale"});
  read(source(op.getOk()));
  read(launch.getStepState());
  note(isDeferred(op) ? "deferredBadGradient" : "badGradient");
  for (Value result : after)
    call.writes.push_back(target(result));
  return success();
}

LogicalResult CallFinder::advance(AdvanceOp op) {
  call.function = "advance";
  if (failed(needBuffers(op)))
    return failure();
  read(launch.getStepState());
  read(source(op.getOk()));
  note("badGradients");
  call.writes.push_back(launch.getStepState());
  return success();
}

LogicalResult CallFinder::find(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](InputOp op) { return input(op); })
      .Case([&](OutputOp op) { return output(op); })
      .Case([&](OutputSumOp op) { return outputSum(op); })
      .Case([&](SampleCountOp op) { return sampleCount(op); })
      .Case([&](MicrobatchSamplesOp op) { return microbatchSamples(op); })
      .Case([&](NextMicrobatchOp op) { return nextMicrobatch(op); })
      .Case([&](ShardIndicesOp op) { return shardIndices(op); })
      .Case([&](ShardSizeOp op) { return shardSize(op); })
      .Case([&](ShardOffsetOp op) { return shardOffset(op); })
      .Case([&](AllSliceOp op) { return allSlice(op); })
      .Case([&](CollectiveOpInterface op) { return collective(op); })
      .Case([&](nn::EinsumOp op) { return einsum(op); })
      .Case([&](nn::FusedOp op) { return fused(op); })
      .Case([&](DropoutOp op) { return dropout(op); })
      .Case([&](SquareSumOp op) { return squareSum(op); })
      .Case([&](LearningRateOp op) { return learningRate(op); })
      .Case([&](AllFiniteOp op) { return allFinite(op); })
      .Case([&](OptimizerStepOp op) { return optimizerStep(op); })
      .Case([&](AdvanceOp op) { return advance(op); })
      .Case([&](nn::KernelOpInterface op) { return runtimeCall(op); })
      .Default([](Operation *) { return success(); });
}

FailureOr<Call> mlir::fsdp::callFor(const ScheduledProgram &program, LaunchOp launch) {
  Call call;
  if (Operation *op = onlyOp(launch))
    if (failed(CallFinder(program, launch, call).find(op)))
      return failure();
  if (!call.function.empty())
    return call;
  call.reads.assign(launch.getIns().begin(), launch.getIns().end());
  call.writes.assign(launch.getOuts().begin(), launch.getOuts().end());
  return call;
}
