//===- SplitCoverage.cpp - which ops were split how -----------------------===//

#include "SplitCoverage.h"

#include "passes/sharding/MeshAxes.h"
#include "passes/sharding/StepShardings.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using mlir::nn::DimFactors;
using mlir::nn::FactorKind;
using mlir::nn::ShardingRule;
using mlir::nn::TensorFactors;

static constexpr const char *wayNames[] = {"none",         "even",    "uneven", "empty", "two axes",
                                           "microbatches", "partial", "batch",  "other"};
static_assert(std::size(wayNames) == SplitCoverage::numWays);

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Ops whose attributes decide what they do with a factor count as several.
static std::string nameOfOp(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    name += " " + nn::stringifyReduction(reduce.getKind()).str();
  return name;
}

/// " merged" where the factor shares a dimension with others and is its major one, " minor" where
/// it is not.
static StringRef placeOf(const ShardingRule &rule, int64_t factor) {
  StringRef place;
  auto look = [&](const TensorFactors &tensor) {
    for (const DimFactors &dim : tensor) {
      if (!llvm::is_contained(dim, factor))
        continue;
      for (int64_t other : dim) {
        if (other == factor || rule.factors[other].size == 1)
          continue;
        bool before = llvm::find(dim, other) < llvm::find(dim, factor);
        if (before || place.empty())
          place = before ? " minor" : " merged";
      }
    }
  };
  llvm::for_each(rule.operands, look);
  llvm::for_each(rule.results, look);
  return place;
}

/// The kind of the factor and the numbers of the operands and results that run over it: "sum 0 1
/// ->".
static std::string nameOfFactor(Operation *op, const ShardingRule &rule, int64_t factor) {
  constexpr const char *kinds[] = {"parallel", "sum", "max", "combined", "whole"};
  std::string name = kinds[static_cast<int>(rule.factors[factor].kind)];
  if (rule.factors[factor].indexed)
    name += " indexed";
  if (nn::isElementwise(op))
    return name;
  // Operands are those of nn.attention_grad.
  if (isa<nn::AttentionBiasGradOp>(op))
    return name + placeOf(rule, factor).str();
  // All operands of an op that joins any number of them are alike.
  const bool alike = llvm::all_equal(rule.operands) && op->getNumOperands() > 2;
  // The ids of documents, which attention has or has not, follow the batch, and its bias the heads:
  // with and without them a factor is one.
  int64_t bias = -1;
  const bool hasIds = llvm::TypeSwitch<Operation *, bool>(op)
                          .Case<nn::AttentionOp, nn::AttentionGradOp>([&](auto typed) {
                            if (typed.getBias())
                              bias = static_cast<int64_t>(typed.getTensors().size());
                            return true;
                          })
                          .Default(false);
  auto list = [&](ArrayRef<TensorFactors> tensors, bool all) {
    SmallVector<TensorFactors> counted;
    for (auto [index, tensor] : llvm::enumerate(tensors))
      if (!hasIds || tensors.data() != rule.operands.data() ||
          (static_cast<int64_t>(index) != bias &&
           isa<FloatType>(getElementTypeOrSelf(op->getOperand(index).getType()))))
        counted.push_back(tensor);
    for (auto [index, tensor] : llvm::enumerate(counted))
      if (llvm::any_of(tensor,
                       [&](const DimFactors &dim) { return llvm::is_contained(dim, factor); })) {
        name += all ? " all" : " " + std::to_string(index);
        if (all)
          break;
      }
  };
  list(rule.operands, alike);
  name += " ->";
  list(rule.results, false);
  return name + placeOf(rule, factor).str();
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

namespace {

/// Which dimensions run over the batch.
using BatchDims = llvm::DenseMap<Value, llvm::SmallBitVector>;

} // namespace

/// True for factors that run over the batch in an operand; notes the dimensions of results that do.
static SmallVector<bool> followBatch(Operation *op, const ShardingRule &rule, BatchDims &dims) {
  SmallVector<bool> isBatch(rule.factors.size());
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (auto known = dims.find(operand); known != dims.end() && known->second.test(dim))
        for (int64_t factor : factors)
          isBatch[factor] = true;
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule.results)) {
    llvm::SmallBitVector &bits = dims[result];
    bits.resize(cast<RankedTensorType>(result.getType()).getRank());
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (llvm::any_of(factors, [&](int64_t factor) { return isBatch[factor]; }))
        bits.set(dim);
  }
  return isBatch;
}

