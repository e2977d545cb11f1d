//===- ModelDigest.cpp ----------------------------------------------------===//

#include "passes/global/ModelDigest.h"

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/fsdp/TokenSource.h"
#include "dialect/nn/NNDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/global/ModelSizes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/xxhash.h"
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t kVersion = 1;
/// The sharding rule of an op, without names.
static constexpr llvm::StringLiteral kSpelled[] = {"notation", "along", "sizes"};
/// Constants made of more sizes than this are compared as they are.
static constexpr size_t kMaxSizes = 12;

namespace {

class Digester {
public:
  explicit Digester(LossOp loss);
  uint64_t digest();

private:
  void collect(Block &block);
  void keepNeeded();
  void rankNames();

  Value follow(Value value) const;
  std::optional<double> constantBehind(Value value) const;
  using Sizes = SmallVector<unsigned>;
  void addTerms(Value value, Sizes summed, llvm::DenseSet<Value> &seen,
                SmallVector<Sizes> &terms) const;
  std::string ofData(double constant, Value scaled) const;

  std::string sizeText(ArrayRef<unsigned> list) const;
  std::string typeText(Value value) const;
  std::string attributesOf(Operation *op) const;
  std::string ruleText(Operation *op, const nn::ShardingRule &rule) const;
  SmallVector<std::string> operandsOf(Operation *op) const;
  std::string textOf(Operation *op) const;

  LossOp loss;
  SmallVector<Operation *> ops; ///< those on which the loss depends; bodies before checkpoints
  std::optional<ModelSizes> sizes;
  llvm::DenseMap<StringAttr, int64_t> params, inputs; ///< ranks of names
  llvm::DenseMap<Value, uint64_t> digests;
};

} // namespace

//===----------------------------------------------------------------------===//
// Ops in the digest
//===----------------------------------------------------------------------===//

void Digester::collect(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (auto checkpoint = dyn_cast<CheckpointOp>(&op))
      collect(checkpoint.getBody().front());
    ops.push_back(&op);
  }
}

void Digester::keepNeeded() {
  llvm::DenseSet<Value> needed(loss->operand_begin(), loss->operand_end());
  SmallVector<Operation *> kept;
  for (Operation *op : llvm::reverse(ops)) {
    if (auto checkpoint = dyn_cast<CheckpointOp>(op)) {
      Operation *yield = checkpoint.getBody().front().getTerminator();
      for (auto [result, value] : llvm::zip_equal(op->getResults(), yield->getOperands()))
        if (needed.contains(result))
          needed.insert(value);
      kept.push_back(op); // its sizes are those of the body
    } else if (llvm::any_of(op->getResults(),
                            [&](Value result) { return needed.contains(result); })) {
      needed.insert(op->operand_begin(), op->operand_end());
      kept.push_back(op);
    }
  }
  ops.assign(kept.rbegin(), kept.rend());
}

void Digester::rankNames() {
  std::set<StringRef> ofParams, ofInputs;
  for (Operation *op : ops) {
    if (auto read = dyn_cast<ReadOp>(op))
      ofParams.insert(read.getParam());
    else if (auto input = dyn_cast<InputOp>(op))
      ofInputs.insert(input.getName());
  }
  MLIRContext *context = loss.getContext();
  for (auto [rank, name] : llvm::enumerate(ofParams))
    params[StringAttr::get(context, name)] = rank;
  for (auto [rank, name] : llvm::enumerate(ofInputs))
    inputs[StringAttr::get(context, name)] = rank;
}

/// The operand of `op` if the digest does not cover the op itself; otherwise null.
static Value passedThrough(Operation *op) {
  if (isa<ConstraintOp, DropoutOp>(op))
    return op->getOperand(0);
  auto rule = dyn_cast<nn::ShardingRuleOpInterface>(op);
  return rule && rule.getLinearity() == nn::Linearity::rounding ? op->getOperand(0) : Value();
}

/// The value that `value` is as far as the digest covers it.
Value Digester::follow(Value value) const {
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (auto checkpoint = dyn_cast<CheckpointOp>(op))
      value = checkpoint.getBody().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
    else if (Value same = passedThrough(op))
      value = same;
    else
      return value;
  }
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The number that all elements of `value` are, where that is a constant or one repeated.
std::optional<double> Digester::constantBehind(Value value) const {
  for (;;) {
    value = follow(value);
    Operation *op = value.getDefiningOp();
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
      if (!splat || !isa<FloatType>(splat.getElementType()))
        return std::nullopt;
      APFloat number = splat.getSplatValue<APFloat>();
      return number.convertToDouble();
    }
    auto interface = dyn_cast<nn::ShardingRuleOpInterface>(op);
    if (!interface || op->getNumOperands() != 1 ||
        interface.getLinearity() != nn::Linearity::linearMap ||
        llvm::any_of(interface.getShardingRule().factors, [](const nn::Factor &factor) {
          return factor.kind != nn::FactorKind::parallel;
        }))
      return std::nullopt;
    value = op->getOperand(0);
  }
}

