//===- ShardingGrid.cpp ---------------------------------------------------===//

#include "passes/printing/ShardingGrid.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/Structure.h"
#include "passes/StagelessOps.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace mlir;
using namespace mlir::fsdp;

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

StageHolders StageHolders::of(Value value) {
  Operation *op = value.getDefiningOp();
  auto step = op->getParentOfType<StepOp>();
  auto module = step->getParentOfType<ModuleOp>();
  StageHolders holders;
  if (!module->hasAttr(kStagesAttrName))
    return holders;
  holders.axis = findPipelineAxis(module);
  const int64_t count = getMesh(module).getAxisSize(holders.axis);
  std::set<int64_t> ranks;
  StagelessOps stageless;
  auto add = [&](Operation *holder) { ranks.insert(getStructure(holder).stage % count); };
  if (auto read = dyn_cast<ReadOp>(op)) {
    for (auto other : step.getBody().front().getOps<ReadOp>())
      if (other.getParam() == read.getParam())
        add(other);
  } else if (!stageless.contains(op)) {
    add(op);
  } else {
    SmallVector<Operation *> left{op};
    llvm::DenseSet<Operation *> seen;
    while (!left.empty()) {
      Operation *next = left.pop_back_val();
      if (!seen.insert(next).second)
        continue;
      if (isa<OutputOp, OutputSumOp>(next))
        for (int64_t rank = 0; rank < count; ++rank)
          ranks.insert(rank);
      else if (!stageless.contains(next))
        add(next);
      else
        llvm::append_range(left, next->getUsers());
    }
  }
  holders.ranks.assign(ranks.begin(), ranks.end());
  return holders;
}

ShardingGrid mlir::fsdp::gridOf(StringRef name, Value value, ArrayRef<int64_t> padded,
                                ShardingAttr sharding, MeshAttr mesh) {
  auto type = cast<RankedTensorType>(value.getType());
  ShardingGrid grid;
  SmallVector<int64_t> split;
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    if (mesh.getSize(sharding.getAxes(dim)) > 1)
      split.push_back(dim);
  const int64_t across = split.empty() ? -1 : split.pop_back_val();
  auto partsOf = [&](int64_t dim) { return mesh.getSize(sharding.getAxes(dim)); };
  for (int64_t dim : split)
    grid.rows *= partsOf(dim);
  grid.columns = across < 0 ? 1 : partsOf(across);
  std::vector<std::vector<int64_t>> ranks(grid.rows * grid.columns);
  const StageHolders holders = StageHolders::of(value);
  const int64_t microbatches = mesh.getNumRanks() / withoutMicrobatches(mesh).getNumRanks();
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    if (holders.axis && !llvm::is_contained(holders.ranks, mesh.getIndexIn(rank, holders.axis)))
      continue;
    int64_t row = 0;
    for (int64_t dim : split)
      row = row * partsOf(dim) + mesh.getIndexIn(rank, sharding.getAxes(dim));
    int64_t column = across < 0 ? 0 : mesh.getIndexIn(rank, sharding.getAxes(across));
    // Its microbatches are positions of a rank, one after the other.
    if (std::vector<int64_t> &held = ranks[row * grid.columns + column];
        held.empty() || held.back() != rank / microbatches)
      held.push_back(rank / microbatches);
  }
  for (const std::vector<int64_t> &held : ranks)
    grid.cells.push_back(listRanks(held));
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
  title << name << " : " << type << ", ";
  llvm::interleave(
      llvm::seq<int64_t>(0, sharding.getRank()), title,
      [&](int64_t dim) {
        SmallVector<std::string> axes = spellAxes(mesh, sharding.getAxes(dim));
        title << (axes.empty() ? "_" : llvm::join(axes, "+"));
      },
      ",");
  if (sharding.getRank() == 0)
    title << (holders.axis ? "whole" : "on every rank");
  for (const std::string &axis : spellAxes(mesh, sharding.getUnreduced()))
    title << ", partial over " << axis;
  if (holders.axis) {
    title << ", in " << holders.axis.getValue();
    llvm::interleave(holders.ranks, title, ",");
  }
  return grid;
}

