//===- SharedFunctions.cpp ------------------------------------------------===//

#include "codegen/SharedFunctions.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;

std::string NameTable::spell(const std::string &type, const std::string &value) {
  if (!collects)
    return value;
  auto [entry, isNew] = indices.try_emplace(type + " " + value, fields.size());
  if (isNew)
    fields.push_back({type, value, std::to_string(fields.size())});
  return "at." + fields[entry->second].name;
}

/// `name` without the unit that it is of, which the function is called for:
/// "transformer_h_0_weight" is `weight` where the unit is `h_0`, and what is of `h_1` is of the
/// next one, in the model's order.
static std::string withoutUnit(const std::string &name, llvm::StringRef unit) {
  llvm::StringRef base = unit.rtrim("0123456789");
  int own = 0;
  if (base.size() == unit.size() || unit.drop_front(base.size()).getAsInteger(10, own))
    return llvm::StringRef(name).starts_with((unit + "_").str()) ? name.substr(unit.size() + 1)
                                                                 : name;
  const std::pair<int, llvm::StringRef> places[] = {{0, ""}, {1, "next_"}, {-1, "previous_"}};
  for (auto [step, word] : places) {
    std::string wanted = base.str() + std::to_string(own + step) + "_";
    size_t at = name.find(wanted);
    if (at != std::string::npos && (at == 0 || name[at - 1] == '_') &&
        at + wanted.size() < name.size())
      return word.str() + name.substr(at + wanted.size());
  }
  return name;
}

NameTable NameTable::named(llvm::StringRef unit) const {
  NameTable result = *this;
  Names names(/*qualified=*/true);
  std::string own = identifierFor(unit);
  for (Field &field : result.fields) {
    std::string name = "event";
    if (field.type != "int") {
      llvm::StringRef value = field.value;
      if (size_t colons = value.rfind("::"); colons != llvm::StringRef::npos)
        value = value.substr(colons + 2);
      name = withoutUnit(identifierFor(value), own);
      if (field.type == "const char *")
        name += "_name";
    }
    field.name = names.unique(name);
  }
  return result;
}

void mlir::fsdp::declareTable(Writer &writer, llvm::StringRef name,
                              llvm::ArrayRef<NameTable::Field> fields) {
  writer.open("struct " + name);
  // In the order of the values, so neighbours of one type only.
  for (size_t begin = 0, end = 0; begin < fields.size(); begin = end) {
    llvm::StringRef type = fields[begin].type;
    bool pointer = type.consume_back("*");
    std::vector<std::string> names;
    for (; end < fields.size() && fields[end].type == fields[begin].type; ++end)
      names.push_back((pointer ? "*" : "") + fields[end].name);
    writer.list((type.rtrim() + " ").str(), names, ";");
  }
  writer.close(";");
}

void mlir::fsdp::defineTable(Writer &writer, llvm::StringRef type, llvm::StringRef name,
                             llvm::ArrayRef<NameTable::Field> fields) {
  std::vector<std::string> values;
  for (const NameTable::Field &field : fields)
    values.push_back(field.value);
  writer.list(("constexpr " + type + " " + name + "{").str(), values, "};");
}

std::string mlir::fsdp::sharedName(llvm::StringRef name) {
  std::string shared;
  for (llvm::StringRef part : llvm::split(name, '.')) {
    part = part.rtrim("0123456789");
    if (!part.empty())
      shared += (shared.empty() ? "" : ".") + part.str();
  }
  return shared.empty() ? "layer" : shared;
}
