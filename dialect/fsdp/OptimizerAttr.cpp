//===- OptimizerAttr.cpp - update rule, constants, schedule ---------------===//

#include "dialect/fsdp/FSDPDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/bit.h"
#include <array>
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// Calls `fn(name, value, default)` for each constant, in the order of printing.
template <typename Fn> static void forEachConstant(OptimizerConstants &constants, Fn fn) {
  const OptimizerConstants defaults;
  fn("lr", constants.lr, defaults.lr);
  fn("momentum", constants.momentum, defaults.momentum);
  fn("beta1", constants.beta1, defaults.beta1);
  fn("beta2", constants.beta2, defaults.beta2);
  fn("eps", constants.eps, defaults.eps);
  fn("weight_decay", constants.weightDecay, defaults.weightDecay);
  fn("clip", constants.clip, defaults.clip);
}

/// The bits of the constants: equal attributes print and behave alike, -0 and NaN included.
static std::array<uint64_t, 7> bits(OptimizerConstants constants) {
  std::array<uint64_t, 7> result;
  size_t next = 0;
  forEachConstant(constants, [&](StringRef, double &value, double) {
    result[next++] = llvm::bit_cast<uint64_t>(value);
  });
  return result;
}

bool OptimizerConstants::operator==(const OptimizerConstants &other) const {
  return bits(*this) == bits(other);
}

llvm::hash_code mlir::fsdp::hash_value(const OptimizerConstants &constants) {
  auto words = bits(constants);
  return llvm::hash_combine_range(words.begin(), words.end());
}

Attribute OptimizerAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  std::optional<OptimizerKind> kind = symbolizeOptimizerKind(keyword);
  if (!kind) {
    parser.emitError(loc) << "unknown optimizer '" << keyword << "', expected sgd, adam or adamw";
    return {};
  }
  OptimizerConstants constants;
  ScheduleKind schedule = ScheduleKind::constant;
  int64_t warmup = 0;
  while (succeeded(parser.parseOptionalComma())) {
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return {};
    if (keyword == "schedule") {
      StringRef name;
      loc = parser.getCurrentLocation();
      if (parser.parseKeyword(&name))
        return {};
      std::optional<ScheduleKind> parsed = symbolizeScheduleKind(name);
      if (!parsed) {
        parser.emitError(loc) << "unknown schedule '" << name
                              << "', expected constant, linear or cosine";
        return {};
      }
      schedule = *parsed;
      continue;
    }
    if (keyword == "warmup") {
      if (parser.parseInteger(warmup))
        return {};
      continue;
    }
    bool known = false, parsed = true;
    forEachConstant(constants, [&](StringRef name, double &value, double) {
      if (name == keyword) {
        known = true;
        parsed = succeeded(parser.parseFloat(value));
      }
    });
    if (!known) {
      parser.emitError(loc) << "unknown optimizer constant '" << keyword << "'";
      return {};
    }
    if (!parsed)
      return {};
  }
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return OptimizerAttr::getChecked(function_ref<InFlightDiagnostic()>(emitError),
                                   parser.getContext(), *kind, constants, schedule, warmup);
}

void OptimizerAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyOptimizerKind(getKind());
  OptimizerConstants constants = getConstants();
  forEachConstant(constants, [&](StringRef name, double &value, double unset) {
    if (value == unset)
      return;
    printer << ", " << name << " = ";
    printer.printFloat(APFloat(value));
  });
  if (getSchedule() != ScheduleKind::constant)
    printer << ", schedule = " << stringifyScheduleKind(getSchedule());
  if (getWarmup() != 0)
    printer << ", warmup = " << getWarmup();
  printer << ">";
}

LogicalResult OptimizerAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                    OptimizerKind kind, OptimizerConstants constants, ScheduleKind,
                                    int64_t warmup) {
  LogicalResult result = success();
  const bool isSgd = kind == OptimizerKind::sgd;
  forEachConstant(constants, [&](StringRef name, double &value, double unset) {
    bool fraction = name == "momentum" || name.starts_with("beta");
    float used = static_cast<float>(value); // updates compute in f32
    if (succeeded(result) && !(std::isfinite(used) && value >= 0 && !(fraction && used >= 1)))
      result = emitError() << "optimizer constant '" << name << "' is " << value << ", expected "
                           << (fraction ? "an f32 number in [0, 1)"
                                        : "a finite f32 number of at least 0");
    if (succeeded(result) && value != 0 && used == 0)
      result = emitError() << "optimizer constant '" << name << "' is " << value
                           << ", which is 0 in f32; expected 0 or a number that f32 can represent";
    // A constant that the rule does not read would be lost without a word.
    bool ofSgd = name == "momentum", ofAdam = name.starts_with("beta") || name == "eps";
    if (succeeded(result) && value != unset && (isSgd ? ofAdam : ofSgd))
      result = emitError() << "optimizer constant '" << name << "' applies to "
                           << (ofSgd ? "sgd" : "adam and adamw") << " only, got optimizer "
                           << stringifyOptimizerKind(kind) << "; leave it out";
  });
  if (failed(result))
    return failure();
  if (warmup < 0)
    return emitError() << "optimizer constant 'warmup' is " << warmup << ", expected at least 0";
  return success();
}

SmallVector<StringRef> OptimizerAttr::getStateNames() const {
  if (getKind() != OptimizerKind::sgd)
    return {"exp_avg", "exp_avg_sq"};
  if (getMomentum() != 0)
    return {"momentum"};
  return {};
}
