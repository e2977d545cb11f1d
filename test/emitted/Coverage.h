//===- Coverage.h - what stood in emitted programs ----------------*- C++ -*-===//

#ifndef TEST_EMITTED_COVERAGE_H
#define TEST_EMITTED_COVERAGE_H

#include "mlir/IR/BuiltinOps.h"
#include <array>
#include <map>
#include <set>
#include <string>

namespace mlir::fsdp {

/// In how many cases each op stood in each kind of launch.
class Coverage {
public:
  /// Adds the scheduled `module`, which is one case.
  void add(ModuleOp module);
  void print(llvm::raw_ostream &os) const;
  /// Features that no case had and some case should have: kinds of launches and numbers of ranks,
  /// and with `allOps` every op that a launch may hold too.
  std::set<std::string> gaps(MLIRContext &context, bool allOps) const;

private:
  enum Kind { alone, fused, behindProduct, inPlace, manyRanks, numKinds };

  std::map<std::string, std::array<int64_t, numKinds>> ops;
  std::map<std::string, int64_t> features;
};

} // namespace mlir::fsdp

#endif // TEST_EMITTED_COVERAGE_H
