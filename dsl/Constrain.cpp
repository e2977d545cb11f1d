//===- Constrain.cpp - shardings that a model asks for --------------------===//

#include "dsl/ModelIR.h"
#include "dsl/Operations.h"
#include "dsl/ShardingEntries.h"

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::dsl {

/// The op of both kinds of constraints; `axes`, `open` and `priorities` are those of each
/// dimension.
static Tensor createConstraint(const char *what, const Located &input, ir::MeshOp mesh,
                               ArrayRef<ArrayAttr> axes, ArrayRef<bool> open,
                               DenseI64ArrayAttr priorities, bool isSequenceParallel) {
  auto sharding =
      ir::ShardingAttr::get(mesh.getContext(), FlatSymbolRefAttr::get(mesh), axes, open, {});
  return createOp<ir::ConstraintOp>(what, {input}, typeOf(input), valueOf(input), sharding,
                                    priorities, isSequenceParallel, ArrayAttr());
}

Tensor constrain(Located input, const std::string &sharding, int64_t priority) {
  auto fail = [&](const std::string &message) { dsl::fail("constrain", {input}, message); };
  ModelBuilder &model = builderOf(input);
  int64_t rank = typeOf(input).getRank();
  SmallVector<ShardingEntry> entries = parseShardingEntries(model.builder, sharding, rank, fail);
  if (priority < 0 || priority > ir::kLastPriority)
    fail("priority is " + std::to_string(priority) + ", expected 0 to " +
         std::to_string(ir::kLastPriority));
  SmallVector<StringAttr> used;
  SmallVector<ArrayAttr> axes;
  SmallVector<bool> open;
  SmallVector<int64_t> priorities;
  for (const ShardingEntry &entry : entries) {
    llvm::append_range(used, entry.axes);
    axes.push_back(ir::getAxisArray(&model.context, entry.axes));
    open.push_back(entry.open);
    priorities.push_back(entry.open || !entry.axes.empty() ? priority : 0);
  }
  bool plain = llvm::all_of(priorities, [](int64_t each) { return each == 0; });
  return createConstraint("constrain", input, model.meshWith(used), axes, open,
                          plain ? DenseI64ArrayAttr()
                                : model.builder.getDenseI64ArrayAttr(priorities),
                          /*isSequenceParallel=*/false);
}

Tensor sequenceParallel(Located input, int64_t dim) {
  ModelBuilder &model = builderOf(input);
  const int64_t rank = typeOf(input).getRank();
  if (dim < 0 || dim >= rank)
    fail("sequenceParallel", {input},
         "dimension is " + std::to_string(dim) + ", expected 0 to " + std::to_string(rank - 1));
  const StringAttr tensor = model.builder.getStringAttr(ir::getLayerAxis());
  SmallVector<ArrayAttr> axes(rank, ir::getAxisArray(&model.context, {}));
  axes[dim] = ir::getAxisArray(&model.context, tensor);
  // Samples may be split further; the rest of a row stays whole.
  SmallVector<bool> open(rank, false);
  for (int64_t other = 0; other < dim; ++other)
    open[other] = true;
  // After the shardings of weights, which have priority 0.
  SmallVector<int64_t> priorities(rank, 0);
  priorities[dim] = 1;
  return createConstraint("sequenceParallel", input, model.meshWith(tensor), axes, open,
                          model.builder.getDenseI64ArrayAttr(priorities),
                          /*isSequenceParallel=*/true);
}

Parameter Parameter::split(const std::string &sharding, Where where) const {
  auto fail = [&](const std::string &message) {
    throw ModelError(where, "split of parameter '" + label + "': " + message);
  };
  SmallVector<Attribute> dims;
  for (const ShardingEntry &entry :
       parseShardingEntries(model->builder, sharding, static_cast<int64_t>(sizes.size()), fail)) {
    if (entry.open)
      fail("'" + sharding + "' has '?', expected '_' or axes joined by '+'");
    dims.push_back(ir::getAxisArray(&model->context, entry.axes));
  }
  cast<ir::ParamOp>(model->symbols.lookup(label)).setSplitAttr(model->builder.getArrayAttr(dims));
  return *this;
}

} // namespace fsdp::dsl
