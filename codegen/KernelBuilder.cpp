//===- KernelBuilder.cpp - from the ops of a launch to one nest of loops --===//
//
// Works backwards from the yielded values: the request for a value at given indices requests its
// operands at the indices that follow from the op's notation.
//
//===----------------------------------------------------------------------===//

#include "codegen/Elementwise.h"
#include "codegen/FusedProduct.h"
#include "codegen/Kernel.h"
#include "codegen/Names.h"
#include "codegen/ScheduledProgram.h"
#include "dialect/fsdp/Fill.h"
#include "dialect/nn/Gelu.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// The loops over one dimension of a tensor, major to minor. None for a size of one.
using Index = SmallVector<int, 2>;
using Indices = SmallVector<Index, 4>;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

class KernelBuilder {
public:
  KernelBuilder(LaunchOp launch, Traversal traversal, Functions functions, bool anonymous)
      : launch(launch), traversal(traversal), functions(functions), anonymous(anonymous),
        begin(FusedProduct::of(launch)), withSum(ProductWithSum::of(launch)) {}
  FailureOr<Kernel> build();

private:
  // Parameters, the loops and the results.
  void declare();
  bool isProduct(Value value) {
    return begin && value.getDefiningOp() == begin->product.getOperation();
  }
  LogicalResult checkTypes();
  LogicalResult chooseLoops(ValueRange yielded);
  LogicalResult store(Value value, int output);

  // Values at indices.
  FailureOr<int> at(Value value, const Indices &indices);
  FailureOr<int> build(Operation *op, const Indices &indices);
  FailureOr<int> buildElementwise(Operation *op, const Indices &indices);
  FailureOr<int> buildGelu(const nn::Gelu &gelu, Operation *op, const Indices &indices);
  FailureOr<int> buildByRule(Operation *op, const nn::ShardingRule &rule, const Indices &indices);
  FailureOr<int> buildMask(MaskPaddingOp op, const Indices &indices);
  FailureOr<int> buildMask(MaskSamplesOp op, const Indices &indices);
  int maskNode(Operation *op, const APFloat &fill, std::optional<KernelMask> mask,
               ArrayRef<int> operands, const Index &index, int64_t rows);
  FailureOr<int> buildCrossEntropyGrad(nn::CrossEntropyGradOp op, const Indices &indices);
  int buildConstant(arith::ConstantOp op, const Indices &indices);
  FailureOr<int> product(nn::EinsumOp op, const nn::ShardingRule &rule, ArrayRef<Index> factors);

  int add(KernelNode node, Operation *op);
  int expression(Type type, StringRef text, ArrayRef<int> operands, Operation *op);
  Affine affine(RankedTensorType type, const Indices &indices);
  Affine position(const Index &index);

  LaunchOp launch;
  Traversal traversal;
  Functions functions;
  bool anonymous;
  Kernel kernel;
  std::optional<FusedProduct> begin; ///< the product that is complete in memory before the kernel
  std::optional<ProductWithSum> withSum; ///< the product is no part of the kernel
  SmallVector<Value> sources;            ///< buffers of the inputs, without the product's
  Operation *owner = nullptr;            ///< the reduction, or the op whose factors are the loops
  nn::ShardingRule ownerRule;            ///< its factor i is the loop loopOf[i]
  SmallVector<Index> ownerFactors;       ///< the loop of each factor
  SmallVector<int64_t> fullShape;
  Indices fullIndices; ///< of tensors of the whole iteration space
  std::map<std::pair<void *, std::vector<int>>, int> known;
};

} // namespace

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult KernelBuilder::checkTypes() {
  if (launch.getOuts().empty())
    return launch.emitOpError() << "'" << launch.getFullName()
                                << "' writes no buffer, expected its results in 'outs'";
  for (Operation &op : launch.getBody().front()) {
    SmallVector<Type> types(op.getOperandTypes());
    llvm::append_range(types, op.getResultTypes());
    for (Type type : types)
      if (elementType(getElementTypeOrSelf(type)).empty())
        return op.emitOpError() << "has element type " << getElementTypeOrSelf(type)
                                << ", which this target cannot compute with; use f32";
  }
  return success();
}

/// The loops over a tensor of these factors, each of which has the loops `loops`.
static Indices loopsOf(ArrayRef<nn::DimFactors> tensor, ArrayRef<Index> loops) {
  Indices indices;
  for (const nn::DimFactors &dim : tensor) {
    Index &index = indices.emplace_back();
    for (int64_t factor : dim)
      llvm::append_range(index, loops[factor]);
  }
  return indices;
}

