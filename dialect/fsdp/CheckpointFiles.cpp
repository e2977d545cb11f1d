//===- CheckpointFiles.cpp ------------------------------------------------===//

#include "dialect/fsdp/CheckpointFiles.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::fsdp;

bool mlir::fsdp::isCheckpointFileName(StringRef name) {
  return !name.empty() && name.size() <= 200 && !name.starts_with(".") && !name.contains('/') &&
         !name.contains('\0') && !name.starts_with("manifest.json") &&
         !name.ends_with(".safetensors");
}

LogicalResult mlir::fsdp::detail::verifyCheckpointFiles(Operation *op, Attribute files) {
  auto named = dyn_cast<DictionaryAttr>(files);
  if (!isa<ModuleOp>(op) || !named)
    return op->emitOpError() << "has '" << checkpointFilesAttrName << "' " << files
                             << ", expected a dictionary from names to strings on a module";
  for (NamedAttribute file : named) {
    if (!isCheckpointFileName(file.getName()))
      return op->emitOpError() << "has checkpoint file '" << file.getName().getValue()
                               << "', expected "
                               << "a name without '/' that does not begin with '.' and is neither "
                               << "'manifest.json' nor '*.safetensors'";
    if (!isa<StringAttr>(file.getValue()))
      return op->emitOpError() << "has checkpoint file '" << file.getName().getValue()
                               << "' with content " << file.getValue() << ", expected a string";
  }
  return success();
}
