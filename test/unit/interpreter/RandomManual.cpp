//===- RandomManual.cpp - regions in local terms of random training steps -===//
//
// A region multiplies a value of the step with a parameter, between collectives over axes that it
// draws. What it computes has no meaning beyond its text: the model, which the interpreter runs as
// it is, says what the phases must compute. Samples keep their ranks.
//
//===----------------------------------------------------------------------===//

#include "RandomModule.h"
#include "dialect/fsdp/Manual.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// A value of a region: the sizes of a rank, and for each dimension the axes that split it.
struct LocalValue {
  Value value;
  std::string dims;
  SmallVector<int64_t> shape;
  std::vector<SmallVector<StringAttr>> split;
  std::map<StringRef, AxisState> states; ///< by axis of the region

  bool isPartial() const {
    return llvm::any_of(states, [](auto &entry) { return entry.second == AxisState::partial; });
  }
  RankedTensorType getType() const {
    return RankedTensorType::get(shape, cast<RankedTensorType>(value.getType()).getElementType());
  }
};

/// Builds the body of one region.
class RegionBody {
public:
  RegionBody(OpBuilder &builder, Location location, MeshAttr mesh, ArrayRef<StringAttr> axes,
             StringRef batchDims, std::mt19937_64 &random)
      : builder(builder), location(location), mesh(mesh), axes(axes), batchDims(batchDims),
        random(random) {}

  bool chance(int percent) { return static_cast<int>(random() % 100) < percent; }

  /// A boundary of a value. Samples may be split; dimensions that they are merged into stay whole.
  LocalValue enter(StringRef dims, ArrayRef<int64_t> shape) {
    LocalValue local{{}, dims.str(), SmallVector<int64_t>(shape), {}, {}};
    local.split.resize(dims.size());
    for (StringAttr axis : axes) {
      const int64_t ranks = mesh.getAxisSize(axis), dim = dims.empty() ? -1 : pick(dims.size());
      AxisState &state = local.states[axis];
      state = AxisState::invariant;
      if (dim >= 0 && (dims[dim] == 'b' || !isBatch(dims[dim])) && local.shape[dim] % ranks == 0 &&
          chance(75)) {
        local.split[dim].push_back(axis);
        local.shape[dim] /= ranks;
        state = AxisState::varying;
      } else if (chance(30)) {
        state = AxisState::partial;
      }
    }
    return local;
  }

  ShardingAttr shardingOf(FlatSymbolRefAttr name, const LocalValue &local) {
    SmallVector<StringAttr> unreduced;
    for (StringAttr axis : axes)
      if (local.states.at(axis) == AxisState::partial)
        unreduced.push_back(axis);
    return ShardingAttr::getCanonical(name, local.split, unreduced);
  }

  /// One op on `local`; collectives are over axes that do not split samples.
  void change(LocalValue &local) {
    const size_t samples = local.dims.find('b');
    std::vector<StringAttr> free;
    for (StringAttr axis : axes)
      if (samples == std::string::npos || !llvm::is_contained(local.split[samples], axis))
        free.push_back(axis);
    const int64_t dim = local.dims.empty() ? -1 : pick(local.dims.size());
    switch (pick(free.empty() || dim < 0 || isBatch(local.dims[dim]) ? 2 : 7)) {
    case 0:
      if (!local.isPartial())
        local.value = math::TanhOp::create(builder, location, local.value);
      return;
    case 1: {
      auto half = DenseElementsAttr::get(local.getType(), builder.getF32FloatAttr(0.5).getValue());
      Value constant = arith::ConstantOp::create(builder, location, half);
      local.value = arith::MulFOp::create(builder, location, local.value, constant);
      return;
    }
    default:
      communicate(local, dim, free[pick(free.size())]);
    }
  }

  /// `local` with `axis` whole along `dim`, where that splits it last.
  void gather(LocalValue &local, int64_t dim) {
    StringAttr axis = local.split[dim].back();
    sum(local, axis, /*varyingToo=*/false);
    local.split[dim].pop_back();
    local.shape[dim] *= mesh.getAxisSize(axis);
    local.value =
        PgatherOp::create(builder, location, local.getType(), local.value, dim, over(axis));
    local.states[axis] = AxisState::varying;
  }

