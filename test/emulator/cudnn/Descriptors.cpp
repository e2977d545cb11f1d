#include "Descriptors.h"

#include "Graph.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>

namespace emulator::cudnn {

namespace {

thread_local std::string reason;

/// An attribute of a kind: its type, how many values it has, whether it must be there.
struct Rule {
  Kind kind;
  Attribute attribute;
  Type type;
  std::int64_t least, most;
  bool isRequired;
};

constexpr std::int64_t kMany = 1 << 20;
constexpr Rule kRules[] = {
    {Kind::Tensor, Attribute::TensorData, Type::DataType, 1, 1, true},
    {Kind::Tensor, Attribute::TensorExtents, Type::Int64, 1, 8, true},
    {Kind::Tensor, Attribute::TensorStrides, Type::Int64, 1, 8, true},
    {Kind::Tensor, Attribute::TensorId, Type::Int64, 1, 1, true},
    {Kind::Tensor, Attribute::TensorAlignment, Type::Int64, 1, 1, true},
    {Kind::Tensor, Attribute::TensorIsVirtual, Type::Boolean, 1, 1, false},
    {Kind::Tensor, Attribute::TensorIsByValue, Type::Boolean, 1, 1, false},
    {Kind::Pointwise, Attribute::PointwiseMode, Type::PointwiseMode, 1, 1, true},
    {Kind::Pointwise, Attribute::PointwisePrecision, Type::DataType, 1, 1, true},
    {Kind::Pointwise, Attribute::PointwiseAxis, Type::Int64, 1, 1, false},
    {Kind::PointwiseOperation, Attribute::PointwiseFunction, Type::Descriptor, 1, 1, true},
    {Kind::PointwiseOperation, Attribute::PointwiseX, Type::Descriptor, 1, 1, true},
    {Kind::PointwiseOperation, Attribute::PointwiseB, Type::Descriptor, 1, 1, false},
    {Kind::PointwiseOperation, Attribute::PointwiseT, Type::Descriptor, 1, 1, false},
    {Kind::PointwiseOperation, Attribute::PointwiseY, Type::Descriptor, 1, 1, true},
    {Kind::Matmul, Attribute::MatmulPrecision, Type::DataType, 1, 1, true},
    {Kind::MatmulOperation, Attribute::MatmulA, Type::Descriptor, 1, 1, true},
    {Kind::MatmulOperation, Attribute::MatmulB, Type::Descriptor, 1, 1, true},
    {Kind::MatmulOperation, Attribute::MatmulC, Type::Descriptor, 1, 1, true},
    {Kind::MatmulOperation, Attribute::MatmulFunction, Type::Descriptor, 1, 1, true},
    {Kind::Reduction, Attribute::ReductionOperator, Type::ReductionOperator, 1, 1, true},
    {Kind::Reduction, Attribute::ReductionPrecision, Type::DataType, 1, 1, true},
    {Kind::ReductionOperation, Attribute::ReductionX, Type::Descriptor, 1, 1, true},
    {Kind::ReductionOperation, Attribute::ReductionY, Type::Descriptor, 1, 1, true},
    {Kind::ReductionOperation, Attribute::ReductionFunction, Type::Descriptor, 1, 1, true},
    {Kind::ReshapeOperation, Attribute::ReshapeX, Type::Descriptor, 1, 1, true},
    {Kind::ReshapeOperation, Attribute::ReshapeY, Type::Descriptor, 1, 1, true},
    {Kind::Graph, Attribute::GraphOperations, Type::Descriptor, 1, kMany, true},
    {Kind::Heuristics, Attribute::HeuristicsGraph, Type::Descriptor, 1, 1, true},
    {Kind::Heuristics, Attribute::HeuristicsMode, Type::HeuristicsMode, 1, 1, true},
    {Kind::Heuristics, Attribute::HeuristicsDevice, Type::Descriptor, 1, 1, false},
    {Kind::Engine, Attribute::EngineGraph, Type::Descriptor, 1, 1, true},
    {Kind::Engine, Attribute::EngineIndex, Type::Int64, 1, 1, true},
    {Kind::Engine, Attribute::EngineDevice, Type::Descriptor, 1, 1, false},
    {Kind::KnobChoice, Attribute::KnobType, Type::Knob, 1, 1, true},
    {Kind::KnobChoice, Attribute::KnobValue, Type::Int64, 1, 1, true},
    {Kind::EngineConfig, Attribute::ConfigEngine, Type::Descriptor, 1, 1, true},
    {Kind::EngineConfig, Attribute::ConfigKnobs, Type::Descriptor, 1, 64, false},
    {Kind::Plan, Attribute::PlanConfig, Type::Descriptor, 1, 1, true},
    {Kind::Plan, Attribute::PlanDevice, Type::Descriptor, 1, 1, true},
    {Kind::VariantPack, Attribute::PackIds, Type::Int64, 1, kMany, true},
    {Kind::VariantPack, Attribute::PackAddresses, Type::Address, 1, kMany, true},
    {Kind::VariantPack, Attribute::PackWorkspace, Type::Address, 1, 1, true},
    {Kind::DeviceProperties, Attribute::DeviceId, Type::Int32, 1, 1, false},
    {Kind::DeviceProperties, Attribute::DeviceText, Type::Char, 1, kMany, false},
};

const Rule *ruleOf(Kind kind, Attribute attribute) {
  for (const Rule &rule : kRules)
    if (rule.kind == kind && rule.attribute == attribute)
      return &rule;
  return nullptr;
}

std::size_t bytesOf(Type type) {
  switch (type) {
  case Type::Boolean:
  case Type::Char:
    return 1;
  case Type::Int64:
  case Type::Address:
  case Type::Descriptor:
    return 8;
  default:
    return 4; // enumerations and numbers of 32 bits
  }
}

std::mutex mutex;
std::set<Descriptor *> live;

Status finalizeTensor(const Descriptor &tensor) {
  const auto &extents = tensor.values.at(Attribute::TensorExtents),
             &strides = tensor.values.at(Attribute::TensorStrides);
  if (extents.count != strides.count)
    return refuse(kBadParameter, "a tensor has as many strides as dimensions");
  if (extents.count != 4)
    return refuse(kNotSupported, "tensors that do not have 4 dimensions: not emulated");
  for (std::int64_t extent : tensor.extents())
    if (extent < 1)
      return refuse(kBadParameter, "a dimension of a tensor is less than 1");
  for (std::int64_t stride : tensor.strides())
    if (stride < 1)
      return refuse(kBadParameter, "a stride of a tensor is less than 1");
  const std::int64_t alignment = tensor.get<std::int64_t>(Attribute::TensorAlignment);
  if (alignment < 1 || (alignment & (alignment - 1)) != 0)
    return refuse(kBadParameter, "the alignment of a tensor is no power of two");
  if (tensor.isVirtual() && tensor.isByValue())
    return refuse(kBadParameter, "a virtual tensor has no value");
  return kSuccess;
}

Status finalizeDevice(const Descriptor &device) {
  if (device.has(Attribute::DeviceId) == device.has(Attribute::DeviceText))
    return refuse(kBadParameter, "a device is given by its number, or by a text");
  return kSuccess;
}

Status finalizePack(const Descriptor &pack) {
  if (pack.values.at(Attribute::PackIds).count != pack.values.at(Attribute::PackAddresses).count)
    return refuse(kBadParameter, "a variant pack has as many addresses as ids");
  std::set<std::int64_t> ids;
  for (std::int64_t i = 0; i < pack.values.at(Attribute::PackIds).count; ++i)
    if (!ids.insert(pack.get<std::int64_t>(Attribute::PackIds, static_cast<std::size_t>(i))).second)
      return refuse(kBadParameter, "a variant pack has an id twice");
  return kSuccess;
}

} // namespace

Status refuse(Status status, const std::string &text) {
  reason = text;
  return status;
}
const std::string &lastReason() { return reason; }

Descriptor *create(Kind kind) {
  if (std::none_of(std::begin(kRules), std::end(kRules),
                   [&](const Rule &rule) { return rule.kind == kind; }))
    return nullptr;
  auto descriptor = std::make_unique<Descriptor>();
  descriptor->kind = kind;
  std::lock_guard<std::mutex> lock(mutex);
  return *live.insert(descriptor.release()).first;
}

Descriptor *find(RawDescriptor raw) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = live.find(static_cast<Descriptor *>(raw));
  return found == live.end() ? nullptr : *found;
}