static bool isContraction(Operation *op) {
  auto einsum = dyn_cast_or_null<nn::EinsumOp>(op);
  return einsum && llvm::any_of(einsum.getShardingRule().factors, [](const nn::Factor &factor) {
           return factor.kind == nn::FactorKind::sumReduction;
         });
}

LogicalResult KernelBuilder::chooseLoops(ValueRange yielded) {
  for (Value value : yielded) {
    Operation *op = resolveFused(value).getDefiningOp();
    if (isProduct(resolveFused(value)) ||
        (!isa_and_nonnull<nn::ReduceOp>(op) && !isContraction(op)))
      continue;
    if (owner)
      return launch.emitOpError() << "'" << launch.getFullName()
                                  << "' ends in two reductions, expected one per kernel";
    owner = op;
  }
  Operation *first = resolveFused(yielded.front()).getDefiningOp();
  if (!owner && !begin && isa_and_nonnull<nn::RearrangeOp, nn::EinsumOp>(first))
    owner = first;
  if (owner) {
    ownerRule = cast<nn::ShardingRuleOpInterface>(owner).getShardingRule();
    ownerFactors.resize(ownerRule.factors.size());
    // Results of a rearrangement are written in order; all else runs in the order of the operands.
    SmallVector<nn::TensorFactors> order(ownerRule.operands.begin(), ownerRule.operands.end());
    if (isa<nn::RearrangeOp>(owner))
      order = {ownerRule.results.front()};
    auto addLoops = [&](bool parallel, bool reductions) {
      for (const nn::TensorFactors &tensor : order)
        for (const nn::DimFactors &dim : tensor)
          for (int64_t factor : dim) {
            const nn::Factor &f = ownerRule.factors[factor];
            bool reduction =
                f.kind == nn::FactorKind::sumReduction || f.kind == nn::FactorKind::maxReduction;
            if (!ownerFactors[factor].empty() || !(reduction ? reductions : parallel))
              continue;
            ownerFactors[factor] = {static_cast<int>(kernel.loops.size())};
            kernel.loops.push_back({f.name, f.size, reduction});
          }
    };
    // A result of 16 bits cannot hold a sum while it grows: reductions are the inner loops.
    Type element = typeOf(owner->getResult(0)).getElementType();
    if (computeType(element) != element)
      addLoops(/*parallel=*/true, /*reductions=*/false);
    addLoops(true, true);
    bool reduce = isa<nn::ReduceOp>(owner);
    Value whole = reduce ? owner->getOperand(0) : owner->getResult(0);
    fullShape = llvm::to_vector(typeOf(whole).getShape());
    fullIndices =
        loopsOf(reduce ? ownerRule.operands.front() : ownerRule.results.front(), ownerFactors);
    return success();
  }
  fullShape = llvm::to_vector(typeOf(yielded.front()).getShape());
  for (auto [dim, size] : llvm::enumerate(fullShape)) {
    kernel.loops.push_back({std::string(1, "ijklmn"[dim % 6]), size});
    fullIndices.push_back({static_cast<int>(dim)});
  }
  return success();
}

LogicalResult KernelBuilder::store(Value value, int output) {
  Value source = resolveFused(value);
  Operation *op = source.getDefiningOp();
  if (op && op == owner && (isa<nn::ReduceOp>(op) || isContraction(op))) {
    const Indices result = loopsOf(ownerRule.results.front(), ownerFactors);
    auto type = typeOf(source);
    Type sum = computeType(type.getElementType());
    KernelReduction reduction{KernelReduction::sum, {}, sum};
    FailureOr<int> element;
    if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
      element = at(reduce.getInput(), fullIndices);
      reduction.kind = reduce.getKind() == nn::Reduction::max    ? KernelReduction::max
                       : reduce.getKind() == nn::Reduction::mean ? KernelReduction::mean
                                                                 : KernelReduction::sum;
    } else {
      element = product(cast<nn::EinsumOp>(op), ownerRule, ownerFactors);
    }
    if (failed(element))
      return failure();
    reduction.count = 1;
    for (const LoopVar &loop : kernel.loops)
      if (loop.reduction)
        reduction.count *= loop.size;
    if (kernel.nodes[*element].type != sum)
      element = expression(sum, elementType(sum).str() + "($0)", {*element}, op);
    reduction.store = {*element, output, affine(type, result)};
    kernel.reduction = reduction;
    return success();
  }
  if (typeOf(source).getShape() != ArrayRef<int64_t>(fullShape))
    return launch.emitOpError() << "'" << launch.getFullName() << "' yields " << source.getType()
                                << ", which does not fit the loops of its other results";
  FailureOr<int> node = at(source, fullIndices);
  if (failed(node))
    return failure();
  kernel.stores.push_back({*node, output, affine(typeOf(source), fullIndices)});
  return success();
}

