//===- ShardParameters.cpp - where every parameter is stored --------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "passes/Passes.h"
#include "passes/global/Strategies.h"
#include "passes/sharding/MeshAxes.h"
#include "passes/sharding/MeshParts.h"
#include "passes/sharding/ShardSpec.h"
#include "llvm/Support/GlobPattern.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SHARDPARAMETERSPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// One `PATTERN:SPEC` of the option `shard`.
struct ShardRule {
  std::string text;
  llvm::GlobPattern pattern;
  ShardSpec spec;
  bool used = false;
};

struct ShardParameters : fsdp::impl::ShardParametersPassBase<ShardParameters> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult chooseStrategy(MeshOp mesh);
  FailureOr<ShardRule> parseRule(StringRef text);
  FailureOr<const ShardRule *> findRule(ParamOp param, MutableArrayRef<ShardRule> rules);
  FailureOr<PlacementAttr> store(ParamOp param, MeshAttr mesh, const ShardRule *rule);
  FailureOr<ShardingAttr> readCompute(ParamOp param, MeshOp mesh, const ShardRule &rule);
  ShardingAttr takeSplit(ParamOp param, MeshOp mesh);
  LogicalResult place(ParamOp param, MeshOp mesh, MutableArrayRef<ShardRule> rules);

  /// The axes of the mesh that `names` denote; the mesh has been split accordingly.
  static SmallVector<StringAttr> getAxes(ArrayRef<std::string> names, MeshAttr mesh) {
    SmallVector<StringAttr> axes;
    for (const std::string &name : names)
      llvm::append_range(axes, *findAxes(mesh, name));
    return axes;
  }

  const Strategy *scheme = nullptr;
};

} // namespace

LogicalResult ShardParameters::chooseStrategy(MeshOp mesh) {
  scheme = findStrategy(strategy);
  if (!scheme)
    return mesh.emitError() << "unknown strategy '" << strategy << "', expected "
                            << listStrategies();
  std::string mismatch = explainMismatch(*scheme, mesh.getMesh());
  if (mismatch.empty())
    return success();
  // The default strategy accepts any mesh: without an axis to store over, it replicates everything.
  if (scheme->name == ShardParametersPassOptions().strategy) {
    mesh.emitRemark() << "mesh " << spellMesh(mesh.getMesh())
                      << " has no axis 'fsdp': every rank stores whole parameters"
                      << (findPipelineAxis(getOperation()) ? ", those of its stage" : "");
    return success();
  }
  return mesh.emitError() << "strategy '" << strategy << "' " << mismatch;
}

FailureOr<ShardRule> ShardParameters::parseRule(StringRef text) {
  auto fail = [&] { return getOperation().emitError() << "--shard got '" << text << "', "; };
  auto [glob, spec] = splitShardPattern(text);
  if (glob.empty() || spec.empty())
    return fail() << "expected PATTERN:SPEC";
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
  if (!pattern)
    return fail() << "whose pattern is malformed: " << llvm::toString(pattern.takeError());
  std::optional<ShardSpec> parsed = parseShardSpec(spec);
  if (!parsed)
    return fail() << "expected " << shardSpecForm << " after ':'";
  return ShardRule{text.str(), std::move(*pattern), *parsed};
}

/// The rule for `param`, or null; fails if two rules differ.
FailureOr<const ShardRule *> ShardParameters::findRule(ParamOp param,
                                                       MutableArrayRef<ShardRule> rules) {
  const ShardRule *matched = nullptr;
  for (ShardRule &rule : rules) {
    if (!rule.pattern.match(param.getSymName()))
      continue;
    rule.used = true;
    if (matched && !(matched->spec == rule.spec))
      return param.emitOpError() << "'" << param.getSymName() << "' is matched by '"
                                 << matched->text << "' and by '" << rule.text
                                 << "', which differ; give each parameter one storage, with "
                                    "patterns that do not overlap";
    matched = &rule;
  }
  return matched;
}

/// How `param` is stored.
FailureOr<PlacementAttr> ShardParameters::store(ParamOp param, MeshAttr mesh,
                                                const ShardRule *rule) {
  RankedTensorType type = param.getTensorType();
  // Placements of the model apply unless the user of the compiler overrides them.
  if (param.getPlacement() && !(rule && rule->spec.storage))
    return param.getPlacementAttr();
  const SmallVector<StringAttr> stored = getStorageAxes(mesh);
  bool small = type.getNumElements() < minShardSize.value;
  ShardSpec::Storage storage;
  if (rule && rule->spec.storage)
    storage = *rule->spec.storage;
  else if (scheme->splits() && !stored.empty() && !small)
    storage.kind = StorageKind::flat;
  if (storage.kind != StorageKind::replicated && storage.axes.empty()) {
    for (StringAttr axis : stored)
      storage.axes.push_back(axis.str());
    if (stored.empty()) // which is refused below
      storage.axes.push_back(getStorageAxis().str());
  }
  for (const std::string &axis : storage.axes)
    if (!hasAxis(mesh, axisOf(axis)))
      return param.emitOpError() << "is to be sharded by '" << rule->text
                                 << "', but the mesh has no axis '" << axisOf(axis) << "'";
  if (storage.kind == StorageKind::dimension && storage.dim >= type.getRank())
    return param.emitOpError() << "of type " << type << " is to be split along dimension "
                               << storage.dim << " by '" << rule->text
                               << "', expected a dimension below " << type.getRank();
  SmallVector<StringAttr> axes = getAxes(storage.axes, mesh);
  if (axes.empty() && !storage.axes.empty()) // parts of an axis of size 1
    axes.push_back(StringAttr::get(&getContext(), axisOf(storage.axes.front())));
  auto layout = LayoutAttr::get(&getContext(), storage.kind, storage.dim, axes);
  return scheme->place(layout, type.getElementType());
}

