//===- Arena.h - the slices of the arena in C++ -----------------*- C++ -*-===//

#ifndef CODEGEN_ARENA_H
#define CODEGEN_ARENA_H

#include "codegen/Names.h"
#include "codegen/ScheduledProgram.h"
#include "codegen/Writer.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {

/// The C++ expressions of buffers. Persistent buffers are constants in namespace `persistent`.
/// Those of a segment that the text of a function names are constants in its namespace `arena`,
/// before the first such function; others are in rows of tables, as values.
class Arena {
public:
  explicit Arena(const ScheduledProgram &program) : program(program) {}
  /// Names the persistent buffers. Fails with a diagnostic if the element type of a buffer that
  /// launches use has no counterpart in the runtime.
  LogicalResult create();

  /// The expression in the code of its segment: "arena::fc1_z", or "{128, 64}" if it is not
  /// declared, bytes from the start of the arena and elements.
  std::string spell(Value buffer) const;
  /// The same anywhere: "train::arena::fc1_z", "ArenaSpan<float>{128, 64}".
  std::string spellOutside(Value buffer) const;
  /// The type: "ArenaSpan<float>". Equal ones are one text.
  StringRef typeOf(Value buffer) const;
  void declarePersistent(Writer &writer) const;
  /// Declares the buffers that `actions` of `segment`, a name of the program, use and that are not
  /// declared. `names` are those of the segment's namespace `arena`.
  void declare(ArrayRef<Action> actions, StringRef segment, Names &names, Writer &writer);

private:
  struct Slice {
    StringRef segment; ///< its name in the program; empty: it persists
    std::string name;
  };

  /// Finds the text of the type of `buffer`.
  LogicalResult readType(Value buffer);
  bool isState(Value buffer) const { return buffer == program.stepState->getResult(0); }
  std::string spellValue(Value buffer) const;
  void declare(Value buffer, const Slice &slice, Writer &writer) const;

  const ScheduledProgram &program;
  llvm::StringSet<> texts;               ///< of the types
  llvm::DenseMap<Type, StringRef> types; ///< of slices, by element
  SmallVector<Value> persistent;         ///< in the order of their declarations
  llvm::DenseMap<Value, Slice> declared;
};

} // namespace mlir::fsdp

#endif // CODEGEN_ARENA_H
