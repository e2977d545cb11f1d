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
#include "llvm/ADT/DenseMap.h"
#include <optional>
#include <vector>

namespace mlir::fsdp {

/// A value that may differ between a function and an equal one: the name of a launch, an event, or
/// the place of a buffer.
struct FunctionValue {
  mutable LaunchOp launch; ///< whose name it is; its accessors are not const
  int event = -1;          ///< its number
  Value buffer;

  static FunctionValue ofName(LaunchOp launch) { return {launch, -1, Value()}; }
  static FunctionValue ofEvent(int event) { return {LaunchOp(), event, Value()}; }
  static FunctionValue ofPlace(Value buffer) { return {LaunchOp(), -1, buffer}; }
};

/// The values of one function, each once, in the order of its text.
class FunctionRow {
public:
  struct Field {
    FunctionValue value;
    llvm::StringRef type;   ///< "ArenaSpan<float>", "const char *", "int": one text for each type
    const ModelName *model; ///< its name in the model

    /// In the program: "h_0_query".
    std::string getWhole() const;
    /// As seen from `unit`: "query", "next_weight".
    std::string seenFrom(StringAttr unit, const ModelNames &names) const;

  private:
    /// `name` as an identifier that shows the kind of the value.
    std::string identify(const std::string &name) const;
  };

  /// The number of the field of `value`.
  std::optional<unsigned> find(const FunctionValue &value) const;
  /// Adds a field, whose value has none.
  unsigned add(Field field);
  llvm::ArrayRef<Field> getFields() const { return fields; }
  /// Frees the numbers that `find` looks up.
  void close() { numbers = decltype(numbers)(); }

private:
  static std::pair<const void *, int> keyOf(const FunctionValue &value);

  std::vector<Field> fields;
  llvm::DenseMap<std::pair<const void *, int>, unsigned> numbers;
};

/// The names of the fields of `rows`, which have the same types and are those of functions of
/// `units`: the name of each field is that in the program if all rows have one name, else the name
/// that most functions use.
std::vector<std::string> chooseFieldNames(llvm::ArrayRef<const FunctionRow *> rows,
                                          llvm::ArrayRef<StringAttr> units,
                                          const ModelNames &names);

/// Writes the struct `name` of `fields`, which are called `names`.
void declareRow(Writer &writer, llvm::StringRef name, llvm::ArrayRef<FunctionRow::Field> fields,
                llvm::ArrayRef<std::string> names);

/// The common part of `units`: "h" for "h.0" and "h.1"; "layer" if there is none.
std::string commonUnit(llvm::ArrayRef<llvm::StringRef> units);

} // namespace mlir::fsdp

#endif // CODEGEN_SHAREDFUNCTIONS_H
