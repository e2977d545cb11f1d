//===- SegmentPlan.cpp - one launch per op, one place per value -----------===//

#include "passes/scheduled/SegmentPlan.h"
#include "dialect/fsdp/ReduceInPlace.h"
#include "passes/scheduled/StaleReads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isReshape(nn::RearrangeOp op) {
  auto inOrder = [](const nn::NotationTensor &tensor) {
    SmallVector<StringRef> names;
    for (const nn::NotationDim &dim : tensor)
      llvm::append_range(names, dim);
    return names;
  };
  nn::Notation pattern = op.getPattern();
  SmallVector<StringRef> before = inOrder(pattern.operands.front()),
                         after = inOrder(pattern.result);
  if (before == after)
    return true;
  // Names of one element may be anywhere.
  llvm::StringMap<int64_t> sizes = op.getNameSizes();
  for (SmallVector<StringRef> *names : {&before, &after})
    llvm::erase_if(*names, [&](StringRef name) { return sizes.lookup(name) == 1; });
  return before == after;
}

bool Reshapes::contains(nn::RearrangeOp op) {
  auto [entry, isNew] = known.try_emplace(
      {op.getNotationAttr(), op.getSizesAttr(), op.getInput().getType(), op.getType()});
  if (isNew)
    entry->second = isReshape(op);
  return entry->second;
}

/// True where `op` runs with the constant `operand` in its body: loops do, and an update by the
/// gradient as it is; functions of the runtime and collectives read buffers.
static bool takesConstant(Operation *op, Value operand) {
  if (auto step = dyn_cast<OptimizerStepOp>(op))
    return operand == step.getScale() && matchPattern(operand, m_OneFloat());
  if (isa<CollectiveOpInterface, OutputOp, OutputSumOp, DropoutOp, SquareSumOp>(op))
    return false;
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  if (!kernel)
    return true;
  nn::KernelCall call = kernel.getKernelCall();
  return call.callee.empty() || call.hasLoops;
}

/// Elements of one index of dimension `dim`, if all dimensions outside it have size 1: then a range
/// of `dim` is contiguous.
static std::optional<int64_t> piece(Value whole, uint64_t dim) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(whole.getType()).getShape();
  if (llvm::any_of(shape.take_front(dim), [](int64_t size) { return size != 1; }))
    return std::nullopt;
  return nn::elementsOf(shape.drop_front(dim + 1));
}

namespace {

class Planner {
public:
  Planner(SegmentOp segment, ArrayRef<PlannedBuffer> persistent, const StagedInputs &staged,
          const SymbolTable &symbols)
      : segment(segment), staged(staged), symbols(symbols),
        persistentCount(static_cast<int>(persistent.size())) {
    plan.buffers.assign(persistent.begin(), persistent.end());
    for (auto [index, buffer] : llvm::enumerate(persistent)) {
      bufferNames.get(buffer.name);
      persistentByName[buffer.name] = static_cast<int>(index);
      if (buffer.what != BufferOp::accumulator)
        persistentIndex[buffer.storage + "." + buffer.what] = static_cast<int>(index);
    }
    for (auto store : segment.getOps<StoreOp>())
      stores[(store.getStorage() + "." + store.getWhat()).str()].push_back(store);
    for (auto load : segment.getOps<CarryLoadOp>())
      carriedLoaded.insert(load.getCarried());
    for (auto store : segment.getOps<CarryStoreOp>())
      carryStores[store.getCarried()].push_back(store);
  }

  FailureOr<SegmentPlan> run() {
    for (Operation &op : segment.getBody().front())
      if (failed(checkStorages(&op)))
        return failure();
    for (auto store : segment.getOps<StoreOp>())
      placeStored(store);
    for (auto store : segment.getOps<CarryStoreOp>())
      placeCarried(store);
    for (Operation &op : segment.getBody().front())
      if (auto flatten = dyn_cast<FlattenOp>(op))
        placeParts(flatten);
    for (Operation &op : segment.getBody().front())
      if (auto concat = dyn_cast<nn::ConcatOp>(op))
        placeParts(concat);
    const size_t count = segment.getBody().front().getOperations().size();
    plan.launches.reserve(count);
    places.reserve(count);
    for (Operation &op : segment.getBody().front())
      if (failed(visit(&op)))
        return failure();
    return std::move(plan);
  }

private:
  //===--------------------------------------------------------------------===//
  // Places
  //===--------------------------------------------------------------------===//

