//===- ModelWords.cpp -----------------------------------------------------===//

#include "dialect/fsdp/ModelWords.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

/// The mnemonic of the op of this project's or MLIR's dialects that `name` is: "layer_norm" for "nn.layer_norm"; "" for
/// another name.
static StringRef getMnemonic(StringRef name) {
  auto [dialect, mnemonic] = name.split('.');
  const bool isDialect = dialect == "nn" || dialect == "fsdp" || dialect == "arith" || dialect == "math";
  const bool isWord = llvm::all_of(mnemonic, [](char c) { return llvm::isLower(c) || llvm::isDigit(c) || c == '_'; });
  return isDialect && isWord ? mnemonic : "";
}

/// What models call an op: "layerNorm".
static std::string functionName(StringRef mnemonic) {
  mnemonic.consume_back("f");
  std::string known = llvm::StringSwitch<std::string>(mnemonic)
                          .Case("param", "parameter")
                          .Case("add", "+")
                          .Case("sub", "-")
                          .Case("mul", "*")
                          .Case("div", "/")
                          .Case("neg", "-")
                          .Case("cmp", "equal")
                          .Default("");
  if (!known.empty())
    return known;
  std::string name;
  for (StringRef part : llvm::split(mnemonic, '_'))
    name += name.empty() || part.empty() ? part.str() : llvm::toUpper(part[0]) + part.drop_front().str();
  return name;
}

/// Takes "'nn.einsum'" off the front of `text` and returns "einsum"; "" where it begins with no name of an op.
static StringRef takeOpName(StringRef &text) {
  StringRef rest = text;
  if (!rest.consume_front("'"))
    return "";
  auto [name, after] = rest.split('\'');
  StringRef mnemonic = getMnemonic(name);
  if (!mnemonic.empty())
    text = after;
  return mnemonic;
}

/// Types and names of ops in `text`; the first name becomes `own`, unless that is empty.
static std::string replaceNames(StringRef text, std::string own) {
  std::string result;
  while (!text.empty()) {
    if (text.consume_front("tensor<")) {
      auto [shape, rest] = text.split('>');
      result += shape;
      text = rest;
      continue;
    }
    if (text.consume_front("name 'sym_name' ") || text.consume_front("name 'name' ")) { // of the attribute
      result += "name ";
      continue;
    }
    if (StringRef mnemonic = takeOpName(text); !mnemonic.empty()) {
      result += "'" + (own.empty() ? functionName(mnemonic) : own) + "'";
      own.clear();
      continue;
    }
    result += text.front();
    text = text.drop_front();
  }
  return result;
}

std::string mlir::fsdp::inWordsOfModel(StringRef message, Location location) {
  auto named = location->findInstanceOf<NameLoc>();
  std::string own = named ? named.getName().str() : "";
  StringRef rest = message;
  StringRef mnemonic = takeOpName(rest);
  if (mnemonic.empty() || !rest.consume_front(" op "))
    return replaceNames(message, own);
  // "'fsdp.param' op parameter 'w' ..." and "'fsdp.input' op 'x' ..." have a subject of their own.
  const bool hasSubject = rest.starts_with("'") || rest.starts_with("parameter '") || rest.starts_with("input '");
  if (hasSubject || own.empty())
    return replaceNames(rest, "");
  return (mnemonic == "param" ? "parameter '" : "'") + own + "' " + replaceNames(rest, "");
}

std::string mlir::fsdp::inWordsOfModel(StringRef message) {
  StringRef rest = message;
  if (takeOpName(rest).empty() || !rest.consume_front(" op "))
    rest = message;
  return replaceNames(rest, "");
}
