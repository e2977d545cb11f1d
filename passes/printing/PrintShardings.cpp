//===- PrintShardings.cpp - the shardings of a step as a table ------------===//

#include "dialect/fsdp/AxisParts.h"
#include "passes/Passes.h"
#include "passes/sharding/DimensionClasses.h"
#include "passes/sharding/StepShardings.h"
#include "llvm/Support/GlobPattern.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PRINTSHARDINGSPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// `a+b`, or `_` without axes.
static std::string join(MeshAttr mesh, ArrayRef<StringAttr> axes) {
  std::string text = llvm::join(spellAxes(mesh, axes), "+");
  return text.empty() ? "_" : text;
}

static std::string joinSizes(ArrayRef<int64_t> sizes) {
  return llvm::join(llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }), "x");
}

namespace {
struct PrintShardings : fsdp::impl::PrintShardingsPassBase<PrintShardings> {
  using Base::Base;

  using Row = std::vector<std::string>;

  void runOnOperation() override {
    auto pattern = llvm::GlobPattern::create(only);
    if (!pattern) {
      std::string why = llvm::toString(pattern.takeError());
      getOperation().emitError() << "option 'only' is '" << only
                                 << "', expected a pattern: " << why;
      return signalPassFailure();
    }
    FailureOr<PaddedShapes> padded = PaddedShapes::read(getOperation());
    if (failed(padded))
      return signalPassFailure();
    for (StepOp step : getOperation().getOps<StepOp>()) {
      FailureOr<StepShardings> shardings = StepShardings::read(step);
      if (failed(shardings))
        return signalPassFailure();
      std::vector<Row> rows = {
          {"value", "op", "shape", "sharding", "of one rank", "bytes", "partial over"}};
      for (Operation &op : step.getBody().front())
        for (Value value : op.getResults())
          if (pattern->match(nameOf(value)))
            rows.push_back(
                rowOf(value, padded->lookup(value), shardings->lookup(value), getMesh(step)));
      llvm::errs() << "shardings of step '" << step.getSymName() << "'\n";
      print(rows);
    }
    markAllAnalysesPreserved();
  }

private:
  static Row rowOf(Value value, ArrayRef<int64_t> padded, ShardingAttr sharding, MeshAttr mesh) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> local = sharding.getLocalShape(padded, mesh);
    const int64_t bits = type.getElementTypeBitWidth() * nn::elementsOf(local);
    std::string split;
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
      split += (dim == 0 ? "" : ",") + join(mesh, sharding.getAxes(dim));
    return {nameOf(value),
            value.getDefiningOp()->getName().getStringRef().str(),
            joinSizes(type.getShape()),
            split,
            joinSizes(local),
            std::to_string(llvm::divideCeil(bits, 8)),
            sharding.getUnreduced().empty() ? "" : join(mesh, sharding.getUnreduced())};
  }

  static void print(ArrayRef<Row> rows) {
    std::vector<size_t> widths(rows.front().size());
    for (const Row &row : rows)
      for (size_t column = 0; column < row.size(); ++column)
        widths[column] = std::max(widths[column], row[column].size());
    for (const Row &row : rows) {
      std::string line = " ";
      for (size_t column = 0; column < row.size(); ++column)
        line += " " + row[column] + std::string(widths[column] - row[column].size() + 1, ' ');
      llvm::errs() << StringRef(line).rtrim() << '\n';
    }
  }
};
} // namespace