void destroy(Descriptor *descriptor) {
  std::lock_guard<std::mutex> lock(mutex);
  live.erase(descriptor);
  delete descriptor;
}

Status set(Descriptor &descriptor, Attribute attribute, Type type, std::int64_t count,
           const void *values) {
  if (descriptor.isFinalized)
    return refuse(kBadParameter, "the descriptor is finalized");
  const Rule *rule = ruleOf(descriptor.kind, attribute);
  if (!rule)
    return refuse(kBadParameter, "the descriptor has no such attribute");
  if (rule->type != type)
    return refuse(kWrongType, "the attribute has another type");
  if (count < rule->least || count > rule->most)
    return refuse(kBadParameter, "the attribute has another number of elements");
  if (!values)
    return refuse(kBadParameter, "no elements are given");
  if (type == Type::Descriptor)
    for (std::int64_t i = 0; i < count; ++i) {
      const Descriptor *part = find(static_cast<const RawDescriptor *>(values)[i]);
      if (!part)
        return refuse(kNullPointer, "an element is no descriptor");
      if (!part->isFinalized)
        return refuse(kNotFinalized, "an element is not finalized");
    }
  const char *bytes = static_cast<const char *>(values);
  descriptor.values[attribute] = {
      type, count, {bytes, bytes + static_cast<std::size_t>(count) * bytesOf(type)}};
  return kSuccess;
}

