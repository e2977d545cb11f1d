//===- Calls.cpp ----------------------------------------------------------===//

#include "codegen/Calls.h"
#include "dialect/fsdp/CollectiveGroup.h"
#include "dialect/fsdp/StepStateAccess.h"
#include "dialect/fsdp/UpdateGroup.h"

#include "codegen/Elementwise.h"
#include "codegen/FusedProduct.h"
#include "codegen/MatrixProduct.h"
#include "codegen/ShapeArguments.h"
#include "codegen/TableFields.h"
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
  LogicalResult group(ArrayRef<CollectiveOpInterface> collectives);
  LogicalResult group(ArrayRef<OptimizerStepOp> updates);

private:
  // The buffers of operands and results; null for constants and unused results.
  Value source(Value operand);
  Value target(Value result);

  LogicalResult input(InputOp op);
  LogicalResult output(Operation *op, StringAttr name);
  LogicalResult collective(CollectiveOpInterface op);
  LogicalResult einsum(nn::EinsumOp op);
  LogicalResult withSum(nn::FusedOp op, const ProductWithSum &both);
  LogicalResult fused(nn::FusedOp op);
  LogicalResult runtimeCall(nn::KernelOpInterface op);
  LogicalResult checkUpdate(OptimizerStepOp op);
  void passShard(OptimizerStepOp op);
  void passRest(OptimizerStepOp op);

  void begin(StringRef function, Call::Kernel kernel = Call::none) {
    call.function = function;
    call.kernel = kernel;
  }
  /// Reads or writes `buffer` and passes it on.
  void read(Value buffer);
  void write(Value buffer);
  /// Adds the reads and writes of `op` in the order of its operands and results; the step state and
  /// the notes of updates come after them.
  void readOperands(Operation *op);
  void writeResults(Operation *op);
  /// Passes the address after the step state that the runtime's function `place` returns.
  void note(std::string place) {
    call.arguments.push_back({launch.getStepState(), std::move(place)});
  }
  void pass(std::string text) { call.arguments.push_back({{}, std::move(text)}); }
  void pass(const nn::ShapeArgument &shape) {
    if (!shape.getFields().empty())
      pass(spell(program, shape));
  }

  bool allFromBuffers(Operation *op);
  /// The last `optional` results may have no buffer.
  LogicalResult needBuffers(Operation *op, unsigned optional = 0);
  LogicalResult needElements(Operation *op, nn::KernelElements elements) const;

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
  call.arguments.push_back({buffer, {}});
}

void CallFinder::write(Value buffer) {
  call.writes.push_back(buffer);
  call.arguments.push_back({buffer, {}});
}

static bool touchesState(ArrayRef<StepStateBytes> bytes) {
  return llvm::any_of(bytes, [](StepStateBytes part) { return part.begin == 0; });
}
static bool touchesNotes(ArrayRef<StepStateBytes> bytes) {
  return llvm::any_of(bytes, [](StepStateBytes part) { return part.begin != 0; });
}

void CallFinder::readOperands(Operation *op) {
  const StepStateAccess access = getStepStateAccess(op);
  if (touchesState(access.reads))
    read(launch.getStepState());
  for (Value operand : op->getOperands())
    read(source(operand));
  if (touchesNotes(access.reads))
    note("badGradients");
}

void CallFinder::writeResults(Operation *op) {
  const StepStateAccess access = getStepStateAccess(op);
  for (Value result : op->getResults())
    if (Value buffer = target(result))
      write(buffer);
  if (touchesState(access.writes))
    write(launch.getStepState());
  if (touchesNotes(access.writes))
    note("badGradients");
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

/// The first float type of an operand or a result of `op` that its runtime function does not
/// accept; null if there is none. Computation on bf16 is in f32.
static Type findOtherFloat(Operation *op, nn::KernelElements elements) {
  if (elements == nn::KernelElements::any)
    return nullptr;
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()),
                                         SmallVector<Value>(op->getResults()))) {
    Type element = getElementTypeOrSelf(value.getType());
    if (elements == nn::KernelElements::operandsF32 && value.getDefiningOp() == op)
      continue;
    if (isa<FloatType>(element) && !element.isF32() &&
        (elements == nn::KernelElements::operandsF32 || !computeType(element).isF32()))
      return element;
  }
  return nullptr;
}

LogicalResult CallFinder::needElements(Operation *op, nn::KernelElements elements) const {
  if (Type element = findOtherFloat(op, elements))
    return op->emitOpError() << "works on " << element
                             << ", which the runtime of this target has no function for; use f32"
                             << (elements == nn::KernelElements::single ? " or bf16" : "");
  return success();
}

