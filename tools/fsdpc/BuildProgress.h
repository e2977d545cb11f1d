//===- BuildProgress.h - progress of a build --------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_BUILDPROGRESS_H
#define TOOLS_FSDPC_BUILDPROGRESS_H

#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <optional>
#include <string>

namespace fsdpc {

/// The percentage of a build with output `log`: its last line that begins with
/// "[12/80]", as ninja's do with NINJA_STATUS="[%f/%t] ", or with "[ 15%]", as make's do. Nothing
/// before the first such line.
std::optional<unsigned> percentageOf(llvm::StringRef log);

/// Shows the progress of a build and an estimate of the remaining time on standard error: on a
/// terminal in one line that is replaced, else a line at each quarter.
class BuildProgress {
public:
  /// `what` is being built: "the runtime library". `log` is the file that the build prints to.
  BuildProgress(std::string what, std::string log);
  /// Reads the log. Must be called several times a second.
  void update();
  /// The build has succeeded: prints its duration.
  void finish();
  /// Ends the line of a terminal, before something else is printed.
  void clear();

private:
  std::string what, log;
  bool terminal;
  std::chrono::steady_clock::time_point begin;
  unsigned shown = 0; ///< the last quarter printed
};

} // namespace fsdpc

#endif // TOOLS_FSDPC_BUILDPROGRESS_H
