#include "runtime/train/Supervision.h"

#include "base/Error.h"
#include "runtime/job/Launcher.h"
#include "runtime/job/StopSignals.h"
#include "runtime/train/Plans.h"

#include <cstdio>

namespace fsdp::rt {

using namespace base;

void requireSupervision(Plans plans, const Program &plan, const Options &options) {
  const std::optional<LaunchEnvironment> launched = detectLauncher();
  if (launched || options.communicator == "loopback")
    throw Error(format("--max-restarts restarts ranks that the program starts as processes of its "
                       "own, but %s: "
                       "%s, with --resume=latest",
                       launched ? (launched->by + " started this one").c_str()
                                : "with --communicator=loopback they are threads",
                       launched ? "let the launcher restart the job" : "start the program again"),
                kExitBadCommandLine);
  if (options.elastic && !planBelow(plans, worldSize(plan)))
    throw Error(
        format("got --elastic, but no plan of this program has fewer ranks than %s (its plans: "
               "%s): compile it with "
               "more, --mesh='%s|AXIS=SIZE,...', or leave the option out",
               meshOf(plan).c_str(), describePlans(plans).c_str(), meshOf(plan).c_str()),
        kExitBadCommandLine);
}

int runSupervised(Plans plans, const Program &first, Options &options, const RunJob &runJob) {
  for (const Program *plan = &first;;) {
    std::string cause;
    const int status = runJob(*plan, cause);
    if (status == kExitDone || isStatusOfSignal(status) || cause.empty())
      return status;
    if (stopRequest().signal) {
      std::fprintf(stderr, "error: %s%s\n", cause.c_str(), kNotRestartedAfterSignal);
      return status;
    }
    if (options.restarts == options.maxRestarts) {
      std::fprintf(stderr, "error: %s; given up after %lld restart%s\n", cause.c_str(),
                   static_cast<long long>(options.restarts), options.restarts == 1 ? "" : "s");
      return status;
    }
    std::string as;
    if (options.elastic) {
      const Program *smaller = planBelow(plans, worldSize(*plan));
      plan = smaller ? smaller : plan;
      as = (smaller ? ", on the mesh " : ", without a plan for fewer ranks again on the mesh ") +
           meshOf(*plan);
    }
    ++options.restarts;
    options.restartCause = cause;
    std::fprintf(stderr, "%s: warning: %s: restart %lld of %lld%s\n", plan->name, cause.c_str(),
                 static_cast<long long>(options.restarts),
                 static_cast<long long>(options.maxRestarts), as.c_str());
  }
}

} // namespace fsdp::rt
