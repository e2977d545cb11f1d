//===- ShardParameters.cpp - where every parameter is stored --------------===//

#include "cli/Numbers.h"
#include "passes/Passes.h"
#include "llvm/Support/GlobPattern.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SHARDPARAMETERSPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// The mesh axis that parameters are stored over.
static constexpr llvm::StringLiteral storageAxis = "fsdp";

namespace {

/// One `PATTERN:SPEC` of the option `shard`.
struct ShardRule {
  std::string text;
  llvm::GlobPattern pattern;
  StorageKind kind;
  int64_t dim = -1;
  bool used = false;
};

struct ShardParameters : fsdp::impl::ShardParametersPassBase<ShardParameters> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult checkStrategy(MeshOp mesh);
  FailureOr<ShardRule> parseRule(StringRef text);
  LogicalResult place(ParamOp param, MeshOp mesh, MutableArrayRef<ShardRule> rules);
};

} // namespace

LogicalResult ShardParameters::checkStrategy(MeshOp mesh) {
  MeshAttr axes = mesh.getMesh();
  StringRef scheme = strategy;
  if (scheme == "zero1" || scheme == "zero2")
    return mesh.emitError() << "strategy '" << scheme
                            << "' shards gradients and optimizer state differently from "
                               "parameters, which is not available yet; use fsdp, hsdp or ddp";
  if (scheme != "fsdp" && scheme != "ddp" && scheme != "hsdp")
    return mesh.emitError() << "unknown strategy '" << scheme << "', expected fsdp, hsdp or ddp";
  if (scheme == "hsdp" && (axes.getAxisIndex(storageAxis) < 0 || axes.getAxisIndex("data") < 0))
    return mesh.emitError() << "strategy 'hsdp' shards over axis 'fsdp' and replicates over axis "
                               "'data', got mesh "
                            << axes << "; give it both axes";
  if (scheme == "fsdp" && axes.getAxisIndex(storageAxis) < 0)
    mesh.emitRemark() << "mesh " << axes << " has no axis 'fsdp': every parameter is replicated";
  return success();
}

FailureOr<ShardRule> ShardParameters::parseRule(StringRef text) {
  auto fail = [&] { return getOperation().emitError() << "option 'shard' got '" << text << "', "; };
  auto [glob, spec] = text.rsplit(':');
  if (glob.empty() || spec.empty())
    return fail() << "expected PATTERN:SPEC";
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
  if (!pattern)
    return fail() << "whose pattern is malformed: " << llvm::toString(pattern.takeError());
  ShardRule rule{text.str(), std::move(*pattern), StorageKind::dimension};
  if (spec == "flat")
    rule.kind = StorageKind::flat;
  else if (spec == "replicated")
    rule.kind = StorageKind::replicated;
  else if (!cli::parseInteger(std::string_view(spec), cli::IntegerRange<int64_t>{0, INT64_MAX},
                              rule.dim)
                .empty())
    return fail() << "expected flat, replicated or the number of a dimension after ':'";
  return rule;
}

LogicalResult ShardParameters::place(ParamOp param, MeshOp mesh, MutableArrayRef<ShardRule> rules) {
  RankedTensorType type = param.getTensorType();
  bool hasAxis = mesh.getMesh().getAxisIndex(storageAxis) >= 0;
  bool small = type.getNumElements() < minShardSize.value;
  StorageKind kind =
      strategy == "ddp" || !hasAxis || small ? StorageKind::replicated : StorageKind::flat;
  int64_t dim = -1;
  const ShardRule *matched = nullptr;
  for (ShardRule &rule : rules) {
    if (!rule.pattern.match(param.getSymName()))
      continue;
    rule.used = true;
    if (matched && (matched->kind != rule.kind || matched->dim != rule.dim))
      return param.emitOpError() << "'" << param.getSymName() << "' is matched by '"
                                 << matched->text << "' and by '" << rule.text
                                 << "', which differ; give each parameter one storage, with "
                                    "patterns that do not overlap";
    matched = &rule;
    kind = rule.kind;
    dim = rule.dim;
    if (kind != StorageKind::replicated && !hasAxis)
      return param.emitOpError() << "is to be sharded by '" << rule.text
                                 << "', but the mesh has no axis 'fsdp'";
    if (kind == StorageKind::dimension && dim >= type.getRank())
      return param.emitOpError() << "of type " << type << " is to be split along dimension " << dim
                                 << " by '" << rule.text << "', expected a dimension below "
                                 << type.getRank();
  }
  // What the model itself says holds unless the user of the compiler says otherwise.
  if (param.getPlacement() && !matched)
    return success();
  SmallVector<StringAttr> axes;
  if (kind != StorageKind::replicated)
    axes.push_back(StringAttr::get(&getContext(), storageAxis));
  Type element = type.getElementType();
  param.setPlacementAttr(
      PlacementAttr::get(&getContext(), kind, dim, axes, element, element, Reshard::always));
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
  if (failed(checkStrategy(mesh)))
    return signalPassFailure();
  SmallVector<ShardRule> rules;
  for (const std::string &text : shard) {
    FailureOr<ShardRule> rule = parseRule(text);
    if (failed(rule))
      return signalPassFailure();
    rules.push_back(std::move(*rule));
  }
  for (ParamOp param : params)
    if (failed(place(param, mesh, rules)))
      return signalPassFailure();
  for (const ShardRule &rule : rules)
    if (!rule.used) {
      InFlightDiagnostic diag = module.emitError() << "option 'shard' got '" << rule.text
                                                   << "', whose pattern matches no parameter";
      for (ParamOp param : params)
        diag.attachNote(param.getLoc()) << "there is '" << param.getSymName() << "'";
      return signalPassFailure();
    }
}