SplitCoverage::Cells SplitCoverage::cellsOf(ModuleOp module) {
  Cells cells;
  MeshAttr mesh = getMesh(module);
  int64_t ranks = 1;
  for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames(), mesh.getAxisSizes()))
    ranks *= name == kMicrobatchAxis ? 1 : size;
  for (StepOp step : module.getOps<StepOp>()) {
    FailureOr<StepShardings> shardings = StepShardings::read(step);
    if (failed(shardings))
      continue;
    BatchDims batchDims;
    for (Operation &op : step.getBody().front()) {
      if (auto input = dyn_cast<InputOp>(op)) {
        batchDims[input].resize(cast<RankedTensorType>(input.getType()).getRank());
        batchDims[input].set(input.getSampleDim());
      }
      auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
      if (!ruled)
        continue;
      ShardingRule rule = ruled.getShardingRule();
      SmallVector<bool> isBatch = followBatch(&op, rule, batchDims);
      if (isa<ConstraintOp, ReshardOp>(op))
        continue;
      const OpSplit split = shardings->split(&op);
      const bool takesPartial = llvm::any_of(op.getOperands(), [&](Value operand) {
        return !shardings->lookup(operand).getUnreduced().empty();
      });
      for (auto [index, factor] : llvm::enumerate(rule.factors)) {
        if (factor.size <= 1)
          continue;
        auto &cell = cells[{nameOfOp(&op), nameOfFactor(&op, rule, index)}];
        ArrayRef<StringAttr> axes = split.getAxes(index);
        const int64_t parts = mesh.getSize(axes);
        if (parts == 1) {
          cell[none] |= ranks > 1;
          continue;
        }
        const int64_t part = llvm::divideCeil(factor.size, parts);
        cell[factor.size % parts ? uneven : even] = true;
        cell[empty] |= part * (parts - 1) >= factor.size;
        cell[twoAxes] |= llvm::count_if(axes, [&](StringAttr axis) {
                           return axis != kMicrobatchAxis && mesh.getAxisSize(axis) > 1;
                         }) > 1;
        cell[microbatches] |= llvm::is_contained(axes, kMicrobatchAxis);
        cell[partial] |= takesPartial;
        cell[isBatch[index] ? batch : other] = true;
      }
    }
  }
  return cells;
}

void SplitCoverage::add(const Cells &cells) {
  for (const auto &[row, ways] : cells)
    for (size_t way = 0; way < numWays; ++way)
      counts[row][way] += ways[way];
}

//===----------------------------------------------------------------------===//
// Gaps
//===----------------------------------------------------------------------===//

namespace {

/// Cells that no case needs to have: those of all rows whose op and factor match, in these ways.
struct Excused {
  llvm::StringRef op, factor; ///< patterns with *
  std::set<SplitCoverage::Way> ways;
  const char *reason;
  bool isPossible =
      false; ///< a table or logits that are computed from samples may have it by chance
};

using S = SplitCoverage;
const std::set<S::Way> anySplit{S::even,         S::uneven,  S::empty, S::twoAxes,
                                S::microbatches, S::partial, S::batch, S::other};

const Excused excused[] = {
    {"*", "whole*", anySplit, "the op needs the factor whole"},
    {"fsdp.*_manual",
     "* minor",
     {S::microbatches},
     "a rank's rows of a dimension that a region splits are minor, and in microbatches if samples",
     true},
    {"*",
     "* minor",
     {S::uneven, S::empty, S::microbatches},
     "a minor factor of a merged dimension is split where it divides, by ranks alone"},
    {"*",
     "* merged",
     {S::uneven, S::empty},
     "parts of a merged dimension are rows of its major factor if that divides"},
    {"*",
     "*indexed*",
     {S::microbatches},
     "which samples a microbatch has is known when it runs: indices cannot be renumbered"},
    {"*",
     "combined*",
     {S::microbatches},
     "the parts of ranks are combined, not those of microbatches"},
    {"*", "parallel -> *", {S::batch}, "no operand has the dimension"},
    {"*", "parallel indexed -> *", {S::batch}, "the rows of a table are no samples", true},
    {"nn.embedding", "*indexed 0 ->", {S::batch}, "the rows of a table are no samples", true},
    {"nn.embedding",
     "parallel 0 -> 0",
     {S::batch, S::microbatches},
     "the width of a table has no samples",
     true},
    {"nn.embedding_grad",
     "parallel 1 -> 0",
     {S::batch, S::microbatches},
     "the width of a table has no samples",
     true},
    {"nn.cross_entropy*", "*indexed*", {S::batch}, "classes are no samples", true},
    {"nn.argmax", "combined*", {S::batch}, "classes are no samples", true},
    {"nn.attention*",
     "combined*",
     {S::none, S::uneven, S::empty, S::twoAxes, S::batch},
     "positions are split over context alone, here evenly; context-order.mlir pads them",
     true},
    {"nn.attention*",
     "parallel* merged",
     {S::batch, S::microbatches},
     "groups of heads are no samples",
     true},
    {"nn.attention_grad",
     "sum 0 3 4 5 -> 0*",
     {S::batch, S::microbatches},
     "heads are no samples",
     true},
    {"nn.attention_bias_grad", "sum* merged", {S::batch}, "heads are no samples", true},
    {"nn.cached_attention",
     "parallel 0 1 2 -> 0*",
     {S::batch, S::microbatches},
     "heads are no samples",
     true},
    {"nn.cached_attention",
     "parallel 0 -> 0",
     {S::batch, S::microbatches},
     "the heads of a group are no samples",
     true},
    {"nn.cached_attention",
     "parallel 0 1 2 3 -> 0",
     {S::other},
     "what has positions are samples",
     true},
    {"nn.write_rows",
     "parallel 0 1 -> 0",
     {S::batch, S::microbatches},
     "dimensions of a row are no samples",
     true},
    {"nn.write_rows", "parallel 0 1 2 -> 0", {S::other}, "what has positions are samples", true},
    {"nn.positions_since", "parallel*", {S::partial}, "tokens are no sum"},
    {"nn.positions_since", "parallel*", {S::other}, "the rows of tokens are those of samples"},
    {"arith.constant", "*", {S::partial}, "has no operands"},
    {"arith.uitofp", "*", {S::partial}, "the result of a comparison is no sum"},
};

} // namespace

