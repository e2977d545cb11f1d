//===- ModuleOps.cpp - verify declarations and containers -----------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/Names.h"
#include "dialect/fsdp/TensorSizes.h"
#include "dialect/nn/TensorSize.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

using fsdp::detail::verifyAxes;
using fsdp::detail::verifyParts;

/// Fails if the body of `op`, a container, has arguments: they would have no values.
static LogicalResult verifyNoArguments(Operation *op) {
  if (unsigned count = op->getRegion(0).getNumArguments())
    return op->emitOpError() << "has a body with " << count << " arguments, expected none";
  return success();
}

/// Fails where flat parameters of one unit have different placements.
static LogicalResult verifyFlatUnits(ModuleOp module) {
  llvm::StringMap<ParamOp> firstOf;
  for (ParamOp param : module.getOps<ParamOp>()) {
    PlacementAttr placement = param.getPlacementAttr();
    // Parameters without a unit are refused by their own verifiers, which may run later.
    if (!placement || placement.getKind() != StorageKind::flat || !param.getUnitAttr())
      continue;
    ParamOp first = firstOf.try_emplace(param.getUnit(), param).first->second;
    if (first.getPlacementAttr().withCompute({}) == placement.withCompute({}))
      continue;
    InFlightDiagnostic diag = first.emitOpError()
                              << "and '" << param.getSymName() << "' share the flat unit '"
                              << first.getUnit() << "' but have different placements: "
                              << first.getPlacementAttr().withCompute({}) << " and "
                              << placement.withCompute({})
                              << "; give both the same, or put them into different units";
    diag.attachNote(param.getLoc()) << "the other parameter is here";
    return diag;
  }
  return success();
}

/// Fails where `placement` does not fit the type of `param` or the mesh.
static LogicalResult verifyPlacement(ParamOp param, PlacementAttr placement) {
  RankedTensorType type = param.getTensorType();
  if (failed(verifyParts(param, placement.getAxes(), "placement names")))
    return failure();
  if (placement.getKind() == StorageKind::dimension && placement.getDim() >= type.getRank())
    return param.emitOpError() << "placement splits dimension " << placement.getDim()
                               << ", expected a dimension below " << type.getRank();
  Type element = type.getElementType();
  for (auto [leg, wire] :
       {std::pair("gathers", placement.getGather()), std::pair("reduces", placement.getReduce())})
    if (wire != element && wire.getIntOrFloatBitWidth() >= element.getIntOrFloatBitWidth())
      return param.emitOpError() << "placement " << leg << " " << wire << ", expected " << element
                                 << " or a narrower float type";
  if (Type sum = placement.getAccumulate())
    if (sum.getIntOrFloatBitWidth() >= element.getIntOrFloatBitWidth() ||
        (sum != placement.getReduce() &&
         sum.getIntOrFloatBitWidth() <= placement.getReduce().getIntOrFloatBitWidth()))
      return param.emitOpError() << "placement accumulates " << sum
                                 << ", expected a type narrower than " << element << " and "
                                 << placement.getReduce() << " or wider; leave it out for "
                                 << element;
  ShardingAttr compute = placement.getCompute();
  if (!compute)
    return success();
  if (MeshOp mesh = getMeshOp(param); mesh && compute.getMesh().getAttr() != mesh.getSymNameAttr())
    return param.emitOpError() << "placement computes on mesh '" << compute.getMesh().getValue()
                               << "', expected '" << mesh.getSymName()
                               << "', the mesh of the module";
  if (compute.getRank() != type.getRank())
    return param.emitOpError() << "placement splits " << compute.getRank()
                               << " dimensions in compute, expected " << type.getRank()
                               << " as in the type";
  SmallVector<StringAttr> axes;
  for (int64_t dim = 0; dim < compute.getRank(); ++dim)
    llvm::append_range(axes, compute.getAxes(dim));
  return verifyParts(param, axes, "placement computes over");
}

