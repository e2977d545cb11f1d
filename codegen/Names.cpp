//===- Names.cpp ----------------------------------------------------------===//

#include "codegen/Names.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

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
    "volatile",      "wchar_t",     "while",     "xor",      "xor_eq",    "assert",
    "errno",         "linux",       "stderr",    "stdin",    "stdout",    "unix"};

// Names used to declare slices of the arena.
static constexpr llvm::StringLiteral declaring[] = {"ArenaSpan", "StepState", "bf16", "std"};

// The functions of the runtime that programs call by their bare names.
static constexpr llvm::StringLiteral functions[] = {
#define FSDP_KERNEL(name, function, types, flops, parameters, stream) #name,
#define FSDP_VARIADIC_KERNEL(name, function) #name,
#define FSDP_LAUNCH(name) #name,
#include "runtime/program/Kernels.def"
#define FSDP_COLLECTIVE(name, Kind, Request) #name,
#define FSDP_SEND(name, Kind, Request) #name,
#define FSDP_RECEIVE(name, Kind, Request) #name,
#include "runtime/program/Collectives.def"
};

// The parameters of kernels, the shape first, and the requests of collectives.
static constexpr llvm::StringLiteral parameters[] = {
#define FSDP_KERNEL(name, function, types, flops, parameters, stream) #parameters,
#include "runtime/program/Kernels.def"
#define FSDP_COLLECTIVE(name, Kind, Request) #Request,
#define FSDP_SEND(name, Kind, Request) #Request,
#define FSDP_RECEIVE(name, Kind, Request) #Request,
#include "runtime/program/Collectives.def"
};

/// The name of the first type in the C++ `code`.
static llvm::StringRef firstType(llvm::StringRef code) {
  code = code.ltrim("( ");
  code.consume_front("const ");
  return code.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
}

// Other names that programs use unqualified: types in their tables, and names of the tables.
static constexpr llvm::StringLiteral used[] = {
    "CommunicatorSpec",
    "Context",
    "Counts",
    "FirstUse",
    "Gemm",
    "Initializer",
    "Input",
    "Join",
    "Layout",
    "MeshAxis",
    "Parameter",
    "Program",
    "Segment",
    "SegmentRuns",
    "ShardOf",
    "Source",
    "State",
    "Storage",
    "Table",
    "UpdateConstant",
    "UpdateStep",
    "arena",
    "argc",
    "argv",
    "axes",
    "badGradient",
    "badGradients",
    "collective_group",
    "combineStripes",
    "communicators",
    "cudaError_t",
    "cudaStream_t",
    "deferredBadGradient",
    "detail",
    "device_order",
    "dim3",
    "fsdp",
    "fused",
    "inDocuments",
    "inputs",
    "kernels",
    "fastGelu",
    "fastGeluGradient",
    "launchKernel",
    "load",
    "main",
    "maximum",
    "minimum",
    "no_decay",
    "ofRank",
    "outputs",
    "persistent",
    "plans",
    "program",
    "rate_scales",
    "reads",
    "reduceLanes",
    "repeated",
    "rt",
    "generateText",
    "runTraining",
    "segments",
    "step",
    "storages",
    "store",
    "streams",
    "update_constants",
    "vectorErf",
    "vectorExp",
    "vectorLog",
    "vectorLog1p",
    "vectorTanh",
    "warpReduce",
    "withBias",
    "writes",
};

/// Built once for all scopes: every kernel has one.
static const llvm::StringSet<> &wordsTaken(bool qualified) {
  auto collect = [](bool qualified) {
    llvm::StringSet<> words;
    for (llvm::StringLiteral word : keywords)
      words.insert(word);
    for (llvm::StringLiteral word : declaring)
      words.insert(word);
    if (qualified)
      return words;
    for (llvm::StringLiteral word : used)
      words.insert(word);
    for (llvm::StringLiteral word : functions)
      words.insert(word);
    for (llvm::StringLiteral code : parameters)
      words.insert(firstType(code));
    return words;
  };
  static const llvm::StringSet<> behindColons = collect(true), bare = collect(false);
  return qualified ? behindColons : bare;
}

Names::Names(bool qualified) : reserved(&wordsTaken(qualified)) {}

bool Names::isTaken(StringRef name) const {
  return reserved->contains(name) || taken.contains(name);
}

std::string Names::unique(StringRef text, llvm::ArrayRef<std::string> endings) {
  std::string wanted = identifierFor(text);
  const bool isLikeMacro = wanted.size() > 1 && llvm::none_of(wanted, llvm::isLower);
  const char *tail = isLikeMacro ? "_" : "";
  std::string name = wanted + tail;
  // Nearly all.
  if (endings.empty() && !reserved->contains(name) && taken.insert(name).second)
    return name;
  auto isFree = [&] {
    return !isTaken(name) && llvm::none_of(endings, [&](const std::string &ending) {
      return isTaken(name + ending);
    });
  };
  if (!isFree()) {
    auto known = next.find(wanted);
    unsigned number = known == next.end() ? 2 : known->second;
    do
      name = wanted + "_" + std::to_string(number++) + tail;
    while (!isFree());
    if (endings.empty()) // with them, a number may be passed over that is free
      next[wanted] = number;
  }
  taken.insert(name);
  for (const std::string &ending : endings)
    taken.insert(name + ending);
  return name;
}

void Names::reserveWordsOf(StringRef code) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  char before = 0;
  while (!code.empty()) {
    StringRef word = code.take_while(isWord);
    // Members, and names after `::`, are looked up in their scope.
    if (!word.empty() && before != '.' && before != ':' && !llvm::isDigit(word.front()))
      taken.insert(word);
    code = code.drop_front(word.size());
    if (!code.empty()) {
      before = code.front();
      code = code.drop_front();
    }
  }
}

std::string mlir::fsdp::identifierFor(StringRef text) {
  std::string name;
  name.reserve(text.size());
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
  // The number of a result and the suffixes of backward have no meaning alone.
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
  result.reserve(text.size());
  char before = 0;
  for (unsigned char c : text) {
    // "??/" is a backslash to old compilers.
    const bool isSpecial = c == '"' || c == '\\' || (c == '?' && before == '?');
    if (isSpecial || !llvm::isPrint(c))
      result += '\\';
    if (isSpecial || llvm::isPrint(c))
      result += c;
    else // three octal digits end by themselves
      for (int shift : {6, 3, 0})
        result += char('0' + ((c >> shift) & 7));
    before = c;
  }
  return result;
}

std::string mlir::fsdp::commentFor(StringRef text) {
  bool isPlain = llvm::all_of(
      text, [](char c) { return llvm::isAlnum(c) || c == '.' || c == '_' || c == '-'; });
  return isPlain ? text.str() : "\"" + escaped(text) + "\"";
}
