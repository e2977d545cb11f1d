#include "tools/fsdpc-log/FieldNames.h"

#include "base/Error.h"
#include "base/PrintableText.h"

#include <algorithm>

namespace fsdpc_log {

void FieldNames::add(const LogEntry &entry) {
  if (entry.kind == LogEntry::Step)
    for (const auto &value : entry.values)
      if (names.find(value.first) == names.end())
        names.insert(value.first);
}

static bool contains(const std::vector<std::string> &list, const std::string &name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool FieldNames::haveAll(const std::vector<std::string> &fields,
                         const std::vector<std::string> &mayLack) const {
  return std::all_of(fields.begin(), fields.end(), [&](const std::string &field) {
    return names.count(field) || contains(mayLack, field);
  });
}

void FieldNames::require(const std::vector<std::string> &fields, const char *option,
                         const std::vector<std::string> &files,
                         const std::vector<std::string> &mayLack) const {
  for (const std::string &field : fields) {
    if (names.empty() || names.count(field) || contains(mayLack, field))
      continue;
    std::string list;
    for (const std::string &name : names)
      list += (list.empty() ? "" : ", ") + name;
    throw base::Error(std::string(option) + ": got " + base::inQuotes(field) +
                      ", which no step of " +
                      (files.size() == 1 ? base::inQuotes(files.front()) : "these logs") +
                      " has, expected of: " + list);
  }
}

} // namespace fsdpc_log