void KernelBuilder::declare() {
  auto name = [&](Value buffer) {
    return anonymous ? std::string() : actionOf(bufferName(buffer)).str();
  };
  sources = begin     ? begin->ins
            : withSum ? SmallVector<Value>{withSum->summed()}
                      : llvm::to_vector(launch.getIns());
  for (Value in : sources) {
    kernel.inputs.push_back(cast<BufferType>(in.getType()).getTensor());
    kernel.inputNames.push_back(name(in));
  }
  if (begin) {
    kernel.inputs.push_back(typeOf(begin->product));
    StringRef name = actionOf(nameOf(begin->product.getLoc()));
    kernel.inputNames.push_back(name.empty() ? "einsum" : name.str());
  }
  for (Value out : llvm::drop_begin(launch.getOuts(), withSum ? 1 : 0)) {
    kernel.outputs.push_back(cast<BufferType>(out.getType()).getTensor());
    kernel.outputNames.push_back(name(out));
  }
}

FailureOr<Kernel> KernelBuilder::build() {
  ValueRange yielded = launch.getBody().front().getTerminator()->getOperands();
  if (withSum)
    yielded = yielded.drop_front();
  declare();
  if (failed(checkTypes()) || failed(chooseLoops(yielded)))
    return failure();
  for (auto [output, value] : llvm::enumerate(yielded)) {
    if (output == 0 && isProduct(resolveFused(value)))
      continue; // is already there
    if (failed(store(value, output)))
      return failure();
  }
  if (begin && traversal == Traversal::rows)
    for (const Index &index : ArrayRef(fullIndices).take_front(begin->rowDims))
      kernel.rowLoops += index.size();
  kernel.simplify();
  return std::move(kernel);
}

FailureOr<Kernel> Kernel::create(LaunchOp launch, Traversal traversal, Functions functions,
                                 bool anonymous) {
  return KernelBuilder(launch, traversal, functions, anonymous).build();
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

Affine KernelBuilder::affine(RankedTensorType type, const Indices &indices) {
  Affine result(kernel.loops.size(), 0);
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    int64_t step = stride;
    for (int loop : llvm::reverse(indices[dim])) {
      result[loop] += step;
      step *= kernel.loops[loop].size;
    }
    stride *= type.getDimSize(dim);
  }
  return result;
}

Affine KernelBuilder::position(const Index &index) {
  Affine result(kernel.loops.size(), 0);
  int64_t step = 1;
  for (int loop : llvm::reverse(index)) {
    result[loop] = step;
    step *= kernel.loops[loop].size;
    kernel.loops[loop].counted = true;
  }
  return result;
}

/// Hands the loops of a merged dimension out to its factors. Fails where their sizes do not agree.
static LogicalResult split(const Index &index, const nn::DimFactors &dim,
                           const nn::ShardingRule &rule, ArrayRef<LoopVar> loops,
                           MutableArrayRef<Index> factors) {
  size_t next = 0;
  for (int64_t factor : dim) {
    int64_t size = 1;
    while (size != rule.factors[factor].size && next < index.size()) {
      size *= loops[index[next]].size;
      factors[factor].push_back(index[next++]);
    }
    if (size != rule.factors[factor].size)
      return failure();
  }
  for (; next < index.size(); ++next)
    if (loops[index[next]].size != 1)
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

int KernelBuilder::add(KernelNode node, Operation *op) {
  if (op) {
    node.name = actionOf(nameOf(op->getLoc())).str();
    if (node.name.empty())
      node.name = op->getName().stripDialect().str();
  }
  node.type = computeType(node.type);
  kernel.nodes.push_back(std::move(node));
  return kernel.nodes.size() - 1;
}

int KernelBuilder::expression(Type type, StringRef text, ArrayRef<int> operands, Operation *op) {
  KernelNode node(KernelNode::expression, type);
  node.operands.assign(operands.begin(), operands.end());
  node.text = text.str();
  return add(std::move(node), op);
}

FailureOr<int> KernelBuilder::at(Value value, const Indices &indices) {
  value = resolveFused(value);
  std::vector<int> flat;
  for (const Index &index : indices) {
    flat.insert(flat.end(), index.begin(), index.end());
    flat.push_back(-1);
  }
  auto key = std::make_pair(value.getAsOpaquePointer(), flat);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  FailureOr<int> node;
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument || isProduct(value)) {
    KernelNode load(KernelNode::load, typeOf(value).getElementType());
    load.input = sources.size();
    if (argument && !begin && !withSum)
      load.input = argument.getArgNumber();
    else if (argument)
      load.input = llvm::find(sources, launch.getIns()[argument.getArgNumber()]) - sources.begin();
    load.at = affine(typeOf(value), indices);
    load.name = kernel.inputNames[load.input];
    node = add(std::move(load), nullptr);
  } else {
    node = build(value.getDefiningOp(), indices);
  }
  if (succeeded(node))
    known[key] = *node;
  return node;
}

