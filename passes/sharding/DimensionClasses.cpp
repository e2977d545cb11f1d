//===- DimensionClasses.cpp - dimensions that are as long as one another ---===//

#include "passes/sharding/DimensionClasses.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

unsigned DimensionClasses::addTensor(RankedTensorType type) {
  unsigned first = dims.size();
  for (int64_t size : type.getShape())
    dims.emplace_back().size = size;
  equal.grow(dims.size());
  return first;
}

void DimensionClasses::joinTensors(Value value, StringAttr param) {
  for (int64_t dim = 0; dim < rankOf(value); ++dim)
    equal.join(params.lookup(param) + dim, values.lookup(value) + dim);
}

void DimensionClasses::refuse(unsigned dim, Operation *op, StringRef need) {
  if (dims[dim].obstacle)
    return;
  dims[dim].obstacle = op;
  dims[dim].need = need;
}

//===----------------------------------------------------------------------===//
// Classes from ops
//===----------------------------------------------------------------------===//

void DimensionClasses::addUse(Operation *op, const nn::ShardingRule &rule, Value value,
                              const nn::TensorFactors &tensor,
                              SmallVectorImpl<int64_t> &dimOfFactor) {
  const unsigned first = values.lookup(value);
  for (int64_t dim = 0; dim < rankOf(value); ++dim) {
    if (static_cast<int64_t>(tensor.size()) != rankOf(value) || tensor[dim].empty()) {
      refuse(first + dim, op, "needs all of it");
      continue;
    }
    if (tensor[dim].size() > 1) {
      refuse(first + dim, op, "merges it with another dimension");
      continue;
    }
    const int64_t factor = tensor[dim].front();
    const nn::Factor &info = rule.factors[factor];
    if (info.kind == nn::FactorKind::whole)
      refuse(first + dim, op, "needs all of it");
    dims[first + dim].indexed |= info.indexed;
    if (dimOfFactor[factor] < 0)
      dimOfFactor[factor] = first + dim;
    else
      equal.join(dimOfFactor[factor], first + dim);
  }
}

void DimensionClasses::addRule(Operation *op) {
  const nn::ShardingRule &rule = *rules.get(op);
  SmallVector<int64_t> dimOfFactor(rule.factors.size(), -1);
  // A factor that is merged with others in one tensor may be a dimension of another.
  llvm::SmallBitVector merged(rule.factors.size());
  rule.forEachTensor(op, [&](Value value, const nn::TensorFactors &tensor) {
    for (const nn::DimFactors &dim : tensor)
      if (dim.size() > 1)
        for (int64_t factor : dim)
          merged.set(factor);
    addUse(op, rule, value, tensor, dimOfFactor);
  });
  for (auto [factor, dim] : llvm::enumerate(dimOfFactor)) {
    if (dim < 0)
      continue;
    if (merged[factor])
      refuse(dim, op, "merges it with another dimension");
    else if (isa<DropoutOp>(op))
      refuse(dim, op, "draws by the position along it");
  }
}

void DimensionClasses::add(Operation *op) {
  for (Value result : op->getResults())
    if (auto type = dyn_cast<RankedTensorType>(result.getType()))
      values[result] = addTensor(type);
  // The parts of a value; microbatches are not on different ranks.
  if (auto shardings = op->getAttrOfType<ArrayAttr>(FSDPDialect::shardingsAttrName)) {
    MeshAttr mesh = getMesh(op);
    for (auto [result, attr] : llvm::zip(op->getResults(), shardings))
      if (auto sharding = dyn_cast<ShardingAttr>(attr);
          sharding && sharding.getRank() == rankOf(result))
        for (int64_t dim = 0; dim < sharding.getRank(); ++dim) {
          SmallVector<StringAttr> axes = sharding.getAxes(dim);
          llvm::erase(axes, kMicrobatchAxis);
          dims[values.lookup(result) + dim].parts = mesh.getSize(axes);
        }
  }
  if (auto read = dyn_cast<ReadOp>(op))
    return joinTensors(read.getResult(), read.getParamAttr().getAttr());
  if (auto update = dyn_cast<UpdateOp>(op))
    return joinTensors(update.getGradient(), update.getParamAttr().getAttr());
  if (auto norm = dyn_cast<GlobalNormOp>(op)) {
    for (auto [param, gradient] :
         llvm::zip_equal(norm.getParams().getAsRange<FlatSymbolRefAttr>(), norm.getGradients()))
      joinTensors(gradient, param.getAttr());
    return;
  }
  if (isa<nn::ShardingRuleOpInterface>(op))
    return addRule(op);
  if (isa<CarryStoreOp>(op)) // its readers skip padding
    return;
  auto refuseAll = [&](Value value) {
    for (int64_t dim = 0; dim < rankOf(value); ++dim)
      refuse(values.lookup(value) + dim, op, "needs all of it");
  };
  llvm::for_each(op->getOperands(), refuseAll);
  llvm::for_each(op->getResults(), refuseAll);
}