RankedTensorType ParamOp::getComputeType() {
  RankedTensorType type = getTensorType().clone(getSplitShape());
  PlacementAttr placement = getPlacementAttr();
  if (!placement || !placement.getCompute())
    return type;
  return type.clone(placement.getCompute().getLocalShape(type.getShape(), getMesh(*this)));
}

SmallVector<StringAttr> ParamOp::getComputeAxes() {
  SmallVector<StringAttr> axes;
  PlacementAttr placement = getPlacementAttr();
  if (!placement || !placement.getCompute())
    return axes;
  for (int64_t dim = 0; dim < placement.getCompute().getRank(); ++dim)
    llvm::append_range(axes, placement.getCompute().getAxes(dim));
  MeshAttr mesh = getMesh(*this);
  llvm::sort(axes, [&](StringAttr a, StringAttr b) {
    return mesh.getAxisIndex(a) < mesh.getAxisIndex(b);
  });
  return axes;
}

/// Fails unless `split` has a list of names for each dimension, without duplicates.
static LogicalResult verifySplit(ParamOp param, ArrayAttr split) {
  int64_t rank = param.getTensorType().getRank();
  if (static_cast<int64_t>(split.size()) != rank)
    return param.emitOpError() << "'split' has " << split.size()
                               << (split.size() == 1 ? " entry" : " entries") << ", expected "
                               << rank << ", one for each dimension";
  llvm::SmallDenseSet<Attribute> seen;
  for (Attribute entry : split) {
    auto axes = dyn_cast<ArrayAttr>(entry);
    if (!axes || !llvm::all_of(axes, llvm::IsaPred<StringAttr>))
      return param.emitOpError() << "'split' has the entry " << entry
                                 << ", expected a list of names of axes";
    for (auto axis : axes.getAsRange<StringAttr>()) {
      if (!seen.insert(axis).second)
        return param.emitOpError()
               << "'split' names axis " << axis << " twice; an axis splits one dimension";
      std::optional<AxisPart> part = parseAxisPart(axis);
      if (!part)
        return param.emitOpError()
               << "'split' names " << axis
               << ", expected axes such as \"tensor\" or parts such as \"tensor:(1)2\"";
      // The mesh of a model need not have the axis.
      if (hasAxis(getMesh(param), part->axis) && failed(verifyParts(param, axis, "'split' names")))
        return failure();
      for (Attribute other : seen)
        if (other != axis && overlap(cast<StringAttr>(other), axis))
          return param.emitOpError()
                 << "'split' names '"
                 << std::min(cast<StringAttr>(other).getValue(), axis.getValue()) << "' and '"
                 << std::max(cast<StringAttr>(other).getValue(), axis.getValue())
                 << "', which overlap; a part of an axis splits one dimension";
    }
  }
  return success();
}

/// Fails unless `padded` is a shape that the type of `param` fits into, with room to spare. (C10)
static LogicalResult verifyPadded(ParamOp param, ArrayRef<int64_t> padded) {
  RankedTensorType type = param.getTensorType();
  if (!param.getPlacement())
    return param.emitOpError() << "has 'padded' but no placement; 'padded' requires one";
  bool fits = padded.size() == type.getShape().size() && padded != type.getShape() &&
              llvm::all_of(llvm::zip_equal(padded, type.getShape()),
                           [](auto sizes) { return std::get<0>(sizes) >= std::get<1>(sizes); });
  if (!fits)
    return param.emitOpError() << "has 'padded' [" << padded << "], expected at least the sizes of "
                               << type << ", one of them larger";
  if (std::optional<int64_t> elements = nn::countElements(padded);
      !elements || !nn::countBytes(type.clone({*elements})))
    return param.emitOpError() << "padded to [" << padded << "] " << nn::tooLargeMessage;
  return success();
}

