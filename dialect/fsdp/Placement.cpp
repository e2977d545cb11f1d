//===- Placement.cpp - placement and initializer attributes ---------------===//

#include "dialect/fsdp/AxisParts.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// Parses a floating-point number without a type.
static ParseResult parseF64(AsmParser &parser, FloatAttr &value) {
  double number;
  if (parser.parseFloat(number))
    return failure();
  value = FloatAttr::get(Float64Type::get(parser.getContext()), number);
  return success();
}

static void printF64(AsmPrinter &printer, FloatAttr value) { printer.printFloat(value.getValue()); }

#define GET_ATTRDEF_CLASSES
#include "dialect/fsdp/FSDPAttrs.cpp.inc"

void FSDPDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/fsdp/FSDPAttrs.cpp.inc"
      >();
}

LogicalResult InitAttr::verify(function_ref<InFlightDiagnostic()> emitError, InitKind kind,
                               FloatAttr value) {
  double number = value.getValueAsDouble();
  float used = static_cast<float>(number); // parameters are stored in f32
  if (!std::isfinite(used))
    return emitError() << "initial value is " << number << ", expected a finite f32 number";
  if (number != 0 && used == 0)
    return emitError() << "initial value is " << number
                       << ", which is 0 in f32; expected 0 or a number that f32 can represent";
  if (kind != InitKind::constant && number < 0)
    return emitError() << "'" << stringifyInitKind(kind) << "' initializer has a spread of "
                       << number << ", expected at least 0";
  return success();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

static ParseResult parseAxisNames(AsmParser &parser, SmallVectorImpl<StringAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  });
}

static void printAxisNames(AsmPrinter &printer, ArrayRef<StringAttr> axes) {
  printer << "[";
  llvm::interleaveComma(axes, printer);
  printer << "]";
}

/// Parses `flat over ["fsdp"]`, without the angle brackets, from `keyword` on.
static LayoutAttr parseLayout(AsmParser &parser, SMLoc loc, StringRef keyword) {
  std::optional<StorageKind> kind = symbolizeStorageKind(keyword);
  if (!kind) {
    parser.emitError(loc) << "unknown storage '" << keyword
                          << "', expected flat, dimension or replicated";
    return {};
  }
  int64_t dim = -1;
  if (*kind == StorageKind::dimension && parser.parseInteger(dim))
    return {};
  SmallVector<StringAttr> axes;
  if (succeeded(parser.parseOptionalKeyword("over")) && parseAxisNames(parser, axes))
    return {};
  return parser.getChecked<LayoutAttr>(parser.getContext(), *kind, dim, axes);
}

static LayoutAttr parseLayout(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return {};
  return parseLayout(parser, loc, keyword);
}

static void printLayout(AsmPrinter &printer, LayoutAttr layout) {
  printer << stringifyStorageKind(layout.getKind());
  if (layout.getKind() == StorageKind::dimension)
    printer << " " << layout.getDim();
  if (layout.getKind() != StorageKind::replicated) {
    printer << " over ";
    printAxisNames(printer, layout.getAxes());
  }
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  LayoutAttr layout = parseLayout(parser);
  return layout && succeeded(parser.parseGreater()) ? layout : LayoutAttr();
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printLayout(printer, *this);
  printer << ">";
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, StorageKind kind,
                                 int64_t dim, ArrayRef<StringAttr> axes) {
  if (kind == StorageKind::replicated && !axes.empty())
    return emitError() << "a replicated placement has no axes";
  if (kind != StorageKind::replicated && axes.empty())
    return emitError() << "a '" << stringifyStorageKind(kind)
                       << "' placement needs at least one axis; use replicated for none";
  if ((kind == StorageKind::dimension) != (dim >= 0))
    return emitError() << "a '" << stringifyStorageKind(kind) << "' placement got dimension " << dim
                       << (kind == StorageKind::dimension ? ", expected 0 or more"
                                                          : ", expected none");
  return success();
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

PlacementAttr PlacementAttr::withPrecision(Type gather, Type reduce) const {
  return get(getContext(), getParameter(), getGradient(), getState(), gather, reduce,
             getAccumulate(), getReshard(), getReshardAxes(), getCompute());
}

PlacementAttr PlacementAttr::withReshard(Reshard reshard, ArrayRef<StringAttr> axes) const {
  return get(getContext(), getParameter(), getGradient(), getState(), getGather(), getReduce(),
             getAccumulate(), reshard, axes, getCompute());
}

PlacementAttr PlacementAttr::withCompute(ShardingAttr compute) const {
  return get(getContext(), getParameter(), getGradient(), getState(), getGather(), getReduce(),
             getAccumulate(), getReshard(), getReshardAxes(), compute);
}

/// Parses `, NAME = ` of a required part.
static ParseResult parseName(AsmParser &parser, StringRef name) {
  return failure(parser.parseComma() || parser.parseKeyword(name) || parser.parseEqual());
}

Attribute PlacementAttr::parse(AsmParser &parser, Type) {
  LayoutAttr parameter, gradient, state;
  StringRef keyword;
  if (parser.parseLess())
    return {};
  SMLoc start = parser.getCurrentLocation(), loc = start;
  if (parser.parseKeyword(&keyword))
    return {};
  if (keyword == "parameter") {
    if (!(parameter = parseLayout(parser)) || parser.parseComma() ||
        parser.parseKeyword("gradient") || !(gradient = parseLayout(parser)) ||
        parser.parseComma() || parser.parseKeyword("state") || !(state = parseLayout(parser)))
      return {};
    if (parameter == state && gradient == state) {
      parser.emitError(start) << "parameter, gradient and state have the same layout; give it once";
      return {};
    }
  } else if (!(parameter = gradient = state = parseLayout(parser, loc, keyword))) {
    return {};
  }
  Type gather, reduce, accumulate;
  if (parseName(parser, "gather") || parser.parseType(gather) || parseName(parser, "reduce") ||
      parser.parseType(reduce) || parser.parseComma())
    return {};
  if (succeeded(parser.parseOptionalKeyword("accumulate")))
    if (parser.parseEqual() || parser.parseType(accumulate) || parser.parseComma())
      return {};
  if (parser.parseKeyword("reshard") || parser.parseEqual())
    return {};
  loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return {};
  std::optional<Reshard> reshard = symbolizeReshard(keyword);
  if (!reshard) {
    parser.emitError(loc) << "unknown reshard '" << keyword << "', expected always, never or axes";
    return {};
  }
  SmallVector<StringAttr> kept;
  if (*reshard == Reshard::axes && parseAxisNames(parser, kept))
    return {};
  ShardingAttr compute;
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("compute") || parser.parseEqual())
      return {};
    compute = dyn_cast_or_null<ShardingAttr>(ShardingAttr::parse(parser, Type()));
    if (!compute)
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PlacementAttr>(parser.getContext(), parameter, gradient, state, gather,
                                          reduce, accumulate, *reshard, kept, compute);
}

