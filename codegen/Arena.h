//===- Arena.h - the slices of the arena in C++ -----------------*- C++ -*-===//

#ifndef CODEGEN_ARENA_H
#define CODEGEN_ARENA_H

#include "codegen/Names.h"
#include "codegen/ScheduledProgram.h"
#include "codegen/Writer.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {

/// Names every buffer that launches use and declares it as a constant: persistent buffers in
/// namespace `persistent`, those of a segment in its namespace `arena`, before the first function
/// that uses them.
class Arena {
public:
  explicit Arena(const ScheduledProgram &program) : program(program) {}
  /// Fails with a diagnostic if an element type has no counterpart in the runtime.
  LogicalResult create();

  /// The expression of the slice in emitted code: "arena::fc1_z".
  const std::string &spell(Value buffer) const { return slices[find(buffer)].spelling; }
  /// The same outside its segment: "train::arena::fc1_z".
  std::string spellOutside(Value buffer) const {
    const Slice &slice = slices[find(buffer)];
    return (slice.segment.empty() ? "" : slice.segment.str() + "::") + slice.spelling;
  }
  /// The type of the slice: "ArenaSpan<float>".
  StringRef typeOf(Value buffer) const { return slices[find(buffer)].type; }
  void declarePersistent(Writer &writer) const;
  /// Declares the buffers that `actions` of a segment use and that are not in `declared`.
  void declare(ArrayRef<Action> actions, llvm::DenseSet<Value> &declared, Writer &writer) const;

private:
  struct Slice {
    Value buffer;
    StringRef segment; ///< its name in the program; empty: it persists
    StringRef type;
    std::string spelling;
  };

  /// `segment` is a name of the program.
  LogicalResult add(Value buffer, StringRef segment, Names &names);
  void declare(const Slice &slice, Writer &writer) const;
  size_t find(Value buffer) const { return numbers.find(buffer)->second; }

  const ScheduledProgram &program;
  std::vector<Slice> slices;
  llvm::StringSet<> types;               ///< of the slices
  llvm::DenseMap<Value, size_t> numbers; ///< of the slices
};

} // namespace mlir::fsdp

#endif // CODEGEN_ARENA_H
