//===- LocalTerms.cpp - manual regions on all ranks of their axes ---------===//

#include "dialect/fsdp/Manual.h"
#include "interpreter/Program.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

bool interpreter::isInLocalTerms(Operation *op) {
  return isa<EnterManualOp, ExitManualOp, AxisIndexOp>(op) || isManualCollective(op);
}

namespace {
/// One op on the ranks of the manual axes.
class LocalTerms {
public:
  LocalTerms(Operation *op, MeshAttr mesh, ArrayRef<Tensor> operands, Numerics numerics)
      : op(op), mesh(mesh), operands(operands), numerics(numerics) {}

  FailureOr<std::vector<Tensor>> run();

private:
  RankedTensorType resultType() const { return cast<RankedTensorType>(op->getResult(0).getType()); }
  Tensor enter(EnterManualOp enter, int64_t rank) const;
  FailureOr<Tensor> exit(ExitManualOp exit, int64_t rank);
  Tensor collective(int64_t rank) const;

  Operation *op;
  MeshAttr mesh;
  ArrayRef<Tensor> operands;
  Numerics numerics;
};
} // namespace

Tensor LocalTerms::enter(EnterManualOp enter, int64_t rank) const {
  ShardingAttr sharding = enter.getSharding();
  Tensor own = operands[rank];
  if (mesh.getIndexIn(rank, sharding.getUnreduced()) != 0)
    own = Tensor(own.getType());
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim) {
    SmallVector<int64_t> shape(own.getType().getShape());
    SmallVector<StringAttr> axes = sharding.getAxes(dim);
    shape[dim] /= mesh.getSize(axes);
    own = takePart(own, own.getType().clone(shape), dim, mesh.getIndexIn(rank, axes));
  }
  return own;
}

FailureOr<Tensor> LocalTerms::exit(ExitManualOp exit, int64_t rank) {
  ShardingAttr sharding = exit.getSharding();
  // Over axes that the sharding does not name, all ranks have the same; any of them counts.
  SmallVector<StringAttr> replicated;
  for (StringAttr axis : getAxisNames(exit.getOver()))
    if (getBoundaryState(sharding, axis) == AxisState::invariant)
      replicated.push_back(axis);
  for (int64_t other : mesh.getGroup(rank, replicated))
    if (!operands[other].equals(operands[rank]))
      return exit.emitError() << "ranks " << rank << " and " << other
                              << " along the manual axes return different values of '"
                              << exit.getType() << "', which is replicated over them";
  // The last dimension first: the parts of a row are joined before the rows.
  std::function<Tensor(int64_t, int64_t)> join = [&](int64_t dim, int64_t at) -> Tensor {
    if (dim == sharding.getRank()) {
      SmallVector<Tensor> terms;
      for (int64_t other : mesh.getGroup(at, sharding.getUnreduced()))
        terms.push_back(operands[other]);
      return reduceInOrder(terms, ReduceKind::sum, numerics);
    }
    SmallVector<Tensor> parts;
    for (int64_t other : mesh.getGroup(at, sharding.getAxes(dim)))
      parts.push_back(join(dim + 1, other));
    SmallVector<int64_t> shape(parts.front().getType().getShape());
    shape[dim] *= static_cast<int64_t>(parts.size());
    return joinParts(parts.front().getType().clone(shape), dim, parts);
  };
  return join(0, rank);
}

Tensor LocalTerms::collective(int64_t rank) const {
  SmallVector<Tensor> group;
  const SmallVector<StringAttr> axes = getManualCollectiveAxes(op);
  const SmallVector<int64_t> ranks = mesh.getGroup(rank, axes);
  for (int64_t other : ranks)
    group.push_back(operands[other]);
  const int64_t index = mesh.getIndexIn(rank, axes);
  return llvm::TypeSwitch<Operation *, Tensor>(op)
      .Case([&](PsumOp) { return reduceInOrder(group, ReduceKind::sum, numerics); })
      .Case([&](PmaxOp) { return reduceInOrder(group, ReduceKind::max, numerics); })
      .Case([&](PvaryOp) { return operands[rank]; })
      .Case([&](PgatherOp gather) { return joinParts(resultType(), gather.getDim(), group); })
      .Case([&](PsumScatterOp scatter) {
        return takePart(reduceInOrder(group, ReduceKind::sum, numerics), resultType(),
                        scatter.getDim(), index);
      })
      .Case([&](PswapOp swap) {
        const int64_t split = static_cast<int64_t>(swap.getSplit());
        SmallVector<int64_t> shape(group.front().getType().getShape());
        shape[split] /= static_cast<int64_t>(group.size());
        SmallVector<Tensor> parts;
        for (const Tensor &given : group)
          parts.push_back(takePart(given, given.getType().clone(shape), split, index));
        return joinParts(resultType(), swap.getConcat(), parts);
      })
      .Case([&](PpermuteOp permute) {
        const int64_t source = permute.getFrom()[index];
        return source < 0 ? Tensor(resultType()) : group[source];
      });
}

FailureOr<std::vector<Tensor>> LocalTerms::run() {
  std::vector<Tensor> results;
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    if (auto index = dyn_cast<AxisIndexOp>(op)) {
      results.push_back(
          Tensor::splat(resultType(), mesh.getIndexIn(rank, getAxisNames(index.getOver()))));
    } else if (auto entry = dyn_cast<EnterManualOp>(op)) {
      results.push_back(enter(entry, rank));
    } else if (auto leave = dyn_cast<ExitManualOp>(op)) {
      FailureOr<Tensor> whole = exit(leave, rank);
      if (failed(whole))
        return failure();
      results.push_back(std::move(*whole));
    } else {
      results.push_back(collective(rank));
    }
  }
  return results;
}

FailureOr<std::vector<Tensor>> interpreter::performInLocalTerms(Operation *op, MeshAttr mesh,
                                                                ArrayRef<Tensor> operands,
                                                                Numerics numerics) {
  return LocalTerms(op, mesh, operands, numerics).run();
}
