//===- Model.cpp - what a model declares ----------------------------------===//

#include "dsl/Model.h"

#include "dialect/fsdp/CheckpointFiles.h"
#include "dialect/fsdp/ModelConfig.h"
#include "dialect/fsdp/Names.h"
#include "dialect/fsdp/TokenSource.h"
#include "dialect/fsdp/UpdateRule.h"
#include "frontend/ModelBuilder.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::dsl {

Shape Tensor::shape() const { return Shape(typeOf(*this).getShape()); }

Located::Located(const Tensor &tensor, Where where) : tensor(tensor), where(where) {
  if (!tensor.model)
    throw ModelError(where, "this tensor has no value; assign one before it is used");
}

Located::Located(const Parameter &parameter, Where where) : where(where) {
  if (!parameter.model)
    throw ModelError(where, "this parameter was not declared; create it with 'Scope::parameter'");
  tensor = parameter.model->read(parameter, where);
}

Model::Model(MLIRContext &context, Where where)
    : builder(std::make_unique<ModelBuilder>(context, where)) {
  optimizer(Optimizer(), where);
}

Model::~Model() = default;

ModelBuilder &ModelBuilder::of(Model &model) { return *model.builder; }

Tensor Model::input(const std::string &name, const Shape &shape, ElementType elementType,
                    int64_t sampleDim, Where where) {
  ModelBuilder &b = *builder;
  b.requireOutside("input '" + name + "'", where);
  RankedTensorType type =
      ModelBuilder::checkedType("input '" + name + "'", shape, b.typeOf(elementType), where);
  for (auto other : b.step.getOps<ir::InputOp>())
    if (other.getName() == name)
      throw ModelError(where, "input '" + name + "' is declared twice; give each its own name");
  if (sampleDim < 0 || sampleDim >= static_cast<int64_t>(shape.size()))
    throw ModelError(where, "input '" + name + "' counts samples along dimension " +
                                std::to_string(sampleDim) + ", expected a dimension below " +
                                std::to_string(shape.size()));
  auto op = ir::InputOp::create(b.builder, b.location(name, where), type, name, sampleDim,
                                IntegerAttr(), ArrayAttr(), IntegerAttr());
  b.check([&] { return mlir::verify(op); }, "input '" + ir::shownName(name) + "'", where);
  return b.wrap(op, name, Origin());
}

/// A batch of tokens off `source`, the name of an attribute.
static Tensor inputOfTokens(Model &model, StringRef source, const std::string &name,
                            const Shape &shape, int64_t vocab, Where where) {
  if (shape.size() != 2 || vocab < 1)
    throw ModelError(where, "tokens '" + name + "' have " + std::to_string(shape.size()) +
                                " dimensions and a vocabulary of " + std::to_string(vocab) +
                                ", expected samples by positions and at least 1");
  Tensor result = model.input(name, shape, ElementType::i32, 0, where);
  valueOf(result).getDefiningOp()->setDiscardableAttr(
      source, builderOf(result).builder.getI64IntegerAttr(vocab));
  return result;
}

Tensor Model::tokens(const std::string &name, const Shape &shape, int64_t vocab, Where where) {
  return inputOfTokens(*this, ir::tokensAttrName, name, shape, vocab, where);
}

Tensor Model::targets(const std::string &name, const Shape &shape, int64_t vocab, Where where) {
  return inputOfTokens(*this, ir::targetsAttrName, name, shape, vocab, where);
}

Scope Model::unit(const std::string &name, const std::string &prefix) {
  Scope scope;
  scope.model = builder.get();
  scope.prefix = prefix;
  scope.origin = {name, name};
  return scope;
}

Scope Scope::scope(const std::string &name) const {
  Scope inner = *this;
  inner.prefix += (prefix.empty() ? "" : ".") + name;
  inner.origin.path += "." + name;
  return inner;
}

Scope Scope::frozen() const {
  Scope same = *this;
  same.isFrozen = true;
  return same;
}

