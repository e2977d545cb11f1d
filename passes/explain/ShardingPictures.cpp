//===- ShardingPictures.cpp -----------------------------------------------===//

#include "passes/explain/ShardingPictures.h"
#include "passes/printing/ShardingGrid.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;
using namespace mlir::fsdp;

/// Rows and columns of a picture.
static constexpr int64_t kMaxParts = 6;

FailureOr<std::vector<ShardingPicture>> mlir::fsdp::drawShardings(ModuleOp module) {
  FailureOr<PaddedShapes> padded = PaddedShapes::read(module);
  if (failed(padded))
    return failure();
  std::vector<ShardingPicture> pictures;
  for (StepOp step : module.getOps<StepOp>()) {
    if (step.getKind() != StepKind::train)
      continue;
    FailureOr<StepShardings> shardings = StepShardings::read(step);
    if (failed(shardings))
      return failure();
    MeshAttr mesh = getMesh(step);
    // By type, sharding, whether it is a parameter, and ranks of a pipeline.
    std::map<std::tuple<const void *, const void *, bool, std::vector<int64_t>>, size_t> known;
    for (Operation &op : step.getBody().front())
      for (Value value : op.getResults()) {
        auto type = dyn_cast<RankedTensorType>(value.getType());
        ShardingAttr sharding = shardings->lookup(value);
        if (!type || !sharding)
          continue;
        auto read = dyn_cast<ReadOp>(op);
        const std::string name = read ? read.getParam().str() : nameOf(value);
        const StageHolders holders = StageHolders::of(value);
        auto [at, isNew] =
            known.try_emplace({type.getAsOpaquePointer(), sharding.getAsOpaquePointer(), bool(read),
                               std::vector<int64_t>(holders.ranks.begin(), holders.ranks.end())},
                              pictures.size());
        if (isNew) {
          ShardingPicture &picture = pictures.emplace_back();
          picture.ofParameters = bool(read);
          ArrayRef<int64_t> shape = padded->lookup(value);
          int64_t bits = type.getElementTypeBitWidth();
          for (int64_t size : sharding.getLocalShape(shape, mesh))
            bits *= size;
          picture.bytes = llvm::divideCeil(bits, 8);
          llvm::raw_string_ostream os(picture.svg);
          drawSvg(elide(gridOf(name, value, shape, sharding, mesh), kMaxParts), os,
                  /*insidePage=*/true);
        }
        std::vector<std::string> &names = pictures[at->second].names;
        // A parameter is read by forward and by backward.
        if (!read || !llvm::is_contained(names, name))
          names.push_back(name);
      }
  }
  llvm::stable_sort(pictures, [](const ShardingPicture &one, const ShardingPicture &other) {
    return one.bytes > other.bytes;
  });
  return pictures;
}
