//===- Report.cpp ---------------------------------------------------------===//

#include "runtime/Report.h"

#include "runtime/Error.h"
#include "runtime/Log.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace fsdp::rt {

void printReport(const Program &program) {
  const auto json = nlohmann::json::parse(program.report ? program.report : "{}", nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object())
    throw Error("this program carries a memory report that is not a JSON object: compile it again");
  const auto bytes = [&](const std::string &name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number() ? formatBytes(found->get<double>())
                                                     : std::string();
  };
  // What is sharded first, then what is shared over time, then what is allocated.
  std::printf("%-14s %14s %14s\n", "memory", "per rank", "replicated");
  for (const char *name : {"parameters", "gradients", "optimizer", "gathered", "activations",
                           "persistent", "transient", "arena", "lower_bound"})
    if (!bytes(name).empty())
      std::printf("%-14s %14s %14s\n", name, bytes(name).c_str(),
                  bytes(std::string("replicated_") + name).c_str());
}

} // namespace fsdp::rt
