//===- RunCommand.h - the command that repeats a run ------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_LOG_RUNCOMMAND_H
#define TOOLS_FSDPC_LOG_RUNCOMMAND_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdpc_log {

/// The words of a shell command line whose words base::shellWord has quoted. Nothing for other
/// lines.
std::optional<std::vector<std::string>> shellWords(const std::string &line);

/// Where the records of `path` are: of a folder of checkpoints the folder of the latest step, as
/// programs resume from it, else `path`. Error: it is a folder without a checkpoint.
std::string recordSource(const std::string &path);

/// The records of the runs in a log, or in the manifest of a checkpoint or its folder. A restart of
/// a run has no record. Throws an error if the file cannot be read or has no record.
std::vector<nlohmann::json> readRecords(const std::string &path);

/// A shell script that repeats run `number`, from 1, of `records`: comments, and one command.
/// Throws an error if the record lacks a field that the command needs.
std::string runCommand(const std::vector<nlohmann::json> &records, std::size_t number,
                       const std::string &path);

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_RUNCOMMAND_H