/// The indices below `count` that are shown, and -1 for the omitted ones.
static std::vector<int64_t> choose(int64_t count, int64_t most) {
  std::vector<int64_t> shown;
  for (int64_t i = 0; i < count; ++i)
    if (count <= most || i < most - 2 || i + 1 == count)
      shown.push_back(i);
    else if (i == most - 2)
      shown.push_back(-1);
  return shown;
}

ShardingGrid mlir::fsdp::elide(const ShardingGrid &grid, int64_t most) {
  constexpr size_t width = 18;
  const std::string dots = "...";
  const std::vector<int64_t> rows = choose(grid.rows, most), columns = choose(grid.columns, most);
  ShardingGrid shown;
  shown.title = grid.title;
  shown.rows = static_cast<int64_t>(rows.size());
  shown.columns = static_cast<int64_t>(columns.size());
  for (int64_t column : columns)
    shown.columnLabels.push_back(column < 0 ? dots : grid.columnLabels[column]);
  for (int64_t row : rows) {
    shown.rowLabels.push_back(row < 0 ? dots : grid.rowLabels[row]);
    for (int64_t column : columns) {
      std::string cell = row < 0 || column < 0 ? dots : grid.cells[row * grid.columns + column];
      if (cell.size() > width)
        cell = cell.substr(0, width - dots.size()) + dots;
      shown.cells.push_back(std::move(cell));
    }
  }
  return shown;
}

std::pair<size_t, size_t> ShardingGrid::countCharacters() const {
  size_t cell = 0, margin = 0;
  for (const std::string &held : cells)
    cell = std::max(cell, held.size());
  for (const std::string &label : columnLabels)
    cell = std::max(cell, label.size());
  for (const std::string &label : rowLabels)
    margin = std::max(margin, label.size());
  return {cell, margin};
}

std::string mlir::fsdp::escapeMarkup(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '<'   ? "&lt;"
              : c == '>' ? "&gt;"
              : c == '&' ? "&amp;"
              : c == '"' ? "&quot;"
                         : std::string(1, c);
  return result;
}

void mlir::fsdp::drawSvg(const ShardingGrid &grid, llvm::raw_ostream &os, bool insidePage) {
  const auto [longest, margin] = grid.countCharacters();
  const int64_t left = 16 + 8 * static_cast<int64_t>(margin), top = 56, height = 36;
  const int64_t width = 16 + 8 * static_cast<int64_t>(longest);
  const int64_t fullWidth = std::max<int64_t>(left + width * grid.columns + 8,
                                              16 + 8 * static_cast<int64_t>(grid.title.size()));
  const int64_t fullHeight = top + height * grid.rows + 8;
  const std::string attributes =
      insidePage ? llvm::formatv(" viewBox=\"0 0 {0} {1}\"", fullWidth, fullHeight).str()
                 : " xmlns=\"http://www.w3.org/2000/svg\"";
  os << llvm::formatv("<svg{2} width=\"{0}\" height=\"{1}\" "
                      "font-family=\"monospace\" font-size=\"13\">\n",
                      fullWidth, fullHeight, attributes)
     << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
     << llvm::formatv("<text x=\"8\" y=\"20\">{0}</text>\n", escapeMarkup(grid.title));
  for (auto [column, label] : llvm::enumerate(grid.columnLabels))
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n",
                        left + width * column + width / 2, top - 8, label);
  for (auto [row, label] : llvm::enumerate(grid.rowLabels))
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{2}</text>\n", left - 8,
                        top + height * row + height / 2 + 5, label);
  for (auto [index, ranks] : llvm::enumerate(grid.cells)) {
    int64_t x = left + width * (index % grid.columns), y = top + height * (index / grid.columns);
    int64_t hue = 360 * static_cast<int64_t>(index) / static_cast<int64_t>(grid.cells.size());
    os << llvm::formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill=\"hsl({4}, "
                        "55%, 85%)\" "
                        "stroke=\"black\"/>\n",
                        x, y, width, height, hue)
       << llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n",
                        x + width / 2, y + height / 2 + 5, ranks);
  }
  os << "</svg>\n";
}
