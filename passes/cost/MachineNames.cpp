//===- MachineNames.cpp - the names that machine files may use ------------===//

#include "passes/cost/Machine.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::fsdp;

const std::vector<std::string> &cost::getAlgorithmNames() {
  static const std::vector<std::string> names = {"ring", "tree", "recursive", "hierarchical",
                                                 "direct"};
  return names;
}

const std::vector<std::string> &cost::getProductNames() {
  static const std::vector<std::string> names = {"matrix", "attention", "attention_grad"};
  return names;
}

const std::vector<std::string> &cost::getRateTypeNames() {
  static const std::vector<std::string> names = {"f32", "bf16", "f16", "f64"};
  return names;
}

const std::vector<std::string> &cost::getCollectiveNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> names = {
#define FSDP_COLLECTIVE(name, Kind, Request) #name,
#define FSDP_SEND(name, Kind, Request) #name,
#define FSDP_RECEIVE(name, Kind, Request) #name,
#include "runtime/program/Collectives.def"
    };
    llvm::sort(names);
    names.erase(llvm::unique(names), names.end()); // an op may have several kinds
    return names;
  }();
  return names;
}
