//===- ModelWords.cpp -----------------------------------------------------===//

#include "dialect/fsdp/ModelWords.h"

#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

/// The mnemonic of the op named `name`, "layer_norm" for "nn.layer_norm"; "" for other names, such
/// as that of a parameter of a unit called "nn".
static StringRef getMnemonic(StringRef name, MLIRContext *context) {
  return RegisteredOperationName::lookup(name, context) ? name.split('.').second : "";
}

/// The name of an op in models: "layerNorm".
static std::string functionName(StringRef mnemonic) {
  std::string known = llvm::StringSwitch<std::string>(mnemonic)
                          .Case("param", "parameter")
                          .Case("checkpoint", "model.checkpoint")
                          .Case("loss", "model.loss")
                          .Case("addf", "+")
                          .Cases({"subf", "negf"}, "-")
                          .Case("mulf", "*")
                          .Case("divf", "/")
                          .Cases({"cmpf", "cmpi"}, "equal")
                          .Case("maximumf", "maximum")
                          .Case("minimumf", "minimum")
                          .Case("absf", "abs")
                          .Default("");
  if (!known.empty())
    return known;
  std::string name;
  for (StringRef part : llvm::split(mnemonic, '_'))
    name += name.empty() || part.empty() ? part.str()
                                         : llvm::toUpper(part[0]) + part.drop_front().str();
  return name;
}

/// Removes "'nn.einsum'" from the front of `text` and returns "einsum"; "" if the text does not
/// begin with the name of an op.
static StringRef takeOpName(StringRef &text, MLIRContext *context) {
  StringRef rest = text;
  if (!rest.consume_front("'"))
    return "";
  auto [name, after] = rest.split('\'');
  StringRef mnemonic = getMnemonic(name, context);
  if (!mnemonic.empty())
    text = after;
  return mnemonic;
}

/// Replaces types and names of ops in `text`; the first name becomes `own`, unless that is empty. A
/// value called `named` is not an op.
static std::string replaceNames(StringRef text, std::string own, StringRef named,
                                MLIRContext *context) {
  std::string result;
  const std::string quoted = "'" + named.str() + "'";
  while (!text.empty()) {
    if (text.consume_front("tensor<")) {
      auto [shape, rest] = text.split('>');
      result += shape;
      text = rest;
      continue;
    }
    if (text.consume_front("name 'sym_name' ") ||
        text.consume_front("name 'name' ")) { // of the attribute
      result += "name ";
      continue;
    }
    if (!named.empty() && text.consume_front(quoted)) {
      result += quoted;
      continue;
    }
    if (StringRef mnemonic = takeOpName(text, context); !mnemonic.empty()) {
      // Messages tell the model to use these two; they are not the op that the message is about.
      if (own.empty() || mnemonic == "checkpoint" || mnemonic == "loss") {
        result += "'" + functionName(mnemonic) + "'";
        continue;
      }
      result += "'" + own + "'";
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
  MLIRContext *context = location.getContext();
  StringRef mnemonic = takeOpName(rest, context);
  if (mnemonic.empty() || !rest.consume_front(" op "))
    return replaceNames(message, own, own, context);
  // "'fsdp.param' op parameter 'w' ..." and "'fsdp.input' op 'x' ..." already name a subject.
  const bool hasSubject =
      rest.starts_with("'") || rest.starts_with("parameter '") || rest.starts_with("input '");
  if (hasSubject || own.empty())
    return replaceNames(rest, "", own, context);
  return (mnemonic == "param" ? "parameter '" : "'") + own + "' " +
         replaceNames(rest, "", own, context);
}

std::string mlir::fsdp::inWordsOfModel(StringRef message, MLIRContext *context) {
  StringRef rest = message;
  if (takeOpName(rest, context).empty() || !rest.consume_front(" op "))
    rest = message;
  return replaceNames(rest, "", "", context);
}