FailureOr<ShardingAttr> ShardParameters::readCompute(ParamOp param, MeshOp mesh,
                                                     const ShardRule &rule) {
  RankedTensorType type = param.getTensorType();
  const std::vector<std::vector<std::string>> &dims = *rule.spec.compute;
  if (static_cast<int64_t>(dims.size()) != type.getRank())
    return param.emitOpError() << "of type " << type << " is to be split by '" << rule.text
                               << "', which has " << dims.size()
                               << (dims.size() == 1 ? " entry" : " entries") << ", expected "
                               << type.getRank() << ", one for each dimension";
  SmallVector<ArrayAttr> axes;
  for (const std::vector<std::string> &dim : dims) {
    for (const std::string &axis : dim)
      if (!hasAxis(mesh.getMesh(), axisOf(axis)))
        return param.emitOpError() << "is to be split by '" << rule.text
                                   << "', but the mesh has no axis '" << axisOf(axis) << "'";
    axes.push_back(getAxisArray(&getContext(), getAxes(dim, mesh.getMesh())));
  }
  ShardingAttr sharding = ShardingAttr::getChecked(
      [&] { return param.emitOpError() << "is to be split by '" << rule.text << "': "; },
      &getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()), ArrayRef<ArrayAttr>(axes),
      ArrayRef<bool>(SmallVector<bool>(axes.size(), false)), ArrayRef<StringAttr>());
  if (!sharding)
    return failure();
  return sharding;
}

/// The compute split of `param` that the model requests, over the axes that the mesh has; null if
/// there is none.
ShardingAttr ShardParameters::takeSplit(ParamOp param, MeshOp mesh) {
  if (!param.getSplit())
    return {};
  SmallVector<SmallVector<StringAttr>> dims;
  for (auto entry : param.getSplitAttr().getAsRange<ArrayAttr>())
    dims.push_back(llvm::filter_to_vector(entry.getAsRange<StringAttr>(), [&](StringAttr axis) {
      return mesh.getMesh().getAxisSize(axis) != 1;
    }));
  if (llvm::all_of(dims, [](ArrayRef<StringAttr> dim) { return dim.empty(); }))
    return {};
  return ShardingAttr::getCanonical(FlatSymbolRefAttr::get(mesh.getSymNameAttr()), dims);
}

LogicalResult ShardParameters::place(ParamOp param, MeshOp mesh, MutableArrayRef<ShardRule> rules) {
  FailureOr<const ShardRule *> rule = findRule(param, rules);
  if (failed(rule))
    return failure();
  FailureOr<PlacementAttr> placement = store(param, mesh.getMesh(), *rule);
  if (failed(placement))
    return failure();
  const bool isRuled = *rule && (*rule)->spec.compute;
  FailureOr<ShardingAttr> compute =
      isRuled ? readCompute(param, mesh, **rule) : takeSplit(param, mesh);
  if (failed(compute))
    return failure();
  if (*compute) {
    PlacementAttr before = *placement;
    PlacementAttr checked = PlacementAttr::getChecked(
        [&] {
          return param.emitOpError() << "is to be split by "
                                     << (isRuled ? "'" + (*rule)->text + "'" : "the model") << ": ";
        },
        &getContext(), before.getParameter(), before.getGradient(), before.getState(),
        before.getGather(), before.getReduce(), before.getAccumulate(), before.getReshard(),
        before.getReshardAxes(), *compute);
    if (!checked)
      return failure();
    placement = checked;
  }
  param.setPlacementAttr(*placement);
  return success();
}

void ShardParameters::runOnOperation() {
  ModuleOp module = getOperation();
  auto params = module.getOps<ParamOp>();
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty()) {
    if (!params.empty()) {
      module.emitError() << "module has parameters but no mesh to store them on; declare one, for "
                            "one rank 'fsdp.mesh @mesh <[\"fsdp\"=1]>'";
      signalPassFailure();
    }
    return;
  }
  MeshOp mesh = *meshes.begin();
  if (failed(chooseStrategy(mesh)))
    return signalPassFailure();
  SmallVector<ShardRule> rules;
  SmallVector<StringRef> texts;
  StringRef(shard).split(texts, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef text : texts) {
    FailureOr<ShardRule> rule = parseRule(text);
    if (failed(rule))
      return signalPassFailure();
    rules.push_back(std::move(*rule));
  }
  // After all named parts of axes are known.
  for (const ShardRule &rule : rules)
    if (failed(splitNamedMeshAxes(module, rule.spec.getAxes(),
                                  "--shard got '" + rule.text + "', which")))
      return signalPassFailure();
  if (failed(splitNamedMeshAxes(module)))
    return signalPassFailure();
  for (ParamOp param : params)
    if (failed(place(param, mesh, rules)))
      return signalPassFailure();
  for (const ShardRule &rule : rules)
    if (!rule.used) {
      InFlightDiagnostic diag = module.emitError() << "--shard got '" << rule.text
                                                   << "', whose pattern matches no parameter";
      for (ParamOp param : params)
        diag.attachNote(param.getLoc())
            << "the module has parameter '" << param.getSymName() << "'";
      return signalPassFailure();
    }
}