static ir::InitKind initKind(Init::Kind kind) {
  switch (kind) {
  case Init::Constant:
    return ir::InitKind::constant;
  case Init::Normal:
    return ir::InitKind::normal;
  case Init::Uniform:
    return ir::InitKind::uniform;
  }
  llvm_unreachable("unknown kind of initial values");
}

Parameter Scope::parameter(const std::string &name, const Shape &shape, Init init,
                           const Shape &fileShape, Where where) const {
  std::string label = prefix.empty() ? name : prefix + "." + name;
  Builder builder(&model->context);
  RankedTensorType type =
      ModelBuilder::checkedType("parameter '" + label + "'", shape, builder.getF32Type(), where);
  if (model->symbols.lookup(label))
    throw ModelError(where, "parameter '" + label + "' is declared twice; give each its own name");
  Parameter parameter;
  parameter.sizes = shape;
  parameter.model = model;
  parameter.label = label;
  parameter.origin = origin;
  OpBuilder declarations(model->step);
  auto op = ir::ParamOp::create(
      declarations, model->location(label, where), builder.getStringAttr(label),
      TypeAttr::get(type), builder.getStringAttr(origin.unit),
      ir::InitAttr::get(&model->context, initKind(init.kind), builder.getF64FloatAttr(init.value)),
      fileShape.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(fileShape),
      ArrayAttr(), ir::PlacementAttr(), isFrozen ? builder.getUnitAttr() : UnitAttr(),
      DenseI64ArrayAttr());
  model->symbols.insert(op);
  model->check([&] { return mlir::verify(op); }, "parameter '" + ir::shownName(label) + "'", where);
  return parameter;
}

/// Sum and weight of an average are scalars in double, as mean() and weightedMean() make them.
static void requireScalars(const std::string &what, const Average &average, Where where) {
  for (const Tensor &part : {average.sum, average.weight})
    if (RankedTensorType type = typeOf(part); type.getRank() != 0 || !type.getElementType().isF64())
      ModelBuilder::fail(
          what, {average.sum, average.weight}, where,
          "expected a sum and a weight that are scalars in f64; use mean or weightedMean");
}

void Model::loss(const Average &average, Where where) {
  ModelBuilder &b = *builder;
  b.requireOutside("the loss", where);
  if (!b.step.getOps<ir::LossOp>().empty())
    throw ModelError(where, "the model has two losses; add them first");
  b.requireVisible("the loss", average.sum, where);
  b.requireVisible("the loss", average.weight, where);
  requireScalars("the loss", average, where);
  ir::LossOp::create(b.builder, b.location("loss", where), valueOf(average.sum),
                     valueOf(average.weight));
}

void Model::metric(const std::string &name, const Average &average, Where where) {
  ModelBuilder &b = *builder;
  b.requireOutside("metric '" + name + "'", where);
  b.requireVisible("metric '" + name + "'", average.sum, where);
  b.requireVisible("metric '" + name + "'", average.weight, where);
  requireScalars("metric '" + name + "'", average, where);
  for (auto other : b.step.getOps<ir::MetricOp>())
    if (other.getName() == name)
      throw ModelError(where, "metric '" + name + "' is given twice; give each its own name");
  auto op = ir::MetricOp::create(b.builder, b.location(name, where), name, valueOf(average.sum),
                                 valueOf(average.weight));
  b.check([&] { return ir::verifyMetric(op); }, "metric '" + ir::shownName(name) + "'", where);
}

static ir::ScheduleKind scheduleKind(Optimizer::Schedule schedule) {
  switch (schedule) {
  case Optimizer::Constant:
    return ir::ScheduleKind::constant;
  case Optimizer::Linear:
    return ir::ScheduleKind::linear;
  case Optimizer::Cosine:
    return ir::ScheduleKind::cosine;
  }
  llvm_unreachable("unknown schedule");
}

