//===- RoleTables.cpp -----------------------------------------------------===//

#include "codegen/RoleTables.h"

#include "codegen/Elementwise.h"
#include "codegen/ProgramNames.h"
#include "codegen/TableFields.h"
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

/// In order; none if all load it.
static SmallVector<int64_t> loadersOf(const ScheduledProgram &program, const InputEntry &input) {
  SmallVector<int64_t> roles(input.roles.begin(), input.roles.end());
  if (static_cast<int64_t>(roles.size()) == program.mesh.getSize(program.roles.axes))
    return {};
  llvm::sort(roles);
  return roles;
}

static SmallVector<int64_t> ownNumbers(const ScheduledProgram &program) {
  ProgramOp op = program.program;
  return program.roles.ofProgram.find(op.getSymNameAttr())->second;
}

/// "of_0_2"
static std::string listNameOf(ArrayRef<int64_t> roles) {
  std::string name = "of";
  for (int64_t role : roles)
    name += "_" + std::to_string(role);
  return name;
}

static std::string tableOf(ArrayRef<int64_t> roles) {
  return roles.empty() ? "" : (kRoleSpace + "::").str() + listNameOf(roles);
}

void mlir::fsdp::emitRoleTables(const ScheduledProgram &program, Writer &writer) {
  if (!program.roles.areSeveral())
    return;
  std::set<SmallVector<int64_t>> lists{ownNumbers(program)};
  for (StorageOp storage : program.storages)
    lists.insert(program.roles.of(storage));
  for (const auto &[name, entry] : program.inputs)
    lists.insert(loadersOf(program, entry));
  writer.line("// Lists of roles: indices along the axes whose ranks run different programs");
  writer.line("namespace " + kRoleSpace.str() + " {");
  for (const SmallVector<int64_t> &list : lists)
    if (!list.empty())
      writer.line("constexpr int " + listNameOf(list) + "[] = " + braced(list) + ";");
  writer.line("} // namespace " + kRoleSpace.str());
  writer.line();
}

std::string mlir::fsdp::spellRoles(const ScheduledProgram &program, StorageOp storage) {
  return tableOf(program.roles.of(storage));
}

std::string mlir::fsdp::spellRoles(const ScheduledProgram &program, const InputEntry &input) {
  return tableOf(loadersOf(program, input));
}

std::string mlir::fsdp::spellRoles(const ScheduledProgram &program) {
  return tableOf(ownNumbers(program));
}

std::string mlir::fsdp::spellElsewhere(RankedTensorType type) {
  return "ArenaSpan<" + elementType(type.getElementType()).str() + ">{Buffer::kElsewhere, " +
         std::to_string(type.getNumElements()) + "}";
}
