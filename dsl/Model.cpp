//===- Model.cpp - the declarations of a model ----------------------------===//

#include "dsl/Model.h"

#include "dialect/fsdp/Adapters.h"
#include "dialect/fsdp/ModelConfig.h"
#include "dialect/fsdp/TokenSource.h"
#include "dialect/fsdp/UpdateRule.h"
#include "dsl/ModelIR.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::dsl {

Shape Tensor::shape() const { return Shape(typeOf(*this).getShape()); }

Located::Located(const Tensor &tensor, Where where) : tensor(tensor), where(where) {
  if (!tensor.hasValue())
    throw ModelError(where, "this tensor has no value; assign one before it is used");
}

Located::Located(const Parameter &parameter, Where where) : where(where) {
  if (!parameter.model)
    throw ModelError(where, "this parameter was not declared; create it with 'Scope::parameter'");
  tensor = parameter.model->read(parameter.label, parameter.origin, where);
}

Model::Model(MLIRContext &context, Where where)
    : builder(std::make_unique<ModelBuilder>(context, where)) {
  optimizer(Optimizer(), where);
}

Model::~Model() = default;

Tensor Model::input(const std::string &name, const Shape &shape, ElementType elementType,
                    int64_t sampleDim, Where where) {
  return builder->input(name, shape, elementType, sampleDim, where);
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

Scope Scope::adapter(const std::string &before) const {
  Scope other = *this;
  other.isFrozen = false;
  other.prefix = before + prefix;
  return other;
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
  Parameter parameter;
  parameter.sizes = shape;
  parameter.model = model;
  parameter.label = prefix.empty() ? name : prefix + "." + name;
  parameter.origin = origin;
  model->parameter(parameter.label, shape,
                   ir::InitAttr::get(&model->context, initKind(init.kind),
                                     model->builder.getF64FloatAttr(init.value)),
                   fileShape, origin, isFrozen, where);
  return parameter;
}

static ir::CheckpointPolicy policyOf(Keep keep) {
  switch (keep) {
  case Keep::Nothing:
    return ir::CheckpointPolicy::full;
  case Keep::Contractions:
    return ir::CheckpointPolicy::selective;
  }
  llvm_unreachable("unknown choice of what is kept");
}

Tensor Model::checkpoint(const std::function<Tensor()> &function, Keep keep, Where where) {
  return builder
      ->checkpoint([&] { return std::vector<frontend::ModelValue>{function()}; }, policyOf(keep),
                   where)
      .front();
}

std::vector<Tensor> Model::checkpoint(const std::function<std::vector<Tensor>()> &function,
                                      Keep keep, Where where) {
  std::vector<frontend::ModelValue> results = builder->checkpoint(
      [&] {
        std::vector<Tensor> tensors = function();
        return std::vector<frontend::ModelValue>(tensors.begin(), tensors.end());
      },
      policyOf(keep), where);
  return std::vector<Tensor>(results.begin(), results.end());
}

void Model::loss(const Average &average, Where where) {
  builder->loss(average.sum, average.weight, where);
}

void Model::metric(const std::string &name, const Average &average, Where where) {
  builder->metric(name, average.sum, average.weight, where);
}

static ir::ScheduleKind scheduleKind(Optimizer::Schedule schedule) {
  switch (schedule) {
  case Optimizer::Constant:
    return ir::ScheduleKind::constant;
  case Optimizer::Linear:
    return ir::ScheduleKind::linear;
  case Optimizer::Cosine:
    return ir::ScheduleKind::cosine;
  case Optimizer::InverseSqrt:
    return ir::ScheduleKind::inverse_sqrt;
  case Optimizer::Wsd:
    return ir::ScheduleKind::wsd;
  }
  llvm_unreachable("unknown schedule");
}

void Model::optimizer(const Optimizer &optimizer, Where where) {
  std::vector<ir::OptimizerAttr::Constant> constants = {{"lr", optimizer.lr},
                                                        {"clip", optimizer.clip},
                                                        {"min_lr", optimizer.minLr},
                                                        {"decay_share", optimizer.decayShare}};
  if (const ir::UpdateRule *rule = ir::UpdateRule::find(optimizer.rule);
      rule && rule->reads("weight_decay"))
    constants.push_back({"weight_decay", rule->chosenDecay});
  for (const auto &[name, value] : optimizer.constants)
    constants.push_back({name, value});
  base::ParameterGroups groups;
  groups.noDecay = optimizer.noDecay;
  for (const auto &[pattern, scale] : optimizer.lrScales)
    groups.rateScales.push_back({pattern, scale});
  builder->optimizer(optimizer.rule, constants, scheduleKind(optimizer.schedule), optimizer.warmup,
                     groups, where);
}

void Model::checkpointFile(const std::string &name, const std::string &text, Where where) {
  builder->checkpointFile(name, text, where);
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

/// The module's attribute `fsdp.adapters` with `fields` set.
static void setAdapters(ModelBuilder &builder, ArrayRef<NamedAttribute> fields) {
  ModuleOp module = *builder.module;
  NamedAttrList all(module->getAttrOfType<DictionaryAttr>(ir::adaptersAttrName));
  for (NamedAttribute field : fields)
    all.set(field.getName(), field.getValue());
  module->setDiscardableAttr(ir::adaptersAttrName, all.getDictionary(&builder.context));
}

void Model::adapter(const Parameter &weight, const Parameter &down, const Parameter &up,
                    double scale, bool isTransposed) {
  OpBuilder &build = builder->builder;
  NamedAttrList product;
  for (auto [key, parameter] :
       {std::pair(ir::adapterWeightKey, &weight), std::pair(ir::adapterDownKey, &down),
        std::pair(ir::adapterUpKey, &up)})
    product.append(key, build.getStringAttr(parameter->name()));
  product.append(ir::adapterScaleKey, build.getF64FloatAttr(scale));
  product.append(ir::adapterTransposedKey, build.getBoolAttr(isTransposed));
  SmallVector<Attribute> products;
  if (auto all = (*builder->module)->getAttrOfType<DictionaryAttr>(ir::adaptersAttrName))
    products.append(all.getAs<ArrayAttr>(ir::adapterProductsKey).begin(),
                    all.getAs<ArrayAttr>(ir::adapterProductsKey).end());
  products.push_back(product.getDictionary(&builder->context));
  setAdapters(*builder, build.getNamedAttr(ir::adapterProductsKey, build.getArrayAttr(products)));
}

void Model::adapterFile(const std::string &name, const std::string &text, Where where) {
  OpBuilder &build = builder->builder;
  setAdapters(*builder, {build.getNamedAttr(ir::adapterFileKey, build.getStringAttr(name)),
                         build.getNamedAttr(ir::adapterTextKey, build.getStringAttr(text))});
  ModuleOp module = *builder->module;
  builder->check(
      [&] {
        return ir::detail::verifyAdapters(module, module->getDiscardableAttr(ir::adaptersAttrName));
      },
      "the adapters of '" + name + "'", where);
}

Tensor Model::scalar(double value, ElementType elementType, Where where) {
  return builder->scalar(value, elementType, where);
}

OwningOpRef<ModuleOp> take(Model &model, Where where) { return model.builder->take(where); }

void describeFor(Model &model, const std::vector<std::pair<std::string, int64_t>> &mesh) {
  model.builder->meshAxes = mesh;
}

static std::vector<frontend::ModelValue> valuesOf(ArrayRef<Located> operands) {
  std::vector<frontend::ModelValue> values;
  for (const Located &operand : operands)
    values.push_back(operand.tensor);
  return values;
}

Tensor create(const std::string &what, ArrayRef<Located> operands,
              llvm::function_ref<Value(OpBuilder &, Location)> build) {
  return builderOf(operands.front())
      .create(what, valuesOf(operands), operands.front().where, build);
}

void fail(const std::string &what, ArrayRef<Located> operands, const std::string &message) {
  ModelBuilder::fail(what, valuesOf(operands), operands.front().where, message);
}

void requireFloat(const char *what, const Located &input) {
  if (!isa<FloatType>(typeOf(input).getElementType()))
    fail(what, {input}, "expected a float element type");
}

Shape rowShape(const char *what, const Located &input) {
  Shape shape = input.tensor.shape();
  if (shape.empty())
    fail(what, {input}, "expected at least one dimension, the row's");
  shape.pop_back();
  return shape;
}

} // namespace fsdp::dsl
