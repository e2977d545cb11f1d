//===- Compile.cpp - from a model to the phase that was asked for ---------===//

#include "tools/fsdpc/Compile.h"

#include "base/OutputPath.h"
#include "base/PrintableText.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/ModelDigest.h"
#include "dialect/fsdp/Names.h"
#include "frontend/ModelBuilder.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/global/ModelDigest.h"
#include "passes/scheduled/ScheduleFindings.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

Context::Context() {
  DialectRegistry registry;
  ::fsdp::frontend::registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  printer = std::make_unique<DiagnosticPrinter>(sourceManager, context.get());
}

Context::~Context() = default;

OwningOpRef<ModuleOp> readModel(Context &context, const std::string &path) {
  if (path != "-")
    base::requireReadable(path);
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    throw Failure("cannot read " + base::inQuotes(path) + ": " + buffer.getError().message());
  // A diagnostic would show a line of it.
  if (!isText((*buffer)->getBuffer()) && !isBytecode((*buffer)->getMemBufferRef()))
    throw Failure(base::inQuotes(path) + " is not text, expected a model (.mlir)");
  context.sources().AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(context.sources(), &context.get());
  if (!module)
    throw Failure(base::inQuotes(path) + " is not a valid model");
  return module;
}

OwningOpRef<ModuleOp> copyInto(Context &context, ModuleOp module) {
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  OwningOpRef<ModuleOp> copy;
  if (succeeded(writeBytecodeToFile(module, os)))
    copy = parseSourceString<ModuleOp>(bytes, &context.get());
  if (!copy)
    throw Failure("the model was not copied for a second thread");
  return copy;
}

void inPlan(const MeshAxes &mesh, bool oneOfSeveral, llvm::function_ref<void()> action) {
  if (!oneOfSeveral)
    return action();
  const std::string name = describe(mesh);
  try {
    action();
  } catch (const UsageError &error) {
    throw UsageError("plan " + base::inQuotes(name) + ": " + error.what());
  } catch (const Failure &error) {
    throw Failure("plan " + base::inQuotes(name) + ": " + error.what());
  }
}

