//===- Settings.cpp - what FSDP_EMULATOR says -----------------------------------===//

#include "Emulator.h"
#include "Held.h"

#include "base/Numbers.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <type_traits>

namespace emulator {

namespace {

/// A number as options have it, such as 20 or 300e6, from `least` to `most`; where `T` is an
/// integer, a whole one.
template <class T> bool read(const std::string &text, double least, double most, T &to) {
  base::NumberRange any;
  any.isF32 = false;
  double number = 0;
  if (!base::parseNumber(text, any, number).empty() || number < least || number > most ||
      (std::is_integral_v<T> && number != std::floor(number)))
    return false;
  to = static_cast<T>(number);
  return true;
}

/// The text after `prefix`, or "".
std::string behind(const std::string &prefix, const std::string &text) {
  return text.compare(0, prefix.size(), prefix) == 0 ? text.substr(prefix.size()) : "";
}

constexpr double kMaxDevices = 1024, kMaxBytes = 1e15, kMaxVersion = 999999,
                 kMaxWhole = 9007199254740992.0; ///< 2^53: all integers to here are doubles

/// False if the word is not a setting, or if its value is not valid.
bool apply(Settings &s, const std::string &name, const std::string &value) {
  const auto flag = [&](bool &to, bool set) {
    to = set;
    return value.empty();
  };
  if (name == "inline")
    return flag(s.deferred, false);
  if (name == "deferred")
    return flag(s.deferred, true);
  if (name == "shuffle")
    return flag(s.shuffle, true);
  if (name == "races")
    return flag(s.races, true);
  if (name == "guard")
    return flag(s.guard, true);
  if (name == "leaks")
    return flag(s.leaks, true);
  if (name == "connections")
    return flag(s.connections, true);
  if (name == "graphs")
    return flag(s.graphs, true);
  if (name == "noimage")
    return flag(s.images, false);
  if (name == "seed")
    return read(value, 0, kMaxWhole, s.seed);
  if (name == "devices")
    return read(value, 0, kMaxDevices, s.devices);
  if (name == "memory")
    return read(value, 0, kMaxBytes, s.memory);
  if (name == "used")
    return read(value, 0, kMaxBytes, s.used);
  if (name == "communicator")
    return read(value, 0, kMaxBytes, s.communicator);
  if (name == "deadlock")
    return read(value, 0, 1e6, s.deadlock);
  if (name == "compute")
    return read(value, 50, 999, s.compute);
  if (name == "algorithms")
    return read(value, 1, 100, s.algorithms);
  if (name == "fastest")
    return read(value, 0, 99, s.fastest);
  if (name == "queues")
    return read(value, 0, 1024, s.queues);
  if (name == "driver")
    return read(value, 1000, kMaxVersion, s.driver);
  if (name == "nccl")
    return read(value, 1000, kMaxVersion, s.nccl);
  if (name == "products" && value == "split")
    return s.split = true;
  if (name == "products")
    return read(behind("none:", value), 1, kMaxWhole, s.noAlgorithm);
  if (name == "window")
    return read(behind("fail:", value), 0, kMaxDevices, s.windowFault);
  if (name == "call")
    return read(value, 0, 1e6, s.call);
  if (name == "launches") {
    s.launches = value;
    return !value.empty();
  }
  if (name == "calls") {
    s.calls = value;
    return !value.empty();
  }
  if (name == "ptx") {
    s.ptx = value;
    return !value.empty();
  }
  return false;
}

void apply(Settings &settings, const std::string &words) {
  std::istringstream in(words);
  for (std::string word; std::getline(in, word, ',');) {
    const std::size_t equals = word.find('=');
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (!word.empty() && !apply(settings, word.substr(0, equals), value))
      throw std::invalid_argument(
          "FSDP_EMULATOR: got '" + word +
          "', expected inline, deferred, shuffle, races, guard, leaks, connections, graphs, "
          "seed=N, "
          "devices=N, memory=BYTES, used=BYTES, deadlock=SECONDS, compute=N, noimage, "
          "products=split, products=none:N, algorithms=N, fastest=N, queues=N, driver=VERSION, "
          "nccl=VERSION, "
          "window=fail:RANK, communicator=BYTES, "
          "call=SECONDS, ptx=FOLDER, launches=FILE or calls=FILE");
  }
}

/// Files are written at the end or later: files that cannot be written are refused at the start.
void requireFile(const std::string &setting, const std::string &path) {
  if (path.empty())
    return;
  std::FILE *file = std::fopen(path.c_str(), "a");
  if (!file)
    throw std::invalid_argument("FSDP_EMULATOR: got '" + setting + "=" + path +
                                "', expected a file that can be written: " + std::strerror(errno));
  std::fclose(file);
}

} // namespace

Settings settingsOfEnvironment() {
  Settings result;
  try {
    if (const char *words = std::getenv("FSDP_EMULATOR"))
      apply(result, words);
    requireFile("launches", result.launches);
    requireFile("calls", result.calls);
  } catch (const std::invalid_argument &error) {
    fprintf(stderr, "%s\n", error.what());
    std::_Exit(2);
  }
  return result;
}

Settings &settings() {
  static Settings theirs = [] {
    Settings ofEnvironment = settingsOfEnvironment();
    if (ofEnvironment.leaks)
      failAtExitWhereAnyIsHeld();
    if (ofEnvironment.graphs)
      countGraphsAtExit();
    return ofEnvironment;
  }();
  return theirs;
}

const std::string &launchesFile() {
  static const auto *file = new std::string(settingsOfEnvironment().launches);
  return *file;
}

void configure(const std::string &words) {
  Settings changed;
  apply(changed, words);
  if (changed.leaks || changed.graphs || !changed.launches.empty() || !changed.calls.empty())
    throw std::invalid_argument(
        "got '" + words +
        "', expected leaks, graphs, launches=FILE and calls=FILE in FSDP_EMULATOR only");
  apply(settings(), words);
}

} // namespace emulator