void Model::optimizer(const Optimizer &optimizer, Where where) {
  ModelBuilder &b = *builder;
  std::string message;
  ScopedDiagnosticHandler handler(&b.context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  std::vector<ir::OptimizerAttr::Constant> constants = {{"lr", optimizer.lr},
                                                        {"clip", optimizer.clip}};
  if (const ir::UpdateRule *rule = ir::UpdateRule::find(optimizer.rule);
      rule && rule->reads("weight_decay"))
    constants.push_back({"weight_decay", rule->chosenDecay});
  for (const auto &[name, value] : optimizer.constants)
    constants.push_back({name, value});
  auto checked = ir::OptimizerAttr::create(
      [&] { return mlir::emitError(b.location("optimizer", where)); }, &b.context, optimizer.rule,
      constants, scheduleKind(optimizer.schedule), optimizer.warmup);
  if (!checked)
    throw ModelError(where, message);
  b.step.setOptimizerAttr(checked);
}

void Model::checkpointFile(const std::string &name, const std::string &text, Where where) {
  ModelBuilder &b = *builder;
  if (!ir::isCheckpointFileName(name))
    throw ModelError(where,
                     "got the file '" + ir::shownName(name) +
                         "' for checkpoints, expected a name without '/' that does not begin with "
                         "'.' and is neither 'manifest.json' nor '*.safetensors'");
  NamedAttrList files((*b.module)->getAttrOfType<DictionaryAttr>(ir::checkpointFilesAttrName));
  if (files.set(name, b.builder.getStringAttr(text)))
    throw ModelError(where, "the file '" + name + "' for checkpoints is given twice");
  (*b.module)->setDiscardableAttr(ir::checkpointFilesAttrName, files.getDictionary(&b.context));
}

void Model::config(const ModelConfig &config, Where where) {
  checkpointFile(config.file, config.text(), where);
  Builder &build = builder->builder;
  SmallVector<Attribute> entries;
  for (const ConfigEntry &entry : config.entries) {
    if (!entry.compared)
      continue;
    std::string names, same;
    for (const std::string &name : entry.names)
      names += (names.empty() ? "" : "|") + name;
    for (const ConfigValue &value : entry.equal)
      same += (same.empty() ? "" : ", ") + value.text();
    NamedAttrList fields;
    auto add = [&](StringRef name, const std::string &value) {
      fields.append(name, build.getStringAttr(value));
    };
    add(ir::configNamesKey, names);
    add(ir::configValueKey, entry.value.text());
    if (entry.otherwise)
      add(ir::configImpliedKey, entry.otherwise->text());
    if (!same.empty())
      add(ir::configSameKey, "[" + same + "]");
    if (!entry.setBy.empty())
      add(ir::configOptionKey, entry.setBy);
    entries.push_back(fields.getDictionary(&builder->context));
  }
  NamedAttrList all;
  all.append(ir::configFileKey, build.getStringAttr(config.file));
  all.append(ir::configEntriesKey, build.getArrayAttr(entries));
  ModuleOp module = *builder->module;
  module->setDiscardableAttr(ir::modelConfigAttrName, all.getDictionary(&builder->context));
  builder->check(
      [&] {
        return ir::detail::verifyModelConfig(module,
                                             module->getDiscardableAttr(ir::modelConfigAttrName));
      },
      "the file '" + config.file + "'", where);
}

Tensor Model::scalar(double value, ElementType elementType, Where where) {
  return builder->scalar(value, elementType, where);
}

OwningOpRef<ModuleOp> take(Model &model, Where where) {
  ModelBuilder &b = ModelBuilder::of(model);
  if (b.step.getOps<ir::LossOp>().empty())
    throw ModelError(where, "the model has no loss; call 'Model::loss'");
  if (b.module->getOps<ir::ParamOp>().empty())
    throw ModelError(where, "the model has no parameter; there is nothing to train");
  return std::move(b.module);
}

} // namespace fsdp::dsl
