//===- TableFields.h - constant tables of emitted programs ------*- C++ -*-===//

#ifndef CODEGEN_TABLEFIELDS_H
#define CODEGEN_TABLEFIELDS_H

#include "codegen/Names.h"
#include "codegen/Writer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

inline std::string quoted(StringRef text) { return "\"" + escaped(text) + "\""; }

/// The initializers of a constant, by the names of its fields, in the order of its type. A field
/// that has its default value is left out.
class Fields {
public:
  Fields &add(StringRef name, const llvm::Twine &value) {
    items.push_back(("." + name + " = " + value).str());
    return *this;
  }
  Fields &add(StringRef name, int64_t value) { return add(name, llvm::Twine(value)); }
  Fields &addUnless(bool isDefault, StringRef name, const llvm::Twine &value) {
    return isDefault ? *this : add(name, value);
  }
  Fields &addUnless(bool isDefault, StringRef name, int64_t value) {
    return isDefault ? *this : add(name, value);
  }
  /// "{.name = value, ...}"
  std::string spell() const { return "{" + llvm::join(items, ", ") + "}"; }
  ArrayRef<std::string> getItems() const { return items; }

private:
  std::vector<std::string> items;
};

/// `constexpr TYPE NAME[] =` with a row for each of `rows`; nothing if there are none.
inline void emitRows(StringRef type, StringRef name, ArrayRef<Fields> rows, Writer &writer) {
  if (rows.empty())
    return;
  writer.open("constexpr " + type + " " + name + "[] =");
  for (const Fields &row : rows)
    writer.list("{", row.getItems(), "},");
  writer.close(";");
}

/// `constexpr TYPE NAME[] = {...};` of values that need no names; nothing if there are none.
inline void emitValues(StringRef type, StringRef name, ArrayRef<std::string> values,
                       Writer &writer) {
  if (!values.empty())
    writer.list(("constexpr " + type + (type.ends_with("*") ? "" : " ") + name + "[] = {").str(),
                values, "};");
}

/// "{1, 2}"
template <typename Range> std::string braced(const Range &numbers) {
  return "{" +
         llvm::join(llvm::map_range(numbers, [](auto number) { return std::to_string(number); }),
                    ", ") +
         "}";
}

} // namespace mlir::fsdp

#endif // CODEGEN_TABLEFIELDS_H
