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

void StorageLayout::forEach(const Member &member, int64_t index,
                            llvm::function_ref<void(int64_t, int64_t)> fn) const {
  StorageOp storage = this->storage;
  ParamOp param = member.param;
  int64_t size = param.getTensorType().getNumElements();
  if (storage.getKind() != StorageKind::dimension) {
    // Flat: this rank holds elements [first, first + shard) of the unsplit storage.
    int64_t shard = shardType.getNumElements();
    int64_t first = storage.getKind() == StorageKind::flat ? index * shard : 0;
    int64_t begin = std::max(first, member.offset);
    int64_t end = std::min(first + shard, member.offset + size);
    for (int64_t i = begin; i < end; ++i)
      fn(i - first, i - member.offset);
    return;
  }
  ArrayRef<int64_t> whole = param.getTensorType().getShape(), part = shardType.getShape();
  int64_t dim = storage.getDim(), inner = 1, outer = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(whole.size()); ++i)
    (i < dim ? outer : inner) *= i == dim ? 1 : whole[i];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < part[dim] && index * part[dim] + i < whole[dim]; ++i)
      for (int64_t k = 0; k < inner; ++k)
        fn((o * part[dim] + i) * inner + k, (o * whole[dim] + index * part[dim] + i) * inner + k);
}

std::vector<bool> StorageLayout::decays(int64_t index) const {
  std::vector<bool> result(shardType.getNumElements(), false);
  for (const Member &member : members) {
    ParamOp param = member.param;
    if (param.getFileRank() >= 2)
      forEach(member, index, [&](int64_t shard, int64_t) { result[shard] = true; });
  }
  return result;
}
