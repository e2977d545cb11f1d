//===- CaseModule.cpp - a propagation case as a module --------------------===//

#include "test/unit/passes/propagation/CaseModule.h"
#include "dialect/fsdp/AxisParts.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include <set>
#include <stdexcept>

namespace mlir::fsdp::propagation {

namespace {
class Writer {
public:
  explicit Writer(const Case &item) : problem(item.problem), defined(problem.values.size(), false) {
    for (const auto &[name, value] : item.values)
      names[value] = name;
    for (const Op &op : problem.ops)
      for (int result : op.results)
        defined[result] = true;
  }

  std::string write();

private:
  std::string typeOf(int value) const {
    std::string type = "tensor<";
    for (int64_t size : problem.values[value].sizes)
      type += std::to_string(size) + "x";
    return type + "f32>";
  }
  std::string specOf(int value);
  /// `%v3`, or, where a constraint is to make that, `%v3.made`.
  std::string made(int value) const {
    return "%" + names.at(value) + (isGiven(value) ? ".made" : "");
  }
  bool isGiven(int value) const { return !problem.values[value].sharding.dims.empty(); }
  /// Adds a constraint that makes `value` of `from`.
  void constrain(int value, const std::string &from) {
    addLine("%" + names[value] + " = fsdp.constraint " + from + " " + specOf(value) + " : " +
                typeOf(value),
            value);
  }
  void addLine(const std::string &text, int value) {
    body += "  " + text + " loc(\"" + names[value] + "\")\n";
  }
  void addArgument(int value);
  void addOp(const Op &op);
  std::string notation(const Op &op, bool spaced) const;

