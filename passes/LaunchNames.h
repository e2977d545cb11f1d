//===- LaunchNames.h - readable names from locations ------------*- C++ -*-===//

#ifndef PASSES_LAUNCHNAMES_H
#define PASSES_LAUNCHNAMES_H

#include "dialect/fsdp/Structure.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace mlir::fsdp {

/// The name in `location`, empty if it has none; of several fused names the last, where the value
/// is complete.
std::string getLocationName(Location location);

/// "fc1.relu" for elementwise work, "fc1.flat all_gather" for other work with its kind; the kind
/// alone if the location has no name.
std::string getLaunchName(Operation *op);

/// The name of the buffer of `result` of a launch called `launch`: with the number of the result if
/// there are several; "head.loss.grad" for the gradient of the logits that a loss computes.
std::string getBufferName(OpResult result, StringRef launch);

/// Makes names distinct within a stage and a microbatch: the second "fc1.flat all_gather" becomes
/// "fc1.flat all_gather 2".
class UniqueNames {
public:
  std::string get(StringRef name, const Structure &structure = {});

private:
  struct Names {
    llvm::StringSet<llvm::BumpPtrAllocator> used;
    llvm::StringMap<int, llvm::BumpPtrAllocator> next; ///< number to try for each requested name
  };
  std::map<std::pair<int64_t, int64_t>, Names> names; ///< by stage and microbatch
};

} // namespace mlir::fsdp

#endif // PASSES_LAUNCHNAMES_H
