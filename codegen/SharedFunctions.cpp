//===- SharedFunctions.cpp ------------------------------------------------===//

#include "codegen/SharedFunctions.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;

std::string FunctionRow::Field::identify(const std::string &name) const {
  std::string identifier = identifierFor(name);
  if (value.launch)
    return identifier + "_name";
  return value.buffer ? identifier : "after_" + identifier;
}

std::string FunctionRow::Field::getWhole() const { return identify(model->whole()); }

std::string FunctionRow::Field::seenFrom(mlir::StringAttr unit, const ModelNames &names) const {
  return identify(names.seenFrom(unit, *model));
}

std::pair<const void *, int> FunctionRow::keyOf(const FunctionValue &value) {
  if (value.buffer)
    return {value.buffer.getAsOpaquePointer(), 0};
  if (value.launch)
    return {value.launch.getAsOpaquePointer(), 1};
  return {nullptr, value.event};
}

std::optional<unsigned> FunctionRow::find(const FunctionValue &value) const {
  auto found = numbers.find(keyOf(value));
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

unsigned FunctionRow::add(Field field) {
  const auto number = static_cast<unsigned>(fields.size());
  numbers.try_emplace(keyOf(field.value), number);
  fields.push_back(std::move(field));
  return number;
}

std::vector<std::string> mlir::fsdp::chooseFieldNames(llvm::ArrayRef<const FunctionRow *> rows,
                                                      llvm::ArrayRef<mlir::StringAttr> units,
                                                      const ModelNames &names) {
  const llvm::ArrayRef<FunctionRow::Field> first = rows.front()->getFields();
  std::vector<std::string> chosen;
  Names taken(/*qualified=*/true);
  for (size_t field = 0; field < first.size(); ++field) {
    const std::string whole = first[field].getWhole();
    auto isSame = [&](const FunctionRow *row) {
      return row->getFields()[field].getWhole() == whole;
    };
    if (llvm::all_of(rows.drop_front(), isSame)) {
      chosen.push_back(taken.unique(whole));
      continue;
    }
    llvm::StringMap<size_t> votes;
    llvm::SmallVector<const llvm::StringMapEntry<size_t> *> candidates; // in order
    // Of equal layers one after another nearly all vote alike for a value of their own.
    llvm::StringMapEntry<size_t> *latest = nullptr;
    const FunctionRow::Field *voter = nullptr; // for `latest`, in its own unit
    for (auto [row, unit] : llvm::zip_equal(rows, units)) {
      const FunctionRow::Field &own = row->getFields()[field];
      const bool isInside = unit && own.model->unit == unit;
      if (isInside && voter && voter->model->name == own.model->name) {
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
                            llvm::ArrayRef<FunctionRow::Field> fields,
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
