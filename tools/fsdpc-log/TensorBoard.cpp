#include "tools/fsdpc-log/TensorBoard.h"

#include "base/AtomicFile.h"
#include "base/Error.h"
#include "base/PrintableText.h"
#include "base/StandardOutput.h"
#include "tools/fsdpc-log/LogReader.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <sys/stat.h>

namespace fsdpc_log {

using base::Error;

namespace {

constexpr const char *kFile = "events.out.tfevents.0.fsdpc-log";

template <class Number> void putLittle(std::string &bytes, Number value) {
  std::uint64_t bits = 0;
  static_assert(sizeof value <= sizeof bits);
  std::memcpy(&bits, &value, sizeof value);
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>(bits >> 8 * i & 0xff);
}

// Of the wire format of protocol buffers: a key is the number of the field and its type.
enum WireType : std::uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void putVarint(std::string &bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}
void putKey(std::string &bytes, std::uint32_t field, WireType type) {
  putVarint(bytes, field << 3 | type);
}
void putBytes(std::string &bytes, std::uint32_t field, std::string_view value) {
  putKey(bytes, field, Bytes);
  putVarint(bytes, value.size());
  bytes += value;
}

/// Event: wall_time = 1, step = 2.
std::string beginEvent(double wallTime, std::int64_t step) {
  std::string event;
  putKey(event, 1, Fixed64);
  putLittle(event, wallTime);
  if (step != 0) { // otherwise omitted, as all fields with default values are
    putKey(event, 2, Varint);
    putVarint(event, static_cast<std::uint64_t>(step));
  }
  return event;
}

std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

void write(base::AtomicFile &file, const std::string &event) {
  const std::string record = tfRecord(event);
  file.write(record.data(), record.size());
}

void createFolder(const std::filesystem::path &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error("cannot create the folder '" + folder.string() + "': " + error.message());
}

} // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> remainders{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit)
        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
      remainders[i] = crc;
    }
    return remainders;
  }();
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string tfRecord(std::string_view data) {
  std::string record;
  putLittle(record, static_cast<std::uint64_t>(data.size()));
  putLittle(record, masked(crc32c(record)));
  record += data;
  putLittle(record, masked(crc32c(data)));
  return record;
}

std::string versionEvent(double wallTime) {
  std::string event = beginEvent(wallTime, 0);
  putBytes(event, 3, "brain.Event:2"); // file_version
  return event;
}

std::string scalarEvent(double wallTime, std::int64_t step,
                        const std::vector<std::pair<std::string, double>> &values) {
  std::string summary;
  for (const auto &[name, value] : values) {
    std::string one; // Summary.Value: tag = 1, simple_value = 2
    putBytes(one, 1, name);
    putKey(one, 2, Fixed32);
    putLittle(one, static_cast<float>(value));
    putBytes(summary, 1, one);
  }
  std::string event = beginEvent(wallTime, step);
  putBytes(event, 5, summary);
  return event;
}

std::vector<std::string> namesOf(const std::vector<std::string> &files) {
  std::vector<std::string> names;
  std::multiset<std::string> stems;
  for (const std::string &file : files)
    stems.insert(std::filesystem::path(file).stem().string());
  for (const std::string &file : files) {
    std::string name = std::filesystem::path(file).stem().string();
    if (stems.count(name) > 1 || name.empty()) {
      name = file;
      std::replace(name.begin(), name.end(), '/', '_');
    }
    names.push_back(name);
  }
  return names;
}

void writeTensorBoard(const std::vector<std::string> &files, const std::string &root,
                      const std::vector<std::string> &fields) {
  const std::vector<std::string> names = namesOf(files);
  FieldNames found;
  std::vector<double> begins; // of each log, in seconds since 1970
  for (const std::string &file : files) {
    double lastSeconds = 0;
    readLog(file, [&](const LogEntry &entry) {
      found.add(entry);
      if (const double *seconds = entry.find("seconds"))
        lastSeconds = *seconds;
    });
    // The log has no time of day: its last line was written when the file was.
    struct stat status;
    const bool isKnown = stat(file.c_str(), &status) == 0;
    begins.push_back(isKnown ? static_cast<double>(status.st_mtim.tv_sec) +
                                   1e-9 * static_cast<double>(status.st_mtim.tv_nsec) - lastSeconds
                             : 0);
  }
  found.require(fields, "--fields", files);
  const auto isWanted = [&](const std::string &field) {
    return field != "step" &&
           (fields.empty() || std::find(fields.begin(), fields.end(), field) != fields.end());
  };
  std::string written;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::filesystem::path folder = std::filesystem::path(root) / names[i];
    createFolder(folder);
    base::AtomicFile file{base::OutputPath((folder / kFile).string())};
    write(file, versionEvent(begins[i]));
    std::int64_t steps = 0;
    // A second, silent pass: so a log of any length needs little memory.
    EntryStream stream([&](const LogEntry &entry) {
      std::vector<std::pair<std::string, double>> values;
      for (const auto &value : entry.values)
        if (entry.kind == LogEntry::Step && isWanted(value.first))
          values.push_back(value);
      if (values.empty())
        return;
      const double *seconds = entry.find("seconds");
      write(file, scalarEvent(begins[i] + (seconds ? *seconds : 0), entry.step, values));
      ++steps;
    });
    readBytes(files[i], [&](std::string_view bytes) { stream.add(bytes); });
    stream.end();
    file.commit();
    written += "wrote '" + base::printable((folder / kFile).string()) +
               "': " + std::to_string(steps) + " steps\n";
  }
  base::printResult(written);
}

} // namespace fsdpc_log