Status finalize(Descriptor &descriptor) {
  if (descriptor.isFinalized)
    return refuse(kBadParameter, "the descriptor is finalized already");
  for (const Rule &rule : kRules)
    if (rule.kind == descriptor.kind && rule.isRequired && !descriptor.has(rule.attribute))
      return refuse(descriptor.kind == Kind::MatmulOperation ? kNotSupported : kBadParameter,
                    "an attribute that is needed is not set");
  Status status = kSuccess;
  switch (descriptor.kind) {
  case Kind::Tensor:
    status = finalizeTensor(descriptor);
    break;
  case Kind::PointwiseOperation:
  case Kind::MatmulOperation:
  case Kind::ReductionOperation:
  case Kind::ReshapeOperation:
    status = checkOperation(descriptor);
    break;
  case Kind::Graph:
    status = checkGraph(descriptor);
    break;
  case Kind::Heuristics:
    status = isAttention(descriptor.part(Attribute::HeuristicsGraph))
                 ? kSuccess
                 : refuse(kUnsupportedPattern, "the graph is neither attention nor its gradient");
    break;
  case Kind::Plan:
    status = checkPlan(descriptor);
    break;
  case Kind::DeviceProperties:
    status = finalizeDevice(descriptor);
    break;
  case Kind::VariantPack:
    status = finalizePack(descriptor);
    break;
  default:
    break;
  }
  descriptor.isFinalized = status == kSuccess;
  return status;
}

std::size_t version() {
  static const std::size_t number = [] {
    const char *text = std::getenv("FSDP_CUDNN_DOUBLE");
    constexpr char kName[] = "version=";
    return text && std::strncmp(text, kName, sizeof kName - 1) == 0
               ? static_cast<std::size_t>(std::strtoul(text + sizeof kName - 1, nullptr, 10))
               : std::size_t(92800);
  }();
  return number;
}

} // namespace emulator::cudnn
