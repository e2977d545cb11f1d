//===- ModelDigest.cpp ----------------------------------------------------===//

#include "dialect/fsdp/ModelDigest.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// "v1:9d2f0c1e8a7b6543"
static bool isDigest(StringRef text) {
  auto [version, digits] = text.split(':');
  return version.consume_front("v") && !version.empty() && version.size() <= 4 &&
         llvm::all_of(version, llvm::isDigit) && digits.size() == 16 &&
         llvm::all_of(digits, [](char c) { return llvm::isHexDigit(c) && !llvm::isUpper(c); });
}

LogicalResult mlir::fsdp::detail::verifyModelDigest(Operation *op, Attribute digest) {
  auto text = dyn_cast<StringAttr>(digest);
  if (isa<ModuleOp>(op) && text && isDigest(text))
    return success();
  return op->emitOpError()
         << "has '" << modelDigestAttrName << "' " << digest
         << ", expected \"v\", a version, ':' and 16 hexadecimal digits on a module";
}
