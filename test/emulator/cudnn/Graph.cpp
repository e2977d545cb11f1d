#include "Graph.h"

#include "cuda_bf16.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace emulator::cudnn {

namespace {

using Four = std::array<std::int64_t, 4>;

struct Operands {
  std::vector<const Descriptor *> read;
  const Descriptor *written;
};

Operands operandsOfOne(const Descriptor &operation) {
  Operands operands{{}, nullptr};
  const auto read = [&](Attribute attribute) {
    if (operation.has(attribute))
      operands.read.push_back(&operation.part(attribute));
  };
  switch (operation.kind) {
  case Kind::MatmulOperation:
    read(Attribute::MatmulA), read(Attribute::MatmulB);
    operands.written = &operation.part(Attribute::MatmulC);
    break;
  case Kind::ReductionOperation:
    read(Attribute::ReductionX);
    operands.written = &operation.part(Attribute::ReductionY);
    break;
  case Kind::ReshapeOperation:
    read(Attribute::ReshapeX);
    operands.written = &operation.part(Attribute::ReshapeY);
    break;
  default:
    read(Attribute::PointwiseX), read(Attribute::PointwiseB), read(Attribute::PointwiseT);
    operands.written = &operation.part(Attribute::PointwiseY);
  }
  return operands;
}

std::int64_t countOf(const Four &extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

bool divides(const Four &parts, const Four &whole) {
  for (std::size_t i = 0; i < 4; ++i)
    if (whole[i] % parts[i] != 0)
      return false;
  return true;
}

std::size_t operandsNeeded(Pointwise mode) {
  switch (mode) {
  case Pointwise::Exp:
  case Pointwise::Log:
  case Pointwise::Identity:
  case Pointwise::Index:
    return 1;
  case Pointwise::Select:
    return 3;
  default:
    return 2;
  }
}

Status checkPointwise(const Descriptor &operation) {
  const Descriptor &function = operation.part(Attribute::PointwiseFunction);
  if (function.kind != Kind::Pointwise)
    return refuse(kBadParameter, "the function of a loop is another descriptor");
  const Operands operands = operandsOfOne(operation);
  const Pointwise mode = function.get<Pointwise>(Attribute::PointwiseMode);
  if (operands.read.size() != operandsNeeded(mode))
    return refuse(kBadParameter, "a loop has another number of operands than its mode");
  const Four extents = operands.written->extents();
  for (const Descriptor *operand : operands.read)
    for (std::size_t i = 0; i < 4; ++i)
      if (operand->extents()[i] != extents[i] && operand->extents()[i] != 1)
        return refuse(kBadParameter, "an operand of a loop does not fit its result");
  if (mode == Pointwise::Select && operands.read[2]->data() != Data::Bool)
    return refuse(kBadParameter, "the condition of a selection is no truth value");
  if (mode == Pointwise::Index) {
    const std::int64_t axis = function.get<std::int64_t>(Attribute::PointwiseAxis, -1, 0);
    if (axis < 0 || axis > 3)
      return refuse(kBadParameter, "the axis of an index is no dimension");
  }
  return kSuccess;
}

} // namespace

Status checkOperation(const Descriptor &operation) {
  const Operands operands = operandsOfOne(operation);
  for (const Descriptor *tensor : operands.read)
    if (tensor->kind != Kind::Tensor)
      return refuse(kBadParameter, "an operand is no tensor");
  if (operands.written->kind != Kind::Tensor)
    return refuse(kBadParameter, "a result is no tensor");
  const Four result = operands.written->extents();
  switch (operation.kind) {
  case Kind::MatmulOperation: {
    const Four a = operands.read[0]->extents(), b = operands.read[1]->extents();
    if (a[2] != result[2] || b[3] != result[3] || a[3] != b[2])
      return refuse(kBadParameter, "the matrices of a product do not fit");
    for (std::size_t i = 0; i < 2; ++i)
      if (result[i] % a[i] != 0 || result[i] % b[i] != 0)
        return refuse(kBadParameter, "the batches of a product do not fit");
    return kSuccess;
  }
  case Kind::ReductionOperation:
    return divides(result, operands.read[0]->extents())
               ? kSuccess
               : refuse(kBadParameter, "the result of a reduction does not fit");
  case Kind::ReshapeOperation:
    return countOf(result) == countOf(operands.read[0]->extents())
               ? kSuccess
               : refuse(kBadParameter, "a reshaped tensor has another number of elements");
  default:
    return checkPointwise(operation);
  }
}

Status checkGraph(const Descriptor &graph) {
  std::map<std::int64_t, const Descriptor *> known;
  std::set<std::int64_t> written;
  for (const Descriptor *operation : graph.parts(Attribute::GraphOperations)) {
    const Operands operands = operandsOfOne(*operation);
    std::vector<const Descriptor *> all = operands.read;
    all.push_back(operands.written);
    for (const Descriptor *tensor : all)
      if (const auto found = known.emplace(tensor->id(), tensor); found.first->second != tensor)
        return refuse(kBadParameter, "two tensors of a graph have one id");
    for (const Descriptor *tensor : operands.read)
      if (tensor->isVirtual() && !written.count(tensor->id()))
        return refuse(kBadParameter, "a virtual tensor is read before it is written");
    if (operands.written->isByValue() || !written.insert(operands.written->id()).second)
      return refuse(kBadParameter, "a tensor is written twice, or is a number");
  }
  return kSuccess;
}

bool isAttention(const Descriptor &graph) {
  std::size_t products = 0;
  for (const Descriptor *operation : graph.parts(Attribute::GraphOperations))
    products += operation->kind == Kind::MatmulOperation;
  return products == 2 || products == 5;
}

std::map<std::int64_t, const Descriptor *> operandsOf(const Descriptor &graph) {
  std::map<std::int64_t, const Descriptor *> operands;
  for (const Descriptor *operation : graph.parts(Attribute::GraphOperations)) {
    const Operands one = operandsOfOne(*operation);
    for (const Descriptor *tensor : one.read)
      operands.emplace(tensor->id(), tensor);
    operands.emplace(one.written->id(), one.written);
  }
  for (auto at = operands.begin(); at != operands.end();)
    at = at->second->isVirtual() ? operands.erase(at) : std::next(at);
  return operands;
}

std::size_t bytesOf(const Descriptor &tensor) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < 4; ++i)
    last += (tensor.extents()[i] - 1) * tensor.strides()[i];
  return static_cast<std::size_t>(last + 1) * (tensor.data() == Data::BF16 ? 2 : 4);
}