  /// Adds the buffer of `value`, which an op of `structure` makes.
  int addBuffer(const std::string &name, Value value, const Structure &structure) {
    std::string dotted = name;
    std::replace(dotted.begin(), dotted.end(), ' ', '.');
    auto [storage, what] = contentsOf(value.getDefiningOp());
    plan.buffers.push_back({bufferNames.get(dotted, structure),
                            cast<RankedTensorType>(value.getType()), value.getLoc(), storage.str(),
                            what.str()});
    return static_cast<int>(plan.buffers.size()) - 1;
  }

  /// The storage that `op` gathers or reduces, from `attribute`; "" without the attribute.
  static StringRef storageOf(Operation *op, StringRef attribute) {
    auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(op->getDiscardableAttr(attribute));
    return symbol ? symbol.getValue() : StringRef();
  }

  LogicalResult checkStorages(Operation *op) const {
    for (StringRef attribute : {FSDPDialect::gathersAttrName, FSDPDialect::reducesAttrName})
      if (StringRef name = storageOf(op, attribute);
          !name.empty() && !symbols.lookup<StorageOp>(name))
        return op->emitOpError() << "has '" << attribute << "' @" << name << ", expected a storage";
    return success();
  }

  /// The storage of which `op` produces the whole members or gradients, and which of the two. A
  /// rank of a pipeline may reduce gradients for another one, which keeps the storage.
  std::pair<StringRef, StringRef> contentsOf(Operation *op) const {
    auto [storage, what] = contentsOfAny(op);
    return storage.empty() || symbols.lookup<StorageOp>(storage).isOwnedBy(
                                  segment->getParentOfType<ProgramOp>())
               ? std::pair(storage, what)
               : std::pair<StringRef, StringRef>();
  }

  std::pair<StringRef, StringRef> contentsOfAny(Operation *op) const {
    if (isa<FlattenOp>(op))
      if (StringRef storage = storageOf(op, FSDPDialect::reducesAttrName); !storage.empty())
        return {storage, BufferOp::gradient};
    // The result of a cast before a gather is a shard, except for a replicated storage; the result
    // of a gather over some axes only is a part.
    StringRef storage = storageOf(op, FSDPDialect::gathersAttrName);
    if (storage.empty())
      return {};
    auto stored = symbols.lookup<StorageOp>(storage);
    bool whole = stored.getKind() == StorageKind::replicated;
    auto gather = dyn_cast<AllGatherOp>(op);
    if (gather && !stored.getAxes().empty()) // gathered last over the first axis
      whole = llvm::is_contained(gather.getOver(), stored.getAxes()[0]);
    return whole ? std::pair<StringRef, StringRef>(storage, BufferOp::gathered)
                 : std::pair<StringRef, StringRef>();
  }

  int findPersistent(StringRef storage, StringRef what) const {
    auto found = persistentIndex.find((storage + "." + what).str());
    assert(found != persistentIndex.end() && "the verifier knows every storage and state");
    return found->second;
  }

  BufferView carriedPlace(StringRef name) const {
    int buffer = persistentByName.lookup(name);
    return {buffer, 0, plan.buffers[buffer].type};
  }

  /// Gathers a copy directly into its persistent buffer. Shards and states are already in theirs:
  /// updates are in place.
  void placeStored(StoreOp store) {
    Value value = store.getValue();
    if (value.getDefiningOp<AllGatherOp>() && isLaunched(value, store->getBlock())) {
      int buffer = findPersistent(store.getStorage(), store.getWhat());
      places.try_emplace(value, BufferView{buffer, 0, plan.buffers[buffer].type});
    }
  }

  /// Computes a carried value directly in its carried tensor, and before it a value that is reduced
  /// in place there.
  void placeCarried(CarryStoreOp store) {
    bool isLoaded = carriedLoaded.contains(store.getCarried());
    for (Value value = store.getValue(); value;
         value = isLoaded ? Value() : findReducedInPlace(value)) {
      bool flattens = value.getDefiningOp<FlattenOp>() != nullptr;
      if (!flattens && !isLaunched(value, store->getBlock()))
        return;
      places.try_emplace(value, carriedPlace(store.getCarried()));
    }
  }

