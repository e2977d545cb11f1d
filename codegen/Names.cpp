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
    "volatile",      "wchar_t",     "while",     "xor",      "xor_eq",    "assert",
    "errno",         "linux",       "stderr",    "stdin",    "stdout",    "unix"};

// What slices of the arena are declared with.
static constexpr llvm::StringLiteral declaring[] = {"ArenaSpan", "StepState", "bf16", "std"};

// What programs use by its bare name.
static constexpr llvm::StringLiteral used[] = {
    "AllToAllLayout",
    "CommunicatorSpec",
    "Context",
    "Gemm",
    "InOrder",
    "IndexShard",
    "Initializer",
    "Input",
    "Join",
    "Layout",
    "LogitRows",
    "MeshAxis",
    "Parameter",
    "Program",
    "RecutLayout",
    "ReduceOp",
    "Schedule",
    "Segment",
    "SegmentRuns",
    "ShardOf",
    "Source",
    "SourceRanks",
    "State",
    "Storage",
    "Table",
    "UpdateStep",
    "ShardLayout",
    "advance",
    "all_finite",
    "all_gather",
    "all_reduce",
    "all_slice",
    "all_to_all",
    "arena",
    "argc",
    "argv",
    "axes",
    "badGradient",
    "badGradients",
    "broadcast",
    "collective_permute",
    "communicators",
    "concat",
    "cross_entropy",
    "cross_entropy_grad",
    "cudaError_t",
    "cudaStream_t",
    "deferredBadGradient",
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
    "matmul",
    "maximum",
    "microbatch_samples",
    "minimum",
    "next_microbatch",
    "optimizer_step",
    "output",
    "outputs",
    "pad",
    "partial_cross_entropy",
    "persistent",
    "plans",
    "program",
    "reads",
    "receive",
    "record",
    "reduceBlock",
    "reduceLanes",
    "reduce_scatter",
    "rt",
    "runTraining",
    "sample_count",
    "segments",
    "send",
    "shard_indices",
    "shard_offset",
    "shard_size",
    "slice",
    "square_sum",
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
    if (!qualified)
      for (llvm::StringLiteral word : used)
        words.insert(word);
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
  auto isFree = [&] {
    return !isTaken(name) && llvm::none_of(endings, [&](const std::string &ending) {
      return isTaken(name + ending);
    });
  };
  for (unsigned number = 2; !isFree(); ++number)
    name = wanted + "_" + std::to_string(number) + tail;
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
    // A member, or what stands behind `::`, is found where it belongs.
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
  char before = 0;
  for (unsigned char c : text) {
    // "??/" is a backslash to old compilers.
    if (c == '"' || c == '\\' || (c == '?' && before == '?'))
      stream << '\\' << c;
    else if (llvm::isPrint(c))
      stream << c;
    else // three octal digits end by themselves
      stream << '\\' << char('0' + (c >> 6)) << char('0' + ((c >> 3) & 7)) << char('0' + (c & 7));
    before = c;
  }
  return result;
}

std::string mlir::fsdp::commentFor(StringRef text) {
  bool isPlain = llvm::all_of(
      text, [](char c) { return llvm::isAlnum(c) || c == '.' || c == '_' || c == '-'; });
  return isPlain ? text.str() : "\"" + escaped(text) + "\"";
}
