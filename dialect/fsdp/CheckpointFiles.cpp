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
                             << ", expected a dictionary of names and texts on a module";
  for (NamedAttribute file : named) {
    if (!isCheckpointFileName(file.getName()))
      return op->emitOpError()
             << "has a file '" << file.getName().getValue() << "' for checkpoints, expected "
             << "a name without '/' that begins with no '.', and none of a checkpoint's own: "
             << "'manifest.json' and '*.safetensors'";
    if (!isa<StringAttr>(file.getValue()))
      return op->emitOpError() << "has the file '" << file.getName().getValue()
                               << "' for checkpoints as " << file.getValue() << ", expected a text";
  }
  return success();
}
