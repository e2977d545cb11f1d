//===- Arena.h - the slices of the arena in C++ -----------------*- C++ -*-===//

#ifndef CODEGEN_ARENA_H
#define CODEGEN_ARENA_H

#include "codegen/Names.h"
#include "codegen/ScheduledProgram.h"
#include "codegen/Writer.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::fsdp {

/// Names every buffer that launches use and declares it as a constant: those that persist in
/// namespace `persistent`, those of a segment in its namespace `arena`, beside the first function
/// that uses them.
class Arena {
public:
  explicit Arena(const ScheduledProgram &program) : program(program) {}
  /// Fails with a diagnostic where an element type has no counterpart in the runtime.
  LogicalResult create();

  /// The expression of the slice in emitted code: "arena::fc1_z".
  std::string spell(Value buffer) const { return spelling.find(buffer)->second; }
  /// The same outside its segment: "train::arena::fc1_z".
  std::string spellOutside(Value buffer) const { return outside.find(buffer)->second; }
  /// The type of its elements: "float".
  std::string typeOf(Value buffer) const { return types.find(buffer)->second; }
  void declarePersistent(Writer &writer) const;
  /// Declares those of the buffers that `actions` of a segment use which are not in `declared`.
  void declare(ArrayRef<Action> actions, llvm::DenseSet<Value> &declared, Writer &writer) const;

private:
  LogicalResult add(Value buffer, StringRef segment, Names &names);

  const ScheduledProgram &program;
  llvm::DenseMap<Value, std::string> spelling, outside, types;
  llvm::DenseMap<Value, std::string> declarations; ///< of buffers of segments
  std::vector<std::string> persistent;             ///< declarations
};

} // namespace mlir::fsdp

#endif // CODEGEN_ARENA_H
