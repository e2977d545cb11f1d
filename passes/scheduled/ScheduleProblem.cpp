//===- ScheduleProblem.cpp - from scheduled IR to plain data --------------===//

#include "passes/scheduled/ScheduleProblem.h"
#include "dialect/fsdp/CollectiveGroup.h"
#include "dialect/fsdp/LaunchBodies.h"
#include "dialect/fsdp/StepStateAccess.h"
#include "dialect/nn/ProductCost.h"
#include "passes/scheduled/InPlace.h"

#include "dialect/fsdp/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <deque>

using namespace mlir;
using namespace mlir::fsdp;

int64_t mlir::fsdp::getElementBytes(RankedTensorType type) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  return BufferType::get(type.getContext(), scalar).getSizeInBytes();
}

BufferRange mlir::fsdp::resolveBuffer(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  int64_t begin = 0;
  while (auto subview = buffer.getDefiningOp<SubviewOp>()) {
    if (const auto offset = static_cast<int64_t>(subview.getOffset()))
      begin += offset * getElementBytes(type.getTensor());
    buffer = subview.getBuffer();
  }
  return {cast<BufferOp>(buffer.getDefiningOp()), begin, begin + type.getSizeInBytes()};
}

/// The storage of which `buffer` holds all members, or their gradients; null for other buffers.
static StorageOp wholeIn(BufferOp buffer, const SymbolTable &symbols) {
  FlatSymbolRefAttr symbol = buffer.getStorageAttr();
  if (!symbol || buffer.getWhat() == BufferOp::accumulator)
    return nullptr;
  auto storage = symbols.lookup<StorageOp>(symbol.getAttr());
  // Persistent are the parts of a rank, and copies.
  bool isPart = buffer.getPersistent() && storage.getKind() != StorageKind::replicated &&
                buffer.getWhat() != StorageOp::copy;
  return isPart ? StorageOp() : storage;
}

/// The byte ranges of the members of the flat storage that `buffer` holds whole; empty for other
/// buffers.
static std::vector<std::pair<int64_t, int64_t>> getMembers(BufferOp buffer,
                                                           const SymbolTable &symbols) {
  StorageOp storage = wholeIn(buffer, symbols);
  RankedTensorType type = buffer.getType().getTensor();
  if (!storage || storage.getKind() == StorageKind::dimension || type.getRank() != 1)
    return {};
  int64_t bytes = getElementBytes(type);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (auto member : storage.getMembers().getAsRange<MemberAttr>()) {
    auto param = symbols.lookup<ParamOp>(member.getParam().getAttr());
    int64_t end = member.getOffset() + param.getComputeType().getNumElements();
    ranges.push_back({member.getOffset() * bytes, end * bytes});
  }
  return ranges;
}

/// True if `buffer` is written before the first segment: tensors of storages and the step state,
/// which the driver fills, and zeroed buffers.
static bool isFilled(BufferOp buffer) {
  if (buffer.getZeroed())
    return true;
  if (!buffer.getPersistent() || buffer.getStorage())
    return buffer.getWhat() != BufferOp::accumulator;
  return buffer.getType().getTensor() == getStepStateType(buffer.getContext());
}

/// Adds the cost of `op`, without bytes.
static void addCost(Operation &op, schedule::LaunchCost &sum) {
  if (auto costs = dyn_cast<nn::CostOpInterface>(op))
    sum.flops += costs.getCost().flops;
  const nn::ProductCost product = nn::getProductCost(&op);
  if (product.flops <= sum.productFlops)
    return;
  sum.product = product.kind;
  sum.productFlops = product.flops;
  sum.productExtent = product.extent;
  sum.productKeys = product.keys;
  const nn::Epilogue epilogue = nn::getEpilogue(&op);
  sum.epilogueBytes = epilogue.bytes;
  sum.epilogueIsBias = epilogue.isBias;
  sum.epilogueIsOperandSum = epilogue.isOperandSum;
  sum.remainingBytes = epilogue.remainingBytes;
  std::string type;
  llvm::raw_string_ostream(type) << product.elementType;
  sum.productType = StringAttr::get(op.getContext(), type).getValue();
}

