//===- Names.cpp - which names can be printed -----------------------------===//

#include "dialect/fsdp/Names.h"

#include "dialect/fsdp/Prints.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr size_t longestName = 1024;

/// True for U+0000 to U+001F and U+007F to U+009F, in UTF-8.
static bool hasControlCharacter(StringRef name) {
  for (size_t i = 0; i < name.size(); ++i) {
    unsigned char c = name[i];
    if (c < 0x20 || c == 0x7f)
      return true;
    if (c == 0xc2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xa0)
      return true;
  }
  return false;
}

static bool isUTF8(StringRef name) {
  auto *begin = reinterpret_cast<const llvm::UTF8 *>(name.begin());
  return llvm::isLegalUTF8String(&begin, reinterpret_cast<const llvm::UTF8 *>(name.end()));
}

std::string mlir::fsdp::shownName(StringRef name) {
  constexpr size_t most = 60;
  std::string text;
  llvm::raw_string_ostream out(text);
  if (isUTF8(name) && !hasControlCharacter(name) && name.size() <= most)
    out << name;
  else
    llvm::printEscapedString(name.take_front(most), out);
  return name.size() <= most ? text : text + "...";
}

std::string mlir::fsdp::faultOfName(StringRef name) {
  if (name.empty())
    return "is empty; give it a name";
  // Nearly all are ASCII, and every op of a program has one.
  if (llvm::all_of(name, llvm::isPrint))
    return "";
  if (!isUTF8(name) || hasControlCharacter(name))
    return "'" + shownName(name) + "' cannot be printed, expected UTF-8 without control characters";
  return "";
}

std::string mlir::fsdp::faultOfGivenName(StringRef name) {
  std::string fault = faultOfName(name);
  if (fault.empty() && name.size() > longestName)
    fault = "'" + shownName(name) + "' has " + std::to_string(name.size()) +
            " bytes, expected at most " + std::to_string(longestName);
  return fault;
}

/// True if the training log itself uses the key `name`.
static bool isLogKey(StringRef name) {
  static constexpr StringRef keys[] = {
      "step",         "loss",           "grad_norm",  "lr",
      "tokens_per_s", "step_ms",        "peak_bytes", "workspace",
      "seconds",      "tokens",         "epoch",      "tflops",
      "mfu",          "library_bytes",  "run",        "restart",
      "rollback",     "samples_digest", "loss_limit", "grad_norm_limit",
      "spike"};
  return llvm::is_contained(keys, name) || name.starts_with("val_");
}

/// Those of them that the model's own outputs are.
static bool isStepKey(StringRef name) {
  return name == "loss" || name == "grad_norm" || name == "lr";
}

/// All strings in `attribute`.
static LogicalResult verifyStrings(Operation *op, StringRef where, Attribute attribute) {
  if (auto text = dyn_cast<StringAttr>(attribute)) {
    // Names that passes derive from a name are longer.
    bool isGiven = isa<ParamOp, InputOp, MetricOp, PrintOp, CheckOp>(op);
    std::string fault = isGiven ? faultOfGivenName(text) : faultOfName(text);
    return fault.empty() ? success() : op->emitOpError() << "name '" << where << "' " << fault;
  }
  if (auto array = dyn_cast<ArrayAttr>(attribute))
    for (Attribute element : array)
      if (failed(verifyStrings(op, where, element)))
        return failure();
  return success();
}

LogicalResult mlir::fsdp::verifyNames(Operation *op) {
  // One by one: a dictionary of all would be made, and kept in the context, for each op.
  for (StringAttr name : op->getName().getAttributeNames())
    if (std::optional<Attribute> value = op->getInherentAttr(name);
        value && *value && failed(verifyStrings(op, name, *value)))
      return failure();
  return success();
}

LogicalResult mlir::fsdp::verifyNamesInside(Operation *container) {
  WalkResult result = container->walk([&](Operation *op) {
    return isa_and_nonnull<FSDPDialect>(op->getDialect()) ? WalkResult(verifyNames(op))
                                                          : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult mlir::fsdp::verifyLocationsInside(Operation *container) {
  WalkResult result = container->walk([](Operation *op) {
    std::string fault;
    op->getLoc()->walk([&](Location part) {
      auto name = dyn_cast<NameLoc>(part);
      if (name && !name.getName().empty() && fault.empty())
        fault = faultOfName(name.getName());
      return WalkResult::advance();
    });
    if (fault.empty())
      return WalkResult::advance();
    op->emitOpError() << "the name of its location " << fault;
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

SmallVector<std::string> mlir::fsdp::getLogged(Operation *op) {
  if (auto metric = dyn_cast<MetricOp>(op))
    return {metric.getName().str()};
  SmallVector<std::string> names;
  auto add = [&](StringRef name, ArrayRef<StringLiteral> suffixes) {
    for (StringRef suffix : suffixes)
      names.push_back((name + "." + suffix).str());
  };
  if (auto print = dyn_cast<PrintOp>(op))
    add(print.getName(), printed::kAll);
  else if (auto check = dyn_cast<CheckOp>(op))
    add(check.getName(), {printed::kCheck});
  return names;
}

/// The kind of `op` in messages about the values that it logs; "" if it logs none.
static StringRef kindOfLogged(Operation *op) {
  return isa<MetricOp>(op)  ? "metric"
         : isa<PrintOp>(op) ? "print"
         : isa<CheckOp>(op) ? "check"
                            : "";
}

/// `firstOf`: the ops before `op`, by the names that they log.
static LogicalResult verifyLogged(Operation *op, llvm::StringMap<Operation *> &firstOf) {
  if (failed(verifyNames(op)))
    return failure();
  for (const std::string &name : getLogged(op)) {
    if (isLogKey(name))
      return op->emitOpError()
             << "is called '" << op->getAttrOfType<StringAttr>("name").getValue()
             << "', a key that is reserved in the training log; choose another name";
    auto [first, added] = firstOf.try_emplace(name, op);
    if (added)
      continue;
    InFlightDiagnostic diag = op->emitOpError()
                              << "'" << name << "' appears twice in a step; give each its own name";
    diag.attachNote(first->second->getLoc())
        << "the first " << kindOfLogged(first->second) << " is here";
    return diag;
  }
  return success();
}

LogicalResult mlir::fsdp::verifyLogged(StepOp step) {
  llvm::StringMap<Operation *> firstOf;
  WalkResult result = step.walk([&](Operation *op) {
    return kindOfLogged(op).empty() ? WalkResult::advance()
                                    : WalkResult(::verifyLogged(op, firstOf));
  });
  return failure(result.wasInterrupted());
}

LogicalResult mlir::fsdp::verifyOutputs(Operation *container) {
  llvm::StringMap<Operation *> firstOf;
  WalkResult result = container->walk([&](Operation *op) {
    StringRef name;
    if (auto output = dyn_cast<OutputOp>(op))
      name = output.getName();
    else if (auto sum = dyn_cast<OutputSumOp>(op))
      name = sum.getName();
    else
      return WalkResult::advance();
    if (isLogKey(name) && !isStepKey(name)) {
      op->emitOpError() << "is called '" << name
                        << "', a key that is reserved in the training log; choose another name";
      return WalkResult::interrupt();
    }
    auto [first, added] = firstOf.try_emplace(name, op);
    if (added)
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitOpError()
                              << "'" << name << "' appears twice; give each its own name";
    diag.attachNote(first->second->getLoc()) << "the first output is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
