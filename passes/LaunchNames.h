//===- LaunchNames.h - readable names from locations ------------*- C++ -*-===//

#ifndef PASSES_LAUNCHNAMES_H
#define PASSES_LAUNCHNAMES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {

/// The name that `location` carries, empty where it has none; of several fused ones the last,
/// which is where the value is complete.
std::string getLocationName(Location location);

/// "fc1.relu" for elementwise work, "fc1.flat all_gather" for everything that has a kind of its
/// own; the kind alone where the location has no name.
std::string getLaunchName(Operation *op);

/// Makes names distinct: the second "fc1.flat all_gather" becomes "fc1.flat all_gather 2".
class UniqueNames {
public:
  std::string get(StringRef name);

private:
  llvm::StringSet<> used;
  llvm::StringMap<int> next; ///< number to try, for each name asked for
};

} // namespace mlir::fsdp

#endif // PASSES_LAUNCHNAMES_H
