//===- MeshParts.cpp - replace axes of the mesh by their parts ------------===//

#include "passes/sharding/MeshParts.h"
#include "dialect/fsdp/Manual.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// The positions after which each axis is split; its size is among them.
class Cuts {
public:
  explicit Cuts(MeshAttr mesh) : mesh(mesh) {
    for (StringAttr name : mesh.getAxisNames()) {
      AxisPart part = *parseAxisPart(name);
      positions[part.axis].insert(part.isWhole() ? mesh.getAxisSize(name) : part.next());
    }
  }

  /// True where the parts between all cuts of `axis` and `position` would be parts of one order.
  bool fits(StringRef axis, int64_t position) const {
    return llvm::all_of(positions.at(axis), [&](int64_t other) {
      return other % position == 0 || position % other == 0;
    });
  }
  /// A split of `axis` that conflicts.
  int64_t contradicting(StringRef axis, int64_t position) const {
    return *llvm::find_if(positions.at(axis), [&](int64_t other) {
      return other % position != 0 && position % other != 0;
    });
  }
  void add(StringRef axis, int64_t position) { positions[axis].insert(position); }

  size_t numAxes() const {
    size_t count = 0;
    for (const auto &[axis, cuts] : positions)
      count += cuts.size();
    return count;
  }

  MeshAttr apply() const {
    SmallVector<StringAttr> names;
    SmallVector<int64_t> sizes;
    StringRef last;
    for (StringAttr name : mesh.getAxisNames()) {
      StringRef axis = axisOf(name);
      if (axis == last)
        continue;
      last = axis;
      const std::set<int64_t> &cuts = positions.at(axis);
      int64_t before = 1;
      for (int64_t position : cuts) {
        AxisPart part{axis, before, cuts.size() == 1 ? 0 : position / before};
        names.push_back(StringAttr::get(mesh.getContext(), spellAxisPart(part)));
        sizes.push_back(position / before);
        before = position;
      }
    }
    return MeshAttr::get(mesh.getContext(), names, sizes, mesh.getDevices());
  }

private:
  MeshAttr mesh;
  std::map<StringRef, std::set<int64_t>> positions;
};

/// Makes names of parts and of axes that were cut names of axes of `mesh`.
class Renamer {
public:
  explicit Renamer(MeshAttr mesh) : mesh(mesh), context(mesh.getContext()) {}

  /// The axes that `names` denote. A part of an axis of size 1 splits nothing: it is omitted or, in
  /// requests of a model for any mesh, kept.
  SmallVector<StringAttr> axes(ArrayRef<StringAttr> names, bool keep = false) const {
    SmallVector<StringAttr> result;
    for (StringAttr name : names) {
      std::optional<SmallVector<StringAttr>> found = findAxes(mesh, name);
      if (!found || !hasAxis(mesh, axisOf(name)) || (keep && found->empty()))
        result.push_back(name);
      else
        llvm::append_range(result, *found);
    }
    return result;
  }

  ShardingAttr sharding(ShardingAttr sharding, bool keep = false) const {
    if (!sharding)
      return sharding;
    SmallVector<ArrayAttr> dims;
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
      dims.push_back(getAxisArray(context, axes(sharding.getAxes(dim), keep)));
    return ShardingAttr::get(context, sharding.getMesh(), dims, sharding.getDimOpen(),
                             axes(sharding.getUnreduced()));
  }

  LayoutAttr layout(LayoutAttr layout) const {
    SmallVector<StringAttr> stored = axes(layout.getAxes());
    // Parts of an axis of size 1: stored over that.
    if (stored.empty() && !layout.getAxes().empty())
      stored.push_back(StringAttr::get(context, axisOf(layout.getAxes().front())));
    return LayoutAttr::get(context, layout.getKind(), layout.getDim(), stored);
  }

  PlacementAttr placement(PlacementAttr placement) const {
    LayoutAttr parameter = layout(placement.getParameter());
    SmallVector<StringAttr> kept = axes(placement.getReshardAxes());
    Reshard reshard = placement.getReshard();
    // Of parts of an axis of size 1 nothing is gathered.
    if (reshard == Reshard::axes && (kept.empty() || kept.size() == parameter.getAxes().size())) {
      reshard = Reshard::never;
      kept.clear();
    }
    return PlacementAttr::get(context, parameter, layout(placement.getGradient()),
                              layout(placement.getState()), placement.getGather(),
                              placement.getReduce(), placement.getAccumulate(), reshard, kept,
                              sharding(placement.getCompute()));
  }

  void rename(ParamOp op) const {
    if (PlacementAttr before = op.getPlacementAttr())
      op.setPlacementAttr(placement(before));
    if (!op.getSplit())
      return;
    SmallVector<Attribute> dims;
    for (auto entry : op.getSplitAttr().getAsRange<ArrayAttr>())
      dims.push_back(getAxisArray(context, axes(getAxisNames(entry), /*keep=*/true)));
    op.setSplitAttr(ArrayAttr::get(context, dims));
  }