LogicalResult ParamOp::verify() {
  if (failed(verifyNames(*this)))
    return failure();
  // The first parameter of the module verifies the constraints among all of them.
  auto module = (*this)->getParentOfType<ModuleOp>();
  if (*module.getOps<ParamOp>().begin() == *this && failed(verifyFlatUnits(module)))
    return failure();
  if (getSymName() == reservedTensorName)
    return emitOpError() << "is called '" << reservedTensorName
                         << "', a name that is reserved in weight files; choose another";
  RankedTensorType type = getTensorType();
  if (!nn::countBytes(type))
    return emitOpError() << "'" << getSymName() << "' of type " << type << " "
                         << nn::tooLargeMessage;
  if (auto fileShape = getFileShape()) {
    std::optional<int64_t> elements = nn::countElements(*fileShape);
    if (!elements)
      return emitOpError()
             << "'file_shape' [" << *fileShape
             << "] is not a valid shape, expected sizes of at most 2^48 elements together";
    if (*elements != type.getNumElements())
      return emitOpError() << "'file_shape' has " << *elements << " elements, expected "
                           << type.getNumElements() << " as in the type";
  }
  if (ArrayAttr split = getSplitAttr(); split && failed(verifySplit(*this, split)))
    return failure();
  if (getPadded() && failed(verifyPadded(*this, *getPadded())))
    return failure();
  PlacementAttr placement = getPlacementAttr();
  if (!placement)
    return success();
  return verifyPlacement(*this, placement);
}

LogicalResult StepOp::verify() {
  if (failed(verifyNamesInside(*this)) || failed(verifyLocationsInside(*this)) ||
      failed(verifyTensorSizes(*this)))
    return failure();
  if (failed(verifyLogged(*this)))
    return failure();
  if (failed(verifyNoArguments(*this)))
    return failure();
  bool train = getKind() == StepKind::train;
  if (train && !getOptimizer())
    return emitOpError() << "of kind 'train' needs an optimizer";
  if (!train && getOptimizer())
    return emitOpError() << "of kind '" << stringifyStepKind(getKind()) << "' takes no optimizer";
  return success();
}

LogicalResult StepOp::verifySymbolUses(SymbolTableCollection &) {
  if (!getOptimizer())
    return success();
  // (C4)
  if (std::optional<base::GroupFault> fault = findFaultOf(getOptimizer()->getGroups()))
    return emitOpError() << "has an optimizer whose '" << fault->setting
                         << "' applies to nothing: " << fault->why;
  return success();
}

std::optional<base::GroupFault> StepOp::findFaultOf(const base::ParameterGroups &groups) {
  std::vector<base::GroupedName> names;
  for (ParamOp param : (*this)->getParentOfType<ModuleOp>().getOps<ParamOp>())
    names.push_back({param.getSymName().str(), !param.getFrozen()});
  return groups.findFault(names);
}

SmallVector<StringAttr> StorageOp::getSplitAxes() {
  if (getMembers().empty())
    return {};
  auto first = cast<MemberAttr>(getMembers()[0]);
  return SymbolTable::lookupNearestSymbolFrom<ParamOp>(*this, first.getParam()).getComputeAxes();
}

SmallVector<StringRef> StorageOp::getKept() {
  SmallVector<StringRef> kept;
  if (keepsShard())
    kept.push_back(parameter);
  if (getCopy())
    kept.push_back(copy);
  llvm::append_range(kept, getStates().getAsValueRange<StringAttr>());
  return kept;
}

RankedTensorType StorageOp::getKeptType(StringRef what) {
  if (!llvm::is_contained(getKept(), what))
    return nullptr;
  return getCopy() && what == copy ? getCopyType() : getShardType();
}

bool StorageOp::isOwnedBy(ProgramOp program) {
  return !getRoles() ||
         llvm::is_contained(*getRoles(), FlatSymbolRefAttr::get(program.getSymNameAttr()));
}

