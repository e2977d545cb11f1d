//===- DrawSharding.cpp - which rank holds which part of a value ----------===//

#include "dialect/fsdp/AxisParts.h"
#include "passes/Passes.h"
#include "passes/sharding/DimensionClasses.h"
#include "passes/sharding/StepShardings.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DRAWSHARDINGPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// A value as a grid of parts: rows are those of all split dimensions but the last, columns those
/// of the last one.
struct Grid {
  std::string title;
  int64_t rows = 1, columns = 1;
  /// For each part, row by row, the ranks that hold it.
  std::vector<std::vector<int64_t>> ranks;
  /// What stands beside each row and above each column: elements of the split dimensions.
  std::vector<std::string> rowLabels, columnLabels;
};

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
            if (failed(draw(gridOf(result, padded->lookup(result), shardings->lookup(result),
                                   getMesh(step)))))
              return signalPassFailure();
            return markAllAnalysesPreserved();
          }
    }
    getOperation().emitError() << "--draw-sharding got '" << value
                               << "', expected the name of a value of a step or of a parameter "
                                  "that it reads; see the table of --print-shardings";
    signalPassFailure();
  }

private:
  /// True for the value of that name, or the first read of the parameter.
  bool isCalled(Operation *op, Value result) const {
    auto read = dyn_cast<ReadOp>(op);
    return nameOf(result) == value || (read && read.getParam() == value);
  }

  Grid gridOf(Value result, ArrayRef<int64_t> padded, ShardingAttr sharding, MeshAttr mesh) const {
    auto type = cast<RankedTensorType>(result.getType());
    Grid grid;
    SmallVector<int64_t> split;
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
      if (mesh.getSize(sharding.getAxes(dim)) > 1)
        split.push_back(dim);
    const int64_t across = split.empty() ? -1 : split.pop_back_val();
    auto partsOf = [&](int64_t dim) { return mesh.getSize(sharding.getAxes(dim)); };
    for (int64_t dim : split)
      grid.rows *= partsOf(dim);
    grid.columns = across < 0 ? 1 : partsOf(across);
    grid.ranks.resize(grid.rows * grid.columns);
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      int64_t row = 0;
      for (int64_t dim : split)
        row = row * partsOf(dim) + mesh.getIndexIn(rank, sharding.getAxes(dim));
      int64_t column = across < 0 ? 0 : mesh.getIndexIn(rank, sharding.getAxes(across));
      grid.ranks[row * grid.columns + column].push_back(rank);
    }
    auto label = [&](int64_t dim, int64_t part) {
      int64_t size = type.getDimSize(dim), length = llvm::divideCeil(padded[dim], partsOf(dim));
      int64_t begin = std::min(part * length, size), end = std::min(begin + length, size);
      return begin == end ? std::string("padding") : llvm::formatv("[{0}, {1})", begin, end).str();
    };
    for (int64_t row = 0; row < grid.rows; ++row) {
      std::string text;
      int64_t rest = row;
      for (int64_t dim : llvm::reverse(split)) {
        text = label(dim, rest % partsOf(dim)) + (text.empty() ? "" : " ") + text;
        rest /= partsOf(dim);
      }
      grid.rowLabels.push_back(text);
    }
    for (int64_t column = 0; column < grid.columns; ++column)
      grid.columnLabels.push_back(across < 0 ? "" : label(across, column));
    llvm::raw_string_ostream title(grid.title);
    title << value << " : " << type << ", ";
    llvm::interleave(
        llvm::seq<int64_t>(0, sharding.getRank()), title,
        [&](int64_t dim) {
          SmallVector<std::string> axes = spellAxes(mesh, sharding.getAxes(dim));
          title << (axes.empty() ? "_" : llvm::join(axes, "+"));
        },
        ",");
    if (sharding.getRank() == 0)
      title << "on every rank";
    for (const std::string &axis : spellAxes(mesh, sharding.getUnreduced()))
      title << ", partial over " << axis;
    return grid;
  }

  LogicalResult draw(const Grid &grid) {
    if (grid.ranks.size() > 4096)
      return getOperation().emitError()
             << "--draw-sharding got '" << value << "', which has " << grid.ranks.size()
             << " parts, expected at most 4096; draw it on a smaller mesh";
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

  /// "0 4", "0-7"
  static std::string listRanks(ArrayRef<int64_t> ranks) {
    std::string text;
    for (size_t i = 0; i < ranks.size();) {
      size_t last = i;
      while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
        ++last;
      text += (text.empty() ? "" : " ") + std::to_string(ranks[i]);
      if (last > i)
        text += (last == i + 1 ? " " : "-") + std::to_string(ranks[last]);
      i = last + 1;
    }
    return text;
  }

  /// The characters of the widest cell or column label, and of the longest row label.
  static std::pair<size_t, size_t> charactersOf(const Grid &grid) {
    size_t cell = 0, margin = 0;
    for (const std::vector<int64_t> &ranks : grid.ranks)
      cell = std::max(cell, listRanks(ranks).size());
    for (const std::string &label : grid.columnLabels)
      cell = std::max(cell, label.size());
    for (const std::string &label : grid.rowLabels)
      margin = std::max(margin, label.size());
    return {cell, margin};
  }

  static void drawText(const Grid &grid, llvm::raw_ostream &os) {
    const std::pair<size_t, size_t> characters = charactersOf(grid);
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
        os << centered(listRanks(grid.ranks[row * grid.columns + column])) << "│";
      os << '\n';
    }
    rule("└", "┴", "┘");
  }

  static void drawSvg(const Grid &grid, llvm::raw_ostream &os) {
    const auto [longest, margin] = charactersOf(grid);
    const int64_t left = 16 + 8 * static_cast<int64_t>(margin), top = 56, height = 36;
    const int64_t width = 16 + 8 * static_cast<int64_t>(longest);
    const int64_t fullWidth = std::max<int64_t>(left + width * grid.columns + 8,
                                                16 + 8 * static_cast<int64_t>(grid.title.size()));
    os << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                        "font-family=\"monospace\" font-size=\"13\">\n",
                        fullWidth, top + height * grid.rows + 8)
       << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
       << llvm::formatv("<text x=\"8\" y=\"20\">{0}</text>\n", escaped(grid.title));
    for (auto [column, label] : llvm::enumerate(grid.columnLabels))
      os << llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n",
                          left + width * column + width / 2, top - 8, label);
    for (auto [row, label] : llvm::enumerate(grid.rowLabels))
      os << llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{2}</text>\n", left - 8,
                          top + height * row + height / 2 + 5, label);
    for (auto [index, ranks] : llvm::enumerate(grid.ranks)) {
      int64_t x = left + width * (index % grid.columns), y = top + height * (index / grid.columns);
      int64_t hue = 360 * static_cast<int64_t>(index) / static_cast<int64_t>(grid.ranks.size());
      os << llvm::formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill=\"hsl({4}, "
                          "55%, 85%)\" "
                          "stroke=\"black\"/>\n",
                          x, y, width, height, hue)
         << llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n",
                          x + width / 2, y + height / 2 + 5, listRanks(ranks));
    }
    os << "</svg>\n";
  }

  static std::string escaped(StringRef text) {
    std::string result;
    for (char c : text)
      result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return result;
  }
};
} // namespace
