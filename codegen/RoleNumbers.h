//===- RoleNumbers.h - roles of ranks as numbers ----------------*- C++ -*-===//

#ifndef CODEGEN_ROLENUMBERS_H
#define CODEGEN_ROLENUMBERS_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {

/// The roles of the programs of a module as tables of emitted programs have them
/// (runtime/program/Roles.h): a role is the index of a rank along `axes`, row-major.
struct RoleNumbers {
  RoleNumbers() = default;
  explicit RoleNumbers(ModuleOp module);

  /// Of the programs of the module, by their symbols, in its order.
  llvm::MapVector<StringAttr, SmallVector<int64_t>> ofProgram;
  /// On which programs have roles, in the order of the mesh; none if all ranks run one program.
  SmallVector<StringAttr> axes;

  bool areSeveral() const { return ofProgram.size() > 1; }
  /// Of the programs that own `storage`, in order; none if all do.
  SmallVector<int64_t> of(StorageOp storage) const;
};

} // namespace mlir::fsdp

#endif // CODEGEN_ROLENUMBERS_H