FailureOr<int> KernelBuilder::build(Operation *op, const Indices &indices) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return buildConstant(constant, indices);
  if (functions == Functions::fast && getElementTypeOrSelf(op->getResult(0).getType()).isBF16())
    if (std::optional<nn::Gelu> gelu = nn::findGelu(op->getResult(0)))
      return buildGelu(*gelu, op, indices);
  if (nn::isElementwise(op))
    return buildElementwise(op, indices);
  if (isa<nn::RepeatOp, nn::RearrangeOp>(op) || (isa<nn::EinsumOp>(op) && !isContraction(op)))
    return buildByRule(op, cast<nn::ShardingRuleOpInterface>(op).getShardingRule(), indices);
  if (auto mask = dyn_cast<MaskPaddingOp>(op))
    return buildMask(mask, indices);
  if (auto mask = dyn_cast<MaskSamplesOp>(op))
    return buildMask(mask, indices);
  if (auto grad = dyn_cast<nn::CrossEntropyGradOp>(op))
    return buildCrossEntropyGrad(grad, indices);
  if (isa<nn::ReduceOp, nn::EinsumOp>(op))
    return op->emitOpError() << "is in the middle of a kernel, expected it at the end";
  return op->emitOpError() << "has no C++ form; it cannot be in a launch of this target";
}

FailureOr<int> KernelBuilder::buildGelu(const nn::Gelu &gelu, Operation *op,
                                        const Indices &indices) {
  FailureOr<int> x = at(gelu.x, indices);
  if (failed(x))
    return failure();
  Type type = typeOf(op->getResult(0)).getElementType();
  if (!gelu.cotangent)
    return expression(type, "fastGelu($0)", {*x}, op);
  FailureOr<int> cotangent = at(gelu.cotangent, indices);
  if (failed(cotangent))
    return failure();
  return expression(type, "fastGeluGradient($0, $1)", {*x, *cotangent}, op);
}

FailureOr<int> KernelBuilder::buildElementwise(Operation *op, const Indices &indices) {
  std::string text = elementwiseExpression(op);
  if (text.empty())
    return op->emitOpError() << "has no C++ form; it cannot be in a launch of this target";
  SmallVector<int> operands;
  for (Value operand : op->getOperands()) {
    // A select may have one condition for all elements.
    bool scalar = typeOf(operand).getRank() == 0;
    FailureOr<int> node = at(operand, scalar ? Indices() : indices);
    if (failed(node))
      return failure();
    operands.push_back(*node);
  }
  // Values in one compute type need no cast between each other.
  Type result = computeType(typeOf(op->getResult(0)).getElementType());
  if (isa<CastOpInterface>(op) && kernel.nodes[operands.front()].type == result)
    return operands.front();
  return expression(typeOf(op->getResult(0)).getElementType(), text, operands, op);
}

int KernelBuilder::buildConstant(arith::ConstantOp op, const Indices &indices) {
  auto values = cast<DenseElementsAttr>(op.getValue());
  KernelNode node(KernelNode::constant, values.getElementType());
  if (values.getNumElements() == 0) // in loops that never run
    node.text = identityOf(false, values.getElementType());
  else if (values.isSplat())
    node.text = literal(values.getSplatValue<Attribute>());
  else {
    node.kind = KernelNode::table;
    node.values = values;
    node.at = affine(typeOf(op), indices);
  }
  return add(std::move(node), op);
}

