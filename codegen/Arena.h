//===- Arena.h - the slices of the arena in C++ -----------------*- C++ -*-===//

#ifndef CODEGEN_ARENA_H
#define CODEGEN_ARENA_H

#include "codegen/Names.h"
#include "codegen/ScheduledProgram.h"
#include "codegen/Writer.h"

namespace mlir::fsdp {

/// Names every buffer that launches use and declares it as a constant: those that persist in
/// namespace `persistent`, those of a segment in its namespace `arena`.
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
  void declareSegment(Writer &writer, const Timeline &timeline) const;

private:
  struct Declaration {
    std::string name, declaration, note;
  };
  LogicalResult add(Value buffer, StringRef segment, Names &names,
                    std::vector<Declaration> &slices);

  const ScheduledProgram &program;
  llvm::DenseMap<Value, std::string> spelling, outside, types;
  std::vector<Declaration> persistent;
  std::vector<std::vector<Declaration>> segments;
};

} // namespace mlir::fsdp

#endif // CODEGEN_ARENA_H