namespace {

/// The ranks of a role: those of a program, or a part of them.
struct RoleRanks {
  ProgramOp program;
  DictionaryAttr coordinates; ///< as `role` of a program
  std::string name;
  int sameInside = -1;
};

/// The properties of a launch that follow from its body alone.
struct BodyFacts {
  explicit BodyFacts(LaunchOp launch);

  SmallVector<std::pair<int, int>> inPlace;
  StepStateAccess state;
  bool advances = false; ///< to the next step
  SmallVector<StringRef, 1> updates;
  int condition = -1;
  bool deferred = false;
  SmallVector<int> clears;
  StringRef kind;
  bool output = false;
  bool hasCollectives;
  schedule::LaunchCost cost; ///< without bytes
};

BodyFacts::BodyFacts(LaunchOp launch)
    : inPlace(getInPlacePairs(launch)), state(getStepStateAccess(launch)),
      advances(!launch.getBody().getOps<AdvanceOp>().empty()),
      hasCollectives(!getCollectives(launch).empty()) {
  for (auto update : launch.getBody().getOps<OptimizerStepOp>()) {
    updates.push_back(update.getStorage());
    deferred = update.getDeferred();
    if (auto argument = dyn_cast<BlockArgument>(update.getOk()))
      condition = static_cast<int>(argument.getArgNumber());
  }
  for (auto [index, value] :
       llvm::enumerate(launch.getBody().front().getTerminator()->getOperands()))
    if (matchPattern(value, m_Zero()))
      clears.push_back(static_cast<int>(index));
  for (Operation &op : launch.getBody().front().without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    kind = op.getName().getStringRef();
    output |= isa<OutputOp>(op);
    addCost(op, cost);
  }
}

/// Builds one role.
class RoleBuilder {
public:
  RoleBuilder(ScheduleProblem &result, size_t index, ArrayRef<RoleRanks> roles,
              const SymbolTable &symbols, PerLaunchClass<BodyFacts> &bodies)
      : result(result), program(roles[index].program), index(index), roles(roles), symbols(symbols),
        bodies(bodies) {}

  void build() {
    if (roles[index].sameInside >= 0)
      return buildLike(static_cast<size_t>(roles[index].sameInside));
    role.name = roles[index].name;
    role.arena = program.getArena() ? static_cast<int64_t>(*program.getArena()) : -1;
    result.programs.push_back(program);
    result.segments.emplace_back();
    result.buffers.emplace_back();
    result.launches.emplace_back();
    llvm::StringMap<int> segmentIndex;
    for (auto segment : program.getOps<SegmentOp>()) {
      segmentIndex[segment.getSymName()] = static_cast<int>(result.segments.back().size());
      result.segments.back().push_back(segment);
    }
    size_t count = 0; // of buffers at most
    for (auto segment : program.getOps<SegmentOp>())
      count += segment.getBody().front().getOperations().size();
    bufferIndex.reserve(count / 2);
    for (auto buffer : program.getOps<BufferOp>())
      addBuffer(buffer, -1);
    for (auto [index, event] : llvm::enumerate(program.getOps<EventOp>())) {
      eventIndex[event.getTimepoint()] = static_cast<int>(index);
      role.events.push_back(event.getName().str());
    }
    for (auto walk : program.getOps<WalkOp>()) {
      schedule::ExecutionPlan &added = role.walks.emplace_back();
      added.name = walk.getSymName().str();
      for (auto segment : walk.getSegments().getAsRange<FlatSymbolRefAttr>())
        added.segments.push_back(segmentIndex.lookup(segment.getValue()));
      llvm::append_range(added.times, walk.getTimes());
    }
    for (auto [index, op] : llvm::enumerate(result.segments.back())) {
      schedule::Segment segment;
      segment.name = op.getSymName().str();
      segment.kind = stringifyStepKind(op.getKind()).str();
      segment.joined = !op.getAsync();
      for (auto next : op.getNext().getAsRange<FlatSymbolRefAttr>())
        segment.next.push_back(segmentIndex.lookup(next.getValue()));
      for (auto buffer : op.getOps<BufferOp>())
        addBuffer(buffer, buffer.getPersistent() ? -1 : static_cast<int>(index));
      launchIndex.clear();
      launchIndex.reserve(op.getBody().front().getOperations().size() / 2);
      result.launches.back().emplace_back();
      segment.launches.reserve(llvm::range_size(op.getOps<LaunchOp>()));
      for (auto launch : op.getOps<LaunchOp>()) {
        launchIndex[launch.getDone()] = static_cast<int>(segment.launches.size());
        translate(launch, segment.launches.emplace_back());
        result.launches.back().back().push_back(launch);
      }
      role.segments.push_back(std::move(segment));
    }
    result.problem.roles.push_back(std::move(role));
  }

private:
  /// Builds a role of the program of the earlier role `first`, from which its collectives alone
  /// differ.
  void buildLike(size_t first) {
    role = result.problem.roles[first];
    role.name = roles[index].name;
    role.sameInside = static_cast<int>(first);
    result.programs.push_back(program);
    result.segments.push_back(std::vector(result.segments[first]));
    result.buffers.push_back(std::vector(result.buffers[first]));
    result.launches.push_back(std::vector(result.launches[first]));
    for (auto [segment, ops] : llvm::zip_equal(role.segments, result.launches.back()))
      for (auto [launch, op] : llvm::zip_equal(segment.launches, ops))
        translateCollectives(op, bodyOf(op), launch);
    result.problem.roles.push_back(std::move(role));
  }

