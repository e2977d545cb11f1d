//===- SharedFunctions.h - one function for equal layers --------*- C++ -*-===//
// Equal layers share one function, called once for each layer with a row of its differences:
// addresses in the arena, names of launches, events.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_SHAREDFUNCTIONS_H
#define CODEGEN_SHAREDFUNCTIONS_H

#include "codegen/ModelNames.h"
#include "codegen/Names.h"
#include "codegen/Writer.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace mlir::fsdp {

/// How a function spells the values that may differ between it and an equal one.
class NameTable {
public:
  /// A value of the row of one function.
  struct Field {
    llvm::StringRef type;  ///< "ArenaSpan<float>", "const char *", "int"
    llvm::StringRef value; ///< "arena::h_0_query", "\"h.0.einsum\"", "kDoneH0Einsum"
    const ModelName *model;
    const char *before, *behind; ///< this name, in the names of the field

    /// In the program: "h_0_query".
    std::string getWhole() const;
    /// As seen from `unit`: "query", "next_weight".
    std::string seenFrom(StringAttr unit, const ModelNames &names) const;
  };

  /// As the value itself.
  static NameTable ofValues() { return NameTable(false, {}); }
  /// As a field with a number: equal functions get equal text.
  static NameTable ofNumbers() { return NameTable(true, {}); }
  /// As the field of this name: `names` are those of all fields, in order.
  static NameTable ofFields(std::vector<std::string> names) {
    return NameTable(true, std::move(names));
  }

  /// The expression of `value`, of `type`: of what the model calls `name`, with texts around it.
  std::string spell(llvm::StringRef type, llvm::StringRef value, const ModelName &name,
                    const char *before = "", const char *behind = "");
  llvm::ArrayRef<Field> getFields() const { return fields; }

private:
  NameTable(bool collects, std::vector<std::string> names)
      : collects(collects), names(std::move(names)) {}

  bool collects;
  std::vector<std::string> names;
  std::vector<Field> fields;
  llvm::StringMap<size_t> indices; ///< by type and value, which fields refer to
};

/// The names of the fields of `rows`, which have the same types and are those of functions of
/// `units`: the name of each field is that in the program if all rows have one name, else the name
/// that most functions use.
std::vector<std::string> chooseFieldNames(llvm::ArrayRef<const NameTable *> rows,
                                          llvm::ArrayRef<StringAttr> units,
                                          const ModelNames &names);

/// Writes the struct `name` of `fields`, which are called `names`.
void declareRow(Writer &writer, llvm::StringRef name, llvm::ArrayRef<NameTable::Field> fields,
                llvm::ArrayRef<std::string> names);

/// Writes the row of `fields`, called `names`, of a table.
void writeRow(Writer &writer, llvm::ArrayRef<NameTable::Field> fields,
              llvm::ArrayRef<std::string> names);

/// The common part of `units`: "h" for "h.0" and "h.1"; "layer" if there is none.
std::string commonUnit(llvm::ArrayRef<llvm::StringRef> units);

} // namespace mlir::fsdp

#endif // CODEGEN_SHAREDFUNCTIONS_H
