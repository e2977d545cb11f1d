//===- Settings.cpp - what FSDP_EMULATOR says -----------------------------------===//

#include "Emulator.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace emulator {

namespace {
void apply(Settings &settings, const std::string &words) {
  std::istringstream in(words);
  for (std::string word; std::getline(in, word, ',');) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    char *end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    const bool isNumber = !value.empty() && !*end && number >= 0;
    if (name.empty() && value.empty())
      continue;
    if (name == "inline" && value.empty())
      settings.deferred = false;
    else if (name == "deferred" && value.empty())
      settings.deferred = true;
    else if (name == "shuffle" && value.empty())
      settings.shuffle = true;
    else if (name == "races" && value.empty())
      settings.races = true;
    else if (name == "guard" && value.empty())
      settings.guard = true;
    else if (name == "connections" && value.empty())
      settings.connections = true;
    else if (name == "seed" && isNumber)
      settings.seed = static_cast<std::uint64_t>(number);
    else if (name == "devices" && isNumber)
      settings.devices = static_cast<int>(number);
    else if (name == "memory" && isNumber)
      settings.memory = static_cast<std::size_t>(number);
    else if (name == "deadlock" && isNumber)
      settings.deadlock = number;
    else if (name == "compute" && isNumber)
      settings.compute = static_cast<int>(number);
    else if (name == "noimage" && value.empty())
      settings.images = false;
    else if (name == "products" && value == "split")
      settings.split = true;
    else if (name == "products" &&
             std::sscanf(value.c_str(), "none:%" SCNu64, &settings.noAlgorithm) == 1)
      ;
    else if (name == "queues" && isNumber)
      settings.queues = static_cast<int>(number);
    else if (name == "driver" && isNumber)
      settings.driver = static_cast<int>(number);
    else if (name == "nccl" && isNumber)
      settings.nccl = static_cast<int>(number);
    else if (name == "window" && std::sscanf(value.c_str(), "fail:%d", &settings.windowFault) == 1)
      ;
    else if (name == "communicator" && isNumber)
      settings.communicator = static_cast<std::size_t>(number);
    else if (name == "launches" && !value.empty())
      settings.launches = value;
    else
      throw std::invalid_argument(
          "FSDP_EMULATOR: got '" + word +
          "', expected inline, deferred, shuffle, races, guard, connections, seed=N, "
          "devices=N, memory=BYTES, deadlock=SECONDS, compute=N, noimage, "
          "products=split, products=none:N, queues=N, driver=VERSION, nccl=VERSION, "
          "window=fail:RANK, communicator=BYTES or "
          "launches=FILE");
  }
}

} // namespace

Settings settingsOfEnvironment() {
  Settings result;
  try {
    if (const char *words = std::getenv("FSDP_EMULATOR"))
      apply(result, words);
  } catch (const std::invalid_argument &error) {
    fprintf(stderr, "%s\n", error.what());
    std::_Exit(2);
  }
  return result;
}

Settings &settings() {
  static Settings theirs = settingsOfEnvironment();
  return theirs;
}

const std::string &launchesFile() {
  static const auto *file = new std::string(settingsOfEnvironment().launches);
  return *file;
}

void configure(const std::string &words) { apply(settings(), words); }

} // namespace emulator
