#include "runtime/train/LogFile.h"

#include "base/Error.h"
#include "base/FileSystem.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

/// Renames without replacing a file. Returns the error number, or 0.
int renameWithoutReplacing(const std::string &from, const std::string &to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL)
    return errno;
  // The file system does not support the flag.
  if (fileExists(to))
    return EEXIST;
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

/// Renames `file` to a free name: with `.1` appended, or the first number that is free and not one
/// of `others`.
std::string renameAside(const std::string &file, const std::vector<FileIdentity> &others) {
  for (int number = 1;; ++number) {
    const std::string aside = withEnding(file, "." + std::to_string(number));
    const FileIdentity identity = identityOf(aside);
    if (std::find(others.begin(), others.end(), identity) != others.end())
      continue;
    const int reason = renameWithoutReplacing(file, aside);
    if (reason == 0)
      return aside;
    if (reason != EEXIST)
      throw Error("cannot rename '" + file + "' to '" + aside + "': " + std::strerror(reason));
  }
}

} // namespace

void requireNoLogOfARun(const OutputPath &output) {
  if (output.empty() || output.stream() >= 0)
    return;
  const int file = open(output.file().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return; // it does not exist or cannot be read
  const bool locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  if (locked)
    throw Error("cannot write '" + output.name() +
                "': another run writes its log there; wait for its end or choose another file")
        .asRefusal();
}

LogFile::LogFile(const OutputPath &output, const std::vector<FileIdentity> &others,
                 std::optional<std::int64_t> after)
    : path(output.name()) {
  if (output.stream() < 0) {
    replaceFile(output.file(), others, after);
    return;
  }
  descriptor = Descriptor(fcntl(output.stream(), F_DUPFD_CLOEXEC, 3));
  if (!descriptor)
    throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

/// A run renames or writes the file only while it holds the lock of the file under that name: of
/// several runs that start at once, one gets the lock and the others end here.
void LogFile::replaceFile(const std::string &file, const std::vector<FileIdentity> &others,
                          std::optional<std::int64_t> after) {
  regular = true;
  mode_t mode = 0666;
  for (;;) {
    descriptor = Descriptor(open(file.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC));
    const bool exists = bool(descriptor);
    if (!exists && errno == ENOENT)
      descriptor =
          Descriptor(open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!descriptor && errno == EEXIST)
      continue; // created in the meantime
    if (!descriptor)
      throw Error("cannot create '" + path + "': " + std::strerror(errno));
    const bool locked = descriptor.lockAgainstOtherRuns(path);
    struct stat status, named;
    if (locked && fstat(descriptor.get(), &status) == 0 && stat(file.c_str(), &named) == 0 &&
        status.st_dev == named.st_dev && status.st_ino == named.st_ino) {
      if (status.st_size == 0) {
        if (!exists && mode != 0666)
          fchmod(descriptor.get(), mode);
        return;
      }
      if (after && continueAfter(file, *after))
        return;
      mode = status.st_mode & 0777;
      previousLog = renameAside(file, others);
    }
    descriptor.reset();
    if (!locked)
      throw Error("cannot write '" + path +
                  "': another run writes its log there; wait for its end or choose another file")
          .asRefusal();
  }
}

std::optional<std::int64_t> LogFile::findEnd(const std::string &file, std::int64_t after) {
  std::ifstream in(file, std::ios::binary);
  std::int64_t end = 0;
  bool isLater = false;
  last.reset(), droppedSteps = 0, seconds = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool isStep =
        json.is_object() && json.contains("step") && json["step"].is_number_integer();
    if (!isStep && !(json.is_object() && (json.contains("run") || json.contains("restart") ||
                                          json.contains("rollback")))) {
      last.reset(), droppedSteps = 0, seconds = 0;
      return std::nullopt;
    }
    isLater |= isStep && json["step"].get<std::int64_t>() > after;
    droppedSteps += isLater && isStep;
    if (isLater)
      continue;
    if (isStep) {
      last = json["step"].get<std::int64_t>();
      const auto found = json.find("seconds"); // missing in logs of older versions
      seconds = found != json.end() && found->is_number() ? found->get<double>() : 0;
    }
    end += static_cast<std::int64_t>(line.size()) + 1;
  }
  return end;
}

bool LogFile::continueAfter(const std::string &file, std::int64_t after) {
  const std::optional<std::int64_t> end = findEnd(file, after);
  if (!end || (*end == 0 && after > 0))
    return false;
  if (ftruncate(descriptor.get(), *end) != 0)
    throw Error("cannot write '" + path + "': " + std::strerror(errno));
  bytes = *end;
  return true;
}

void LogFile::goBack(std::int64_t step) {
  if (!regular || firstLostStep)
    return;
  // The open file, independent of its present name.
  const auto end = findEnd("/proc/self/fd/" + std::to_string(descriptor.get()), step);
  if (!end) // another process has written into it
    return;
  if (ftruncate(descriptor.get(), *end) != 0)
    return giveUp(step + 1, errno);
  bytes = *end;
}

void LogFile::write(JsonLine &line, std::int64_t step) {
  std::size_t left;
  const char *text = line.finish(left);
  writeLine(text, left, step);
}

void LogFile::writeHeader(const std::string &line) { writeLine(line.data(), line.size(), 1); }

void LogFile::writeLine(const char *next, std::size_t left, std::int64_t step) {
  if (firstLostStep)
    return;
  const auto length = static_cast<std::int64_t>(left);
  while (left > 0) {
    const ssize_t written = ::write(descriptor.get(), next, left);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return giveUp(step, errno);
    next += written;
    left -= static_cast<std::size_t>(written);
  }
  bytes += length;
}

void LogFile::giveUp(std::int64_t step, int reason) {
  firstLostStep = step;
  lossReason = reason;
  std::string half;
  if (regular && ftruncate(descriptor.get(), bytes) != 0)
    half = "; its last line may be cut off";
  if (isResult)
    return;
  std::fprintf(stderr,
               "note: cannot write '%s' in step %lld: %s%s; training continues without it\n",
               path.c_str(), static_cast<long long>(step), std::strerror(reason), half.c_str());
}

void LogFile::flush() {
  if (!firstLostStep && regular)
    fsync(descriptor.get());
}

void LogFile::finish() {
  if (!firstLostStep && regular && fsync(descriptor.get()) != 0)
    throw Error("cannot write '" + path + "': " + std::strerror(errno)).asRefusal();
  if (firstLostStep)
    throw Error("cannot write '" + path + "': " + std::strerror(lossReason) +
                (isResult ? ""
                          : "; training is done, but the log lacks the steps from " +
                                std::to_string(*firstLostStep) + " on") +
                "; free some space or choose another location")
        .asRefusal();
}

} // namespace fsdp::rt
