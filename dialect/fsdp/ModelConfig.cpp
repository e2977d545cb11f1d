//===- ModelConfig.cpp ----------------------------------------------------===//

#include "dialect/fsdp/ModelConfig.h"

#include "dialect/fsdp/CheckpointFiles.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The error in an entry; empty if it is valid.
static std::string faultOf(DictionaryAttr entry) {
  for (NamedAttribute field : entry) {
    auto text = dyn_cast<StringAttr>(field.getValue());
    StringRef name = field.getName();
    if (!text)
      return "expected a string for '" + name.str() + "'";
    if (name == configNamesKey || name == configOptionKey)
      continue;
    if (name != configValueKey && name != configImpliedKey && name != configSameKey)
      return "got '" + name.str() + "', expected 'names', 'value', 'implied', 'same' and 'option'";
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text.getValue());
    if (!value) {
      llvm::consumeError(value.takeError());
      return "got '" + name.str() + "' \"" + text.getValue().str() + "\", expected JSON";
    }
    if (name == configSameKey && !value->getAsArray())
      return "got 'same' \"" + text.getValue().str() + "\", expected a list";
  }
  for (StringRef name : {StringRef(configNamesKey), StringRef(configValueKey)})
    if (auto text = entry.getAs<StringAttr>(name); !text || text.empty())
      return "expected '" + name.str() + "'";
  return "";
}

LogicalResult mlir::fsdp::detail::verifyModelConfig(Operation *op, Attribute config) {
  auto fields = dyn_cast<DictionaryAttr>(config);
  auto file = fields ? fields.getAs<StringAttr>(configFileKey) : StringAttr();
  auto entries = fields ? fields.getAs<ArrayAttr>(configEntriesKey) : ArrayAttr();
  if (!isa<ModuleOp>(op) || !file || !entries || fields.size() != 2 || !isCheckpointFileName(file))
    return op->emitOpError()
           << "has '" << modelConfigAttrName << "' " << config
           << ", expected the name of a file and a list of its entries on a module";
  for (Attribute entry : entries) {
    auto named = dyn_cast<DictionaryAttr>(entry);
    if (std::string fault = named ? faultOf(named) : "expected a dictionary"; !fault.empty())
      return op->emitOpError() << "has the entry " << entry << " of '" << file.getValue()
                               << "': " << fault;
  }
  return success();
}
