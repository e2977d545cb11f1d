//===- Report.cpp ---------------------------------------------------------===//

#include "runtime/Report.h"

#include "runtime/Error.h"
#include "runtime/Log.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace fsdp::rt {

void printReport(const Program &program) {
  const auto json = nlohmann::ordered_json::parse(program.report ? program.report : "{}", nullptr,
                                                  /*allow_exceptions=*/false);
  if (!json.is_object())
    throw Error("this program carries a memory report that is not a JSON object: compile it again");
  const auto replicated = json.find("replicated");
  std::printf("%-14s %14s %14s\n", "memory", "per rank", "replicated");
  for (const auto &[name, value] : json.items()) {
    if (!value.is_number())
      continue;
    std::string whole;
    if (replicated != json.end() && replicated->is_object() && replicated->contains(name) &&
        (*replicated)[name].is_number())
      whole = formatBytes((*replicated)[name].get<double>());
    std::printf("%-14s %14s %14s\n", name.c_str(), formatBytes(value.get<double>()).c_str(),
                whole.c_str());
  }
}

} // namespace fsdp::rt