  /// Places the operands of `flatten` in its buffer, so that they are computed there.
  void placeParts(FlattenOp flatten) {
    auto carried = places.find(flatten.getResult());
    int buffer = carried != places.end() ? carried->second.buffer
                                         : addBuffer(getLaunchName(flatten), flatten.getResult(),
                                                     getStructure(flatten));
    places[flatten.getResult()] = {buffer, 0, plan.buffers[buffer].type};
    int64_t offset = 0;
    for (Value part : flatten.getInputs()) {
      auto type = cast<RankedTensorType>(part.getType());
      Operation *maker = part.getDefiningOp();
      bool launched =
          maker && maker->getBlock() == flatten->getBlock() &&
          !isa<LoadOp, CarryLoadOp, ViewOp, FlattenOp, OptimizerStepOp, arith::ConstantOp>(maker);
      if (launched)
        places.try_emplace(part, BufferView{buffer, offset, type});
      offset += type.getNumElements();
    }
  }

  /// True for values that are placed when their op is launched, and are not placed yet.
  bool isLaunched(Value value, Block *block) const {
    Operation *maker = value.getDefiningOp();
    return maker && maker->getBlock() == block && !places.contains(value) &&
           !isa<LoadOp, CarryLoadOp, ViewOp, FlattenOp, InputOp, OptimizerStepOp, nn::ConcatOp,
                nn::SliceOp, arith::ConstantOp>(maker);
  }

  /// If the operands of `concat` are consecutive in its result, and all of them can be computed
  /// there, it needs no launch.
  void placeParts(nn::ConcatOp concat) {
    std::optional<int64_t> elements = piece(concat.getResult(), concat.getDim());
    llvm::SmallSetVector<Value, 4> parts;
    for (Value part : concat.getInputs()) {
      auto reshape = part.getDefiningOp<nn::RearrangeOp>();
      while (reshape && reshapes.contains(reshape)) {
        part = reshape.getInput();
        reshape = part.getDefiningOp<nn::RearrangeOp>();
      }
      if (elements && isLaunched(part, concat->getBlock()))
        parts.insert(part);
    }
    if (parts.size() != concat.getInputs().size())
      return;
    joined.insert(concat);
    auto whole = places.find(concat.getResult());
    if (whole == places.end()) {
      int buffer = addBuffer(getLaunchName(concat), concat.getResult(), getStructure(concat));
      whole =
          places.try_emplace(concat.getResult(), BufferView{buffer, 0, plan.buffers[buffer].type})
              .first;
    }
    auto [buffer, offset, unused] = whole->second;
    for (Value part : parts) {
      auto type = cast<RankedTensorType>(part.getType());
      places[part] = {buffer, offset, type};
      offset += type.getNumElements();
    }
  }

  /// Places the result of an op that moves no elements within its operand.
  bool placeView(Operation *op) {
    int64_t offset = 0;
    if (auto slice = dyn_cast<nn::SliceOp>(op)) {
      std::optional<int64_t> elements = piece(slice.getInput(), slice.getDim());
      if (!elements)
        return false;
      offset = static_cast<int64_t>(slice.getStart()) * *elements;
    } else if (auto rearrange = dyn_cast<nn::RearrangeOp>(op);
               !rearrange || !reshapes.contains(rearrange)) {
      return false;
    }
    // An update changes a storage while views of it exist, and the readers of inputs check them.
    auto source = places.find(op->getOperand(0));
    if (source == places.end() || source->second.buffer < persistentCount ||
        op->getOperand(0).getDefiningOp<InputOp>() || places.contains(op->getResult(0)))
      return false;
    BufferView place = source->second;
    places[op->getResult(0)] = {place.buffer, place.offset + offset,
                                cast<RankedTensorType>(op->getResult(0).getType())};
    return true;
  }

  /// Where `user` finds `value`.
  BufferView getPlace(Value value, Operation *user) {
    auto found = places.find(value);
    if (found != places.end())
      return found->second;
    // A constant that a kernel cannot have in its body is written by a separate launch.
    Operation *constant = value.getDefiningOp();
    assert(constant && isa<arith::ConstantOp>(constant) && "every other value has its place");
    std::string location = getLocationName(constant->getLoc());
    PlannedLaunch launch = makeLaunch(location.empty() ? "constant" : location + " constant",
                                      streams::compute, constant->getLoc(), getStructure(user));
    launch.body = {constant};
    BufferView place = addResult(launch, value);
    plan.launches.push_back(std::move(launch));
    return place;
  }

  BufferView addResult(PlannedLaunch &launch, Value result, StringRef name = "") {
    auto [entry, isNew] = places.try_emplace(result);
    if (isNew) {
      int buffer = addBuffer(name.empty() ? launch.name : name.str(), result, launch.structure);
      entry->second = {buffer, 0, plan.buffers[buffer].type};
    }
    launch.results.push_back(result);
    launch.outs.push_back(entry->second);
    return entry->second;
  }

