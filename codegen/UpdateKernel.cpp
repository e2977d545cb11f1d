//===- UpdateKernel.cpp ---------------------------------------------------===//

#include "codegen/UpdateKernel.h"

#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "dialect/fsdp/UpdateRule.h"
#include "runtime/program/Limits.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Copies the ops that the results of a rule's expression need, operands first.
class NodeBuilder {
public:
  NodeBuilder(Kernel &kernel, ArrayRef<UpdateRule::Constant> constants, StringRef decays,
              bool decaysVary)
      : kernel(kernel), constants(constants), decays(decays), decaysVary(decaysVary) {}

  int node(Value value) {
    if (auto found = known.find(value); found != known.end())
      return found->second;
    KernelNode node(KernelNode::constant, getElementTypeOrSelf(value.getType()));
    if (auto argument = dyn_cast<BlockArgument>(value))
      describe(argument.getArgNumber(), node);
    else
      describe(value.getDefiningOp(), node);
    kernel.nodes.push_back(std::move(node));
    return known[value] = kernel.nodes.size() - 1;
  }

private:
  void load(int input, KernelNode &node) {
    node.kind = KernelNode::load;
    node.input = input;
    node.at = {1};
    node.name = "old_" + kernel.inputNames[input];
  }

  void describe(unsigned argument, KernelNode &node) {
    switch (argument) {
    case UpdateBody::Parameter:
      return load(0, node);
    case UpdateBody::Gradient:
      return load(1, node);
    case UpdateBody::Lr:
      node.text = "step.lr";
      return;
    case UpdateBody::Scale:
      node.text = "step.scale";
      return;
    case UpdateBody::Count:
      node.text = "step.count";
      return;
    case UpdateBody::Decays:
      node.text = decays.str();
      node.at = {decaysVary ? 1 : 0};
      return;
    default:
      break;
    }
    unsigned states = kernel.inputs.size() - 2, place = argument - UpdateBody::FirstState;
    if (place < states)
      return load(2 + place, node);
    node.kind = KernelNode::expression;
    node.text = "step.constants[" + std::to_string(place - states) + "]";
    node.name = constants[place - states].name.str();
  }

  void describe(Operation *op, KernelNode &node) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      node.text = literal(cast<DenseElementsAttr>(constant.getValue()).getSplatValue<Attribute>());
      return;
    }
    node.kind = KernelNode::expression;
    node.text = elementwiseExpression(op);
    assert(!node.text.empty() && "an op that no target prints");
    for (Value operand : op->getOperands())
      node.operands.push_back(this->node(operand));
    node.name = nameOf(op->getLoc()).str();
    if (node.name.empty())
      node.name = op->getName().stripDialect().str();
  }

  Kernel &kernel;
  ArrayRef<UpdateRule::Constant> constants;
  StringRef decays;
  bool decaysVary;
  DenseMap<Value, int> known;
};

} // namespace

Kernel mlir::fsdp::createUpdateKernel(OptimizerStepOp op, StringRef decays, bool decaysVary) {
  auto type = cast<RankedTensorType>(op.getParameter().getType());
  UpdateBody body(op.getOptimizer(), type.getElementType());
  op.getOptimizer().getUpdateRule().body(body);

  Kernel kernel;
  kernel.updates = true;
  kernel.loops.push_back({"i", type.getNumElements()});
  kernel.rowLoops = 1;
  kernel.inputNames = {"parameter", "gradient"};
  kernel.outputNames = {"new_parameter"};
  for (StringRef state : op.getOptimizer().getStateNames()) {
    kernel.inputNames.push_back(state.str());
    kernel.outputNames.push_back("new_" + state.str());
  }
  kernel.inputs.assign(kernel.inputNames.size(), type);
  kernel.outputs.assign(kernel.outputNames.size(), type);
  ArrayRef<UpdateRule::Constant> constants = op.getOptimizer().getUpdateRule().constants;
  assert(constants.size() <= limits::kMaxUpdateConstants && "the step state holds so many");
  NodeBuilder nodes(kernel, constants, decays, decaysVary);
  SmallVector<Number> results = {body.newParameter};
  llvm::append_range(results, body.newStates);
  for (auto [output, result] : llvm::enumerate(results))
    kernel.stores.push_back({nodes.node(result.value), static_cast<int>(output), {1}});
  return kernel;
}
