//===- StepSplitter.h - positions of a step split over context --*- C++ -*-===//

#ifndef PASSES_GLOBAL_STEPSPLITTER_H
#define PASSES_GLOBAL_STEPSPLITTER_H

#include "dialect/fsdp/AxisParts.h"
#include "dialect/nn/NNDialect.h"
#include "passes/global/SequenceOrder.h"
#include "llvm/ADT/StringExtras.h"
#include <optional>
#include <set>

namespace mlir::fsdp {

/// How the ranks of a sequence attend.
enum class AttentionKind { allToAll, gather, ring };
constexpr llvm::StringLiteral attentionKindNames[] = {"all-to-all", "gather", "ring"};

/// In which order positions are split.
enum class PositionOrder { zigzag, contiguous };
constexpr llvm::StringLiteral positionOrderNames[] = {"zigzag", "contiguous"};

/// Whether `ranks` can share the heads of an attention: each has whole groups, or heads of one; as
/// many groups as heads are padded, as other sizes are.
bool dividesHeads(const nn::AttentionLayout &sizes, int64_t ranks);
/// Which numbers of heads these ranks could share, in a diagnostic.
std::string describeSharedHeads(const nn::AttentionLayout &sizes, int64_t ranks);

/// The constraints of one step.
class StepSplitter {
public:
  /// `wanted`: of all attention; none where each has the kind that fits it. `wantedOrder`: none
  /// where that order is taken in which the busiest rank has least to do.
  StepSplitter(StepOp step, ArrayRef<StringAttr> axes, std::optional<AttentionKind> wanted,
               std::optional<PositionOrder> wantedOrder)
      : step(step), mesh(getMesh(step)), axes(axes), wanted(wanted), wantedOrder(wantedOrder),
        positions(step), sequenceOrder(step, positions), builder(step.getContext()) {}

  /// Whether the step has positions to split.
  bool hasPositions() const { return !positions.isEmpty(); }
  LogicalResult run();
  /// The kinds of attention that were chosen.
  const std::set<AttentionKind> &getKinds() const { return kinds; }
  /// The order of positions; contiguous where nothing depends on it.
  PositionOrder getOrder() const {
    return zigzag ? PositionOrder::zigzag : PositionOrder::contiguous;
  }

private:
  int64_t getParts() const { return mesh.getSize(axes); }
  std::string spell(ArrayRef<StringAttr> names) const {
    return llvm::join(spellAxes(mesh, names), "+");
  }
  Value constrain(Value value, ArrayRef<std::pair<int64_t, ArrayRef<StringAttr>>> dims,
                  bool maySplitFurther = false);
  Value split(Value value, int64_t dim, bool maySplitFurther = false);
  LogicalResult chooseOrder();
  std::pair<Operation *, std::string> findOrderFault();
  Value permute(Value value, int64_t dim);
  void permuteSources();
  Value permuteUses(Value value, llvm::function_ref<bool(Operation *)> takes);
  void splitConstantsOfWhole();
  SmallVector<StringAttr> getHeadAxes() const;
  bool isOverPositions(nn::AttentionOp attention);
  bool hasPositionsOf(nn::AttentionOp attention);
  std::string findFittingSizes(const nn::AttentionLayout &sizes) const;
  std::string findFault(nn::AttentionOp attention, AttentionKind kind);
  FailureOr<AttentionKind> choose(nn::AttentionOp attention);
  void say(nn::AttentionOp attention, AttentionKind kind);
  LogicalResult splitByHeads(nn::AttentionOp attention);
  void splitByPositions(nn::AttentionOp attention, nn::KeyExchange exchange);
  void turnByNumbers(nn::RopeOp rope);
  void lookUpPositions(nn::RepeatOp repeat);
  Value getPositions(int64_t samples, int64_t count, int64_t start, Location loc);

  StepOp step;
  MeshAttr mesh;
  ArrayRef<StringAttr> axes; ///< `context`, or its parts
  std::optional<AttentionKind> wanted;
  std::optional<PositionOrder> wantedOrder;
  PositionClass positions;
  SequenceOrder sequenceOrder;
  OpBuilder builder;
  SmallVector<std::pair<nn::AttentionOp, AttentionKind>> attentions;
  std::set<AttentionKind> kinds;
  DenseSet<Operation *> lookups; ///< of tables of positions
  bool zigzag = false, saysPadding = false;
  std::string orderText; ///< about the order, for remarks
  /// Numbers of positions, by block, samples and positions.
  DenseMap<std::pair<Block *, std::pair<int64_t, int64_t>>, Value> numbersOf;
};

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_STEPSPLITTER_H
