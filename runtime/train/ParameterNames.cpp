#include "runtime/train/ParameterNames.h"

#include "base/Error.h"
#include "base/NamePattern.h"
#include "base/PrintableText.h"

#include <map>
#include <string>

namespace fsdp::rt {

using namespace base;

std::vector<Member> membersOf(const Program &program) {
  std::multimap<int, Member> byPosition;
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members)
      byPosition.emplace(parameter.position, Member{&storage, &parameter});
  std::vector<Member> members;
  for (const auto &[position, member] : byPosition)
    members.push_back(member);
  return members;
}

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
  throw Error(std::string(option) + ": no parameter matches " + inQuotes(pattern) +
                  ", expected the name of one, or names with '*' for any part of them; this model "
                  "has " +
                  names.list() + std::string(remedy),
              kExitBadCommandLine);
}

ParameterGroups compiledGroups(const Program &program) {
  return ParameterGroups::of({program.rateScales.begin(), program.rateScales.end()},
                             {program.noDecay.begin(), program.noDecay.end()});
}

std::vector<UpdateSetting> updateSettings(const Program &program, const ParameterGroups &groups) {
  std::vector<UpdateSetting> settings;
  if (groups.rateScales.empty() && groups.noDecay.empty())
    return settings;
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members)
      settings.push_back({static_cast<float>(groups.scaleOf(parameter.name)),
                          parameter.decay && !groups.exempts(parameter.name)});
  return settings;
}

std::vector<std::string> adapterNames(const Program &program) {
  std::vector<std::string> names;
  for (const Adapter &adapter : program.adapters.products)
    names.insert(names.end(), {adapter.down, adapter.up});
  return names;
}

} // namespace fsdp::rt
