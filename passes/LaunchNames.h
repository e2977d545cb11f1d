//===- LaunchNames.h - readable names from locations ------------*- C++ -*-===//

#ifndef PASSES_LAUNCHNAMES_H
#define PASSES_LAUNCHNAMES_H

#include "dialect/fsdp/Structure.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {

/// The name in `location`, empty if it has none; of several fused names the last, where the value
/// is complete.
std::string getLocationName(Location location);

/// "fc1.relu" for elementwise work, "fc1.flat all_gather" for other work with its kind; the kind
/// alone if the location has no name.
std::string getLaunchName(Operation *op);

/// `name` and, of a launch for one microbatch of a pipeline, its stage and microbatch: "fc1.relu
/// stage 1 microbatch 2". Messages about a rank that hangs have nothing but names.
std::string addMicrobatch(StringRef name, const Structure &structure);

/// Makes names distinct: the second "fc1.flat all_gather" becomes "fc1.flat all_gather 2".
class UniqueNames {
public:
  std::string get(StringRef name);

private:
  llvm::StringSet<llvm::BumpPtrAllocator> used;
  llvm::StringMap<int, llvm::BumpPtrAllocator> next; ///< next number to try for each requested name
};

} // namespace mlir::fsdp

#endif // PASSES_LAUNCHNAMES_H
