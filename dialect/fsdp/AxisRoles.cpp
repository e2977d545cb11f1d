//===- AxisRoles.cpp - the meaning of mesh axes by their names ------------===//

#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/AxisParts.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr AxisRole roles[] = {
    //          batch  storage compute sequence layers roles
    {"data", true, false, false},
    {"fsdp", true, true, false},
    {"tensor", false, false, true, false, true},
    {"context", false, true, true, true},
    {"pipeline", false, false, true, false, false, true},
    {"expert", false, false, true},
};

const AxisRole &mlir::fsdp::getAxisRole(StringRef axis) {
  static constexpr AxisRole none;
  const auto *role =
      llvm::find_if(roles, [&](const AxisRole &role) { return role.name == axisOf(axis); });
  return role == std::end(roles) ? none : *role;
}

StringRef mlir::fsdp::getLayerAxis() {
  return llvm::find_if(roles, [](const AxisRole &role) { return role.splitsLayers; })->name;
}

StringRef mlir::fsdp::getStorageAxis() {
  return llvm::find_if(roles, [](const AxisRole &role) { return role.storesParameters; })->name;
}

std::string mlir::fsdp::listBatchAxes() {
  std::string text;
  llvm::ListSeparator separator(" and ");
  for (const AxisRole &role : roles)
    if (role.splitsBatch)
      text += (StringRef(separator) + "'" + role.name + "'").str();
  return text;
}
