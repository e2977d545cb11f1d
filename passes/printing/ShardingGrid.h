//===- ShardingGrid.h - which rank holds which part of a value --*- C++ -*-===//

#ifndef PASSES_PRINTING_SHARDINGGRID_H
#define PASSES_PRINTING_SHARDINGGRID_H

#include "passes/sharding/DimensionClasses.h"
#include "passes/sharding/StepShardings.h"

namespace mlir::fsdp {

/// A value as a grid of parts: rows are those of all split dimensions but the last, columns those
/// of the last one.
struct ShardingGrid {
  std::string title;
  int64_t rows = 1, columns = 1;
  /// For each part, row by row, the ranks that hold it: "0 4", "0-7".
  std::vector<std::string> cells;
  /// The labels of rows and columns: elements of the split dimensions.
  std::vector<std::string> rowLabels, columnLabels;

  /// The characters of the widest cell or column label, and of the longest row label.
  std::pair<size_t, size_t> countCharacters() const;
};

/// The ranks along the axis of a pipeline that have a value of a step: those that compute it, and
/// of a parameter those that read it. A value that all stages may compute, from inputs alone, is
/// where it is used.
struct StageHolders {
  StringAttr axis; ///< null: there are no stages
  SmallVector<int64_t> ranks;

  static StageHolders of(Value value);
};

/// The grid of `value`, a result of an op of a step, which is called `name` and whose padded shape
/// is `padded`.
ShardingGrid gridOf(StringRef name, Value value, ArrayRef<int64_t> padded, ShardingAttr sharding,
                    MeshAttr mesh);

/// `grid` with at most `most` rows and columns, at least 3, and cells of at most 18 characters:
/// "..." marks omitted rows and columns.
ShardingGrid elide(const ShardingGrid &grid, int64_t most);

/// As a picture. Inside a page of HTML it needs no namespace, and scales.
void drawSvg(const ShardingGrid &grid, llvm::raw_ostream &os, bool insidePage = false);

/// `text` for HTML and XML, also in attributes.
std::string escapeMarkup(StringRef text);

} // namespace mlir::fsdp

#endif // PASSES_PRINTING_SHARDINGGRID_H
