//===- ModelConfig.cpp ----------------------------------------------------===//

#include "dsl/ModelConfig.h"

#include "dialect/fsdp/ModelConfig.h"
#include "dsl/ModelBuilder.h"
#include "llvm/Support/JSON.h"
#include <charconv>
#include <cmath>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::dsl {

static std::string spell(const llvm::json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

ConfigValue::ConfigValue(double value) {
  char digits[32];
  json.assign(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (json.find_first_of(".e") == json.npos)
    json += ".0";
}

ConfigValue::ConfigValue(const std::string &text) : json(spell(llvm::json::fixUTF8(text))) {}

ConfigValue::ConfigValue(const std::vector<std::string> &list) {
  llvm::json::Array array;
  for (const std::string &text : list)
    array.push_back(llvm::json::fixUTF8(text));
  json = spell(std::move(array));
}

std::string ModelConfig::text() const {
  std::string text;
  for (const ConfigEntry &entry : entries)
    if (entry.written)
      text += (text.empty() ? "{\n  " : ",\n  ") + ConfigValue(entry.names.front()).text() + ": " +
              entry.value.text();
  return text.empty() ? "{}\n" : text + "\n}\n";
}

void Model::config(const ModelConfig &config, Where where) {
  checkpointFile(config.file, config.text(), where);
  Builder &build = builder->builder;
  SmallVector<Attribute> entries;
  for (const ConfigEntry &entry : config.entries) {
    if (!entry.compared)
      continue;
    std::string names, same;
    for (const std::string &name : entry.names)
      names += (names.empty() ? "" : "|") + name;
    for (const ConfigValue &value : entry.equal)
      same += (same.empty() ? "" : ", ") + value.text();
    NamedAttrList fields;
    auto add = [&](StringRef name, const std::string &value) {
      fields.append(name, build.getStringAttr(value));
    };
    add(ir::configNamesKey, names);
    add(ir::configValueKey, entry.value.text());
    if (entry.otherwise)
      add(ir::configImpliedKey, entry.otherwise->text());
    if (!same.empty())
      add(ir::configSameKey, "[" + same + "]");
    if (!entry.setBy.empty())
      add(ir::configOptionKey, entry.setBy);
    entries.push_back(fields.getDictionary(&builder->context));
  }
  NamedAttrList all;
  all.append(ir::configFileKey, build.getStringAttr(config.file));
  all.append(ir::configEntriesKey, build.getArrayAttr(entries));
  ModuleOp module = *builder->module;
  module->setDiscardableAttr(ir::modelConfigAttrName, all.getDictionary(&builder->context));
  builder->check(
      [&] {
        return ir::detail::verifyModelConfig(module,
                                             module->getDiscardableAttr(ir::modelConfigAttrName));
      },
      "the file '" + config.file + "'", where);
}

} // namespace fsdp::dsl
