//===- Manual.cpp - parts of a model in the terms of one rank -------------===//

#include "frontend/ModelBuilder.h"

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/ModelWords.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::frontend {

ir::MeshOp ModelBuilder::meshWith(ArrayRef<StringAttr> axes, bool isSized) {
  ir::MeshOp mesh = ir::getMeshOp(*module);
  SmallVector<StringAttr> names = {builder.getStringAttr(ir::getStorageAxis())};
  SmallVector<int64_t> sizes = {1};
  if (mesh) {
    names.assign(mesh.getMesh().getAxisNames().begin(), mesh.getMesh().getAxisNames().end());
    sizes.assign(mesh.getMesh().getAxisSizes().begin(), mesh.getMesh().getAxisSizes().end());
  }
  for (StringAttr axis : axes) {
    StringAttr whole = builder.getStringAttr(ir::axisOf(axis));
    if (!llvm::is_contained(names, whole)) {
      names.push_back(whole);
      sizes.push_back(1);
    }
    if (isSized)
      sizes[llvm::find(names, whole) - names.begin()] = axisSize(whole.str());
  }
  auto attr = ir::MeshAttr::get(&context, names, sizes, ArrayRef<int64_t>());
  if (mesh) {
    mesh.setMeshAttr(attr);
    return mesh;
  }
  OpBuilder first = OpBuilder::atBlockBegin(module->getBody());
  mesh = ir::MeshOp::create(first, first.getUnknownLoc(), "mesh", attr);
  symbols.insert(mesh);
  return mesh;
}

int64_t ModelBuilder::axisSize(const std::string &axis) const {
  for (const auto &[name, size] : meshAxes)
    if (name == axis)
      return size;
  return 1;
}

ModelValue ModelBuilder::axisIndex(ArrayAttr over, Where where) {
  if (!openRegion())
    throw ModelError(where,
                     "axisIndex: the index of a rank exists in a manual region only; call it "
                     "in the function of one");
  Value index = ir::AxisIndexOp::create(builder, location("axisIndex", where), over);
  check([&] { return index.getDefiningOp<ir::AxisIndexOp>().verify(); }, "axisIndex", where);
  return wrap(index, "axisIndex", Origin());
}

void ModelBuilder::verifyManual(ir::ManualOp region, Where where) {
  std::string message, operation;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    auto name = dyn_cast<NameLoc>(diagnostic.getLocation());
    if (message.empty() && name && diagnostic.getLocation() != region.getLoc())
      operation = ", in which '" + name.getName().str() + "'";
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  if (failed(mlir::verify(region)))
    throw ModelError(where, "the manual region" + (operation.empty() ? ":" : operation) + " " +
                                ir::inWordsOfModel(message, &context));
}

std::vector<ModelValue>
ModelBuilder::manual(ArrayRef<ModelValue> inputs, ArrayRef<ir::ShardingAttr> in, ArrayAttr over,
                     llvm::function_ref<ManualResults(ArrayRef<ModelValue>)> function,
                     Where where) {
  OpBuilder::InsertionGuard guard(builder);
  ir::MeshAttr mesh = ir::getMesh(*module);
  SmallVector<Value> operands;
  Origin origin;
  for (const ModelValue &input : inputs) {
    if (input.model != this)
      throw ModelError(where, "the manual region takes '" + input.label + "' of another model");
    requireVisible("the manual region", input, where);
    operands.push_back(frontend::valueOf(input));
    if (origin.path.empty())
      origin = input.origin;
  }
  auto shardings = [&](ArrayRef<ir::ShardingAttr> list) {
    return builder.getArrayAttr(SmallVector<Attribute>(list.begin(), list.end()));
  };
  // The types and shardings of the results are known once the function has run.
  Location loc = location("manual", where);
  auto open = ir::ManualOp::create(builder, loc, TypeRange(), operands, over, shardings(in),
                                   builder.getArrayAttr({}));
  Block &body = open.getBody().emplaceBlock();
  std::vector<ModelValue> parts;
  for (auto [input, sharding] : llvm::zip_equal(inputs, in)) {
    RankedTensorType whole = frontend::typeOf(input);
    SmallVector<int64_t> shape(whole.getShape());
    for (auto [dim, size] : llvm::enumerate(shape)) {
      const int64_t ranks = mesh.getSize(sharding.getAxes(static_cast<int64_t>(dim)));
      if (size % ranks != 0)
        throw ModelError(where, "the manual region splits dimension " + std::to_string(dim) +
                                    " of '" + input.label + "', of size " + std::to_string(size) +
                                    ", over " + std::to_string(ranks) +
                                    " ranks, expected a multiple; pad it, or use a mesh that "
                                    "divides it");
      size /= ranks;
    }
    Value argument = body.addArgument(whole.clone(shape), frontend::valueOf(input).getLoc());
    parts.push_back(wrap(argument, input.label, input.origin));
  }
  builder.setInsertionPointToStart(&body);
  ManualResults results = function(parts);
  SmallVector<Value> yielded;
  SmallVector<Type> types;
  for (auto [index, result, sharding] : llvm::enumerate(results.values, results.shardings)) {
    if (!result.model)
      throw ModelError(where, "the manual region returns a tensor that holds no value");
    if (result.model != this)
      throw ModelError(where, "the manual region returns '" + result.label + "' of another model");
    requireVisible("the manual region", result, where);
    RankedTensorType part = frontend::typeOf(result);
    SmallVector<int64_t> shape(part.getShape());
    for (auto [dim, size] : llvm::enumerate(shape))
      size *= mesh.getSize(sharding.getAxes(static_cast<int64_t>(dim)));
    checkedType("result '" + result.label + "' of the manual region",
                Shape(shape.begin(), shape.end()), part.getElementType(), where);
    yielded.push_back(frontend::valueOf(result));
    types.push_back(part.clone(shape));
  }
  if (yielded.empty())
    throw ModelError(where, "the manual region returns no tensor; return the tensors used outside");
  ir::YieldOp::create(builder, loc, yielded);
  builder.setInsertionPoint(open);
  auto region = ir::ManualOp::create(builder, loc, types, operands, over, shardings(in),
                                     shardings(results.shardings));
  region.getBody().takeBody(open.getBody());
  open.erase();
  ir::setStructure(region, structureOf(origin));
  verifyManual(region, where);
  std::vector<ModelValue> wholes;
  for (auto [result, value] : llvm::zip_equal(results.values, region.getResults()))
    wholes.push_back(wrap(value, result.label, result.origin));
  return wholes;
}

} // namespace fsdp::frontend
