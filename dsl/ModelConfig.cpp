//===- ModelConfig.cpp ----------------------------------------------------===//

#include "dsl/ModelConfig.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <charconv>
#include <cmath>

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

} // namespace fsdp::dsl