//===----------------------------------------------------------------------===//
// Host and collectives
//===----------------------------------------------------------------------===//

LogicalResult CallFinder::input(InputOp op) {
  begin("load_input");
  if (failed(needBuffers(op)))
    return failure();
  pass(program.names.input(op.getNameAttr()));
  writeResults(op);
  return success();
}

LogicalResult CallFinder::output(Operation *op, StringAttr name) {
  begin("output");
  if (failed(needBuffers(op)))
    return failure();
  pass(program.names.output(op->getParentOfType<SegmentOp>(), name));
  readOperands(op);
  return success();
}

/// Several collectives that ranks meet in once.
LogicalResult CallFinder::group(ArrayRef<CollectiveOpInterface> collectives) {
  begin("collective_group");
  for (CollectiveOpInterface op : collectives) {
    Call &member = call.members.emplace_back();
    if (failed(CallFinder(program, launch, member).collective(op)))
      return failure();
    call.over = std::exchange(member.over, nullptr);
    call.reads.append(member.reads);
    call.writes.append(member.writes);
  }
  return success();
}

/// Every collective that involves peers: its axes, its request, its operand and its result.
LogicalResult CallFinder::collective(CollectiveOpInterface op) {
  begin(op->getName().stripDialect());
  if (failed(needBuffers(op)))
    return failure();
  call.over = getAxisArray(op.getContext(), op.getAxes());
  pass(op.getRequest());
  readOperands(op);
  writeResults(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

static std::string strides(const MatrixProduct::Strides &s) {
  const bool isBatched = s.batch != std::array<int64_t, 3>{0, 0, 0};
  return "{" + std::to_string(s.row) + ", " + std::to_string(s.column) + ", " +
         (isBatched ? braced(s.batch) : "{}") + "}";
}

static std::string shapeOf(const MatrixProduct &p) {
  return "Gemm{/*m=*/" + std::to_string(p.m) + ", /*n=*/" + std::to_string(p.n) + ", /*k=*/" +
         std::to_string(p.k) + ", /*batch=*/" + braced(p.batch) + ", /*a=*/" + strides(p.a) +
         ", /*b=*/" + strides(p.b) + ", /*c=*/" + strides(p.c) + "}";
}

/// A matrix product if the op is one; otherwise the loops of a kernel, which are correct but slow.
LogicalResult CallFinder::einsum(nn::EinsumOp op) {
  FailureOr<MatrixProduct> product = MatrixProduct::of(op);
  if (failed(product) || !allFromBuffers(op))
    return success();
  begin("gemm");
  pass(shapeOf(*product));
  readOperands(op);
  writeResults(op);
  return success();
}

/// A product and the kernel that adds up the rows of one of its operands.
LogicalResult CallFinder::withSum(nn::FusedOp op, const ProductWithSum &both) {
  FailureOr<MatrixProduct> product = MatrixProduct::of(both.product);
  assert(succeeded(product) && "rows and columns are those of a matrix product");
  begin("gemm", Call::epilogue);
  pass("OperandSum{" + shapeOf(*product) + ", /*ofRight=*/" + (both.ofRight ? "true" : "false") +
       "}");
  call.reads = {both.lhs, both.rhs};
  for (Value result : op->getResults())
    call.writes.push_back(target(result));
  return success();
}

/// A product and the epilogue kernel on its rows; all other fused ops are a single kernel.
LogicalResult CallFinder::fused(nn::FusedOp op) {
  if (std::optional<ProductWithSum> both = ProductWithSum::of(launch))
    return withSum(op, *both);
  std::optional<FusedProduct> fused = FusedProduct::of(launch);
  if (!fused || failed(needBuffers(op)))
    return success(!fused);
  FailureOr<MatrixProduct> product = MatrixProduct::of(fused->product);
  if (failed(product))
    return success();
  begin("gemm", Call::epilogue);
  const std::string shape = shapeOf(*product);
  pass(fused->addsUpRows ? "RowSums{" + shape + "}" : shape);
  call.reads = {fused->lhs, fused->rhs};
  llvm::append_range(call.reads, fused->ins);
  for (Value result : op->getResults())
    call.writes.push_back(target(result));
  return success();
}

/// The op's call of a runtime function; the loops of a kernel if it has none.
LogicalResult CallFinder::runtimeCall(nn::KernelOpInterface op) {
  nn::KernelCall kernel = op.getKernelCall();
  if (kernel.callee.empty() ||
      (kernel.hasLoops && (!allFromBuffers(op) || findOtherFloat(op, kernel.elements))))
    return success();
  begin(kernel.callee);
  if (failed(needElements(op, kernel.elements)) || failed(needBuffers(op, kernel.optionalResults)))
    return failure();
  pass(kernel.shape);
  const size_t first = call.arguments.size();
  readOperands(op);
  for (auto [number, function] : kernel.marked)
    call.arguments[first + number].text = function.str();
  writeResults(op);
  return success();
}

/// True where `value` is the constant 1: then a gradient is not scaled.
static bool isOne(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto number = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return number && number.getSplatValue<APFloat>().isExactlyValue(1.0);
}

LogicalResult CallFinder::checkUpdate(OptimizerStepOp op) {
  if (failed(needElements(op, nn::KernelElements::operandsF32)))
    return failure();
  SmallVector<Value> before = {op.getParameter()}, after = {op.getNewParameter()};
  llvm::append_range(before, op.getStates());
  llvm::append_range(after, op.getNewStates());
  for (auto [from, to] : llvm::zip_equal(before, after))
    if (!source(from) || source(from) != target(to))
      return op.emitOpError() << "does not work in place; give parameter and states the same "
                                 "buffers in ins and outs";
  if (!source(op.getGradient()) || !source(op.getLr()) || !source(op.getOk()) ||
      (!isOne(op.getScale()) && !source(op.getScale())))
    return needBuffers(op);
  return success();
}

/// The parameter, the gradient and the states, which are updated in place.
void CallFinder::passShard(OptimizerStepOp op) {
  read(source(op.getParameter()));
  read(source(op.getGradient()));
  for (Value state : op.getStates())
    read(source(state));
  for (Value result : op->getResults())
    call.writes.push_back(target(result));
}

/// The arguments that all updates of a step share.
void CallFinder::passRest(OptimizerStepOp op) {
  read(source(op.getLr()));
  if (!isOne(op.getScale()))
    read(source(op.getScale()));
  else
    pass("/*scale=*/ArenaSpan<float>{}");
  read(source(op.getOk()));
  read(launch.getStepState());
  note(op.getDeferred() ? "deferredBadGradient" : "badGradient");
}

/// Updates of one or several storages by one rule.
LogicalResult CallFinder::group(ArrayRef<OptimizerStepOp> updates) {
  begin("optimizer_steps", Call::argument);
  for (OptimizerStepOp op : updates) {
    Call &member = call.members.emplace_back();
    CallFinder finder(program, launch, member);
    finder.begin("shard_update");
    if (failed(finder.checkUpdate(op)))
      return failure();
    finder.pass("storages[" + program.names.storage(op.getStorageAttr().getAttr()) + "]");
    finder.passShard(op);
    call.reads.append(member.reads);
    call.writes.append(member.writes);
  }
  OptimizerStepOp first = updates.front();
  pass(first.getDeferred() ? "/*deferred=*/true" : "/*deferred=*/false");
  passRest(first);
  return success();
}

LogicalResult CallFinder::find(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](InputOp op) { return input(op); })
      .Case([&](OutputOp op) { return output(op, op.getNameAttr()); })
      .Case([&](OutputSumOp op) { return output(op, op.getNameAttr()); })
      .Case([&](CollectiveOpInterface op) {
        return op.involvesPeers() ? collective(op) : runtimeCall(cast<nn::KernelOpInterface>(*op));
      })
      .Case([&](nn::EinsumOp op) { return einsum(op); })
      .Case([&](nn::FusedOp op) { return fused(op); })
      .Case([&](OptimizerStepOp op) { return group(ArrayRef(op)); })
      .Case([&](nn::KernelOpInterface op) { return runtimeCall(op); })
      .Default([](Operation *) { return success(); });
}

FailureOr<Call> mlir::fsdp::callFor(const ScheduledProgram &program, LaunchOp launch) {
  Call call;
  CallFinder finder(program, launch, call);
  if (Operation *op = onlyOp(launch)) {
    if (failed(finder.find(op)))
      return failure();
  } else if (SmallVector<CollectiveOpInterface> group = getCollectives(launch); !group.empty()) {
    if (failed(finder.group(group)))
      return failure();
  } else if (SmallVector<OptimizerStepOp> updates = getUpdates(launch); !updates.empty()) {
    if (failed(finder.group(updates)))
      return failure();
  }
  if (call.kernel != Call::alone)
    return call;
  call.reads.assign(launch.getIns().begin(), launch.getIns().end());
  call.writes.assign(launch.getOuts().begin(), launch.getOuts().end());
  return call;
}
