//===- Storage.cpp - whole tensors and the shards that ranks keep ---------===//

#include "interpreter/Storage.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

StorageLayout::StorageLayout(StorageOp storage)
    : storage(storage), shardType(storage.getShardType()), axes(getAxisNames(storage.getAxes())) {
  for (Attribute attribute : storage.getMembers()) {
    auto member = cast<MemberAttr>(attribute);
    members.push_back({SymbolTable::lookupNearestSymbolFrom<ParamOp>(storage, member.getParam()),
                       member.getOffset()});
  }
}

/// The element of `param` at `element` of the part with which `rank` computes; nothing for padding.
static std::optional<int64_t> findElement(ParamOp param, MeshAttr mesh, int64_t rank,
                                          int64_t element) {
  ShardingAttr compute = param.getPlacementAttr() ? param.getPlacementAttr().getCompute() : nullptr;
  if (!compute && !param.getPadded())
    return element;
  ArrayRef<int64_t> whole = param.getTensorType().getShape();
  SmallVector<int64_t> part(param.getSplitShape());
  if (compute)
    part = compute.getLocalShape(part, mesh);
  int64_t result = 0, stride = 1;
  for (int64_t dim = static_cast<int64_t>(whole.size()) - 1; dim >= 0; --dim) {
    int64_t before = compute ? mesh.getIndexIn(rank, compute.getAxes(dim)) * part[dim] : 0;
    int64_t at = before + element % part[dim];
    if (at >= whole[dim])
      return std::nullopt;
    element /= part[dim];
    result += at * stride;
    stride *= whole[dim];
  }
  return result;
}

void StorageLayout::forEach(const Member &member, MeshAttr mesh, int64_t rank, StringRef what,
                            Visit fn, VisitPadding padding) const {
  StorageOp storage = this->storage;
  ParamOp param = member.param;
  const int64_t index = mesh.getIndexIn(rank, axes);
  auto visit = [&](int64_t inShard, int64_t inPart) {
    if (std::optional<int64_t> element = findElement(param, mesh, rank, inPart))
      fn(inShard, *element);
    else if (padding)
      padding(inShard);
  };
  RankedTensorType stored = param.getComputeType();
  if (what == StorageOp::copy) {
    for (int64_t i = 0; i < stored.getNumElements(); ++i)
      visit(member.offset + i, i);
    return;
  }
  if (storage.getKind() != StorageKind::dimension) {
    // Flat: this rank holds elements [first, first + shard) of the unsplit storage.
    int64_t shard = shardType.getNumElements();
    int64_t first = storage.getKind() == StorageKind::flat ? index * shard : 0;
    int64_t begin = std::max(first, member.offset);
    int64_t end = std::min(first + shard, member.offset + stored.getNumElements());
    for (int64_t i = begin; i < end; ++i)
      visit(i - first, i - member.offset);
    return;
  }
  const Extents whole(stored, storage.getDim()), part(shardType, storage.getDim());
  const int64_t first = index * part.size;
  for (int64_t o = 0; o < whole.outer; ++o)
    for (int64_t i = 0; i < part.size && first + i < whole.size; ++i)
      for (int64_t k = 0; k < whole.inner; ++k)
        visit((o * part.size + i) * part.inner + k, (o * whole.size + first + i) * whole.inner + k);
}

std::vector<UpdateSetting> StorageLayout::updateSettings(const base::ParameterGroups &groups,
                                                         MeshAttr mesh, int64_t rank) const {
  std::vector<UpdateSetting> result(shardType.getNumElements());
  for (const Member &member : members) {
    const UpdateSetting setting = UpdateSetting::of(member.param, groups);
    forEach(member, mesh, rank, StorageOp::parameter,
            [&](int64_t shard, int64_t) { result[shard] = setting; });
  }
  return result;
}