  void addBuffer(BufferOp op, int segment) {
    bufferIndex[op] = static_cast<int>(role.buffers.size());
    int64_t offset = op.getOffset() ? static_cast<int64_t>(*op.getOffset()) : -1;
    isUnwritten.push_back(segment >= 0);
    role.buffers.push_back({op.getName().str(), op.getType().getSizeInBytes(), segment, offset,
                            getMembers(op, symbols), isFilled(op)});
    result.buffers.back().push_back(op);
  }

  /// Completes the names of the buffers that are written first by a launch of `structure`: those of
  /// several microbatches have one name in the IR.
  void nameWritten(const Structure &structure, ArrayRef<schedule::Access> writes) {
    for (const schedule::Access &write : writes) {
      if (!isUnwritten[write.buffer])
        continue;
      isUnwritten[write.buffer] = false;
      if (structure.microbatch >= 0)
        role.buffers[write.buffer].name += ".stage." + std::to_string(structure.stage) +
                                           ".microbatch." + std::to_string(structure.microbatch);
    }
  }

  schedule::Access access(Value buffer) {
    BufferRange range = resolveBuffer(buffer);
    return {bufferIndex.lookup(range.op), range.begin, range.end};
  }

  void translate(LaunchOp op, schedule::Launch &launch) {
    launch.name = op.getFullName();
    launch.stream = indexOf(role.streams, op.getStream());
    // Of the step state, at most two parts are read and written.
    launch.reads.reserve(op.getIns().size() + (op.getStepState() ? 2 : 0));
    launch.writes.reserve(op.getOuts().size() + (op.getStepState() ? 2 : 0));
    launch.waits.reserve(op.getWait().size());
    for (Value wait : op.getWait()) {
      if (wait.getDefiningOp<EventOp>())
        launch.awaits.push_back(eventIndex.lookup(wait));
      else
        launch.waits.push_back(launchIndex.lookup(wait));
    }
    for (Value event : op.getRecords())
      launch.records.push_back(eventIndex.lookup(event));
    for (Value buffer : op.getIns())
      launch.reads.push_back(access(buffer));
    for (Value buffer : op.getOuts())
      launch.writes.push_back(access(buffer));
    nameWritten(getStructure(op), launch.writes);
    const BodyFacts &body = bodyOf(op);
    launch.inPlace.assign(body.inPlace.begin(), body.inPlace.end());
    launch.updates.assign(body.updates.begin(), body.updates.end());
    launch.condition = body.condition;
    launch.deferred = body.deferred;
    launch.clears.assign(body.clears.begin(), body.clears.end());
    launch.kind = body.kind;
    launch.output = body.output;
    launch.cost = body.cost;
    if (Value state = op.getStepState()) {
      launch.step = body.advances ? schedule::StepUse::advances : schedule::StepUse::reads;
      addStepState(body.state, access(state), launch);
    }
    for (const schedule::Access &read : launch.reads)
      launch.cost.bytesRead += read.end - read.begin;
    for (const schedule::Access &write : launch.writes)
      launch.cost.bytesWritten += write.end - write.begin;
    const Structure structure = getStructure(op);
    launch.unit = structure.unit ? structure.unit.getValue() : "";
    launch.direction = stringifyDirection(structure.direction);
    translateCollectives(op, body, launch);
  }