  /// Forms the sum over `axis`, if it is pending, or in any case.
  void sum(LocalValue &local, StringAttr axis, bool varyingToo) {
    const AxisState state = local.states[axis];
    if (state == AxisState::invariant || (state == AxisState::varying && !varyingToo))
      return;
    local.value = PsumOp::create(builder, location, local.getType(), local.value, over(axis));
    local.states[axis] = AxisState::invariant;
    for (SmallVector<StringAttr> &split : local.split)
      llvm::erase(split, axis);
  }

private:
  bool isBatch(char dim) const { return batchDims.contains(dim); }
  int64_t pick(size_t count) { return static_cast<int64_t>(random() % count); }
  ArrayAttr over(StringAttr axis) { return getAxisArray(builder.getContext(), axis); }

  void communicate(LocalValue &local, int64_t dim, StringAttr axis) {
    const int64_t ranks = mesh.getAxisSize(axis);
    const bool divides = local.shape[dim] % ranks == 0;
    AxisState &state = local.states[axis];
    switch (pick(5)) {
    case 0:
      return sum(local, axis, /*varyingToo=*/chance(50));
    case 1:
      if (divides) {
        local.shape[dim] /= ranks;
        local.value =
            PsumScatterOp::create(builder, location, local.getType(), local.value, dim, over(axis));
        for (SmallVector<StringAttr> &split : local.split)
          llvm::erase(split, axis);
        state = AxisState::varying;
      }
      return;
    case 2:
      if (local.shape[dim] * ranks <= 12 && state != AxisState::partial) {
        local.shape[dim] *= ranks;
        local.value =
            PgatherOp::create(builder, location, local.getType(), local.value, dim, over(axis));
        llvm::erase(local.split[dim], axis);
        state = AxisState::varying;
      }
      return;
    case 3: {
      const int64_t other = pick(local.dims.size());
      if (other == dim || !divides || local.shape[other] * ranks > 12 ||
          state == AxisState::partial || isBatch(local.dims[other]))
        return;
      local.shape[dim] /= ranks;
      local.shape[other] *= ranks;
      local.value =
          PswapOp::create(builder, location, local.getType(), local.value, dim, other, over(axis));
      for (SmallVector<StringAttr> &split : local.split)
        llvm::erase(split, axis);
      state = AxisState::varying;
      return;
    }
    default:
      if (state == AxisState::partial)
        return;
      SmallVector<int64_t> from = llvm::to_vector(llvm::seq<int64_t>(ranks));
      std::shuffle(from.begin(), from.end(), random);
      if (chance(30))
        from[pick(from.size())] = -1;
      local.value = PpermuteOp::create(builder, location, local.getType(), local.value,
                                       builder.getDenseI64ArrayAttr(from), over(axis));
      state = AxisState::varying;
    }
  }
  OpBuilder &builder;
  Location location;
  MeshAttr mesh;
  ArrayRef<StringAttr> axes;
  StringRef batchDims;
  std::mt19937_64 &random;
};

} // namespace

