//===- SplitCoverage.h - which ops were split how ---------------*- C++ -*-===//

#ifndef TEST_UNIT_INTERPRETER_SPLITCOVERAGE_H
#define TEST_UNIT_INTERPRETER_SPLITCOVERAGE_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <map>
#include <set>
#include <string>

namespace mlir::fsdp {

/// In how many cases each op had each of its factors split in each way.
class SplitCoverage {
public:
  /// In which ways a factor is split. It can be several: evenly, over two axes, as part of the
  /// batch.
  enum Way {
    none,         ///< of more than one instance, and not split although the mesh has several ranks
    even,         ///< all ranks have as many instances
    uneven,       ///< some ranks have padding
    empty,        ///< some rank has nothing but padding
    twoAxes,      ///< over two axes of more than one rank
    microbatches, ///< also over microbatches
    partial,      ///< while the op takes an operand that is a partial sum
    batch,        ///< its instances are those of the batch
    other,        ///< they are not: a constraint or a parameter's split is the cause
  };
  static constexpr size_t numWays = other + 1;

  /// An op and one of its factors, which is known by its kind and by the tensors that run over it.
  struct Row {
    std::string op, factor;
    bool operator<(const Row &row) const {
      return std::tie(op, factor) < std::tie(row.op, row.factor);
    }
  };
  using Cells = std::map<Row, std::array<bool, numWays>>;

  /// The cells of a module of the global phase whose values all have shardings.
  static Cells cellsOf(ModuleOp module);
  /// Counts a case.
  void add(const Cells &cells);

  void print(llvm::raw_ostream &os) const;
  /// Of 2000 cases or more: cells that no case has and that nothing excuses, and cells that some
  /// case has although they are known as impossible. Of rows that hardly any case has, and of ways
  /// that are rare (two axes, microbatches, partial sums, other than by the batch), single cells
  /// may be empty.
  std::vector<std::string> findGaps() const;

private:
  std::map<Row, std::array<int64_t, numWays>> counts;
};

} // namespace mlir::fsdp

#endif // TEST_UNIT_INTERPRETER_SPLITCOVERAGE_H
