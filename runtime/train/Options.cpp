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

std::string Options::badStepFile() const {
  const bool isTemporary = !flightRecordIsGiven && save.empty() && log.empty();
  const std::string record = isTemporary ? "" : flightRecordFile();
  return record.empty() ? "" : withEnding(record, ".bad-step.json");
}

} // namespace fsdp::rt