void RandomStep::computeInRegion() {
  Var x = use();
  MeshOp mesh = getMeshOp(step);
  SmallVector<StringAttr> axes(mesh.getMesh().getAxisNames());
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(between(1, std::min<int64_t>(axes.size(), 2)));
  auto name = FlatSymbolRefAttr::get(mesh);
  RegionBody region(builder, location(), mesh.getMesh(), axes, batchDims, random);

  // The parameter has a dimension of the value, if there is one besides the batch, and a new one
  // that the ranks divide.
  std::string features;
  for (char dim : x.dims)
    if (!hasBatch(std::string(1, dim)))
      features += dim;
  const char added = newDim(mesh.getMesh().getSize(axes) * between(1, 2));
  const char joined = features.empty() ? '\0' : features[random() % features.size()];
  const std::string weightDims = joined ? shuffled({joined, added}) : std::string(1, added);
  Value weight = parameter(weightDims);

  LocalValue a = region.enter(x.dims, shapeOf(x.dims)),
             b = region.enter(weightDims, shapeOf(weightDims));
  ShardingAttr given[] = {region.shardingOf(name, a), region.shardingOf(name, b)};
  auto body = std::make_unique<Block>();
  a.value = body->addArgument(RankedTensorType::get(a.shape, builder.getF32Type()), location());
  b.value = body->addArgument(RankedTensorType::get(b.shape, builder.getF32Type()), location());

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(body.get());
  for (int64_t count = between(0, 2); count > 0; --count)
    region.change(a);
  for (int64_t count = between(0, 2); count > 0; --count)
    region.change(b);
  // Both have as much of the joined dimension.
  const size_t ofA = joined ? a.dims.find(joined) : 0, ofB = joined ? b.dims.find(joined) : 0;
  if (joined && a.shape[ofA] != b.shape[ofB]) {
    while (!a.split[ofA].empty())
      region.gather(a, static_cast<int64_t>(ofA));
    while (!b.split[ofB].empty())
      region.gather(b, static_cast<int64_t>(ofB));
  }
  for (StringAttr axis : axes) {
    // A product with a term of a sum is one if the other factor is invariant.
    if (a.states[axis] == AxisState::partial && b.states[axis] != AxisState::invariant)
      region.sum(a, axis, /*varyingToo=*/false);
    if (b.states[axis] == AxisState::partial && a.states[axis] != AxisState::invariant)
      region.sum(b, axis, /*varyingToo=*/false);
  }
  LocalValue c = a;
  for (StringAttr axis : axes)
    c.states[axis] = std::max(a.states[axis], b.states[axis]);
  if (joined && a.shape[ofA] == b.shape[ofB]) {
    c.dims[ofA] = added;
    const size_t at = b.dims.find(added);
    c.shape[ofA] = b.shape[at];
    c.split[ofA] = b.split[at];
    c.value = nn::EinsumOp::create(builder, location(),
                                   RankedTensorType::get(c.shape, builder.getF32Type()),
                                   a.dims + "," + b.dims + "->" + c.dims, a.value, b.value);
  } else { // the sum of the parameter as a factor
    Value factor =
        nn::ReduceOp::create(builder, location(), RankedTensorType::get({}, builder.getF32Type()),
                             nn::Reduction::sum, notation(b.dims, ""), b.value);
    c.value =
        make<arith::MulFOp>(a.value, nn::RepeatOp::create(builder, location(), a.value.getType(),
                                                          notation("", a.dims), factor));
  }
  for (int64_t count = between(0, 2); count > 0; --count)
    region.change(c);

  // A result that varies is split as its samples are, and else over any dimension, or a sum.
  std::vector<SmallVector<StringAttr>> split(c.dims.size());
  const size_t batch = c.dims.find('b');
  if (batch != std::string::npos)
    split[batch] = c.split[batch];
  SmallVector<int64_t> shape = c.shape;
  std::vector<int64_t> free;
  for (auto [dim, letter] : llvm::enumerate(c.dims))
    if (!hasBatch(std::string(1, letter)))
      free.push_back(static_cast<int64_t>(dim));
  for (StringAttr axis : axes) {
    AxisState &state = c.states[axis];
    if (state == AxisState::partial ||
        (batch != std::string::npos && llvm::is_contained(split[batch], axis)))
      continue;
    const bool mayJoin = !free.empty() && !(state == AxisState::invariant && !chance(20));
    if (mayJoin && (state == AxisState::invariant || chance(70)))
      split[free[random() % free.size()]].push_back(axis);
    else if (state == AxisState::varying)
      state = AxisState::partial;
  }
  std::string dims = c.dims;
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    for (StringAttr axis : split[dim])
      shape[dim] *= mesh.getMesh().getAxisSize(axis);
    if (shape[dim] != sizes.at(dims[dim]))
      dims[dim] = newDim(shape[dim]);
  }
  c.split = split;
  ShardingAttr returned = region.shardingOf(name, c);
  YieldOp::create(builder, location(), c.value);
  builder.setInsertionPointToEnd(&step.getBody().front());
  auto manual = ManualOp::create(
      builder, location(), TypeRange{typeOf(dims)}, ValueRange{x.value, weight},
      getAxisArray(builder.getContext(), axes), builder.getArrayAttr({given[0], given[1]}),
      builder.getArrayAttr({returned}));
  manual.getBody().push_back(body.release());
  add(manual.getResult(0), dims);
}
