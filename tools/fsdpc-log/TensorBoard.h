//===- TensorBoard.h - logs as event files of TensorBoard -------*- C++ -*-===//
// Formats: a file is a sequence of TFRecords (tensorflow.org/tutorials/load_data/tfrecord); each
// holds a message Event of tensorflow/core/util/event.proto, with a Summary of
// tensorflow/core/framework/summary.proto. Numbers of the fields are those of these files.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_LOG_TENSORBOARD_H
#define TOOLS_FSDPC_LOG_TENSORBOARD_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fsdpc_log {

/// CRC-32C (Castagnoli: reflected, polynomial 0x1EDC6F41), as RFC 3720 appendix B.4 has it.
std::uint32_t crc32c(std::string_view bytes);

/// A record: length, masked checksum of the length, data, masked checksum of the data; numbers with
/// their least byte first.
std::string tfRecord(std::string_view data);

/// The first event of a file.
std::string versionEvent(double wallTime);
/// Scalars of one step. `wallTime`: seconds since 1970.
std::string scalarEvent(double wallTime, std::int64_t step,
                        const std::vector<std::pair<std::string, double>> &values);

/// Writes the logs to folders of `root`, one each, named as the files without their endings.
/// Existing event files of this tool there are replaced. `fields`: those to write; none: all except
/// `step`. Prints the written files. Throws the errors of readLog, and an error if a file cannot be
/// written or no log has one of the fields.
void writeTensorBoard(const std::vector<std::string> &files, const std::string &root,
                      const std::vector<std::string> &fields);

/// A unique name for each file: without folders and ending if that is unique.
std::vector<std::string> namesOf(const std::vector<std::string> &files);

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_TENSORBOARD_H