  const BodyFacts &bodyOf(LaunchOp op) {
    return *bodies.find(op, [](LaunchOp first) { return BodyFacts(first); });
  }

  void translateCollectives(LaunchOp op, const BodyFacts &body, schedule::Launch &launch) {
    if (!body.hasCollectives)
      return;
    std::optional<schedule::Collective> &known = collectivesOf[{&body, op.getStreamAttr()}];
    if (!known) {
      SmallVector<CollectiveOpInterface> collectives = getCollectives(op);
      if (knowsPeers(collectives.front())) {
        launch.collective = translateTransfer(op, collectives.front());
        return;
      }
      known = translate(op, collectives);
    }
    launch.collective = known;
  }

  /// A group is one collective: the properties that must be equal are joined in the order of its
  /// members.
  schedule::Collective translate(LaunchOp launch, ArrayRef<CollectiveOpInterface> group) {
    CollectiveOpInterface op = group.front();
    SmallVector<StringAttr> axes = op.getAxes();
    const std::vector<int> &members = membersOver(axes);
    std::string name = nameOver(launch, axes);
    if (members.size() < roles.size())
      name += " of " + roles[members.front()].name;
    schedule::Collective collective = describeValues(op, name, members);
    collective.arguments = op.getArguments();
    for (CollectiveOpInterface member : group.drop_front()) {
      const schedule::Collective other = describeValues(member, name, members);
      collective.bytes += other.bytes;
      auto join = [](std::string &all, const std::string &more) { all += " and " + more; };
      join(collective.arguments, member.getArguments());
      join(collective.type, other.type);
      join(collective.given, other.given);
      join(collective.received, other.received);
    }
    return collective;
  }

  /// The roles that take part in collectives over `axes`: they differ only along these axes; other
  /// roles have other ranks.
  const std::vector<int> &membersOver(ArrayRef<StringAttr> axes) {
    for (const auto &[known, members] : memberSets)
      if (ArrayRef<StringAttr>(known) == axes)
        return members;
    std::vector<int> members;
    for (auto [number, other] : llvm::enumerate(roles))
      if (coordinatesBeside(axes, other) == coordinatesBeside(axes, roles[index]))
        members.push_back(static_cast<int>(number));
    memberSets.emplace_back(llvm::to_vector(axes), std::move(members));
    return memberSets.back().second;
  }

  /// True if `op` is a transfer and the coordinates of the roles determine its peers.
  bool knowsPeers(CollectiveOpInterface op) const {
    return op.getPeerOffset() != 0 && llvm::all_of(op.getAxes(), [&](StringAttr axis) {
             return llvm::all_of(
                 roles, [&](const RoleRanks &role) { return role.coordinates.contains(axis); });
           });
  }

  /// The part of the role in a transfer; none if it has no peer.
  std::optional<schedule::Collective> translateTransfer(LaunchOp launch, CollectiveOpInterface op) {
    SmallVector<StringAttr> axes = op.getAxes();
    MeshAttr mesh = getMesh(program);
    int64_t place = 0;
    for (StringAttr axis : axes)
      place = place * mesh.getAxisSize(axis) + coordinateOn(roles[index], axis);
    std::optional<int64_t> peerPlace = getPeer(op, place);
    if (!peerPlace)
      return std::nullopt;
    SmallVector<std::pair<StringAttr, int64_t>> at;
    for (StringAttr axis : llvm::reverse(axes)) {
      at.push_back({axis, *peerPlace % mesh.getAxisSize(axis)});
      *peerPlace /= mesh.getAxisSize(axis);
    }
    size_t peer = 0;
    while (coordinatesBeside(axes, roles[peer]) != coordinatesBeside(axes, roles[index]) ||
           !llvm::all_of(at, [&](auto &entry) {
             return coordinateOn(roles[peer], entry.first) == entry.second;
           }))
      ++peer;
    const bool sends = op.getSendValue() != nullptr;
    const size_t from = sends ? index : peer, to = sends ? peer : index;
    // The communicator is that of the sender: no stream, and no other offset between the two.
    const int64_t step = sends ? op.getPeerOffset() : -op.getPeerOffset();
    const std::string name = "transfers by " + std::to_string(step) +
                             (op.isInRing() ? " in the ring over " : " over ") + spellAxes(axes) +
                             " from " + roles[from].name + " to " + roles[to].name;
    schedule::Collective collective =
        describeValues(op, name, {static_cast<int>(from), static_cast<int>(to)});
    (sends ? collective.received : collective.given) =
        sends ? collective.given : collective.received;
    collective.transfer = true;
    collective.arguments = describeMessage(launch, op);
    return collective;
  }

