//===- KernelExpressions.cpp ----------------------------------------------===//

#include "codegen/KernelExpressions.h"

using namespace mlir;
using namespace mlir::fsdp;

KernelExpressions::KernelExpressions(const Kernel &kernel, bool anonymous,
                                     FunctionName functionName, ArrayRef<StringRef> taken)
    : kernel(kernel), anonymous(anonymous), functionName(functionName), uses(kernel.uses()),
      stored(kernel.stored()) {
  for (StringRef word : taken)
    names.unique(word);
  for (const LoopVar &loop : kernel.loops)
    loops.push_back(named(loop.name));
  for (const KernelMask &mask : kernel.masks)
    held.push_back(named(mask.name()));
  for (StringRef name : kernel.inputNames)
    inputs.push_back(named(name));
  for (StringRef name : kernel.outputNames)
    outputs.push_back(named(name));
  nodes.resize(kernel.nodes.size());
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

std::string KernelExpressions::address(const Affine &at) const {
  std::vector<std::string> indices;
  for (size_t loop = 0; loop < at.size(); ++loop)
    indices.push_back(at[loop] ? loopIndex(loop) : std::string());
  return spellAffine(at, indices);
}

std::string KernelExpressions::element(int number) const {
  const KernelNode &node = kernel.nodes[number];
  return inputs[node.input] + "[" + address(node.at) + "]";
}

bool KernelExpressions::inlined(int number) const {
  const KernelNode &node = kernel.nodes[number];
  if (node.kind == KernelNode::constant || node.kind == KernelNode::table ||
      node.kind == KernelNode::position)
    return true;
  if (uses[number] + stored[number] != 1)
    return false;
  if (stored[number])
    return kernel.outputs.size() == 1 && levelOf(number) == storeLevel();
  if (node.kind != KernelNode::load)
    return false;
  for (size_t user = 0; user < kernel.nodes.size(); ++user)
    if (llvm::is_contained(kernel.nodes[user].operands, number))
      return levelOf(user) == levelOf(number);
  return false;
}

std::string KernelExpressions::operand(int number) const {
  if (!inlined(number))
    return nodes[number];
  std::string text = value(number);
  bool compound = kernel.nodes[number].kind != KernelNode::load &&
                  text.find_first_of(" -") != std::string::npos;
  return compound ? "(" + text + ")" : text;
}

std::string KernelExpressions::value(int number) const {
  const KernelNode &node = kernel.nodes[number];
  switch (node.kind) {
  case KernelNode::load:
    return memoryType(node) == node.type ? element(number) : widened(node.type, element(number));
  case KernelNode::constant:
    return node.text;
  case KernelNode::table:
    return nodes[number] + "[" + address(node.at) + "]";
  case KernelNode::position:
    return address(node.at);
  case KernelNode::masked:
    return maskCondition(node, address(node.at), node.mask < 0 ? "" : held[node.mask],
                         node.operands.size() > 2 ? operand(node.operands[2]) : "") +
           " ? " + operand(node.operands[0]) + " : " + operand(node.operands[1]);
  case KernelNode::expression:
    break;
  }
  return spellExpression(node.text, node.type, functionName,
                         [&](int number) { return operand(node.operands[number]); });
}

std::string KernelExpressions::identity() const {
  return identityOf(kernel.reduction->kind == KernelReduction::max, kernel.reduction->type);
}

std::string KernelExpressions::combined(const std::string &total) const {
  std::string element = operand(kernel.reduction->store.node);
  return kernel.reduction->kind == KernelReduction::max ? "maximum(" + element + ", " + total + ")"
                                                        : total + " + " + element;
}

std::string KernelExpressions::finished(const std::string &total) const {
  if (kernel.reduction->kind != KernelReduction::mean)
    return total;
  return total + " / " +
         literal(static_cast<double>(kernel.reduction->count), kernel.reduction->type);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void KernelExpressions::define(int number) {
  if (inlined(number))
    return;
  const KernelNode &node = kernel.nodes[number];
  nodes[number] = named(node.name);
  writer.line("const " + typeName(node.type) + " " + nodes[number] + " = " + value(number) + ";");
}

void KernelExpressions::tables(StringRef qualifiers, StringRef prefix, Writer &writer) {
  for (auto [number, node] : llvm::enumerate(kernel.nodes)) {
    if (node.kind != KernelNode::table)
      continue;
    nodes[number] = prefix.str() + named(node.name) + "_table";
    std::vector<std::string> values;
    for (Attribute value : node.values.getValues<Attribute>())
      values.push_back(literal(value));
    writer.list((qualifiers + " " + typeName(node.type) + " " + nodes[number] + "[] = {").str(),
                values, "};");
  }
}

std::vector<std::string> KernelExpressions::splitIndex(ArrayRef<int> group,
                                                       const std::string &flat) const {
  std::vector<std::string> items;
  int64_t inner = 1;
  for (int loop : group)
    inner *= kernel.loops[loop].size;
  for (auto [i, loop] : llvm::enumerate(group)) {
    const int64_t size = kernel.loops[loop].size;
    inner /= size;
    std::string text = inner == 1 ? flat : flat + " / " + std::to_string(inner);
    items.push_back(loops[loop] + " = " + text + (i > 0 ? " % " + std::to_string(size) : ""));
  }
  return items;
}

//===----------------------------------------------------------------------===//
// Flat tensors
//===----------------------------------------------------------------------===//

std::vector<FlatPiece> mlir::fsdp::flatPieces(FlattenOp op) {
  std::vector<FlatPiece> pieces;
  int64_t offset = 0;
  auto add = [&](int64_t count, int argument, std::string value) {
    if (count)
      pieces.push_back({offset, count, argument, std::move(value)});
    offset += count;
  };
  for (Value input : op.getInputs()) {
    const int64_t count = cast<RankedTensorType>(input.getType()).getNumElements();
    if (auto argument = dyn_cast<BlockArgument>(input)) {
      add(count, static_cast<int>(argument.getArgNumber()), "");
    } else {
      auto values = cast<DenseElementsAttr>(input.getDefiningOp<arith::ConstantOp>().getValue());
      add(count, -1, literal(values.getSplatValue<Attribute>()));
    }
  }
  add(cast<RankedTensorType>(op.getType()).getNumElements() - offset, -1,
      identityOf(false, getElementTypeOrSelf(op.getType())));
  return pieces;
}

KernelFunction mlir::fsdp::declareFlatten(FlattenOp op, LaunchOp launch) {
  KernelFunction function;
  std::string type = typeName(getElementTypeOrSelf(op.getType()));
  for (size_t i = 0; i < launch.getIns().size(); ++i)
    function.parameters.push_back("const " + type + " *part_" + std::to_string(i));
  function.parameters.push_back(type + " *flat");
  return function;
}
