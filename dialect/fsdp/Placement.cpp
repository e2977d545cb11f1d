//===- Placement.cpp - placement and initializer attributes ---------------===//

#include "dialect/fsdp/FSDPDialect.h"

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
                       << ", which is 0 in f32; expected 0 or a number that f32 has";
  if (kind != InitKind::constant && number < 0)
    return emitError() << "'" << stringifyInitKind(kind) << "' initializer has a spread of "
                       << number << ", expected at least 0";
  return success();
}

Attribute PlacementAttr::parse(AsmParser &parser, Type) {
  StorageKind kind;
  int64_t dim = -1;
  SmallVector<StringAttr> axes;
  Type gather, reduce;
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  std::optional<StorageKind> parsedKind = symbolizeStorageKind(keyword);
  if (!parsedKind) {
    parser.emitError(loc) << "unknown storage '" << keyword
                          << "', expected flat, dimension or replicated";
    return {};
  }
  kind = *parsedKind;
  if (kind == StorageKind::dimension && parser.parseInteger(dim))
    return {};
  if (succeeded(parser.parseOptionalKeyword("over")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        std::string name;
        if (parser.parseString(&name))
          return failure();
        axes.push_back(StringAttr::get(parser.getContext(), name));
        return success();
      }))
    return {};
  if (parser.parseComma() || parser.parseKeyword("gather") || parser.parseEqual() ||
      parser.parseType(gather) || parser.parseComma() || parser.parseKeyword("reduce") ||
      parser.parseEqual() || parser.parseType(reduce) || parser.parseComma() ||
      parser.parseKeyword("reshard") || parser.parseEqual())
    return {};
  loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return {};
  std::optional<Reshard> reshard = symbolizeReshard(keyword);
  if (!reshard) {
    parser.emitError(loc) << "unknown reshard '" << keyword << "', expected always or never";
    return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PlacementAttr>(parser.getContext(), kind, dim, axes, gather, reduce,
                                          *reshard);
}

void PlacementAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyStorageKind(getKind());
  if (getKind() == StorageKind::dimension)
    printer << " " << getDim();
  if (getKind() != StorageKind::replicated) {
    printer << " over [";
    llvm::interleaveComma(getAxes(), printer);
    printer << "]";
  }
  printer << ", gather = " << getGather() << ", reduce = " << getReduce()
          << ", reshard = " << stringifyReshard(getReshard()) << ">";
}

LogicalResult PlacementAttr::verify(function_ref<InFlightDiagnostic()> emitError, StorageKind kind,
                                    int64_t dim, ArrayRef<StringAttr> axes, Type gather,
                                    Type reduce, Reshard) {
  if (kind == StorageKind::replicated && !axes.empty())
    return emitError() << "a replicated placement has no axes";
  if (kind != StorageKind::replicated && axes.empty())
    return emitError() << "a '" << stringifyStorageKind(kind)
                       << "' placement needs at least one axis; say replicated for none";
  if ((kind == StorageKind::dimension) != (dim >= 0))
    return emitError() << "a '" << stringifyStorageKind(kind) << "' placement got dimension " << dim
                       << (kind == StorageKind::dimension ? ", expected 0 or more"
                                                          : ", expected none");
  for (Type type : {gather, reduce})
    if (!type.isF32() && !type.isF64() && !type.isBF16() && !type.isF16())
      return emitError() << "gather and reduce types must be float types: got " << type
                         << ", expected f32, f64, bf16 or f16";
  return success();
}
