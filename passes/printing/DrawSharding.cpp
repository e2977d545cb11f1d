//===- DrawSharding.cpp - which rank holds which part of a value ----------===//

#include "base/PrintableText.h"
#include "passes/Passes.h"
#include "passes/printing/ShardingGrid.h"
#include "passes/sharding/StepShardings.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DRAWSHARDINGPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

struct DrawSharding : fsdp::impl::DrawShardingPassBase<DrawSharding> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<PaddedShapes> padded = PaddedShapes::read(getOperation());
    if (failed(padded))
      return signalPassFailure();
    for (StepOp step : getOperation().getOps<StepOp>()) {
      FailureOr<StepShardings> shardings = StepShardings::read(step);
      if (failed(shardings))
        return signalPassFailure();
      for (Operation &op : step.getBody().front())
        for (Value result : op.getResults())
          if (isCalled(&op, result)) {
            if (failed(draw(gridOf(value, result, padded->lookup(result), shardings->lookup(result),
                                   getMesh(step)))))
              return signalPassFailure();
            return markAllAnalysesPreserved();
          }
    }
    getOperation().emitError() << "--draw-sharding got " << base::inQuotes(value)
                               << ", expected the name of a value of a step or of a parameter "
                                  "that it reads; see the table of --print-shardings";
    signalPassFailure();
  }

private:
  /// True for the value of that name, or the first read of the parameter.
  bool isCalled(Operation *op, Value result) const {
    auto read = dyn_cast<ReadOp>(op);
    return nameOf(result) == value || (read && read.getParam() == value);
  }

  LogicalResult draw(const ShardingGrid &grid) {
    if (grid.cells.size() > 4096)
      return getOperation().emitError()
             << "--draw-sharding got " << base::inQuotes(value) << ", which has "
             << grid.cells.size() << " parts, expected at most 4096; draw it on a smaller mesh";
    if (file.empty()) {
      drawText(grid, llvm::errs());
      return success();
    }
    llvm::Error error = llvm::writeToOutput(file, [&](llvm::raw_ostream &os) {
      drawSvg(grid, os);
      return llvm::Error::success();
    });
    if (error)
      return getOperation().emitError() << "cannot write " << llvm::toString(std::move(error));
    return success();
  }

  static void drawText(const ShardingGrid &grid, llvm::raw_ostream &os) {
    const std::pair<size_t, size_t> characters = grid.countCharacters();
    const size_t width = characters.first, margin = characters.second;
    auto centered = [&](StringRef text) {
      size_t left = (width - text.size()) / 2;
      return std::string(left + 1, ' ') + text.str() +
             std::string(width - text.size() - left + 1, ' ');
    };
    auto rule = [&](StringRef left, StringRef middle, StringRef right) {
      os << std::string(margin + 1, ' ') << left;
      for (int64_t column = 0; column < grid.columns; ++column) {
        for (size_t i = 0; i < width + 2; ++i)
          os << "─";
        os << (column + 1 == grid.columns ? right : middle);
      }
      os << '\n';
    };
    os << grid.title << "; ranks:\n";
    std::string header(margin + 2, ' ');
    for (const std::string &label : grid.columnLabels)
      header += centered(label) + " ";
    if (StringRef text = StringRef(header).rtrim(); !text.empty())
      os << text << '\n';
    rule("┌", "┬", "┐");
    for (int64_t row = 0; row < grid.rows; ++row) {
      if (row > 0)
        rule("├", "┼", "┤");
      const std::string &label = grid.rowLabels[row];
      os << std::string(margin - label.size(), ' ') << label << " │";
      for (int64_t column = 0; column < grid.columns; ++column)
        os << centered(grid.cells[row * grid.columns + column]) << "│";
      os << '\n';
    }
    rule("└", "┴", "┘");
  }
};
} // namespace