  /// The properties of a transfer that both ends know, in which messages of one shape that have
  /// changed their order differ.
  static std::string describeMessage(LaunchOp launch, CollectiveOpInterface op) {
    SmallVector<std::string> parts;
    if (std::optional<uint64_t> number = op.getMessage())
      parts.push_back("value " + std::to_string(*number));
    const Structure of = getStructure(launch);
    if (of.microbatch >= 0)
      parts.push_back("of microbatch " + std::to_string(of.microbatch));
    if (of.unit && !parts.empty())
      parts.push_back("for unit " + of.unit.str());
    return llvm::join(parts, " ");
  }

  static std::string nameOver(LaunchOp launch, ArrayRef<StringAttr> axes) {
    return (launch.getStream() + " over " + spellAxes(axes)).str();
  }

  static std::string spellAxes(ArrayRef<StringAttr> axes) {
    auto names = llvm::map_to_vector(axes, [](StringAttr axis) { return axis.getValue(); });
    return "[" + llvm::join(names, ", ") + "]";
  }

  /// "4x8", "scalar"
  static std::string spellShape(RankedTensorType type) {
    if (type.getRank() == 0)
      return "scalar";
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave(type.getShape(), os, "x");
    return text;
  }

  /// The collective `op` on the communicator `name` of the roles `members`, without its arguments.
  schedule::Collective describeValues(CollectiveOpInterface op, const std::string &name,
                                      const std::vector<int> &members) {
    auto &communicators = result.problem.communicators;
    auto found = llvm::find_if(communicators, [&](auto &other) { return other.name == name; });
    if (found == communicators.end())
      found = communicators.insert(communicators.end(), {name, members});
    schedule::Collective collective{static_cast<int>(found - communicators.begin()),
                                    op->getName().stripDialect().str(), op.getBytes()};
    Value given = op.getSendValue(), received = op.getRecvValue();
    auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
    llvm::raw_string_ostream(collective.type) << typeOf(given ? given : received).getElementType();
    collective.given = given ? spellShape(typeOf(given)) : "";
    collective.received = received ? spellShape(typeOf(received)) : "";
    return collective;
  }

  /// The coordinates of `role` on all axes but `axes`.
  static SmallVector<NamedAttribute> coordinatesBeside(ArrayRef<StringAttr> axes,
                                                       const RoleRanks &role) {
    SmallVector<NamedAttribute> coordinates;
    for (NamedAttribute coordinate : role.coordinates)
      if (!llvm::is_contained(axes, coordinate.getName()))
        coordinates.push_back(coordinate);
    return coordinates;
  }

  static int64_t coordinateOn(const RoleRanks &role, StringAttr axis) {
    return role.coordinates.getAs<IntegerAttr>(axis).getInt();
  }

  /// Adds the parts of the buffer `whole` that `launch` reads and writes; written parts are updated
  /// in place.
  static void addStepState(const StepStateAccess &state, schedule::Access whole,
                           schedule::Launch &launch) {
    auto partOf = [&](StepStateBytes bytes) {
      return schedule::Access{whole.buffer, whole.begin + bytes.begin, whole.begin + bytes.end};
    };
    const size_t first = launch.reads.size();
    for (StepStateBytes bytes : state.reads)
      launch.reads.push_back(partOf(bytes));
    for (StepStateBytes bytes : state.writes) {
      const auto *read = llvm::find(state.reads, bytes);
      if (read != state.reads.end())
        launch.inPlace.push_back({static_cast<int>(first + (read - state.reads.begin())),
                                  static_cast<int>(launch.writes.size())});
      launch.writes.push_back(partOf(bytes));
    }
  }