bool hasManualRegions(ModuleOp module) {
  return module.walk([](ir::ManualOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Adds the axes of regions that the mesh lacks, of one rank, to `names` and `sizes`, and throws
/// where a region is of other sizes.
static void keepManualAxes(ModuleOp module, ir::MeshAttr old, SmallVectorImpl<StringAttr> &names,
                           SmallVectorImpl<int64_t> &sizes) {
  module.walk([&](ir::ManualOp region) {
    for (auto axis : region.getOver().getAsRange<StringAttr>()) {
      auto *own = llvm::find(names, axis);
      if (own == names.end()) {
        names.push_back(axis);
        sizes.push_back(1);
        own = std::prev(names.end());
      }
      const int64_t size = sizes[own - names.begin()], described = old.getAxisSize(axis);
      if (size != described)
        throw Failure("the model has a manual region over " + std::to_string(described) +
                      " ranks along axis '" + axis.str() + "', got a mesh with " +
                      std::to_string(size) +
                      "; a region has the sizes of one mesh: describe the model for this one");
    }
  });
}

static void setMesh(ModuleOp module, const MeshAxes &axes) {
  ir::MeshOp old = ir::getMeshOp(module);
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  for (auto &[name, size] : axes) {
    names.push_back(builder.getStringAttr(name));
    sizes.push_back(size);
  }
  // Constraints of the model may name axes that this mesh lacks: of size 1, they split nothing. A
  // mark of positions does not add an axis, as every report would contain its name; on a mesh that
  // splits sequences over another axis, it identifies the positions.
  SmallVector<StringAttr> sequence = llvm::filter_to_vector(
      names, [](StringAttr name) { return ir::getAxisRole(name).splitsSequence; });
  module.walk([&](ir::ConstraintOp constraint) {
    auto isMissing = [&](ArrayAttr dim) {
      return llvm::any_of(dim.getAsRange<StringAttr>(), [&](StringAttr axis) {
        return !llvm::is_contained(names, builder.getStringAttr(ir::axisOf(axis)));
      });
    };
    if (constraint.getSequenceParallel() &&
        llvm::any_of(constraint.getSharding().getDimAxes(), isMissing)) {
      if (!sequence.empty()) {
        ir::ShardingAttr mark = constraint.getSharding();
        SmallVector<ArrayAttr> dims = llvm::map_to_vector(mark.getDimAxes(), [&](ArrayAttr dim) {
          return isMissing(dim) ? ir::getAxisArray(builder.getContext(), sequence) : dim;
        });
        constraint.setShardingAttr(ir::ShardingAttr::get(builder.getContext(), mark.getMesh(), dims,
                                                         mark.getDimOpen(), {}));
        return;
      }
      constraint.getResult().replaceAllUsesWith(constraint.getInput());
      constraint.erase();
      return;
    }
    for (ArrayAttr dim : constraint.getSharding().getDimAxes())
      for (auto axis : dim.getAsRange<StringAttr>())
        if (StringAttr whole = builder.getStringAttr(ir::axisOf(axis));
            !llvm::is_contained(names, whole) && old && old.getMesh().getAxisSize(whole) == 1) {
          names.push_back(whole);
          sizes.push_back(1);
        }
  });
  if (old)
    keepManualAxes(module, old.getMesh(), names, sizes);
  auto mesh = ir::MeshAttr::get(builder.getContext(), names, sizes, ArrayRef<int64_t>());
  if (!old)
    old = ir::MeshOp::create(builder, module.getLoc(), "mesh", mesh);
  old.setMeshAttr(mesh);
  if (isa<UnknownLoc>(old.getLoc()))
    old->setLoc(module.getLoc());
}

void configure(ModuleOp module, const std::string &name, const MeshAxes &mesh,
               const Options &options) {
  if (!module.getSymName())
    module.setSymName(name);
  if (std::string fault = ir::faultOfName(*module.getSymName()); !fault.empty())
    throw Failure("the name of the model " + fault);
  ir::Phase phase = ir::getPhase(module);
  if (phase != ir::Phase::global)
    throw Failure("the module is in the " + ir::stringifyPhase(phase).str() +
                  " phase, expected the global phase: a model before any pass");
  bool trains = false;
  for (auto step : module.getOps<ir::StepOp>()) {
    if (step.getKind() != ir::StepKind::train)
      continue;
    trains = true;
    options.optimizer.checkGroups(step);
    step.setOptimizerAttr(options.optimizer.apply(*step.getOptimizer()));
  }
  if (!trains)
    throw Failure("the module has no 'fsdp.step' of kind train; there is nothing to compile");
  if (!mesh.empty())
    setMesh(module, mesh);
  options.checkMesh(module);
  if (failed(verify(module)))
    throw Failure("the options do not fit the model");
}

void verifyOperations(ModuleOp module) {
  if (failed(verify(module)))
    throw Failure("the model was not compiled");
}

void lower(ModuleOp module, const Options &options, Emit done, Emit phase,
           ir::ScheduleFindings *findings) {
  auto needs = [&](Emit next) { return done < next && next <= phase; };
  if (needs(Emit::Global) && !ir::getMeshOp(module))
    setMesh(module, {{ir::getStorageAxis().str(), 1}});
  // The digest of the model as described, before passes change its computation.
  if (needs(Emit::Global))
    if (std::string digest = ir::computeModelDigest(module); !digest.empty())
      module->setAttr(ir::modelDigestAttrName, mlir::StringAttr::get(module.getContext(), digest));
  // A verification after every pass, as fsdp-opt does, took nearly half of the compile time of a
  // large model. The model as it will be cut is verified, and what is written: the ops of one rank
  // are verified where they end, in the launches that are made of them.
  auto run = [&](Emit stage,
                 llvm::function_ref<void(OpPassManager &, const ir::PipelineOptions &)> build) {
    if (!needs(stage))
      return;
    PassManager manager(module.getContext());
    manager.enableVerifier(false);
    build(manager, options.pipeline);
    if (failed(manager.run(module)))
      throw Failure("the model was not compiled");
    if (stage == Emit::Global)
      verifyOperations(module);
  };
  run(Emit::Global, ir::buildGlobalPipeline);
  run(Emit::Local, ir::buildLocalPipeline);
  run(Emit::Scheduled, [&](OpPassManager &manager, const ir::PipelineOptions &own) {
    if (findings)
      ir::buildVerifiedPipeline(manager, own, findings->verified, findings->isLimited);
    else
      ir::buildScheduledPipeline(manager, own);
  });
}

ir::ScheduleProblem translate(ModuleOp module, std::optional<ir::ScheduleProblem> verified) {
  return verified ? std::move(*verified) : ir::ScheduleProblem(module);
}

Plans &leaveUndestroyed(Plans plans) {
  static Plans &undestroyed = *new Plans; // reachable: not a leak
  undestroyed = std::move(plans);
  return undestroyed;
}

std::string print(ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(
      out, OpPrintingFlags().assumeVerified().printNameLocAsPrefix().enableDebugInfo(locations));
  return text + "\n";
}

} // namespace fsdpc