static bool matches(llvm::StringRef text, llvm::StringRef pattern) {
  auto [head, rest] = pattern.split('*');
  if (!text.consume_front(head))
    return false;
  if (!pattern.contains('*'))
    return text.empty();
  for (size_t skip = 0; skip <= text.size(); ++skip)
    if (matches(text.drop_front(skip), rest))
      return true;
  return false;
}

static const Excused *findExcuse(const SplitCoverage::Row &row, SplitCoverage::Way way) {
  for (const Excused &entry : excused)
    if (entry.ways.count(way) && matches(row.op, entry.op) && matches(row.factor, entry.factor))
      return &entry;
  return nullptr;
}

void SplitCoverage::print(llvm::raw_ostream &os) const {
  os << llvm::format("%-24s %-46s", "cases with op and", "factor split");
  for (const char *way : wayNames)
    os << llvm::format("%13s", way);
  os << "\n";
  for (const auto &[row, ways] : counts) {
    os << llvm::format("%-24s %-46s", row.op.c_str(), row.factor.c_str());
    for (size_t way = 0; way < numWays; ++way) {
      if (ways[way] == 0 && findExcuse(row, static_cast<Way>(way)))
        os << llvm::format("%13s", "-");
      else
        os << llvm::format("%13lld", static_cast<long long>(ways[way]));
    }
    os << "\n";
  }
}

std::vector<std::string> SplitCoverage::findGaps() const {
  constexpr int64_t kRareRow = 20, kMaxRareGaps = 40;
  const std::set<size_t> rareWays{twoAxes, microbatches, partial, other};
  std::vector<std::string> gaps, rareGaps;
  for (const auto &[row, ways] : counts)
    for (size_t way = 0; way < numWays; ++way) {
      const Excused *excuse = findExcuse(row, static_cast<Way>(way));
      if (ways[way] != 0 && excuse && !excuse->isPossible)
        gaps.push_back("factor '" + row.factor + "' of " + row.op + " is split in the way '" +
                       wayNames[way] +
                       "', which SplitCoverage.cpp says cannot be: " + excuse->reason);
      // Minor factors are split only where the major one is split completely.
      if (ways[way] != 0 || excuse || StringRef(row.factor).ends_with(" minor"))
        continue;
      const bool isRare = ways[none] < kRareRow || rareWays.count(way);
      (isRare ? rareGaps : gaps)
          .push_back("no case splits factor '" + row.factor + "' of " + row.op + " in the way '" +
                     wayNames[way] +
                     "'; teach the generator, or say in SplitCoverage.cpp why that cannot be");
    }
  if (rareGaps.size() > kMaxRareGaps) {
    gaps.push_back(std::to_string(rareGaps.size()) +
                   " cells of rare rows and ways are empty, expected at most " +
                   std::to_string(kMaxRareGaps));
    llvm::append_range(gaps, rareGaps);
  }
  return gaps;
}