  static int indexOf(std::vector<std::string> &names, StringRef name) {
    auto found = llvm::find_if(names, [&](const std::string &known) { return known == name; });
    if (found == names.end())
      found = names.insert(names.end(), name.str());
    return static_cast<int>(found - names.begin());
  }

  ScheduleProblem &result;
  ProgramOp program;
  size_t index; ///< of the role
  ArrayRef<RoleRanks> roles;
  const SymbolTable &symbols;        ///< of the module
  PerLaunchClass<BodyFacts> &bodies; ///< of the module
  schedule::Role role;
  /// By axes, of those of which membersOver was asked.
  std::deque<std::pair<SmallVector<StringAttr>, std::vector<int>>> memberSets;
  /// Of launches with one body on one stream; none where they are transfers.
  DenseMap<std::pair<const BodyFacts *, StringAttr>, std::optional<schedule::Collective>>
      collectivesOf;
  DenseMap<Operation *, int> bufferIndex;
  std::vector<bool> isUnwritten; ///< of buffers of segments, so far
  DenseMap<Value, int> launchIndex, eventIndex;
};

} // namespace

static void buildRoles(ScheduleProblem &result, ModuleOp module, ArrayRef<RoleRanks> roles) {
  SymbolTable symbols(module);
  PerLaunchClass<BodyFacts> bodies;
  for (size_t index = 0; index < roles.size(); ++index)
    RoleBuilder(result, index, roles, symbols, bodies).build();
}

ScheduleProblem::ScheduleProblem(ModuleOp module) {
  std::vector<RoleRanks> roles;
  for (ProgramOp program : module.getOps<ProgramOp>())
    roles.push_back({program, program.getRole(), program.getSymName().str()});
  buildRoles(*this, module, roles);
}

ScheduleProblem ScheduleProblem::ofPlaces(ModuleOp module) {
  llvm::SmallSetVector<StringAttr, 4> axes;
  for (ProgramOp program : module.getOps<ProgramOp>())
    for (SegmentOp segment : program.getOps<SegmentOp>())
      for (LaunchOp launch : segment.getOps<LaunchOp>())
        for (Operation &op : launch.getBody().front())
          if (isa<SendOp, ReceiveOp>(op))
            axes.insert_range(cast<CollectiveOpInterface>(op).getAxes());
  MeshAttr mesh = getMesh(module);
  Builder builder(module.getContext());
  std::vector<RoleRanks> roles;
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    SmallVector<StringAttr> open;
    for (StringAttr axis : axes)
      if (!program.getRole().get(axis))
        open.push_back(axis);
    const int first = static_cast<int>(roles.size());
    for (int64_t place = 0, places = mesh.getSize(open); place < places; ++place) {
      NamedAttrList coordinates(program.getRole());
      std::string name;
      int64_t stride = places;
      for (StringAttr axis : open) {
        stride /= mesh.getAxisSize(axis);
        const int64_t coordinate = place / stride % mesh.getAxisSize(axis);
        coordinates.set(axis, builder.getI64IntegerAttr(coordinate));
        name += (name.empty() ? "[" : ", ") + axis.str() + "=" + std::to_string(coordinate);
      }
      roles.push_back({program, coordinates.getDictionary(module.getContext()),
                       program.getSymName().str() + name + (name.empty() ? "" : "]"),
                       place ? first : -1});
    }
  }
  ScheduleProblem result;
  buildRoles(result, module, roles);
  return result;
}

Operation *ScheduleProblem::getOperation(const schedule::End &end) const {
  if (end.launch >= 0)
    return launches[end.role][end.segment][end.launch];
  if (end.buffer >= 0)
    return buffers[end.role][end.buffer];
  if (end.segment >= 0)
    return segments[end.role][end.segment];
  return programs[end.role];
}