/// Fails unless (C6) and (C7) hold; `axes` are those that split the storage or its members.
static LogicalResult verifyRoles(StorageOp storage, ArrayRef<StringAttr> axes,
                                 SymbolTableCollection &symbols) {
  if (!storage.getRoles())
    return success();
  llvm::SmallPtrSet<Attribute, 4> named;
  for (auto symbol : storage.getRoles()->getAsRange<FlatSymbolRefAttr>()) {
    if (!symbols.lookupNearestSymbolFrom<ProgramOp>(storage, symbol))
      return storage.emitOpError()
             << "is kept by '" << symbol.getValue() << "', which is not an 'fsdp.program'";
    if (!named.insert(symbol).second)
      return storage.emitOpError() << "names role '" << symbol.getValue() << "' twice";
  }
  auto programs = storage->getParentOfType<ModuleOp>().getOps<ProgramOp>();
  const size_t all = std::distance(programs.begin(), programs.end());
  if (named.empty() || named.size() == all)
    return storage.emitOpError() << "names " << named.size() << " of " << all
                                 << " programs in 'roles', expected some of them; leave it out for "
                                    "a storage of all ranks";
  for (ProgramOp program : programs)
    for (NamedAttribute entry : program.getRole())
      if (llvm::is_contained(axes, entry.getName()))
        return storage.emitOpError()
               << "has 'roles' and is split over axis '" << entry.getName().getValue()
               << "', along which ranks have different roles; split it over other axes";
  return success();
}

/// Fails unless the copy of `storage` has the shape `members`, which holds all members.
static LogicalResult verifyCopy(StorageOp storage, ArrayRef<int64_t> members) {
  RankedTensorType copy = storage.getCopyType(), shard = storage.getShardType();
  if (!copy)
    return success();
  if (storage.getKind() == StorageKind::replicated)
    return storage.emitOpError() << "is replicated but has a copy, expected none";
  Type element = copy.getElementType();
  if (copy.getShape() != members ||
      (element != shard.getElementType() &&
       element.getIntOrFloatBitWidth() >= shard.getElementType().getIntOrFloatBitWidth()))
    return storage.emitOpError() << "has copy " << copy << ", expected "
                                 << RankedTensorType::get(members, shard.getElementType())
                                 << " or that shape in a narrower float type";
  for (StringRef state : storage.getStates().getAsValueRange<StringAttr>())
    if (state == StorageOp::copy)
      return storage.emitOpError() << "has a copy and a state '" << state << "'; rename the state";
  return success();
}