FailureOr<int> KernelBuilder::buildByRule(Operation *op, const nn::ShardingRule &rule,
                                          const Indices &indices) {
  SmallVector<Index> factors(rule.factors.size());
  for (auto [dim, index] : llvm::enumerate(indices))
    if (failed(split(index, rule.results.front()[dim], rule, kernel.loops, factors)))
      return op->emitOpError() << "does not fit the loops of its kernel; use a separate launch";
  if (auto einsum = dyn_cast<nn::EinsumOp>(op))
    return product(einsum, rule, factors);
  return at(op->getOperand(0), loopsOf(rule.operands.front(), factors));
}

FailureOr<int> KernelBuilder::product(nn::EinsumOp op, const nn::ShardingRule &rule,
                                      ArrayRef<Index> factors) {
  SmallVector<int> sides;
  Type type = computeType(typeOf(op.getResult()).getElementType());
  for (unsigned side = 0; side < 2; ++side) {
    FailureOr<int> node = at(op->getOperand(side), loopsOf(rule.operands[side], factors));
    if (failed(node))
      return failure();
    if (kernel.nodes[*node].type != type)
      node = expression(type, elementType(type).str() + "($0)", {*node}, op);
    sides.push_back(*node);
  }
  return expression(type, "$0 * $1", sides, op);
}

FailureOr<int> KernelBuilder::buildMask(MaskPaddingOp op, const Indices &indices) {
  FailureOr<int> input = at(op.getInput(), indices);
  if (failed(input))
    return failure();
  KernelMask mask{op.getOver(), static_cast<int64_t>(op.getSize()),
                  typeOf(op.getInput()).getDimSize(op.getDim()), /*counted=*/false};
  return maskNode(op, op.getFill(), mask, {*input}, indices[op.getDim()], /*rows=*/1);
}

FailureOr<int> KernelBuilder::buildMask(MaskSamplesOp op, const Indices &indices) {
  FailureOr<int> input = at(op.getInput(), indices), count = at(op.getCount(), Indices());
  if (failed(input) || failed(count))
    return failure();
  std::optional<KernelMask> mask;
  if (op.getOver())
    mask = KernelMask{*op.getOver(), static_cast<int64_t>(*op.getShardOf()),
                      typeOf(op.getInput()).getDimSize(op.getDim()), /*counted=*/true};
  return maskNode(op, op.getFill(), mask, {*input, *count}, indices[op.getDim()], op.getRows());
}

/// The node that is `operands[0]` in valid elements and `fill` elsewhere.
int KernelBuilder::maskNode(Operation *op, const APFloat &fill, std::optional<KernelMask> mask,
                            ArrayRef<int> operands, const Index &index, int64_t rows) {
  Type element = typeOf(op->getResult(0)).getElementType();
  KernelNode number(KernelNode::constant, element);
  number.text = literal(getFill(fill, element));
  KernelNode node(KernelNode::masked, element);
  node.operands = {operands.front(), add(std::move(number), op)};
  llvm::append_range(node.operands, operands.drop_front());
  node.rows = rows;
  if (mask) {
    auto found = llvm::find(kernel.masks, *mask);
    node.mask = found - kernel.masks.begin();
    if (found == kernel.masks.end())
      kernel.masks.push_back(*mask);
  }
  node.at = position(index);
  return add(std::move(node), op);
}

FailureOr<int> KernelBuilder::buildCrossEntropyGrad(nn::CrossEntropyGradOp op,
                                                    const Indices &indices) {
  Indices rows(indices.begin(), indices.end() - 1);
  FailureOr<int> logit = at(op.getLogits(), indices), label = at(op.getLabels(), rows),
                 logSumExp = at(op.getLogSumExp(), rows), upstream = at(op.getDLoss(), rows);
  if (failed(logit) || failed(label) || failed(logSumExp) || failed(upstream))
    return failure();
  Type type = typeOf(op.getLogits()).getElementType();
  KernelNode column(KernelNode::position, IntegerType::get(op.getContext(), 64));
  column.at = position(indices.back());
  int j = add(std::move(column), nullptr);
  int probability = expression(type, "#exp($0 - $1)", {*logit, *logSumExp}, op);
  std::string text = "($0 - ($1 == $2 ? " + literal(1, type) + " : " + literal(0, type) + ")) * $3";
  if (!op.getCount())
    return expression(type, text, {probability, j, *label, *upstream}, op);
  FailureOr<int> count = at(op.getCount(), Indices());
  if (failed(count))
    return failure();
  text = "($1 < $4 ? " + text + " : " + literal(0, type) + ")";
  return expression(type, text, {probability, j, *label, *upstream, *count}, op);
}
