#include "runtime/train/RunLog.h"

#include "base/PrintableText.h"
#include "runtime/files/StandardStreams.h"

#include <cstdio>
#include <string>
#include <vector>

namespace fsdp::rt {

using namespace base;

void openRunLog(std::optional<LogFile> &log, const RunHeader &header, const RunOutputs &outputs,
                RunStart &runStart) {
  if (outputs.log.empty())
    return runStart.noteOpened({});
  const Options &options = header.options;
  const std::int64_t first = header.from.step; // training begins after it
  const std::string name = printable(outputs.log.name());
  const bool goesOn = runStart.hasOpened() ? runStart.owns(outputs.log.identity())
                                           : first > 0 && !options.onlyEvaluates();
  log.emplace(outputs.log,
              std::vector<FileIdentity>{outputs.exported.identity(), outputs.merged.identity(),
                                        outputs.trace.identity(), identityOf(options.flightRecord)},
              goesOn ? std::optional(first) : std::nullopt);
  runStart.noteOpened(log->identity());
  if (options.evaluates())
    log->holdsResult();
  if (!log->previous().empty())
    std::printf("kept the existing log as '%s'\n", printable(log->previous()).c_str());
  if (log->dropped())
    std::printf("dropped %lld steps after step %lld from the log '%s'\n", 0LL + log->dropped(),
                0LL + first, name.c_str());
  if (log->lastStep() && *log->lastStep() < first)
    std::fprintf(stderr,
                 "%s: warning: the log '%s' has no step %lld, after which training continues\n",
                 header.program.name, name.c_str(), static_cast<long long>(first));
  if (options.restarts)
    log->writeHeader(restartLine(options.restarts, first, header.mesh, options.restartCause));
  if (options.logHeader)
    log->writeHeader(header.line());
  showOutput();
}

} // namespace fsdp::rt
