//===- OptimizerTable.cpp -------------------------------------------------===//

#include "codegen/OptimizerTable.h"

#include "codegen/Elementwise.h"
#include "codegen/TableFields.h"
#include "dialect/fsdp/UpdateRule.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr llvm::StringLiteral constantTable = "update_constants",
                                     rateScaleTable = "rate_scales", noDecayTable = "no_decay";

static SmallVector<std::string> quotedTexts(ArrayAttr texts) {
  return llvm::map_to_vector(texts.getAsValueRange<StringAttr>(), quoted);
}

OptimizerTable::OptimizerTable(const ScheduledProgram &program)
    : f32(Builder(program.module.getContext()).getF32Type()) {
  // Those of several roles are equal, which is verified: the first is found soon.
  program.module.walk([&](LearningRateOp op) {
    optimizer = op.getOptimizer();
    return program.roles.areSeveral() ? WalkResult::interrupt() : WalkResult::advance();
  });
}

void OptimizerTable::emitConstants(Writer &writer) const {
  if (!optimizer)
    return;
  const UpdateRule &rule = optimizer.getUpdateRule();
  std::vector<Fields> rows;
  for (const UpdateRule::Constant &constant : rule.constants) {
    const double value = optimizer.getConstant(constant.name);
    const bool needsState = llvm::any_of(
        rule.states, [&](const UpdateRule::State &state) { return state.with == constant.name; });
    rows.emplace_back()
        .add("name", quoted(constant.name))
        .add("value", literal(value, f32))
        .addUnless(!constant.fraction, "isFraction", "true")
        .addUnless(!needsState || value != 0, "isFixed", "true");
  }
  emitRows("UpdateConstant", constantTable, rows, writer);
  emitValues("const char *", rateScaleTable, quotedTexts(optimizer.getLrScale()), writer);
  emitValues("const char *", noDecayTable, quotedTexts(optimizer.getNoDecay()), writer);
}

std::string OptimizerTable::getLearningRate() const {
  return literal(optimizer ? optimizer.getLr() : 0.0, f32);
}

std::vector<std::pair<std::string, std::string>> OptimizerTable::getFields() const {
  if (!optimizer)
    return {};
  const std::string kind = llvm::convertToCamelFromSnakeCase(
      stringifyScheduleKind(optimizer.getSchedule()), /*capitalizeFirst=*/true);
  std::vector<std::pair<std::string, std::string>> fields = {
      {"schedule", Fields()
                       .add("kind", "Schedule::" + kind)
                       .add("warmup", static_cast<int64_t>(optimizer.getWarmup()))
                       .add("minimum", literal(optimizer.getMinLr(), f32))
                       .add("decayShare", literal(optimizer.getDecayShare(), f32))
                       .spell()},
      {"updateRule", quoted(optimizer.getRule())}};
  if (!optimizer.getUpdateRule().constants.empty())
    fields.emplace_back("updateConstants", constantTable.str());
  if (optimizer.getClip() > 0)
    fields.emplace_back("clip", literal(optimizer.getClip(), f32));
  if (!optimizer.getLrScale().empty())
    fields.emplace_back("rateScales", rateScaleTable.str());
  if (!optimizer.getNoDecay().empty())
    fields.emplace_back("noDecay", noDecayTable.str());
  return fields;
}
