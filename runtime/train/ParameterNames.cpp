#include "runtime/train/ParameterNames.h"

#include "base/Error.h"
#include "base/NamePattern.h"
#include "base/PrintableText.h"

#include <string>

namespace fsdp::rt {

using namespace base;

void requireMatch(const Program &program, const char *option, std::string_view pattern,
                  std::string_view remedy) {
  NameList names;
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members) {
      if (matchesPattern(pattern, parameter.name) ||
          (parameter.alias && matchesPattern(pattern, parameter.alias)))
        return;
      names.add(parameter.name);
    }
  throw Error(std::string(option) + ": no parameter matches '" + std::string(pattern) +
                  "', expected the name of one, or names with '*' for any part of them; this model "
                  "has " +
                  names.list() + std::string(remedy),
              kExitBadCommandLine);
}

std::vector<std::string> adapterNames(const Program &program) {
  std::vector<std::string> names;
  for (const Adapter &adapter : program.adapters.products)
    names.insert(names.end(), {adapter.down, adapter.up});
  return names;
}

} // namespace fsdp::rt
