//===- SharedFunctions.h - one function for equal layers --------*- C++ -*-===//
// Equal layers share one function, called once for each with a table of the differences: places in
// the arena, names of launches, numbers of events.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_SHAREDFUNCTIONS_H
#define CODEGEN_SHAREDFUNCTIONS_H

#include "codegen/Names.h"
#include "codegen/Writer.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace mlir::fsdp {

/// How a function prints the values that may differ between it and an equal one.
class NameTable {
public:
  /// The value of a field of the table for one function.
  struct Field {
    std::string type;  ///< "ArenaSpan<float>", "const char *", "int"
    std::string value; ///< "arena::h_0_query", "\"h.0.einsum\"", "3"
    std::string name;  ///< "query", "einsum_name", "event"
  };

  /// As a literal value.
  static NameTable literal() { return NameTable(false); }
  /// As a numbered field: equal functions get equal text.
  static NameTable numbered() { return NameTable(true); }
  /// As `at.name`; `unit` is left out where names begin with it.
  NameTable named(llvm::StringRef unit) const;

  std::string slice(const std::string &value, const std::string &type) {
    return spell("ArenaSpan<" + type + ">", value);
  }
  std::string launchName(const std::string &quoted) { return spell("const char *", quoted); }
  std::string event(const std::string &number) { return spell("int", number); }

  const std::vector<Field> &getFields() const { return fields; }

private:
  explicit NameTable(bool collects) : collects(collects) {}
  std::string spell(const std::string &type, const std::string &value);

  bool collects;
  std::vector<Field> fields;
  llvm::StringMap<size_t> indices; ///< by type and value
};

/// Writes the struct `name` with `fields`, those of one type in one declaration.
void declareTable(Writer &writer, llvm::StringRef name, llvm::ArrayRef<NameTable::Field> fields);

/// Writes the constant `name` of type `type` with the values of `fields`.
void defineTable(Writer &writer, llvm::StringRef type, llvm::StringRef name,
                 llvm::ArrayRef<NameTable::Field> fields);

/// "h.forward" for "h.0.forward": the name of the function of all layers.
std::string sharedName(llvm::StringRef name);

} // namespace mlir::fsdp

#endif // CODEGEN_SHAREDFUNCTIONS_H