  //===--------------------------------------------------------------------===//
  // Launches
  //===--------------------------------------------------------------------===//

  PlannedLaunch makeLaunch(StringRef name, StringRef stream, Location location,
                           Structure structure) {
    return {
        plan.launchNames.get(name, structure), stream, location, structure, {}, {}, {}, {}, {}, {}};
  }

  /// An update writes its results where its operands are: a result that the storage keeps must be
  /// stored there.
  LogicalResult checkStored(OptimizerStepOp step) {
    auto isStored = [&](Value result) {
      return llvm::any_of(result.getUsers(), [&](Operation *user) {
        auto store = dyn_cast<StoreOp>(user);
        return store && store.getStorage() == step.getStorage();
      });
    };
    const bool keepsParameter = symbols.lookup<StorageOp>(step.getStorage()).keepsShard();
    for (OpResult result : step->getResults())
      if (!isStored(result) && (keepsParameter || result.getResultNumber() > 0))
        return step.emitOpError() << "has a result that is not stored into storage '"
                                  << step.getStorage() << "', expected an 'fsdp.store' of each";
    return success();
  }

  LogicalResult visit(Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      int buffer = findPersistent(load.getStorage(), load.getWhat());
      places[load.getResult()] = {buffer, 0, plan.buffers[buffer].type};
      return checkNotReadLater(load);
    }
    if (auto step = dyn_cast<OptimizerStepOp>(op))
      if (failed(checkStored(step)))
        return failure();
    if (auto store = dyn_cast<StoreOp>(op)) {
      BufferView expected{findPersistent(store.getStorage(), store.getWhat()), 0,
                          cast<RankedTensorType>(store.getValue().getType())};
      if (!(getPlace(store.getValue(), store) == expected))
        return store.emitOpError() << "stores another value into storage '" << store.getStorage()
                                   << "', expected the result of an 'fsdp.optimizer_step' or "
                                      "'fsdp.all_gather' of that storage";
      return success();
    }
    if (auto load = dyn_cast<CarryLoadOp>(op)) {
      places[load.getResult()] = carriedPlace(load.getCarried());
      for (CarryStoreOp store : carryStores.lookup(load.getCarried()))
        if (load->isBeforeInBlock(store) && failed(checkCarried(load.getResult(), store)))
          return failure();
      return success();
    }
    if (auto store = dyn_cast<CarryStoreOp>(op)) {
      copyCarried(store);
      const int buffer = carriedPlace(store.getCarried()).buffer;
      auto isInPlace = [&](Value value) { return places.lookup(value).buffer == buffer; };
      for (CarryStoreOp later : carryStores.lookup(store.getCarried()))
        if (store->isBeforeInBlock(later) &&
            (failed(checkCarried(store.getValue(), later)) ||
             failed(checkComputedAfter(store, later.getValue(), isInPlace))))
          return failure();
      return success();
    }
    if (auto view = dyn_cast<ViewOp>(op)) {
      BufferView flat = getPlace(view.getFlat(), view);
      places[view.getResult()] = {flat.buffer, flat.offset + static_cast<int64_t>(view.getOffset()),
                                  cast<RankedTensorType>(view.getType())};
      return success();
    }
    if (auto flatten = dyn_cast<FlattenOp>(op)) {
      addCopies(flatten);
      return success();
    }
    // Constants are cloned into the bodies that use them; joined parts are in their places.
    if (isa<arith::ConstantOp>(op) || joined.contains(op) || placeView(op))
      return success();
    addLaunch(op);
    if (auto input = dyn_cast<InputOp>(op);
        input && staged.contains({segment, input.getNameAttr()}))
      addCopyOfStaged(input);
    return success();
  }

  /// Lets `input` be loaded where it is staged, and be read from a copy: the next batch is loaded
  /// as soon as this one is copied.
  void addCopyOfStaged(InputOp input) {
    PlannedLaunch &load = plan.launches.back();
    const std::string name = load.name + " copy";
    auto type = cast<RankedTensorType>(input.getType());
    const int buffer = findStaged(plan.buffers, input);
    const BufferView target = places.lookup(input.getResult());
    load.outs.front() = {buffer, 0, type};
    OpBuilder builder(input);
    auto flat = RankedTensorType::get({type.getNumElements()}, type.getElementType());
    Operation *copy =
        FlattenOp::create(builder, input.getLoc(), flat, ValueRange{input.getResult()});
    addFill(name, copy, load.outs.front(), {target.buffer, 0, flat}, getStructure(input));
  }

