//===- Coverage.cpp -------------------------------------------------------===//

#include "test/emitted/Coverage.h"

#include "codegen/RolePrograms.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/NNDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr const char *kKinds[] = {"alone", "fused", "behind a product", "in place",
                                         "many ranks"};
static constexpr const char *kFeatures[] = {
    "1 rank",          "2 ranks",          "3 ranks",         "4 ranks",       "in place",
    "product goes on", "several results",  "sum in a chain",  "sum over rows", "masked samples",
    "masked padding",  "product in place", "split parameter", "uneven split",  "several roles",
};

static bool overlaps(const ArenaSpan &a, const ArenaSpan &b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// Whether a result of `launch` takes the place of an operand.
static bool isInPlace(const ScheduledProgram &program, LaunchOp launch) {
  for (Value out : launch.getOuts())
    for (Value in : launch.getIns())
      if (overlaps(program.spanOf(out), program.spanOf(in)))
        return true;
  return false;
}

void Coverage::add(ModuleOp module) {
  FailureOr<std::vector<ScheduledProgram>> programs = readPrograms(module);
  if (failed(programs))
    return;
  int64_t ranks = getMesh(module).getNumRanks();
  std::set<std::string> had{std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks")};
  for (ParamOp param : module.getOps<ParamOp>()) {
    SmallVector<StringAttr> axes = param.getComputeAxes();
    if (axes.empty())
      continue;
    had.insert("split parameter");
    if (param.getComputeType().getNumElements() * getMesh(module).getSize(axes) !=
        param.getTensorType().getNumElements())
      had.insert("uneven split");
  }
  if (programs->size() > 1)
    had.insert("several roles");
  std::map<std::string, std::array<bool, numKinds>> stood;
  module.walk([&](LaunchOp launch) {
    const auto program = llvm::find_if(*programs, [&](const ScheduledProgram &one) {
      return one.program == launch->getParentOfType<ProgramOp>();
    });
    bool reuses = isInPlace(*program, launch);
    if (reuses)
      had.insert("in place");
    launch.walk([&](Operation *op) {
      if (op == launch || op->hasTrait<OpTrait::IsTerminator>())
        return;
      auto kernel = op->getParentOfType<nn::FusedOp>();
      bool product =
          kernel && isa<nn::EinsumOp>(kernel.getBody().front().front()) && !isa<nn::EinsumOp>(op);
      std::array<bool, numKinds> &kinds = stood[op->getName().getStringRef().str()];
      kinds[alone] |= !kernel;
      kinds[fused] |= !!kernel;
      kinds[behindProduct] |= product;
      kinds[inPlace] |= reuses;
      kinds[manyRanks] |= ranks > 1;
      if (product)
        had.insert("product goes on");
      if (product && reuses)
        had.insert("product in place");
      if (kernel && launch.getOuts().size() > 1)
        had.insert("several results");
      if (kernel && isa<nn::ReduceOp>(op))
        had.insert(product ? "sum over rows" : "sum in a chain");
      if (isa<MaskSamplesOp>(op))
        had.insert("masked samples");
      if (isa<MaskPaddingOp>(op))
        had.insert("masked padding");
    });
  });
  for (const auto &[op, kinds] : stood)
    for (size_t kind = 0; kind < numKinds; ++kind)
      ops[op][kind] += kinds[kind];
  for (const std::string &feature : had)
    ++features[feature];
}

void Coverage::print(llvm::raw_ostream &os) const {
  for (const char *feature : kFeatures) {
    auto it = features.find(feature);
    os << llvm::format("%-24s%12lld\n", feature,
                       static_cast<long long>(it == features.end() ? 0 : it->second));
  }
  os << llvm::format("%-24s", "cases with op");
  for (const char *kind : kKinds)
    os << llvm::format("%18s", kind);
  os << "\n";
  for (const auto &[op, counts] : ops) {
    os << llvm::format("%-24s", op.c_str());
    for (int64_t count : counts)
      os << llvm::format("%18lld", static_cast<long long>(count));
    os << "\n";
  }
}

std::set<std::string> Coverage::gaps(MLIRContext &context, bool allOps) const {
  std::set<std::string> missing;
  for (const char *feature : kFeatures)
    if (!features.count(feature))
      missing.insert(std::string("no case has '") + feature + "'");
  if (!allOps)
    return missing;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    StringRef dialect = name.getDialectNamespace();
    if (dialect == "builtin" || !name.hasInterface<nn::ShardingRuleOpInterface>())
      continue;
    std::string op = name.getStringRef().str();
    // Ops of the global phase only, and ops that are not launches but parts of a buffer or a body.
    if (op == ConstraintOp::getOperationName() || op == ReshardOp::getOperationName())
      continue;
    auto it = ops.find(op);
    if (it == ops.end()) {
      missing.insert("no launch holds '" + op + "'");
      continue;
    }
    bool elementwise = dialect == arith::ArithDialect::getDialectNamespace() ||
                       dialect == math::MathDialect::getDialectNamespace();
    for (Kind kind : {fused, inPlace, manyRanks})
      if ((elementwise || kind == manyRanks) && it->second[kind] == 0)
        missing.insert("no launch holds '" + op + "' " + kKinds[kind]);
  }
  return missing;
}
