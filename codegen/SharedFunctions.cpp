//===- SharedFunctions.cpp ------------------------------------------------===//

#include "codegen/SharedFunctions.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;

std::string NameTable::Field::getWhole() const {
  return before + identifierFor(model->whole()) + behind;
}

std::string NameTable::Field::seenFrom(mlir::StringAttr unit, const ModelNames &names) const {
  return before + identifierFor(names.seenFrom(unit, *model)) + behind;
}

std::string NameTable::spell(llvm::StringRef type, llvm::StringRef value, const ModelName &name,
                             const char *before, const char *behind) {
  if (!collects)
    return value.str();
  llvm::SmallString<128> key(type);
  key += ' ';
  key += value;
  auto [entry, isNew] = indices.try_emplace(key, fields.size());
  if (isNew) {
    llvm::StringRef text = entry->first();
    fields.push_back(
        {text.take_front(type.size()), text.drop_front(type.size() + 1), &name, before, behind});
  }
  return "at." + (names.empty() ? std::to_string(entry->second) : names[entry->second]);
}

std::vector<std::string> mlir::fsdp::chooseFieldNames(llvm::ArrayRef<const NameTable *> rows,
                                                      llvm::ArrayRef<mlir::StringAttr> units,
                                                      const ModelNames &names) {
  const llvm::ArrayRef<NameTable::Field> first = rows.front()->getFields();
  std::vector<std::string> chosen;
  Names taken(/*qualified=*/true);
  for (size_t field = 0; field < first.size(); ++field) {
    const std::string whole = first[field].getWhole();
    auto isSame = [&](const NameTable *row) { return row->getFields()[field].getWhole() == whole; };
    if (llvm::all_of(rows.drop_front(), isSame)) {
      chosen.push_back(taken.unique(whole));
      continue;
    }
    llvm::StringMap<size_t> votes;
    llvm::SmallVector<const llvm::StringMapEntry<size_t> *> candidates; // in order
    // Of equal layers one after another nearly all vote alike for a value of their own.
    llvm::StringMapEntry<size_t> *latest = nullptr;
    const NameTable::Field *voter = nullptr; // for `latest`, in its own unit
    for (auto [row, unit] : llvm::zip_equal(rows, units)) {
      const NameTable::Field &own = row->getFields()[field];
      const bool isInside = unit && own.model->unit == unit;
      if (isInside && voter && voter->model->name == own.model->name &&
          voter->before == own.before && voter->behind == own.behind) {
        ++latest->second;
        continue;
      }
      auto [entry, isNew] = votes.try_emplace(own.seenFrom(unit, names), 0);
      ++entry->second;
      if (isNew)
        candidates.push_back(&*entry);
      latest = &*entry;
      voter = isInside ? &own : nullptr;
    }
    auto *best = llvm::max_element(
        candidates, [](const auto *one, const auto *other) { return one->second < other->second; });
    chosen.push_back(taken.unique((*best)->first()));
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
    values.push_back(("." + llvm::Twine(name) + " = " + field.value).str());
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