  /// Launches `op`, a constant or a copy of the value at `from`, which writes to `to`.
  void addFill(StringRef name, Operation *op, std::optional<BufferView> from, BufferView to,
               Structure structure) {
    PlannedLaunch launch = makeLaunch(name, streams::compute, op->getLoc(), structure);
    launch.body = {op};
    if (from) {
      launch.values = {op->getOperand(0)};
      launch.ins = {*from};
    }
    places[op->getResult(0)] = to;
    addResult(launch, op->getResult(0));
    plan.launches.push_back(std::move(launch));
  }

  /// A buffer changes under the value that was loaded from it once the storage is updated.
  LogicalResult checkNotReadLater(LoadOp load) {
    Operation *update = nullptr;
    for (StoreOp store : stores.lookup((load.getStorage() + "." + load.getWhat()).str()))
      if (load->isBeforeInBlock(store) && (!update || store->isBeforeInBlock(update)))
        update = store.getValue().getDefiningOp();
    auto type = cast<RankedTensorType>(load.getType());
    return checkNotReadAfter(load.getResult(), update, 0, type.getNumElements(), load.getStorage());
  }

  /// Fails if an op reads `held`, the carried contents, after `store` or a part of it replaced it.
  LogicalResult checkCarried(Value held, CarryStoreOp store) {
    const BufferView whole = carriedPlace(store.getCarried());
    Operation *maker = store.getValue().getDefiningOp();
    if (failed(checkNotReadAfter(held, maker, 0, whole.type.getNumElements(), store.getCarried())))
      return failure();
    auto flatten = dyn_cast_or_null<FlattenOp>(maker);
    int64_t offset = 0;
    for (Value part : flatten ? ValueRange(flatten.getInputs()) : ValueRange()) {
      const int64_t size = cast<RankedTensorType>(part.getType()).getNumElements();
      Operation *computes = part.getDefiningOp();
      if (auto place = places.find(part);
          place != places.end() && place->second.buffer == whole.buffer && !isa<ViewOp>(computes) &&
          failed(checkNotReadAfter(held, computes, offset, size, store.getCarried())))
        return failure();
      offset += size;
    }
    return success();
  }

  /// Copies a stored value to its carried tensor if it was computed elsewhere.
  void copyCarried(CarryStoreOp store) {
    Operation *constant = store.getValue().getDefiningOp();
    if (isa_and_nonnull<arith::ConstantOp>(constant)) {
      PlannedLaunch launch = makeLaunch((store.getCarried() + " constant").str(), streams::compute,
                                        store.getLoc(), getStructure(store));
      launch.body = {constant};
      launch.results = {store.getValue()};
      launch.outs = {carriedPlace(store.getCarried())};
      plan.launches.push_back(std::move(launch));
      return;
    }
    BufferView from = getPlace(store.getValue(), store), to = carriedPlace(store.getCarried());
    if (from == to)
      return;
    OpBuilder builder(store);
    to.type = RankedTensorType::get({to.type.getNumElements()}, to.type.getElementType());
    Operation *copy =
        FlattenOp::create(builder, store.getLoc(), to.type, ValueRange{store.getValue()});
    addFill(getLaunchName(copy), copy, from, to, getStructure(store));
  }

  void addLaunch(Operation *op) {
    bool collective = involvesPeers(op);
    PlannedLaunch launch =
        makeLaunch(getLaunchName(op), getStream(op), op->getLoc(), getStructure(op));
    for (Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (maker && isa<arith::ConstantOp>(maker) && takesConstant(op, operand)) {
        if (!llvm::is_contained(launch.body, maker))
          launch.body.push_back(maker);
        continue;
      }
      if (llvm::is_contained(launch.values, operand))
        continue;
      launch.values.push_back(operand);
      launch.ins.push_back(getPlace(operand, op));
    }
    launch.body.push_back(op);
    if (auto step = dyn_cast<OptimizerStepOp>(op)) {
      auto addPersistent = [&](Value result, StringRef what) {
        int buffer = findPersistent(step.getStorage(), what);
        places[result] = {buffer, 0, plan.buffers[buffer].type};
        addResult(launch, result);
      };
      if (symbols.lookup<StorageOp>(step.getStorage()).keepsShard()) {
        addPersistent(step.getNewParameter(), StorageOp::parameter);
      } else { // where the shard was cut to: updates are in place
        places[step.getNewParameter()] = getPlace(step.getParameter(), op);
        addResult(launch, step.getNewParameter());
      }
      for (auto [name, state] :
           llvm::zip_equal(step.getOptimizer().getStateNames(), step.getNewStates()))
        addPersistent(state, name);
    } else {
      for (OpResult result : op->getResults())
        addResult(launch, result, getBufferName(result, launch.name));
    }
    if (collective)
      assert(launch.body.size() == 1 && "a collective stands alone");
    launch.state = getStepStateAccess(launch.body);
    plan.launches.push_back(std::move(launch));
  }