DimensionClasses::DimensionClasses(ModuleOp module) {
  for (ParamOp param : module.getOps<ParamOp>()) {
    unsigned first = params[param.getSymNameAttr()] = addTensor(param.getTensorType());
    PlacementAttr placement = param.getPlacementAttr();
    for (int64_t dim = 0; dim < param.getTensorType().getRank(); ++dim) {
      Class &own = dims[first + dim];
      own.params.push_back({param, dim});
      if (placement && placement.getCompute())
        own.parts = getMesh(module).getSize(placement.getCompute().getAxes(dim));
      // A dimension that is split in compute and in storage must divide.
      if (placement && placement.getKind() == StorageKind::dimension && placement.getDim() == dim &&
          own.parts > 1)
        own.parts *= getMesh(module).getSize(placement.getAxes());
    }
  }
  for (StepOp step : module.getOps<StepOp>())
    for (Operation &op : step.getBody().front())
      add(&op);
  // Facts about dimensions become facts about their classes.
  equal.compress();
  classes.resize(equal.getNumClasses());
  for (unsigned dim = 0; dim < dims.size(); ++dim) {
    Class &all = classes[equal[dim]];
    all.size = dims[dim].size;
    all.indexed |= dims[dim].indexed;
    all.parts = std::max(all.parts, dims[dim].parts);
    all.params.append(dims[dim].params);
    if (!all.obstacle && dims[dim].obstacle) {
      all.obstacle = dims[dim].obstacle;
      all.need = dims[dim].need;
    }
  }
}

//===----------------------------------------------------------------------===//
// Padded shapes
//===----------------------------------------------------------------------===//

FailureOr<PaddedShapes> PaddedShapes::read(ModuleOp module) {
  PaddedShapes result;
  if (llvm::none_of(module.getOps<ParamOp>(),
                    [](ParamOp param) { return param.getPadded().has_value(); }))
    return result;
  DimensionClasses dimensions(module);
  DenseMap<const DimensionClasses::Class *, int64_t> sizes;
  for (const DimensionClasses::Class &all : dimensions.getClasses()) {
    ParamOp first;
    for (auto [param, dim] : all.params) {
      const int64_t size = param.getSplitShape()[dim];
      auto [known, isNew] = sizes.try_emplace(&all, size);
      if (isNew) {
        first = param;
      } else if (known->second != size) {
        InFlightDiagnostic diag =
            param.emitOpError()
            << "dimension " << dim << " of '" << param.getSymName() << "' is padded to " << size
            << ", expected " << known->second << " to match a dimension of '" << first.getSymName()
            << "', which steps combine with it; run --fsdp-pad-vocabulary or correct 'padded'";
        diag.attachNote(first.getLoc()) << "the other parameter is here";
        return failure();
      }
      if (size != all.size && all.obstacle) {
        InFlightDiagnostic diag =
            param.emitOpError() << "dimension " << dim << " of '" << param.getSymName()
                                << "' is padded to " << size << ", but '" << all.obstacle->getName()
                                << "' " << all.need << "; leave 'padded' out";
        diag.attachNote(all.obstacle->getLoc()) << "the op is here";
        return failure();
      }
    }
  }
  for (StepOp step : module.getOps<StepOp>())
    for (Operation &op : step.getBody().front())
      for (Value value : op.getResults()) {
        auto type = dyn_cast<RankedTensorType>(value.getType());
        if (!type)
          continue;
        SmallVector<int64_t> shape(type.getShape());
        for (int64_t dim = 0; dim < type.getRank(); ++dim)
          if (auto size = sizes.find(&dimensions.lookup(value, dim)); size != sizes.end())
            shape[dim] = size->second;
        if (ArrayRef(shape) != type.getShape())
          result.shapes[value] = shape;
      }
  return result;
}

int64_t PaddedShapes::lookup(Operation *op, const nn::ShardingRule &rule, int64_t factor) const {
  std::optional<int64_t> size;
  rule.forEachTensor(op, [&](Value value, const nn::TensorFactors &tensor) {
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (!size && factors.size() == 1 && factors.front() == factor)
        size = lookup(value)[dim];
  });
  return size.value_or(rule.factors[factor].size);
}
