//===- CaseFile.cpp - propagation cases as text ---------------------------===//

#include "test/unit/passes/propagation/CaseFile.h"
#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace mlir::fsdp::propagation {

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

static AxisPart parseAxis(const Mesh &mesh, const std::string &text) {
  size_t colon = text.find(':');
  std::string name = text.substr(0, colon);
  for (size_t index = 0; index < mesh.names.size(); ++index)
    if (mesh.names[index] == name) {
      if (colon == std::string::npos)
        return wholeAxis(mesh, index);
      size_t close = text.find(')');
      return {static_cast<int>(index), std::stoll(text.substr(colon + 2, close)),
              std::stoll(text.substr(close + 1))};
    }
  throw std::runtime_error("no axis '" + name + "'");
}

static AxisList parseAxes(const Mesh &mesh, const std::string &text) {
  AxisList axes;
  for (const std::string &part : split(text, '+'))
    if (part != "_" && !part.empty())
      axes.push_back(parseAxis(mesh, part));
  return axes;
}

static Sharding parseSharding(const Mesh &mesh, std::string text) {
  Sharding sharding;
  if (size_t at = text.find('~'); at != std::string::npos) {
    sharding.unreduced = parseAxes(mesh, text.substr(at + 1));
    text.resize(at);
  }
  if (size_t at = text.find('!'); at != std::string::npos) {
    sharding.replicated = parseAxes(mesh, text.substr(at + 1));
    text.resize(at);
  }
  if (text == ".")
    return sharding;
  for (std::string part : split(text, ',')) {
    DimSharding dim;
    if (size_t mark = part.find('p'); mark != std::string::npos) {
      dim.priority = std::stoll(part.substr(mark + 1));
      part.resize(mark);
    }
    dim.open = !part.empty() && part.back() == '?';
    if (dim.open)
      part.pop_back();
    dim.axes = parseAxes(mesh, part);
    sharding.dims.push_back(dim);
  }
  return sharding;
}

static Mapping parseTensor(const std::string &text) {
  Mapping dims;
  bool grouped = false;
  for (char c : text) {
    if (c == '(') {
      grouped = true;
      dims.emplace_back();
    } else if (c == ')') {
      grouped = false;
    } else {
      if (!grouped)
        dims.emplace_back();
      if (c != '1')
        dims.back().push_back(c - 'a');
    }
  }
  return dims;
}

static OpKind parseKind(const std::string &text) {
  if (text == "elementwise")
    return OpKind::elementwise;
  if (text == "pass")
    return OpKind::passThrough;
  if (text == "broadcast")
    return OpKind::broadcast;
  if (text == "constraint")
    return OpKind::constraint;
  if (text == "contraction")
    return OpKind::contraction;
  throw std::runtime_error("no kind '" + text + "'");
}

Options Case::options() const {
  Options options;
  options.userPriorities = strategy == "user" || strategy == "pipeline";
  options.opPriorities = options.userPriorities || strategy == "op";
  if (strategy == "basic")
    options.strategy = Strategy::basic;
  if (strategy == "aggressive")
    options.strategy = Strategy::aggressive;
  return options;
}

namespace {
class Reader {
public:
  std::vector<Case> cases;

  void read(const std::string &line) {
    std::istringstream stream(line);
    std::string word;
    if (!(stream >> word) || word[0] == '#')
      return;
    if (word == "case") {
      cases.emplace_back();
      stream >> cases.back().name >> cases.back().strategy;
    } else if (word == "mesh") {
      for (std::string axis; stream >> axis;) {
        current().problem.mesh.names.push_back(axis.substr(0, axis.find('=')));
        current().problem.mesh.sizes.push_back(std::stoll(axis.substr(axis.find('=') + 1)));
      }
    } else if (word == "value") {
      std::string name, sizes, spec;
      stream >> name >> sizes >> spec;
      Value value;
      if (sizes != ".")
        for (const std::string &size : split(sizes, 'x'))
          value.sizes.push_back(std::stoll(size));
      addValue(name, value, spec);
    } else if (word == "op") {
      readOp(stream);
    } else if (word == "result") {
      readResult(stream);
    } else if (word == "expect") {
      std::string name, spec;
      stream >> name >> spec;
      lookup(name);
      current().expected.push_back({name, spec});
    } else {
      throw std::runtime_error("no line begins with '" + word + "'");
    }
  }

private:
  Case &current() { return cases.back(); }
  int lookup(const std::string &name) {
    auto found = current().values.find(name);
    if (found == current().values.end())
      throw std::runtime_error("no value '" + name + "'");
    return found->second;
  }
  void addValue(const std::string &name, Value value, const std::string &spec) {
    if (!spec.empty())
      value.sharding = parseSharding(current().problem.mesh, spec);
    current().values[name] = current().problem.values.size();
    current().problem.values.push_back(std::move(value));
  }

  void readOp(std::istringstream &stream) {
    Op op;
    std::string kind, rule, word;
    stream >> kind >> rule;
    op.kind = parseKind(kind);
    while (stream >> word && word != ":") {
      op.factors.resize(word[0] - 'a' + 1 > static_cast<int>(op.factors.size())
                            ? word[0] - 'a' + 1
                            : op.factors.size());
      op.factors[word[0] - 'a'].size = std::stoll(word.substr(2));
    }
    while (stream >> word && word != "->")
      op.operands.push_back(lookup(word));
    while (stream >> word)
      op.results.push_back(lookup(word));
    size_t arrow = rule.find("->");
    for (const std::string &tensor : split(rule.substr(0, arrow), ','))
      op.operandDims.push_back(parseTensor(tensor));
    op.operandDims.resize(op.operands.size());
    for (const std::string &tensor : split(rule.substr(arrow + 2), ','))
      op.resultDims.push_back(parseTensor(tensor));
    op.resultDims.resize(op.results.size());
    // Factors that no result has are summed away.
    for (size_t factor = 0; factor < op.factors.size(); ++factor) {
      bool stays = false;
      for (const Mapping &dims : op.resultDims)
        for (const std::vector<int> &dim : dims)
          stays |= std::find(dim.begin(), dim.end(), static_cast<int>(factor)) != dim.end();
      op.factors[factor].passThrough = stays || op.kind != OpKind::contraction;
    }
    current().problem.ops.push_back(std::move(op));
  }

  void readResult(std::istringstream &stream) {
    std::string name, of, spec;
    stream >> name >> of >> spec;
    Op op;
    op.kind = OpKind::boundary;
    op.operands = {lookup(of)};
    Value value;
    value.sizes = current().problem.values[op.operands[0]].sizes;
    addValue(name, value, spec);
    op.results = {lookup(name)};
    Mapping dims;
    for (int64_t size : value.sizes) {
      dims.push_back({static_cast<int>(op.factors.size())});
      op.factors.push_back({size});
    }
    op.operandDims = op.resultDims = {dims};
    current().problem.ops.push_back(std::move(op));
  }
};
} // namespace

std::vector<Case> readCases(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read '" + path + "'");
  Reader reader;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      reader.read(line);
    } catch (const std::exception &error) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  return std::move(reader.cases);
}

std::string axesOf(const Mesh &mesh, const Sharding &sharding) {
  std::string text;
  for (const DimSharding &dim : sharding.dims)
    text += (text.empty() ? "" : ",") + print(mesh, dim.axes);
  return text.empty() ? "." : text;
}

} // namespace mlir::fsdp::propagation