LogicalResult StorageOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyNames(*this)))
    return failure();
  RankedTensorType shard = getShardType();
  SmallVector<StringAttr> axes = getAxisNames(getAxes());
  if (failed(verifyAxes(*this, axes, "storage names")))
    return failure();
  int64_t ranks = getMesh(*this).getSize(axes);
  auto lookup = [&](MemberAttr member) {
    return symbols.lookupNearestSymbolFrom<ParamOp>(*this, member.getParam());
  };
  for (Attribute attribute : getMembers()) {
    auto member = dyn_cast<MemberAttr>(attribute);
    if (!member)
      return emitOpError() << "'members' must hold member attributes, got " << attribute;
    ParamOp param = lookup(member);
    if (!param)
      return emitOpError() << "has member '" << member.getParam().getValue()
                           << "', which is not a parameter";
    if (param.getTensorType().getElementType() != shard.getElementType())
      return emitOpError() << "has member '" << param.getSymName() << "' of element type "
                           << param.getTensorType().getElementType() << ", expected "
                           << shard.getElementType();
    ParamOp first = lookup(cast<MemberAttr>(getMembers()[0]));
    if (param.getComputeAxes() != first.getComputeAxes())
      return emitOpError()
             << "has members '" << first.getSymName() << "' and '" << param.getSymName()
             << "', which are split over different axes in compute; give them different storages";
    for (StringAttr axis : param.getComputeAxes())
      if (llvm::is_contained(axes, axis))
        return emitOpError() << "is stored over axis " << axis << ", which splits its member '"
                             << param.getSymName() << "' in compute";
    if (member.getOffset() < 0 || member.getOffset() > nn::kMaxTensorBytes)
      return emitOpError() << "has member '" << param.getSymName() << "' at " << member.getOffset()
                           << ", expected 0 to 2^48";
  }
  SmallVector<StringAttr> splitting(axes);
  llvm::append_range(splitting, getSplitAxes());
  if (failed(verifyRoles(*this, splitting, symbols)))
    return failure();
  if (getKind() == StorageKind::dimension) {
    if (getMembers().size() != 1)
      return emitOpError() << "is split along a dimension and has " << getMembers().size()
                           << " members, expected 1";
    ParamOp param = lookup(cast<MemberAttr>(getMembers()[0]));
    SmallVector<int64_t> expected(param.getComputeType().getShape());
    if (int64_t offset = cast<MemberAttr>(getMembers()[0]).getOffset())
      return emitOpError() << "is split along a dimension and has its member at " << offset
                           << ", expected 0";
    int64_t dim = getDim();
    if (dim < 0 || dim >= static_cast<int64_t>(expected.size()))
      return emitOpError() << "splits dimension " << dim << ", expected a dimension below "
                           << expected.size();
    if (failed(verifyCopy(*this, expected)))
      return failure();
    expected[dim] = llvm::divideCeil(expected[dim], ranks);
    if (shard.getShape() != ArrayRef<int64_t>(expected))
      return emitOpError() << "has shard " << shard << ", expected " << shard.clone(expected)
                           << " (dimension " << dim << " over " << ranks << " ranks)";
    return success();
  }
  if (shard.getRank() != 1)
    return emitOpError() << "of kind '" << stringifyStorageKind(getKind())
                         << "' has a shard of rank " << shard.getRank() << ", expected 1";
  if (getKind() == StorageKind::replicated && ranks != 1)
    return emitOpError() << "is replicated but split over " << ranks << " ranks, expected none";
  int64_t end = 0;
  for (Attribute attribute : getMembers()) {
    auto member = cast<MemberAttr>(attribute);
    if (member.getOffset() < end)
      return emitOpError() << "has member '" << member.getParam().getValue() << "' at "
                           << member.getOffset() << ", expected at least " << end
                           << " (the end of the previous member)";
    end = member.getOffset() + lookup(member).getComputeType().getNumElements();
  }
  int64_t capacity = shard.getNumElements() * ranks; // both are bounded, see mostRanks
  if (end > capacity)
    return emitOpError() << "members need " << end << " elements, got " << capacity << " ("
                         << shard.getNumElements() << " on each of " << ranks << " ranks)";
  return verifyCopy(*this, ArrayRef<int64_t>(end));
}

LogicalResult ProgramOp::verify() {
  if (failed(verifyNamesInside(*this)) || failed(verifyTensorSizes(*this)))
    return failure();
  if (failed(verifyNoArguments(*this)))
    return failure();
  for (Operation &op : getBody().front())
    if (!isa<BufferOp, SubviewOp, EventOp, WalkOp, SegmentOp>(op))
      return op.emitOpError()
             << "is in 'fsdp.program', which contains only buffers, events, walks and segments";
  // A buffer begins at 2^48 at most, and has as many bytes at most.
  if (getArena() && *getArena() > static_cast<uint64_t>(2 * nn::kMaxTensorBytes))
    return emitOpError() << "has an arena of " << static_cast<int64_t>(*getArena())
                         << " bytes, expected 0 to 2^49";
  MeshAttr mesh = getMesh(*this);
  for (NamedAttribute entry : getRole()) {
    auto coordinate = dyn_cast<IntegerAttr>(entry.getValue());
    int64_t size = mesh.getAxisSize(entry.getName());
    if (mesh.getAxisIndex(entry.getName()) < 0)
      return emitOpError() << "role names axis '" << entry.getName().getValue()
                           << "', which the mesh lacks";
    if (!coordinate || coordinate.getInt() < 0 || coordinate.getInt() >= size)
      return emitOpError() << "role has coordinate " << entry.getValue() << " on axis '"
                           << entry.getName().getValue() << "', expected 0 to " << size - 1;
  }
  // The first program of the module verifies the sum over all of them, and the storages.
  auto programs = (*this)->getParentOfType<ModuleOp>().getOps<ProgramOp>();
  if (*programs.begin() != *this)
    return success();
  DenseMap<StringAttr, StorageOp> storageOf;
  for (auto storage : (*this)->getParentOfType<ModuleOp>().getOps<StorageOp>())
    for (auto member : storage.getMembers().getAsRange<MemberAttr>())
      if (auto [known, isNew] = storageOf.try_emplace(member.getParam().getAttr(), storage); !isNew)
        return storage.emitOpError()
               << "has member '" << member.getParam().getValue() << "', which storage '"
               << known->second.getSymName() << "' has too; give a parameter one storage";
  int64_t covered = 0;
  for (ProgramOp program : programs) {
    int64_t part = mesh.getNumRanks();
    for (NamedAttribute entry : program.getRole())
      part /= mesh.getAxisSize(entry.getName());
    covered += part;
    for (ProgramOp other : programs) {
      if (other == program)
        break;
      bool disjoint = llvm::any_of(program.getRole(), [&](NamedAttribute entry) {
        Attribute others = other.getRole().get(entry.getName());
        return others && others != entry.getValue();
      });
      if (!disjoint)
        return program.emitOpError()
               << "covers ranks that '" << other.getSymName() << "' covers; each rank has one role";
    }
  }
  if (covered != mesh.getNumRanks())
    return emitOpError() << "and the other programs cover " << covered << " ranks, expected "
                         << mesh.getNumRanks();
  return success();
}

