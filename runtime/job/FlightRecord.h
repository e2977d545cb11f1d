//===- FlightRecord.h - a file of what each rank did last ------------------===//
#ifndef FSDP_RUNTIME_JOB_FLIGHTRECORD_H
#define FSDP_RUNTIME_JOB_FLIGHTRECORD_H

#include "runtime/comm/SharedSegment.h"

#include <string>

namespace fsdp::rt {

/// What is appended to the name of a log, of a folder of checkpoints or of a program for the name
/// of its record.
constexpr const char *kFlightRecordEnding = ".flight-record.txt";

/// Path of a record that has no better place: named after `program`, whose name may be any text
/// ('/' becomes '_', the end of a long one is left out), in the folder fsdp-UID, which nobody else
/// can write to and which is made when there is something to write, in TMPDIR, or /tmp.
std::string temporaryFlightRecord(const std::string &program);

/// Writes the latest actions of the segment's ranks to the file that the job's options name, once
/// for each segment; a line says where, on standard error, or why not. `firstRank` is the world
/// rank of the segment's rank 0, `worldSize` the job's ranks: where some are elsewhere the name
/// gets ".rank-N" behind it. Nothing without a name, nor of a run that was refused
/// (Error::asRefusal). The file is whole, or what was there stays. It has a line for each action,
/// in the order in which they began: seconds before it was written, rank, thread, how long it took
/// or that it is under way, and what it is.
void writeFlightRecord(const SharedSegment &segment, const std::string &path, int firstRank,
                       int worldSize);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_FLIGHTRECORD_H