  static StringRef getStream(Operation *op) {
    if (isa<InputOp>(op))
      return streams::input;
    if (auto step = dyn_cast<OptimizerStepOp>(op); step && step.getDeferred())
      return streams::update;
    if (op->getDiscardableAttr(FSDPDialect::gathersAttrName))
      return streams::gather;
    if (!involvesPeers(op))
      return streams::compute;
    auto collective = cast<CollectiveOpInterface>(op);
    if (int64_t offset = collective.getPeerOffset()) {
      if (collective.getSendValue())
        return offset > 0 ? streams::sendUp : streams::sendDown;
      return offset < 0 ? streams::receiveUp : streams::receiveDown;
    }
    // Collectives that compute waits for do not queue behind gradients.
    bool isActivation = !op->getDiscardableAttr(FSDPDialect::reducesAttrName) &&
                        getStructure(op).direction != Direction::update &&
                        cast<RankedTensorType>(op->getResult(0).getType()).getRank() != 0;
    return isActivation ? streams::activation : streams::reduce;
  }

  /// Copies the operands of `flatten` that are not computed in its buffer, and writes those that
  /// are constants, and zeros at its end.
  void addCopies(FlattenOp flatten) {
    BufferView whole = places[flatten.getResult()];
    Location location = flatten.getLoc();
    OpBuilder builder(flatten);
    int64_t offset = 0;
    auto place = [&](int64_t elements) {
      auto type = RankedTensorType::get({elements}, whole.type.getElementType());
      return BufferView{whole.buffer, offset, type};
    };
    for (Value part : flatten.getInputs()) {
      const auto type = cast<RankedTensorType>(part.getType());
      const BufferView to = place(type.getNumElements());
      auto constant = part.getDefiningOp<arith::ConstantOp>();
      if (auto values = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr) {
        Operation *fill =
            arith::ConstantOp::create(builder, constant.getLoc(), values.reshape(to.type));
        addFill(getLaunchName(fill), fill, std::nullopt, to, getStructure(flatten));
      } else if (BufferView from = getPlace(part, flatten);
                 !(from == BufferView{whole.buffer, offset, type})) {
        Operation *copy = FlattenOp::create(builder, location, to.type, ValueRange{part});
        addFill(getLaunchName(copy), copy, from, to, getStructure(flatten));
      }
      offset += type.getNumElements();
    }
    const BufferView end = place(whole.type.getNumElements() - offset);
    if (end.type.getNumElements() == 0)
      return;
    Operation *zeros = arith::ConstantOp::create(builder, location, builder.getZeroAttr(end.type));
    std::string name = getLocationName(location);
    addFill(name.empty() ? "padding" : name + " padding", zeros, std::nullopt, end,
            getStructure(flatten));
  }

  SegmentOp segment;
  const StagedInputs &staged;
  const SymbolTable &symbols;
  int persistentCount;
  llvm::StringMap<int> persistentIndex; ///< by storage and tensor name, joined by a dot
  llvm::StringMap<int> persistentByName;
  llvm::StringMap<SmallVector<StoreOp, 1>> stores; ///< likewise
  llvm::StringSet<> carriedLoaded;                 ///< carried tensors that the segment loads
  llvm::StringMap<SmallVector<CarryStoreOp, 1>> carryStores; ///< by carried tensor, in order
  SegmentPlan plan;
  DenseMap<Value, BufferView> places;
  DenseSet<Operation *> joined; ///< concatenations whose parts are computed in place
  UniqueNames bufferNames;
  Reshapes reshapes;
};

} // namespace

FailureOr<SegmentPlan> mlir::fsdp::planSegment(SegmentOp segment,
                                               ArrayRef<PlannedBuffer> persistent,
                                               const StagedInputs &staged,
                                               const SymbolTable &symbols) {
  return Planner(segment, persistent, staged, symbols).run();
}
