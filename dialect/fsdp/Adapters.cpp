//===- Adapters.cpp -------------------------------------------------------===//

#include "dialect/fsdp/Adapters.h"

#include "dialect/fsdp/CheckpointFiles.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The file shape of the parameter that the field `key` names; nothing if there is no such
/// parameter or its rank is not two.
static std::optional<std::pair<int64_t, int64_t>> matrixOf(Operation *module, DictionaryAttr fields,
                                                           StringRef key) {
  auto name = fields.getAs<StringAttr>(key);
  Operation *param = name ? SymbolTable::lookupSymbolIn(module, name) : nullptr;
  auto type = param ? param->getAttrOfType<TypeAttr>("type") : TypeAttr(); // as fsdp.param has it
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (!tensor)
    return std::nullopt;
  auto inFile = param->getAttrOfType<DenseI64ArrayAttr>("file_shape");
  ArrayRef<int64_t> shape = inFile ? inFile.asArrayRef() : tensor.getShape();
  if (shape.size() != 2)
    return std::nullopt;
  return std::pair(shape[0], shape[1]);
}

/// Whether `fields` are the fields of a product, and the shapes fit.
static bool isProduct(Operation *module, Attribute product) {
  auto fields = dyn_cast<DictionaryAttr>(product);
  if (!fields || fields.size() != 5)
    return false;
  auto scale = fields.getAs<FloatAttr>(adapterScaleKey);
  auto transposed = fields.getAs<BoolAttr>(adapterTransposedKey);
  auto weight = matrixOf(module, fields, adapterWeightKey);
  auto down = matrixOf(module, fields, adapterDownKey), up = matrixOf(module, fields, adapterUpKey);
  if (!scale || !scale.getType().isF64() || !scale.getValue().isFinite() || !transposed ||
      !weight || !down || !up || down->first != up->second)
    return false;
  std::pair<int64_t, int64_t> sum(up->first, down->second);
  if (transposed.getValue())
    std::swap(sum.first, sum.second);
  return *weight == sum;
}

LogicalResult mlir::fsdp::detail::verifyAdapters(Operation *op, Attribute adapters) {
  auto fields = dyn_cast<DictionaryAttr>(adapters);
  auto file = fields ? fields.getAs<StringAttr>(adapterFileKey) : StringAttr();
  auto text = fields ? fields.getAs<StringAttr>(adapterTextKey) : StringAttr();
  auto products = fields ? fields.getAs<ArrayAttr>(adapterProductsKey) : ArrayAttr();
  if (!isa<ModuleOp>(op) || !file || !text || !products || fields.size() != 3 ||
      !isCheckpointFileName(file))
    return op->emitOpError() << "has '" << adaptersAttrName << "' " << adapters
                             << ", expected the name of a file, its text and a list of products on "
                                "a module";
  for (Attribute product : products)
    if (!isProduct(op, product))
      return op->emitOpError() << "has the adapter " << product
                               << ", expected the names of parameters 'weight', 'down' and 'up', "
                                  "matrices in files, of which 'up' times 'down' has the shape of "
                                  "'weight', a finite 'scale' in f64 and a boolean 'transposed'";
  return success();
}
