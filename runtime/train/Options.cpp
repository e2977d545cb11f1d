#include "runtime/train/Options.h"

#include "base/Error.h"
#include "base/FileSystem.h"

namespace fsdp::rt {

using namespace base;

std::string Options::flightRecordFile() const {
  if (flightRecord == "none")
    return "";
  return restarts
             ? withEnding(flightRecord, format(".restart-%lld", static_cast<long long>(restarts)))
             : flightRecord;
}

/// A file of the first bad step, beside the flight record; empty: it is not written.
static std::string besideRecord(const Options &options, const char *ending) {
  const bool isTemporary =
      !options.flightRecordIsGiven && options.save.empty() && options.log.empty();
  const std::string record = isTemporary ? "" : options.flightRecordFile();
  return record.empty() ? "" : withEnding(record, ending);
}

std::string Options::badStepFile() const { return besideRecord(*this, ".bad-step.json"); }
std::string Options::badInputsFile() const { return besideRecord(*this, ".bad-step.safetensors"); }

} // namespace fsdp::rt