LogicalResult WalkOp::verify() {
  if (getSegments().empty())
    return emitOpError() << "has no segment to run";
  if (getSegments().size() != getTimes().size())
    return emitOpError() << "has " << getTimes().size() << " repetition counts, expected "
                         << getSegments().size() << ", one for each segment";
  auto program = cast<ProgramOp>((*this)->getParentOp());
  SmallVector<SegmentOp> segments;
  for (auto [attribute, times] : llvm::zip_equal(getSegments(), getTimes())) {
    auto symbol = cast<FlatSymbolRefAttr>(attribute);
    SegmentOp segment;
    for (SegmentOp candidate : program.getOps<SegmentOp>())
      if (candidate.getSymNameAttr() == symbol.getAttr())
        segment = candidate;
    if (!segment)
      return emitOpError() << "runs segment '" << symbol.getValue() << "', which program '"
                           << program.getSymName() << "' lacks";
    if (segment.getKind() != getKind())
      return emitOpError() << "runs segment '" << symbol.getValue() << "' of kind '"
                           << stringifyStepKind(segment.getKind()) << "', expected kind '"
                           << stringifyStepKind(getKind()) << "' as in the walk";
    if (times < 1 || times > kMaxMicrobatches)
      return emitOpError() << "runs segment '" << symbol.getValue() << "' " << times
                           << " times, expected 1 to " << kMaxMicrobatches;
    segments.push_back(segment);
  }
  auto follows = [&](SegmentOp from, SegmentOp to) {
    return llvm::is_contained(from.getNext(), FlatSymbolRefAttr::get(to.getSymNameAttr()));
  };
  for (size_t i = 0; i < segments.size(); ++i) {
    SegmentOp from = segments[i], to = segments[(i + 1) % segments.size()];
    if (getTimes()[i] > 1 && !follows(from, from))
      to = from;
    if (!follows(from, to))
      return emitOpError() << "runs segment '" << to.getSymName() << "' after '"
                           << from.getSymName() << "', whose 'next' does not name it";
  }
  return success();
}

LogicalResult SegmentOp::verify() {
  if (failed(verifyNoArguments(*this)))
    return failure();
  if (getNext().empty())
    return emitOpError() << "has no next segment; name the segment itself to repeat it";
  if (getDrain() && getKind() != StepKind::train)
    return emitOpError() << "is a drain of kind '" << stringifyStepKind(getKind())
                         << "', expected 'train', the kind of the steps whose updates it performs";
  auto program = cast<ProgramOp>((*this)->getParentOp());
  for (Attribute next : getNext()) {
    StringAttr name = cast<FlatSymbolRefAttr>(next).getAttr();
    if (!llvm::any_of(program.getOps<SegmentOp>(),
                      [&](SegmentOp segment) { return segment.getSymNameAttr() == name; }))
      return emitOpError() << "names next segment '" << name.getValue() << "', which program '"
                           << program.getSymName() << "' lacks";
  }
  return success();
}
