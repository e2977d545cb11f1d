//===- LaunchNames.cpp - readable names from locations --------------------===//

#include "passes/LaunchNames.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string mlir::fsdp::getLocationName(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return getLocationName(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : llvm::reverse(fused.getLocations()))
      if (std::string name = getLocationName(part); !name.empty())
        return name;
  return "";
}

std::string mlir::fsdp::getLaunchName(Operation *op) {
  std::string kind = op->getName().stripDialect().str();
  if (auto input = dyn_cast<InputOp>(op))
    return ("input " + input.getName() +
            (input.getMicrobatch() ? " microbatch " + Twine(*input.getMicrobatch()) : Twine()))
        .str();
  if (auto output = dyn_cast<OutputOp>(op))
    return ("output " + output.getName()).str();
  if (auto output = dyn_cast<OutputSumOp>(op))
    return ("output " + output.getName()).str();
  std::string name = getLocationName(op->getLoc());
  if (isa<AllGatherOp>(op))
    if (auto storage = op->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::gathersAttrName))
      name = storage.getValue().str();
  if (auto step = dyn_cast<OptimizerStepOp>(op))
    name = step.getStorage().str();
  // fsdp-partition names the ops that it creates for a unit "fc1.flat.reduce"; the kind is more
  // precise.
  if (isa<CollectiveOpInterface, FlattenOp>(op))
    name = StringRef(name).ends_with(".reduce") ? name.substr(0, name.size() - 7) : name;
  if (name.empty())
    return kind;
  bool elementwise = op->hasTrait<OpTrait::Elementwise>() || isa<nn::FusedOp>(op);
  if (elementwise || StringRef(name).ends_with("." + kind) || name == kind)
    return name;
  return name + " " + kind;
}

std::string mlir::fsdp::getBufferName(OpResult result, StringRef launch) {
  Operation *op = result.getOwner();
  if (op->getNumResults() == 1)
    return launch.str();
  auto loss = dyn_cast<nn::RowLossOpInterface>(op);
  if (!loss || !loss.getUpstream() || result != op->getResults().back())
    return (launch + "." + Twine(result.getResultNumber())).str();
  const std::string name = getLocationName(op->getLoc());
  return (name.empty() ? launch.str() : name) + ".grad";
}

std::string UniqueNames::get(StringRef name, const Structure &structure) {
  const bool isOfMicrobatch = structure.microbatch >= 0;
  auto &[used, next] = names[{isOfMicrobatch ? structure.stage : 0, structure.microbatch}];
  std::string unique = name.str();
  if (used.insert(unique).second)
    return unique;
  // Numbers below the next number of this name are in use.
  int &number = next.try_emplace(name, 2).first->second;
  do
    unique = (name + " " + Twine(number++)).str();
  while (!used.insert(unique).second);
  return unique;
}