/// Sums in memory of their own, in f32: those of the gradients of queries.
static const Descriptor *sumsOf(const Descriptor &graph) {
  for (const Descriptor *operation : graph.parts(Attribute::GraphOperations))
    if (operation->kind == Kind::MatmulOperation) {
      const Descriptor &result = operation->part(Attribute::MatmulC);
      if (!result.isVirtual() && result.data() == Data::F32)
        return &result;
    }
  return nullptr;
}

static bool isOrdered(const Descriptor &config) {
  for (const Descriptor *knob : config.parts(Attribute::ConfigKnobs))
    if (knob->get<Knob>(Attribute::KnobType) == Knob::Stages)
      return knob->get<std::int64_t>(Attribute::KnobValue) == kOrderedStages;
  return false;
}

Status checkPlan(Descriptor &plan) {
  const Descriptor &config = plan.part(Attribute::PlanConfig),
                   &engine = config.part(Attribute::ConfigEngine),
                   &graph = engine.part(Attribute::EngineGraph);
  if (!isAttention(graph))
    return refuse(kUnsupportedPattern, "the graph is neither attention nor its gradient");
  const std::int64_t index = engine.get<std::int64_t>(Attribute::EngineIndex);
  if (index != kProposedEngine && index != kOrderedEngine)
    return refuse(kNotSupported, "no engine has this number");
  const Descriptor *sums = sumsOf(graph);
  if (isOrdered(config) && (version() < 92500 || index != kOrderedEngine || !sums))
    return refuse(kNotSupported, "the engine does not add up in order");
  // The largest matrices are those of scores.
  std::int64_t scores = 0;
  for (const Descriptor *operation : graph.parts(Attribute::GraphOperations))
    if (operation->kind == Kind::MatmulOperation) {
      scores = std::max(scores, countOf(operation->part(Attribute::MatmulC).extents()));
      for (Attribute attribute : {Attribute::MatmulA, Attribute::MatmulB})
        if (const Descriptor &operand = operation->part(attribute); !operand.isVirtual()) {
          // The width is the one dimension whose elements are together.
          const std::int64_t width =
              operand.strides()[3] == 1 ? operand.extents()[3] : operand.extents()[2];
          if (width % 8 != 0 || width > 128)
            return refuse(kUnsupportedShape, "heads have no multiple of 8 numbers up to 128");
        }
    }
  const bool isGradient = graph.parts(Attribute::GraphOperations).size() > 20 || sums;
  plan.workspace = !isGradient ? 0 : sums ? 4096 : 2 * scores;
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

namespace {

/// A tensor as dense f32.
struct Values {
  Four extents = {1, 1, 1, 1};
  std::vector<float> data;

  explicit Values(const Four &extents)
      : extents(extents), data(static_cast<std::size_t>(countOf(extents))) {}
  /// Element `i`, of those along dimensions in which the tensor has fewer.
  std::size_t at(const Four &i, const Four &whole) const {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < 4; ++d)
      place = place * extents[d] + i[d] / (whole[d] / extents[d]);
    return static_cast<std::size_t>(place);
  }
};

template <class Visit> void forEach(const Four &extents, Visit visit) {
  Four i;
  for (i[0] = 0; i[0] < extents[0]; ++i[0])
    for (i[1] = 0; i[1] < extents[1]; ++i[1])
      for (i[2] = 0; i[2] < extents[2]; ++i[2])
        for (i[3] = 0; i[3] < extents[3]; ++i[3])
          visit(i);
}

std::int64_t offsetOf(const Four &i, const Four &strides) {
  return i[0] * strides[0] + i[1] * strides[1] + i[2] * strides[2] + i[3] * strides[3];
}

float rounded(float value, Data type) {
  return type == Data::BF16 ? float(__nv_bfloat16(value)) : value;
}

class Interpreter {
public:
  Interpreter(const Memory &memory, bool turnsSums) : memory_(memory), turnsSums_(turnsSums) {}

  void perform(const Descriptor &operation) {
    const Operands operands = operandsOfOne(operation);
    std::vector<const Values *> read;
    for (const Descriptor *tensor : operands.read)
      read.push_back(&valuesOf(*tensor));
    Values result(operands.written->extents());
    switch (operation.kind) {
    case Kind::MatmulOperation:
      multiply(*read[0], *read[1], result,
               turnsSums_ && !operands.written->isVirtual() &&
                   operands.written->data() == Data::F32);
      break;
    case Kind::ReductionOperation:
      reduce(
          operation.part(Attribute::ReductionFunction).get<Reduction>(Attribute::ReductionOperator),
          *read[0], result);
      break;
    case Kind::ReshapeOperation:
      reshape(*operands.read[0], *read[0], *operands.written, result);
      break;
    default:
      loop(operation.part(Attribute::PointwiseFunction), read, result);
    }
    for (float &value : result.data)
      value = rounded(value, operands.written->data());
    if (!operands.written->isVirtual())
      write(*operands.written, result);
    values_.insert_or_assign(operands.written->id(), std::move(result));
  }

private:
  const Values &valuesOf(const Descriptor &tensor) {
    const auto found = values_.find(tensor.id());
    return found != values_.end() ? found->second
                                  : values_.emplace(tensor.id(), load(tensor)).first->second;
  }
  Values load(const Descriptor &tensor) const {
    Values values(tensor.extents());
    if (tensor.isByValue()) {
      values.data.assign(values.data.size(), memory_.numbers.at(tensor.id()));
      return values;
    }
    const void *from = memory_.addresses.at(tensor.id());
    const Four strides = tensor.strides();
    std::size_t next = 0;
    forEach(values.extents, [&](const Four &i) {
      const std::int64_t at = offsetOf(i, strides);
      values.data[next++] = tensor.data() == Data::BF16
                                ? float(static_cast<const __nv_bfloat16 *>(from)[at])
                                : static_cast<const float *>(from)[at];
    });
    return values;
  }
  void write(const Descriptor &tensor, const Values &values) const {
    void *to = memory_.addresses.at(tensor.id());
    const Four strides = tensor.strides();
    std::size_t next = 0;
    forEach(values.extents, [&](const Four &i) {
      const std::int64_t at = offsetOf(i, strides);
      const float value = values.data[next++];
      if (tensor.data() == Data::BF16)
        static_cast<__nv_bfloat16 *>(to)[at] = __nv_bfloat16(value);
      else
        static_cast<float *>(to)[at] = value;
    });
  }
  /// `isTurned`: terms are added from the last to the first.
  static void multiply(const Values &a, const Values &b, Values &c, bool isTurned) {
    const std::int64_t terms = a.extents[3];
    const Four wholeA = {c.extents[0], c.extents[1], a.extents[2], a.extents[3]},
               wholeB = {c.extents[0], c.extents[1], b.extents[2], b.extents[3]};
    std::size_t next = 0;
    forEach(c.extents, [&](const Four &i) {
      float sum = 0;
      for (std::int64_t n = 0; n < terms; ++n) {
        const std::int64_t l = isTurned ? terms - 1 - n : n;
        sum += a.data[a.at({i[0], i[1], i[2], l}, wholeA)] *
               b.data[b.at({i[0], i[1], l, i[3]}, wholeB)];
      }
      c.data[next++] = sum;
    });
  }
  static void reduce(Reduction mode, const Values &x, Values &y) {
    std::fill(y.data.begin(), y.data.end(), mode == Reduction::Sum ? 0.0f : -HUGE_VALF);
    std::size_t next = 0;
    forEach(x.extents, [&](const Four &i) {
      float &to = y.data[y.at(i, x.extents)];
      const float value = x.data[next++];
      to = mode == Reduction::Sum ? to + value : std::max(to, value);
    });
  }
  /// The elements of `y` are those of `x` at the same place in memory.
  static void reshape(const Descriptor &xTensor, const Values &x, const Descriptor &yTensor,
                      Values &y) {
    std::unordered_map<std::int64_t, float> atOffset;
    std::size_t next = 0;
    forEach(x.extents,
            [&](const Four &i) { atOffset[offsetOf(i, xTensor.strides())] = x.data[next++]; });
    next = 0;
    forEach(y.extents,
            [&](const Four &i) { y.data[next++] = atOffset.at(offsetOf(i, yTensor.strides())); });
  }
  static void loop(const Descriptor &function, const std::vector<const Values *> &read, Values &y) {
    const Pointwise mode = function.get<Pointwise>(Attribute::PointwiseMode);
    const std::int64_t axis = function.get<std::int64_t>(Attribute::PointwiseAxis, 0, 0);
    std::size_t next = 0;
    forEach(y.extents, [&](const Four &i) {
      float operand[3] = {};
      for (std::size_t n = 0; n < read.size(); ++n)
        operand[n] = read[n]->data[read[n]->at(i, y.extents)];
      y.data[next++] =
          valueOf(mode, operand, static_cast<float>(i[static_cast<std::size_t>(axis)]));
    });
  }
  static float valueOf(Pointwise mode, const float (&x)[3], float index) {
    switch (mode) {
    case Pointwise::Add:
      return x[0] + x[1];
    case Pointwise::Multiply:
      return x[0] * x[1];
    case Pointwise::Divide:
      return x[0] / x[1];
    case Pointwise::Subtract:
      return x[0] - x[1];
    case Pointwise::Exp:
      return std::exp(x[0]);
    case Pointwise::Log:
      return std::log(x[0]);
    case Pointwise::Identity:
      return x[0];
    case Pointwise::IsAtLeast:
      return x[0] >= x[1];
    case Pointwise::Index:
      return index;
    case Pointwise::Select:
      return x[2] != 0 ? x[0] : x[1];
    }
    return 0;
  }

  const Memory &memory_;
  const bool turnsSums_;
  std::map<std::int64_t, Values> values_;
};

} // namespace

void perform(const Descriptor &plan, const Memory &memory, unsigned call) {
  const Descriptor &config = plan.part(Attribute::PlanConfig);
  Interpreter interpreter(memory, !isOrdered(config) && call % 2 == 1);
  for (const Descriptor *operation : config.part(Attribute::ConfigEngine)
                                         .part(Attribute::EngineGraph)
                                         .parts(Attribute::GraphOperations))
    interpreter.perform(*operation);
}

} // namespace emulator::cudnn