void PlacementAttr::print(AsmPrinter &printer) const {
  printer << "<";
  if (getParameter() != getState() || getGradient() != getState()) {
    printer << "parameter ";
    printLayout(printer, getParameter());
    printer << ", gradient ";
    printLayout(printer, getGradient());
    printer << ", state ";
  }
  printLayout(printer, getState());
  printer << ", gather = " << getGather() << ", reduce = " << getReduce();
  if (getAccumulate())
    printer << ", accumulate = " << getAccumulate();
  printer << ", reshard = " << stringifyReshard(getReshard());
  if (getReshard() == Reshard::axes) {
    printer << " ";
    printAxisNames(printer, getReshardAxes());
  }
  if (getCompute()) {
    printer << ", compute = ";
    getCompute().print(printer);
  }
  printer << ">";
}

LogicalResult PlacementAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                    LayoutAttr parameter, LayoutAttr gradient, LayoutAttr state,
                                    Type gather, Type reduce, Type accumulate, Reshard reshard,
                                    ArrayRef<StringAttr> reshardAxes, ShardingAttr compute) {
  for (auto [what, layout] : {std::pair("parameter", parameter), std::pair("gradient", gradient)})
    if (layout != state && layout.getKind() != StorageKind::replicated)
      return emitError() << "the " << what << " is stored as " << layout
                         << ", expected replicated or " << state << " as for the state";
  for (Type type : {gather, reduce, accumulate})
    if (type && !type.isF32() && !type.isF64() && !type.isBF16() && !type.isF16())
      return emitError() << "gather, reduce and accumulate types must be float types: got " << type
                         << ", expected f32, f64, bf16 or f16";
  if ((reshard == Reshard::axes) == reshardAxes.empty())
    return emitError() << "reshard = " << stringifyReshard(reshard) << " has " << reshardAxes.size()
                       << " axes, expected "
                       << (reshardAxes.empty() ? "at least one; use never for none"
                                               : "none; use reshard = axes [...]");
  if (reshard == Reshard::axes) {
    ArrayRef<StringAttr> stored = parameter.getAxes();
    if (reshardAxes.size() >= stored.size() ||
        stored.take_front(reshardAxes.size()) != reshardAxes) {
      InFlightDiagnostic diag = emitError() << "reshard keeps the part over [";
      llvm::interleaveComma(reshardAxes, diag);
      return diag << "] of a parameter that is " << parameter
                  << ", expected some but not all of its leading axes";
    }
  }
  if (!compute)
    return success();
  if (!compute.getUnreduced().empty())
    return emitError() << "a parameter cannot be a partial sum: got compute = " << compute
                       << ", expected a sharding without 'unreduced'";
  for (ArrayAttr axes : compute.getDimAxes())
    for (auto axis : axes.getAsRange<StringAttr>())
      if (llvm::any_of(state.getAxes(), [&](StringAttr stored) { return overlap(stored, axis); }))
        return emitError()
               << "axis " << axis
               << " splits the parameter both in compute and in storage; use it for one of them";
  return success();
}