  const Problem &problem;
  std::vector<bool> defined;
  std::map<int, std::string> names;
  std::set<int> axes;
  std::string params, body;
};
} // namespace

/// The reasons why a case cannot be expressed.
[[noreturn]] static void refuse(const std::string &why) { throw std::runtime_error(why); }

std::string Writer::specOf(int value) {
  const Sharding &given = problem.values[value].sharding;
  if (!given.replicated.empty() || !given.unreduced.empty())
    refuse("axes that a constraint keeps out");
  std::string dims, priorities;
  bool anyPriority = false;
  for (size_t dim = 0; dim < problem.values[value].sizes.size(); ++dim) {
    std::vector<std::string> entries;
    if (isGiven(value)) {
      for (const AxisPart &axis : given.dims[dim].axes) {
        axes.insert(axis.axis);
        // One cut has all parts of an axis.
        for (const Value &other : problem.values)
          for (const DimSharding &split : other.sharding.dims)
            for (const AxisPart &part : split.axes)
              if (part.axis == axis.axis && part.next() % axis.before != 0 &&
                  axis.before % part.next() != 0)
                refuse("a part that another one of the axis cuts");
        entries.push_back("\"" + print(problem.mesh, AxisList{axis}) + "\"");
      }
    }
    if (!isGiven(value) || given.dims[dim].open)
      entries.push_back("?");
    dims += (dim ? ", {" : "{") + llvm::join(entries, ", ") + "}";
    const int64_t priority = isGiven(value) ? given.dims[dim].priority : 0;
    anyPriority |= priority != 0;
    priorities += (dim ? ", " : "") + std::to_string(priority);
  }
  return "<@mesh, [" + dims + "]>" + (anyPriority ? " priorities [" + priorities + "]" : "");
}

void Writer::addArgument(int value) {
  const std::string &name = names[value];
  params += "fsdp.param @" + name + " : " + typeOf(value) + " unit \"" + name +
            "\" init <constant, 0.0> placement <replicated, gather = f32, reduce = f32, reshard = "
            "always>\n";
  body += "  " + made(value) + " = fsdp.read @" + name + " : " + typeOf(value) + " loc(\"" + name +
          (isGiven(value) ? ".made" : "") + "\")\n";
  if (isGiven(value))
    constrain(value, made(value));
}

/// `(a b) c, b -> a c`, or without spaces.
std::string Writer::notation(const Op &op, bool spaced) const {
  auto spell = [&](const Mapping &dims) {
    std::vector<std::string> words;
    for (const std::vector<int> &dim : dims) {
      std::vector<std::string> letters;
      for (int factor : dim)
        letters.push_back(op.factors[factor].size == 1 && spaced ? "1"
                                                                 : std::string(1, 'a' + factor));
      words.push_back((letters.size() > 1 ? "(" : "") + llvm::join(letters, " ") +
                      (letters.size() > 1 ? ")" : ""));
    }
    return llvm::join(words, spaced ? " " : "");
  };
  std::vector<std::string> operands;
  for (const Mapping &dims : op.operandDims)
    operands.push_back(spell(dims));
  const std::string arrow = spaced ? " -> " : "->";
  return "\"" + llvm::join(operands, ",") + arrow + spell(op.resultDims.front()) + "\"";
}

void Writer::addOp(const Op &op) {
  const int result = op.results.front();
  std::vector<std::string> operands, types;
  for (int operand : op.operands) {
    operands.push_back("%" + names[operand]);
    types.push_back(typeOf(operand));
  }
  if (op.kind == OpKind::constraint || op.kind == OpKind::boundary)
    return constrain(result, operands.front());
  if (op.results.size() != 1)
    refuse("an op with several results");
  const std::string type = typeOf(result), target = made(result) + " = ";
  std::string text;
  if (op.kind == OpKind::elementwise)
    text = operands.size() == 1 ? "math.tanh " + operands[0] + " : " + type
                                : "arith.addf " + llvm::join(operands, ", ") + " : " + type;
  else if (op.kind == OpKind::passThrough)
    text =
        "nn.rearrange " + notation(op, true) + " " + operands[0] + " : " + types[0] + " -> " + type;
  else if (op.kind == OpKind::broadcast)
    text = "nn.repeat " + notation(op, true) + " " + operands[0] + " : " + types[0] + " -> " + type;
  else if (operands.size() == 2)
    text = "nn.einsum " + notation(op, false) + " " + llvm::join(operands, ", ") + " : (" +
           llvm::join(types, ", ") + ") -> " + type;
  else
    refuse("a cut or joined dimension");
  body +=
      "  " + target + text + " loc(\"" + names[result] + (isGiven(result) ? ".made" : "") + "\")\n";
  if (isGiven(result))
    constrain(result, made(result));
}

std::string Writer::write() {
  std::set<int> used;
  for (const Op &op : problem.ops)
    used.insert(op.operands.begin(), op.operands.end());
  for (size_t value = 0; value < problem.values.size(); ++value) {
    if (llvm::is_contained(problem.values[value].sizes, 0))
      refuse("a dimension of size 0");
    if (!defined[value] && used.count(value))
      addArgument(value);
  }
  for (const Op &op : problem.ops)
    addOp(op);
  // An axis that nothing names is an error of the pass.
  std::vector<std::string> mesh;
  for (int axis : axes)
    mesh.push_back("\"" + problem.mesh.names[axis] +
                   "\"=" + std::to_string(problem.mesh.sizes[axis]));
  return "fsdp.mesh @mesh <[" + llvm::join(mesh, ", ") + "]>\n" + params +
         "fsdp.step @evaluate evaluate {\n" + body + "}\n";
}

std::optional<std::string> writeModule(const Case &item, std::string &why) {
  try {
    return Writer(item).write();
  } catch (const std::runtime_error &error) {
    why = error.what();
    return std::nullopt;
  }
}

/// As in `expect`: parts of an axis that follow one another are one part, all parts are the axis.
static std::string spell(MeshAttr mesh, ArrayRef<StringAttr> names) {
  AxisList axes;
  Mesh whole;
  for (StringAttr name : names) {
    auto part = *parseAxisPart(name);
    auto known = llvm::find(whole.names, part.axis.str());
    const int index = known - whole.names.begin();
    if (known == whole.names.end()) {
      whole.names.push_back(part.axis.str());
      whole.sizes.push_back(positionsOf(mesh, part.axis));
    }
    append(axes, {index, part.before, part.isWhole() ? whole.sizes[index] : part.size});
  }
  return print(whole, axes);
}

std::map<std::string, std::string> propagateModule(MLIRContext &context, const std::string &text) {
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      messages += diagnostic.str() + "\n";
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  PassManager passes(&context);
  passes.addPass(fsdp::createPropagatePass());
  if (!module || failed(passes.run(*module)))
    throw std::runtime_error(messages + text);
  std::map<std::string, std::string> result;
  module->walk([&](Operation *op) {
    auto shardings = op->getAttrOfType<ArrayAttr>(FSDPDialect::shardingsAttrName);
    auto name = op->getLoc()->findInstanceOf<NameLoc>();
    if (!shardings || !name || isa<ReshardOp>(op))
      return;
    auto sharding = cast<ShardingAttr>(shardings[0]);
    std::string dims;
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
      dims += (dim ? "," : "") + spell(getMesh(op), sharding.getAxes(dim));
    result[name.getName().str()] = dims.empty() ? "." : dims;
  });
  return result;
}

} // namespace mlir::fsdp::propagation