/// Adds to `terms` the sizes of the sums that lead to `value` by a chain of ops with one
/// non-constant operand, after those of `summed`; if the chain ends at a number that is the sum of
/// two numbers, the sizes of each.
void Digester::addTerms(Value value, Sizes summed, llvm::DenseSet<Value> &seen,
                        SmallVector<Sizes> &terms) const {
  for (;;) {
    Operation *op = follow(value).getDefiningOp();
    auto interface = dyn_cast<nn::ShardingRuleOpInterface>(op);
    if (!interface)
      break;
    for (auto [factor, info] : llvm::enumerate(interface.getShardingRule().factors))
      if (info.kind == nn::FactorKind::sumReduction)
        llvm::append_range(summed, sizes->ofFactor(op, factor));
    SmallVector<Value> variable = llvm::filter_to_vector(
        op->getOperands(), [&](Value operand) { return !constantBehind(operand); });
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (interface.getLinearity() == nn::Linearity::additive && variable.size() == 2 && type &&
        type.getRank() == 0) {
      for (Value term : variable)
        if (seen.insert(term).second)
          addTerms(term, summed, seen, terms);
      return;
    }
    if (variable.size() != 1)
      break;
    value = variable.front();
  }
  terms.push_back(std::move(summed));
}

/// "sizes" or "1/sizes" for a constant that is the product, or its inverse, of sizes over which
/// `scaled`, or a term of it, is a sum, at least one of them a size of the data. Empty for other
/// constants.
std::string Digester::ofData(double constant, Value scaled) const {
  SmallVector<Sizes> terms;
  llvm::DenseSet<Value> seen;
  addTerms(scaled, {}, seen, terms);
  for (const Sizes &summed : terms) {
    if (summed.size() > kMaxSizes || !(constant > 0))
      continue;
    for (unsigned chosen = 1; chosen < 1u << summed.size(); ++chosen) {
      double product = 1;
      bool hasData = false;
      for (auto [index, size] : llvm::enumerate(summed))
        if (chosen >> index & 1) {
          product *= static_cast<double>(sizes->getSize(size));
          hasData |= sizes->isOfData(size);
        }
      if (!hasData)
        continue;
      if (constant == product)
        return "sizes";
      if (constant == 1 / product ||
          constant == static_cast<double>(1 / static_cast<float>(product)))
        return "1/sizes";
    }
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

static std::string numberText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
  return text;
}

static std::string digestText(uint64_t digest) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format_hex_no_prefix(digest, 16);
  return text;
}

/// The kind of an element, independent of its width.
static const char *kindOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) ? "float" : element.isInteger(1) ? "bool" : "integer";
}

std::string Digester::sizeText(ArrayRef<unsigned> list) const {
  int64_t product = 1;
  bool ofData = false;
  for (unsigned size : list) {
    product *= sizes->isOfData(size) ? 1 : sizes->getSize(size);
    ofData |= sizes->isOfData(size);
  }
  return (ofData ? "?" : "") + std::to_string(product);
}

std::string Digester::typeText(Value value) const {
  std::string text = kindOf(value.getType());
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      text += " " + sizeText(sizes->ofDimension(value, dim));
  return text;
}

/// A boundary of a piece of a dimension of the data, as its distance from the start or from the
/// end.
static std::string boundaryText(int64_t at, int64_t whole, bool fromStart) {
  return fromStart ? std::to_string(at) : "end-" + std::to_string(whole - at);
}

/// The boundaries of a piece at `low` of a whole along a dimension of the data, each as the
/// distance from the nearer end. Different pieces of wholes of one size have different texts.
static std::string pieceText(int64_t low, int64_t piece, int64_t whole) {
  const int64_t high = whole - piece - low, longest = std::max<int64_t>(piece, 1);
  return boundaryText(low, whole, low < longest || low <= high) + ".." +
         boundaryText(low + piece, whole, high >= longest && high > low);
}

std::string Digester::attributesOf(Operation *op) const {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    const int64_t dim = slice.getDim(), low = slice.getStart();
    const int64_t piece = slice.getResult().getType().getDimSize(dim),
                  whole = slice.getInput().getType().getDimSize(dim);
    const bool ofData = llvm::any_of(sizes->ofDimension(slice.getInput(), dim),
                                     [&](unsigned size) { return sizes->isOfData(size); });
    out << " dim=" << dim
        << " at=" << (ofData ? pieceText(low, piece, whole) : std::to_string(low));
    return text;
  }
  if (auto pad = dyn_cast<nn::PadOp>(op)) {
    const int64_t dim = pad.getDim(), low = pad.getLow();
    const int64_t piece = pad.getInput().getType().getDimSize(dim),
                  whole = pad.getResult().getType().getDimSize(dim);
    out << " dim=" << dim << " low=" << low << " high=" << whole - piece - low;
    return text;
  }
  if (auto own = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    for (NamedAttribute attribute : own)
      if (!llvm::is_contained(kSpelled, attribute.getName()))
        out << " " << attribute.getName().getValue() << "=" << attribute.getValue();
  return text;
}

