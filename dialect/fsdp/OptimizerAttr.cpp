//===- OptimizerAttr.cpp - update rule, constants, schedule ---------------===//

#include "dialect/fsdp/UpdateRule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// The constants in the order of printing, with their defaults.
static SmallVector<UpdateRule::Constant> constantsOf(const UpdateRule &rule) {
  SmallVector<UpdateRule::Constant> constants = {{"lr", 0, /*fraction=*/false, ""}};
  llvm::append_range(constants, rule.constants);
  constants.push_back({"clip", 0, /*fraction=*/false, ""});
  constants.push_back({"min_lr", 0, /*fraction=*/false, ""});
  constants.push_back({"decay_share", 0.1, /*fraction=*/true, ""});
  return constants;
}

OptimizerAttr OptimizerAttr::create(function_ref<InFlightDiagnostic()> emitError,
                                    MLIRContext *context, StringRef name, ArrayRef<Constant> given,
                                    ScheduleKind schedule, int64_t warmup,
                                    const base::ParameterGroups &groups) {
  const UpdateRule *rule = UpdateRule::find(name);
  if (!rule) {
    emitError() << "unknown optimizer '" << name << "', expected " << UpdateRule::list("or");
    return {};
  }
  SmallVector<UpdateRule::Constant> constants = constantsOf(*rule);
  for (auto [constant, value] : given) {
    auto *place = llvm::find_if(constants, [&, word = constant](const UpdateRule::Constant &each) {
      return each.name == word;
    });
    if (place != constants.end()) {
      place->value = value;
      continue;
    }
    // A constant that the rule does not read would be ignored silently.
    std::string readers = UpdateRule::readersOf(constant);
    if (readers.empty())
      emitError() << "unknown optimizer constant '" << constant << "'";
    else
      emitError() << "optimizer constant '" << constant << "' applies to " << readers
                  << " only, got optimizer " << name << "; leave it out";
    return {};
  }
  SmallVector<double> values;
  for (const UpdateRule::Constant &constant : constants)
    values.push_back(constant.value);
  auto texts = [&](const std::vector<std::string> &each) {
    return Builder(context).getStrArrayAttr(SmallVector<StringRef>(each.begin(), each.end()));
  };
  return getChecked(emitError, context, rule->name, DenseF64ArrayAttr::get(context, values),
                    schedule, warmup, texts(groups.rateScaleTexts()), texts(groups.noDecay));
}

base::ParameterGroups OptimizerAttr::getGroups() const {
  auto texts = [](ArrayAttr attr) {
    std::vector<std::string> each;
    for (StringRef text : attr.getAsValueRange<StringAttr>())
      each.push_back(text.str());
    return each;
  };
  return base::ParameterGroups::of(texts(getLrScale()), texts(getNoDecay()));
}

/// Parses `["a", "b"]`.
static ParseResult parseTexts(AsmParser &parser, std::vector<std::string> &texts) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseString(&texts.emplace_back()); });
}

Attribute OptimizerAttr::parse(AsmParser &parser, Type) {
  StringRef rule, keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&rule))
    return {};
  if (!UpdateRule::find(rule)) {
    parser.emitError(loc) << "unknown optimizer '" << rule << "', expected "
                          << UpdateRule::list("or");
    return {};
  }
  SmallVector<Constant> constants;
  ScheduleKind schedule = ScheduleKind::constant;
  int64_t warmup = 0;
  base::ParameterGroups groups;
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
                              << "', expected constant, linear, cosine, inverse_sqrt or wsd";
        return {};
      }
      schedule = *parsed;
    } else if (keyword == "warmup") {
      if (parser.parseInteger(warmup))
        return {};
    } else if (keyword == "lr_scale") {
      std::vector<std::string> texts;
      if (parseTexts(parser, texts))
        return {};
      for (const std::string &text : texts)
        if (std::string fault = base::RateScale::parse(text, groups.rateScales.emplace_back());
            !fault.empty()) {
          parser.emitError(loc) << "optimizer 'lr_scale': " << fault;
          return {};
        }
    } else if (keyword == "no_decay") {
      if (parseTexts(parser, groups.noDecay))
        return {};
    } else if (parser.parseFloat(constants.emplace_back(keyword, 0).second)) {
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return create([&] { return parser.emitError(loc); }, parser.getContext(), rule, constants,
                schedule, warmup, groups);
}

void OptimizerAttr::print(AsmPrinter &printer) const {
  printer << "<" << getRule();
  for (auto [constant, value] :
       llvm::zip_equal(constantsOf(getUpdateRule()), getConstants().asArrayRef())) {
    if (value == constant.value)
      continue;
    printer << ", " << constant.name << " = ";
    printer.printFloat(APFloat(value));
  }
  if (getSchedule() != ScheduleKind::constant)
    printer << ", schedule = " << stringifyScheduleKind(getSchedule());
  if (getWarmup() != 0)
    printer << ", warmup = " << getWarmup();
  if (!getLrScale().empty())
    printer << ", lr_scale = " << getLrScale();
  if (!getNoDecay().empty())
    printer << ", no_decay = " << getNoDecay();
  printer << ">";
}

LogicalResult OptimizerAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                    DenseF64ArrayAttr values, ScheduleKind, int64_t warmup,
                                    ArrayAttr scales, ArrayAttr) {
  const UpdateRule *rule = UpdateRule::find(name);
  assert(rule && "OptimizerAttr::create looks the rule up");
  for (auto [constant, value] : llvm::zip_equal(constantsOf(*rule), values.asArrayRef())) {
    float used = static_cast<float>(value); // updates compute in f32
    if (!(std::isfinite(used) && value >= 0 && !(constant.fraction && used >= 1)))
      return emitError() << "optimizer constant '" << constant.name << "' is " << value
                         << ", expected "
                         << (constant.fraction ? "an f32 number in [0, 1)"
                                               : "a finite f32 number of at least 0");
    if (value != 0 && used == 0)
      return emitError() << "optimizer constant '" << constant.name << "' is " << value
                         << ", which is 0 in f32; expected 0 or a number that f32 can represent";
  }
  // (C2)
  double lr = values[0], minLr = values[values.size() - 2];
  if (minLr > lr)
    return emitError() << "optimizer constant 'min_lr' is " << minLr
                       << ", expected at most 'lr', which is " << lr;
  if (warmup < 0)
    return emitError() << "optimizer constant 'warmup' is " << warmup << ", expected at least 0";
  // (C3)
  base::RateScale scale;
  for (StringRef text : scales.getAsValueRange<StringAttr>())
    if (std::string fault = base::RateScale::parse(text, scale); !fault.empty())
      return emitError() << "optimizer 'lr_scale': " << fault;
  return success();
}

const UpdateRule &OptimizerAttr::getUpdateRule() const { return *UpdateRule::find(getRule()); }

SmallVector<StringRef> OptimizerAttr::getStateNames() const {
  SmallVector<StringRef> names;
  for (const UpdateRule::State &state : getUpdateRule().states)
    if (state.with.empty() || getConstant(state.with) != 0)
      names.push_back(state.name);
  return names;
}

SmallVector<OptimizerAttr::Constant> OptimizerAttr::getNamedConstants() const {
  SmallVector<Constant> constants;
  for (auto [constant, value] :
       llvm::zip_equal(constantsOf(getUpdateRule()), getConstants().asArrayRef()))
    constants.push_back({constant.name, value});
  return constants;
}

double OptimizerAttr::getConstant(StringRef name) const {
  for (auto [constant, value] : getNamedConstants())
    if (constant == name)
      return value;
  return 0;
}
