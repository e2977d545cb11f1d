//===- FlightRecord.h - the file of the latest actions of ranks -----------===//
#ifndef FSDP_RUNTIME_JOB_FLIGHTRECORD_H
#define FSDP_RUNTIME_JOB_FLIGHTRECORD_H

#include "runtime/comm/SharedSegment.h"

#include <string>

namespace fsdp::rt {

/// The ending of a record's name, after the name of a log, of a folder of checkpoints or of a
/// program.
constexpr const char *kFlightRecordEnding = ".flight-record.txt";

/// The default path of a record: named after `program`, whose name may be any text ('/' becomes
/// '_', a long name is cut), in the folder fsdp-UID in TMPDIR or /tmp. That folder is writable by
/// this user only, and is created when a record is written.
std::string temporaryFlightRecord(const std::string &program);

/// Writes the latest actions of the segment's ranks to `path`, once for each segment, and prints a
/// note or a warning on standard error. `firstRank` is the world rank of the segment's rank 0,
/// `worldSize` the number of the job's ranks: if some are on other machines, ".rank-N" is appended
/// to the name. Does nothing if `path` is empty or the run was refused (Error::asRefusal). The file
/// is replaced atomically. It has a line for each role with its ranks, if there are several, and
/// one for each action, in the order in which they began: seconds before the file was written,
/// rank, thread, duration or that it is under way, and the action.
void writeFlightRecord(const SharedSegment &segment, const std::string &path, int firstRank,
                       int worldSize);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_FLIGHTRECORD_H
