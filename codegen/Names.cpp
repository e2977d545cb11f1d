//===- Names.cpp ----------------------------------------------------------===//

#include "codegen/Names.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fsdp;

// Keywords and macros of the C library.
static constexpr llvm::StringLiteral keywords[] = {
    "alignas",       "alignof",     "and",       "and_eq",   "asm",       "auto",
    "bitand",        "bitor",       "bool",      "break",    "case",      "catch",
    "char",          "char16_t",    "char32_t",  "class",    "compl",     "concept",
    "const",         "const_cast",  "constexpr", "continue", "co_await",  "co_return",
    "co_yield",      "decltype",    "default",   "delete",   "do",        "double",
    "dynamic_cast",  "else",        "enum",      "explicit", "export",    "extern",
    "false",         "float",       "for",       "friend",   "goto",      "if",
    "inline",        "int",         "long",      "mutable",  "namespace", "new",
    "noexcept",      "not",         "not_eq",    "nullptr",  "operator",  "or",
    "or_eq",         "private",     "protected", "public",   "register",  "reinterpret_cast",
    "requires",      "return",      "short",     "signed",   "sizeof",    "static",
    "static_assert", "static_cast", "struct",    "switch",   "template",  "this",
    "thread_local",  "throw",       "true",      "try",      "typedef",   "typeid",
    "typename",      "union",       "unsigned",  "using",    "virtual",   "void",
    "volatile",      "wchar_t",     "while",     "xor",      "xor_eq",    "BUFSIZ",
    "EOF",           "INFINITY",    "NAN",       "NULL",     "assert",    "errno",
    "linux",         "stderr",      "stdin",     "stdout",   "unix"};

// What programs call by its bare name.
static constexpr llvm::StringLiteral called[] = {"adam",
                                                 "adamw",
                                                 "advance",
                                                 "all_finite",
                                                 "all_gather",
                                                 "all_reduce",
                                                 "arena",
                                                 "axes",
                                                 "bf16",
                                                 "broadcast",
                                                 "communicators",
                                                 "cross_entropy",
                                                 "cross_entropy_grad",
                                                 "detail",
                                                 "device_order",
                                                 "dropout",
                                                 "fsdp",
                                                 "fused",
                                                 "gemm",
                                                 "inputs",
                                                 "kernels",
                                                 "launch",
                                                 "launchKernel",
                                                 "learning_rate",
                                                 "load",
                                                 "load_input",
                                                 "main",
                                                 "maximum",
                                                 "minimum",
                                                 "output",
                                                 "outputs",
                                                 "persistent",
                                                 "program",
                                                 "reads",
                                                 "record",
                                                 "reduceBlock",
                                                 "reduceLanes",
                                                 "reduce_scatter",
                                                 "rt",
                                                 "runTraining",
                                                 "segments",
                                                 "sgd",
                                                 "square_sum",
                                                 "std",
                                                 "step",
                                                 "storages",
                                                 "store",
                                                 "streams",
                                                 "vectorErf",
                                                 "vectorExp",
                                                 "vectorLog",
                                                 "vectorLog1p",
                                                 "vectorTanh",
                                                 "wait",
                                                 "warpReduce",
                                                 "writes"};

Names::Names(bool qualified) {
  for (llvm::StringLiteral word : keywords)
    taken.insert(word);
  if (qualified)
    return;
  for (llvm::StringLiteral word : called)
    taken.insert(word);
}

std::string Names::unique(StringRef text) {
  std::string wanted = identifierFor(text), name = wanted;
  for (unsigned number = 2; !taken.insert(name).second; ++number)
    name = wanted + "_" + std::to_string(number);
  return name;
}

std::string mlir::fsdp::identifierFor(StringRef text) {
  std::string name;
  for (char c : text) {
    if (llvm::isAlnum(c))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_')
    name.pop_back();
  if (name.empty())
    return "value";
  return llvm::isDigit(name.front()) ? "t" + name : name;
}

std::string mlir::fsdp::enumeratorFor(StringRef text) {
  std::string name = "k";
  bool capital = true;
  for (char c : text) {
    if (llvm::isAlnum(c))
      name += capital ? llvm::toUpper(c) : c;
    capital = !llvm::isAlnum(c);
  }
  return name;
}

StringRef mlir::fsdp::nameOf(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return named.getName().getValue();
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (StringRef name = nameOf(part); !name.empty())
        return name;
  }
  return "";
}

StringRef mlir::fsdp::actionOf(StringRef name) {
  StringRef base = name;
  // The number of a result, and what backward adds, say nothing alone.
  auto isNumber = [](StringRef text) {
    return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isDigit(c); });
  };
  size_t dot = base.rfind('.');
  while (dot != StringRef::npos && dot > 0 &&
         (base.substr(dot + 1) == "grad" || isNumber(base.substr(dot + 1)))) {
    base = base.take_front(dot);
    dot = base.rfind('.');
  }
  return dot == StringRef::npos ? name : name.substr(dot + 1);
}

std::string mlir::fsdp::escaped(StringRef text) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      stream << '\\' << c;
    else if (llvm::isPrint(c))
      stream << c;
    else // three octal digits end by themselves
      stream << '\\' << char('0' + (c >> 6)) << char('0' + ((c >> 3) & 7)) << char('0' + (c & 7));
  }
  return result;
}