/// "(0 1,2)(2,3)->(0 1,3) 0:?1 1:p4": the factors of each dimension, and of each factor its kind
/// and size.
std::string Digester::ruleText(Operation *op, const nn::ShardingRule &rule) const {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto print = [&](ArrayRef<nn::TensorFactors> tensors) {
    for (const nn::TensorFactors &tensor : tensors) {
      out << "(";
      for (const nn::DimFactors &dim : tensor) {
        llvm::interleave(dim, out, " ");
        out << ",";
      }
      out << ")";
    }
  };
  print(rule.operands);
  out << "->";
  print(rule.results);
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    out << " " << static_cast<int>(factor.kind) << ":" << sizeText(sizes->ofFactor(op, index));
  return text;
}

SmallVector<std::string> Digester::operandsOf(Operation *op) const {
  auto interface = dyn_cast<nn::ShardingRuleOpInterface>(op);
  const nn::Linearity linearity = interface ? interface.getLinearity() : nn::Linearity::none;
  const bool scales = linearity == nn::Linearity::product || linearity == nn::Linearity::quotient;
  SmallVector<std::string> texts;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (std::optional<double> constant;
        scales && op->getNumOperands() == 2 && (constant = constantBehind(operand)))
      if (std::string text = ofData(*constant, op->getOperand(1 - index)); !text.empty()) {
        texts.push_back(text);
        continue;
      }
    texts.push_back(digestText(digests.lookup(follow(operand))));
  }
  if (op->hasTrait<OpTrait::IsCommutative>())
    llvm::sort(texts);
  return texts;
}

/// The ops of `region`, without the sizes that they have on one mesh.
static std::string bodyText(ManualOp region) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::DenseMap<Value, unsigned> numbers;
  region.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value argument : op->getBlock()->getArguments())
      numbers.try_emplace(argument, numbers.size());
    out << op->getName();
    for (Value operand : op->getOperands())
      out << " %" << numbers.lookup(operand);
    for (NamedAttribute attribute : op->getAttrs())
      if (isa<StringAttr, ArrayAttr>(attribute.getValue()))
        out << " " << attribute.getName().getValue() << "=" << attribute.getValue();
    for (Value result : op->getResults())
      numbers.try_emplace(result, numbers.size());
    out << ";";
  });
  return text;
}

std::string Digester::textOf(Operation *op) const {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << op->getName().getStringRef();
  if (auto read = dyn_cast<ReadOp>(op)) {
    out << " " << params.lookup(read.getParamAttr().getAttr());
  } else if (auto input = dyn_cast<InputOp>(op)) {
    out << " " << inputs.lookup(input.getNameAttr()) << " " << input.getSampleDim()
        << (op->hasAttr(tokensAttrName)    ? " tokens"
            : op->hasAttr(targetsAttrName) ? " targets"
                                           : "");
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    // The shape of a single value is the shape of the result, below.
    if (std::optional<double> number = constantBehind(constant))
      out << " " << numberText(*number);
    else if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      out << " " << splat.getSplatValue<Attribute>();
    else
      out << " " << constant.getValue();
  } else {
    out << attributesOf(op);
    if (auto interface = dyn_cast<nn::ShardingRuleOpInterface>(op))
      out << " " << ruleText(op, interface.getShardingRule());
    for (const std::string &operand : operandsOf(op))
      out << " " << operand;
    if (auto region = dyn_cast<ManualOp>(op))
      out << " " << bodyText(region);
  }
  for (Value result : op->getResults())
    out << " : " << typeText(result);
  return text;
}

//===----------------------------------------------------------------------===//
// The digest
//===----------------------------------------------------------------------===//

Digester::Digester(LossOp loss) : loss(loss) {
  collect(*loss->getBlock());
  keepNeeded();
  sizes.emplace(ops);
  rankNames();
}

uint64_t Digester::digest() {
  for (Operation *op : ops) {
    if (isa<CheckpointOp>(op) || passedThrough(op))
      continue;
    const std::string text = textOf(op);
    for (OpResult result : op->getResults())
      digests[result] = llvm::xxh3_64bits(text + " #" + std::to_string(result.getResultNumber()));
  }
  std::string weight;
  if (std::optional<double> constant = constantBehind(loss.getWeight()))
    weight = ofData(*constant, loss.getSum());
  if (weight.empty())
    weight = digestText(digests.lookup(follow(loss.getWeight())));
  return llvm::xxh3_64bits("loss " + digestText(digests.lookup(follow(loss.getSum()))) + " " +
                           weight);
}

std::string mlir::fsdp::computeModelDigest(ModuleOp module) {
  for (auto step : module.getOps<StepOp>()) {
    auto losses = step.getOps<LossOp>();
    if (step.getKind() == StepKind::train && !losses.empty())
      return "v" + std::to_string(kVersion) + ":" + digestText(Digester(*losses.begin()).digest());
  }
  return "";
}
