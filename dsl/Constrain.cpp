//===- Constrain.cpp - shardings that a model asks for --------------------===//

#include "dsl/ModelIR.h"
#include "dsl/Operations.h"

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::dsl {

namespace {
/// The request of one entry of a specification.
struct Entry {
  SmallVector<StringAttr> axes;
  bool open = false;
};
} // namespace

/// The mesh of `module`, with each of `axes` added with size 1 until the compiler gets a mesh.
static ir::MeshOp meshWith(ModelBuilder &model, ArrayRef<StringAttr> axes) {
  ModuleOp module = *model.module;
  ir::MeshOp mesh = ir::getMeshOp(module);
  SmallVector<StringAttr> names = {model.builder.getStringAttr(ir::getStorageAxis())};
  SmallVector<int64_t> sizes = {1};
  if (mesh) {
    names.assign(mesh.getMesh().getAxisNames().begin(), mesh.getMesh().getAxisNames().end());
    sizes.assign(mesh.getMesh().getAxisSizes().begin(), mesh.getMesh().getAxisSizes().end());
  }
  for (StringAttr axis : axes)
    if (StringAttr whole = model.builder.getStringAttr(ir::axisOf(axis));
        !llvm::is_contained(names, whole)) {
      names.push_back(whole);
      sizes.push_back(1);
    }
  auto attr = ir::MeshAttr::get(&model.context, names, sizes, ArrayRef<int64_t>());
  if (mesh) {
    mesh.setMeshAttr(attr);
    return mesh;
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  mesh = ir::MeshOp::create(builder, builder.getUnknownLoc(), "mesh", attr);
  model.symbols.insert(mesh);
  return mesh;
}

/// The entries of `sharding` for a value of this rank; calls `fail`, which throws, with a
/// description of the error.
static SmallVector<Entry> parseEntries(Builder &builder, const std::string &sharding, int64_t rank,
                                       llvm::function_ref<void(const std::string &)> fail) {
  SmallVector<StringRef> parts;
  StringRef(sharding).split(parts, ',');
  if (rank == 0 || static_cast<int64_t>(parts.size()) != rank)
    fail("'" + sharding + "' has " + std::to_string(parts.size()) +
         (parts.size() == 1 ? " entry" : " entries") + ", expected " + std::to_string(rank) +
         ", one for each dimension ('_' for an unsharded one)");
  SmallVector<Entry> entries;
  SmallVector<StringAttr> used;
  for (StringRef part : parts) {
    Entry &entry = entries.emplace_back();
    SmallVector<StringRef> axes;
    part.trim().split(axes, '+');
    for (StringRef axis : axes) {
      if (axis == "_" && axes.size() == 1)
        continue;
      if (axis == "?" && axis.data() == axes.back().data()) {
        entry.open = true;
        continue;
      }
      if (!ir::parseAxisPart(axis)) {
        const auto *other = llvm::find_if(axis, [](char c) {
          return !llvm::isAlnum(c) && c != '_' && !llvm::is_contained("?:()", c);
        });
        fail("'" + sharding + "' has '" + part.str() +
             "', expected '_', or axes joined by '+' and followed by '?' if more may be added" +
             (other == axis.end()
                  ? std::string("; a part of an axis is written as tensor:(1)2")
                  : std::string("; names of axes are letters, digits and '_', and have no '") +
                        *other + "'"));
      }
      StringAttr name = builder.getStringAttr(axis);
      if (llvm::is_contained(used, name))
        fail("'" + sharding + "' names axis '" + axis.str() +
             "' twice; an axis splits one dimension");
      for (StringAttr other : used)
        if (ir::overlap(other, axis))
          fail("'" + sharding + "' names '" + other.str() + "' and '" + axis.str() +
               "', which overlap; a part of an axis splits one dimension");
      used.push_back(name);
      entry.axes.push_back(name);
    }
  }
  return entries;
}

Tensor constrain(Located input, const std::string &sharding, int64_t priority) {
  auto fail = [&](const std::string &message) {
    ModelBuilder::fail("constrain", {input.tensor}, input.where, message);
  };
  ModelBuilder &model = builderOf(input.tensor);
  int64_t rank = typeOf(input.tensor).getRank();
  SmallVector<Entry> entries = parseEntries(model.builder, sharding, rank, fail);
  SmallVector<StringAttr> used;
  for (const Entry &entry : entries)
    llvm::append_range(used, entry.axes);
  if (priority < 0 || priority > ir::kLastPriority)
    fail("priority is " + std::to_string(priority) + ", expected 0 to " +
         std::to_string(ir::kLastPriority));
  ir::MeshOp mesh = meshWith(model, used);
  return model.create(
      "constrain", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        SmallVector<ArrayAttr> axes;
        SmallVector<bool> open;
        SmallVector<int64_t> priorities;
        for (const Entry &entry : entries) {
          axes.push_back(ir::getAxisArray(&model.context, entry.axes));
          open.push_back(entry.open);
          priorities.push_back(entry.open || !entry.axes.empty() ? priority : 0);
        }
        bool plain = llvm::all_of(priorities, [](int64_t each) { return each == 0; });
        auto attr =
            ir::ShardingAttr::get(&model.context, FlatSymbolRefAttr::get(mesh), axes, open, {});
        return ir::ConstraintOp::create(
            builder, loc, valueOf(input.tensor).getType(), valueOf(input.tensor), attr,
            plain ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(priorities));
      });
}

Tensor sequenceParallel(Located input, int64_t dim) {
  ModelBuilder &model = builderOf(input.tensor);
  const int64_t rank = typeOf(input.tensor).getRank();
  if (dim < 0 || dim >= rank)
    ModelBuilder::fail("sequenceParallel", {input.tensor}, input.where,
                       "dimension is " + std::to_string(dim) + ", expected 0 to " +
                           std::to_string(rank - 1));
  const StringAttr tensor = model.builder.getStringAttr("tensor");
  ir::MeshOp mesh = meshWith(model, tensor);
  SmallVector<ArrayAttr> axes(rank, ir::getAxisArray(&model.context, {}));
  axes[dim] = ir::getAxisArray(&model.context, tensor);
  // Samples may be split further; the rest of a row stays whole.
  SmallVector<bool> open(rank, false);
  for (int64_t other = 0; other < dim; ++other)
    open[other] = true;
  // After the shardings of weights, which have priority 0.
  SmallVector<int64_t> priorities(rank, 0);
  priorities[dim] = 1;
  return model.create("sequenceParallel", {input.tensor}, input.where,
                      [&](OpBuilder &builder, Location loc) -> Value {
                        auto sharding = ir::ShardingAttr::get(
                            &model.context, FlatSymbolRefAttr::get(mesh), axes, open, {});
                        return ir::ConstraintOp::create(
                            builder, loc, valueOf(input.tensor).getType(), valueOf(input.tensor),
                            sharding, builder.getDenseI64ArrayAttr(priorities),
                            /*sequence_parallel=*/true);
                      });
}

Parameter Parameter::split(const std::string &sharding, Where where) const {
  auto fail = [&](const std::string &message) {
    throw ModelError(where, "split of parameter '" + label + "': " + message);
  };
  SmallVector<Attribute> dims;
  for (const Entry &entry :
       parseEntries(model->builder, sharding, static_cast<int64_t>(sizes.size()), fail)) {
    if (entry.open)
      fail("'" + sharding + "' has '?', expected '_' or axes joined by '+'");
    dims.push_back(ir::getAxisArray(&model->context, entry.axes));
  }
  cast<ir::ParamOp>(model->symbols.lookup(label)).setSplitAttr(model->builder.getArrayAttr(dims));
  return *this;
}

} // namespace fsdp::dsl
