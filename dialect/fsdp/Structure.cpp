//===- Structure.cpp - which part of a step an op belongs to --------------===//

#include "dialect/fsdp/Structure.h"

#include "dialect/fsdp/Assembly.h"
#include "dialect/fsdp/DiscardableAttributes.h"
#include "dialect/fsdp/Names.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t mostStages = int64_t(1) << 20;
/// Of microbatches: the number where an op is of none in particular.
static constexpr int64_t noMicrobatch = -1;

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

ParseResult mlir::fsdp::parseStructure(AsmParser &parser, StructureAttr &structure) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  StringAttr unit;
  if (succeeded(parser.parseOptionalString(&name)))
    unit = StringAttr::get(parser.getContext(), name);
  Direction direction = Direction::forward;
  for (Direction each : {Direction::forward, Direction::backward, Direction::update})
    if (succeeded(parser.parseOptionalKeyword(stringifyDirection(each)))) {
      direction = each;
      break;
    }
  const bool recomputed = succeeded(parser.parseOptionalKeyword("recomputed"));
  int64_t stage = 0;
  if (succeeded(parser.parseOptionalKeyword("stage")) && parser.parseInteger(stage))
    return failure();
  int64_t microbatch = noMicrobatch;
  if (succeeded(parser.parseOptionalKeyword("microbatch")) && parser.parseInteger(microbatch))
    return failure();
  structure = StructureAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                        unit, direction, stage, recomputed, microbatch);
  return success(bool(structure));
}

void mlir::fsdp::printStructure(AsmPrinter &printer, StructureAttr structure) {
  StringRef separator;
  if (structure.getUnit()) {
    printer << structure.getUnit();
    separator = " ";
  }
  if (structure.getDirection() != Direction::forward) {
    printer << separator << stringifyDirection(structure.getDirection());
    separator = " ";
  }
  if (structure.getRecomputed()) {
    printer << separator << "recomputed";
    separator = " ";
  }
  if (structure.getStage() != 0) {
    printer << separator << "stage " << structure.getStage();
    separator = " ";
  }
  if (structure.getMicrobatch() != noMicrobatch)
    printer << separator << "microbatch " << structure.getMicrobatch();
}

Attribute StructureAttr::parse(AsmParser &parser, Type) {
  StructureAttr structure;
  if (parser.parseLess() || parseStructure(parser, structure) || parser.parseGreater())
    return {};
  return structure;
}

void StructureAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printStructure(printer, *this);
  printer << ">";
}

LogicalResult StructureAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr unit,
                                    Direction direction, int64_t stage, bool recomputed,
                                    int64_t microbatch) {
  if (unit)
    if (std::string fault = faultOfGivenName(unit.getValue()); !fault.empty())
      return emitError() << "unit " << fault;
  if (stage < 0 || stage > mostStages)
    return emitError() << "stage is " << stage << ", expected 0 to " << mostStages;
  if (recomputed && direction != Direction::backward)
    return emitError() << "a recomputed op is part of " << stringifyDirection(direction)
                       << ", expected backward";
  if (microbatch < noMicrobatch || microbatch >= kMaxMicrobatches)
    return emitError() << "microbatch is " << microbatch << ", expected 0 to "
                       << kMaxMicrobatches - 1;
  if (Structure{unit, direction, stage, recomputed, microbatch} == Structure())
    return emitError()
           << "structure has only default values (no unit, forward, stage 0); leave it out";
  return success();
}

//===----------------------------------------------------------------------===//
// The structure of ops
//===----------------------------------------------------------------------===//

Structure Structure::get(StructureAttr attribute) {
  if (!attribute)
    return {};
  return {attribute.getUnit(), attribute.getDirection(), attribute.getStage(),
          attribute.getRecomputed(), attribute.getMicrobatch()};
}

StructureAttr Structure::getAttr(MLIRContext *context) const {
  return *this == Structure()
             ? StructureAttr()
             : StructureAttr::get(context, unit, direction, stage, recomputed, microbatch);
}

Structure mlir::fsdp::getStructure(Operation *op) {
  if (auto launch = dyn_cast<LaunchOp>(op))
    return Structure::get(launch.getStructureAttr());
  return Structure::get(
      dyn_cast_or_null<StructureAttr>(op->getDiscardableAttr(FSDPDialect::structureAttrName)));
}

void mlir::fsdp::setStructure(Operation *op, Structure structure) {
  if (StructureAttr attribute = structure.getAttr(op->getContext()))
    op->setDiscardableAttr(FSDPDialect::structureAttrName, attribute);
  else
    op->removeDiscardableAttr(FSDPDialect::structureAttrName);
}

void mlir::fsdp::removeStructure(Operation *op) {
  DictionaryAttr all = op->getDiscardableAttrDictionary();
  if (all.empty())
    return;
  // At once: each removal by itself looks up a name and a dictionary, for every op of a program.
  SmallVector<NamedAttribute> others;
  for (NamedAttribute attribute : all)
    if (StringRef name = attribute.getName().getValue(); name != FSDPDialect::structureAttrName &&
                                                         name != FSDPDialect::gathersAttrName &&
                                                         name != FSDPDialect::reducesAttrName)
      others.push_back(attribute);
  if (others.size() != all.size())
    op->setDiscardableAttrs(DictionaryAttr::getWithSorted(op->getContext(), others));
}

void StructureScope::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return;
  if (!attribute)
    attribute = structure.getAttr(op->getContext());
  if (attribute && !op->getDiscardableAttr(FSDPDialect::structureAttrName))
    op->setDiscardableAttr(FSDPDialect::structureAttrName, attribute);
  for (auto [name, value] : also)
    op->setDiscardableAttr(name, value);
}

LogicalResult mlir::fsdp::detail::verifyStructure(Operation *op, NamedAttribute attribute) {
  bool isStructure = attribute.getName() == FSDPDialect::structureAttrName;
  bool fits = isStructure ? isa<StructureAttr>(attribute.getValue())
                          : isa<FlatSymbolRefAttr>(attribute.getValue());
  if (!fits)
    return op->emitOpError() << "has '" << attribute.getName().getValue() << "' "
                             << attribute.getValue() << ", expected "
                             << (isStructure ? "a '#fsdp.structure'" : "the name of a storage");
  bool computes = !isa<LaunchOp, BufferOp, SubviewOp, YieldOp, CheckpointOp>(op) &&
                  !op->hasTrait<OpTrait::ConstantLike>();
  Operation *container = op->getParentOp();
  bool stands = isa_and_nonnull<SegmentOp>(container) ||
                (isStructure && isa_and_nonnull<StepOp, CheckpointOp, ManualOp>(container));
  if (!computes || !stands)
    return op->emitOpError() << "has '" << attribute.getName().getValue()
                             << "', expected it only on computations in a "
                             << (isStructure ? "step or segment" : "segment")
                             << "; constants and the ops in a kernel have the structure of their "
                                "users, launches have 'of'";
  if (!isStructure && !getStructure(op).unit)
    return op->emitOpError() << "has '" << attribute.getName().getValue() << "' "
                             << attribute.getValue() << " without a unit; name the unit in '"
                             << FSDPDialect::structureAttrName << "'";
  return success();
}