  void rename(ModuleOp module) const {
    module.walk([&](Operation *op) {
      auto over = [&](StringRef name) {
        if (auto names = op->getAttrOfType<ArrayAttr>(name))
          op->setAttr(name, getAxisArray(context, axes(getAxisNames(names))));
      };
      if (auto constraint = dyn_cast<ConstraintOp>(op)) {
        constraint.setShardingAttr(sharding(constraint.getSharding(), /*keep=*/true));
        over("manual");
      } else if (isa<EnterManualOp, ExitManualOp, AxisIndexOp>(op) || isManualCollective(op)) {
        over("over");
        if (auto boundary = op->getAttrOfType<ShardingAttr>("sharding"))
          op->setAttr("sharding", sharding(boundary));
      } else if (auto reshard = dyn_cast<ReshardOp>(op))
        reshard.setShardingAttr(sharding(reshard.getSharding()));
      else if (auto param = dyn_cast<ParamOp>(op))
        rename(param);
    });
  }

private:
  MeshAttr mesh;
  MLIRContext *context;
};

} // namespace

/// Calls `visit` with each name of an axis that a request in `module` contains, and the op that has
/// it.
static void visitNames(ModuleOp module, llvm::function_ref<void(StringAttr, Operation *)> visit) {
  auto visitSharding = [&](ShardingAttr sharding, Operation *op) {
    for (int64_t dim = 0; sharding && dim < sharding.getRank(); ++dim)
      for (StringAttr axis : sharding.getAxes(dim))
        visit(axis, op);
  };
  module.walk([&](Operation *op) {
    if (auto constraint = dyn_cast<ConstraintOp>(op))
      return visitSharding(constraint.getSharding(), op);
    if (auto reshard = dyn_cast<ReshardOp>(op))
      return visitSharding(reshard.getSharding(), op);
    auto param = dyn_cast<ParamOp>(op);
    if (!param)
      return;
    if (param.getSplit())
      for (auto entry : param.getSplitAttr().getAsRange<ArrayAttr>())
        for (auto axis : entry.getAsRange<StringAttr>())
          visit(axis, op);
    if (PlacementAttr placement = param.getPlacementAttr()) {
      for (StringAttr axis : placement.getAxes())
        visit(axis, op);
      visitSharding(placement.getCompute(), op);
    }
  });
}

static void replaceMesh(ModuleOp module, const Cuts &cuts) {
  MeshOp mesh = getMeshOp(module);
  mesh.setMeshAttr(cuts.apply());
  Renamer(mesh.getMesh()).rename(module);
}

LogicalResult mlir::fsdp::splitNamedMeshAxes(ModuleOp module, ArrayRef<std::string> names,
                                             StringRef where) {
  MeshOp meshOp = getMeshOp(module);
  if (!meshOp)
    return success();
  MeshAttr mesh = meshOp.getMesh();
  Cuts cuts(mesh);
  bool hasParts = false, failed = false;
  auto add = [&](StringRef name, Operation *op) {
    std::optional<AxisPart> part = parseAxisPart(name);
    if (failed || !part || part->isWhole() || positionsOf(mesh, part->axis) == 0)
      return;
    hasParts = true;
    const int64_t positions = positionsOf(mesh, part->axis);
    if (positions == 1)
      return;
    for (int64_t position : {part->before, part->next()}) {
      if (position == 1)
        continue;
      if (positions % position != 0 || !cuts.fits(part->axis, position)) {
        InFlightDiagnostic diag = (op ? op->emitOpError() : module.emitError() << where)
                                  << (op ? "names '" : " names '") << name
                                  << "', which splits axis '" << part->axis << "' of size "
                                  << positions << " after " << position << " positions, ";
        if (positions % position != 0)
          diag << "expected a divisor of the size";
        else
          diag << "and another part splits it after " << cuts.contradicting(part->axis, position)
               << "; use parts whose positions divide one another";
        failed = true;
        return;
      }
      cuts.add(part->axis, position);
    }
  };
  visitNames(module, add);
  for (const std::string &name : names)
    add(name, nullptr);
  if (failed)
    return failure();
  if (cuts.numAxes() > kMaxMeshAxes)
    return meshOp.emitError() << "the mesh has " << cuts.numAxes()
                              << " axes, counting the named parts, expected at most "
                              << kMaxMeshAxes << "; name fewer parts";
  if (hasParts || cuts.numAxes() != mesh.getAxisNames().size())
    replaceMesh(module, cuts);
  return success();
}

bool mlir::fsdp::splitMeshAxis(ModuleOp module, ArrayRef<AxisCut> found) {
  MeshAttr mesh = getMeshOp(module).getMesh();
  Cuts cuts(mesh);
  for (const AxisCut &cut : found)
    if (cuts.fits(cut.axis, cut.position) && cuts.numAxes() < kMaxMeshAxes)
      cuts.add(cut.axis, cut.position);
  if (cuts.numAxes() == mesh.getAxisNames().size())
    return false;
  replaceMesh(module, cuts);
  return true;
}
