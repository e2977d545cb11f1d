//===- SharedFunctions.cpp ------------------------------------------------===//

#include "codegen/SharedFunctions.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;

std::string NameTable::spell(llvm::StringRef type, llvm::StringRef value,
                             llvm::function_ref<void(Field &)> setNames) {
  if (!collects)
    return value.str();
  llvm::SmallString<128> key;
  auto [entry, isNew] = indices.try_emplace((type + " " + value).toStringRef(key), fields.size());
  if (isNew)
    setNames(fields.emplace_back(Field{type.str(), value.str(), "", ""}));
  return "at." + (names.empty() ? std::to_string(entry->second) : names[entry->second]);
}

std::vector<std::string> mlir::fsdp::chooseFieldNames(llvm::ArrayRef<const NameTable *> rows) {
  const llvm::ArrayRef<NameTable::Field> first = rows.front()->getFields();
  std::vector<std::string> chosen;
  Names names(/*qualified=*/true);
  for (size_t field = 0; field < first.size(); ++field) {
    auto isSame = [&](const NameTable *row) {
      return row->getFields()[field].whole == first[field].whole;
    };
    if (llvm::all_of(rows, isSame)) {
      chosen.push_back(names.unique(first[field].whole));
      continue;
    }
    llvm::MapVector<llvm::StringRef, size_t> votes;
    for (const NameTable *row : rows)
      ++votes[row->getFields()[field].name];
    auto *best = llvm::max_element(
        votes, [](const auto &one, const auto &other) { return one.second < other.second; });
    chosen.push_back(names.unique(best->first));
  }
  return chosen;
}

void mlir::fsdp::declareRow(Writer &writer, llvm::StringRef name,
                            llvm::ArrayRef<NameTable::Field> fields,
                            llvm::ArrayRef<std::string> names) {
  writer.open("struct " + name);
  // In the order of the values, so neighbours of one type only.
  for (size_t begin = 0, end = 0; begin < fields.size(); begin = end) {
    llvm::StringRef type = fields[begin].type;
    bool pointer = type.consume_back("*");
    std::vector<std::string> declared;
    for (; end < fields.size() && fields[end].type == fields[begin].type; ++end)
      declared.push_back((pointer ? "*" : "") + names[end]);
    writer.list((type.rtrim() + " ").str(), declared, ";");
  }
  writer.close(";");
}

void mlir::fsdp::writeRow(Writer &writer, llvm::ArrayRef<NameTable::Field> fields,
                          llvm::ArrayRef<std::string> names) {
  std::vector<std::string> values;
  for (auto [field, name] : llvm::zip_equal(fields, names))
    values.push_back("." + name + " = " + field.value);
  writer.list("{", values, "},");
}

std::string mlir::fsdp::commonUnit(llvm::ArrayRef<llvm::StringRef> units) {
  llvm::SmallVector<llvm::StringRef> common;
  units.front().split(common, '.');
  for (llvm::StringRef unit : units.drop_front()) {
    llvm::SmallVector<llvm::StringRef> components;
    unit.split(components, '.');
    if (components.size() != common.size())
      return "layer";
    for (auto [kept, component] : llvm::zip_equal(common, components))
      if (kept != component)
        kept = "";
  }
  llvm::erase(common, "");
  return common.empty() ? "layer" : llvm::join(common, ".");
}
