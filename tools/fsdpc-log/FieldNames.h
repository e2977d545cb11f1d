//===- FieldNames.h - the fields that logs have -----------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_LOG_FIELDNAMES_H
#define TOOLS_FSDPC_LOG_FIELDNAMES_H

#include "tools/fsdpc-log/LogReader.h"

#include <set>
#include <string>
#include <vector>

namespace fsdpc_log {

/// The names of the fields of all steps that are added.
class FieldNames {
public:
  void add(const LogEntry &entry);
  /// Throws an error if no step has a field of `fields`, the values of `option`; the message lists
  /// the existing fields. `mayLack`: fields that may be absent. Without steps, no field is refused.
  void require(const std::vector<std::string> &fields, const char *option,
               const std::vector<std::string> &files,
               const std::vector<std::string> &mayLack = {}) const;

  /// Whether none of the fields would be refused.
  bool haveAll(const std::vector<std::string> &fields,
               const std::vector<std::string> &mayLack) const;

private:
  std::set<std::string, std::less<>> names;
};

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_FIELDNAMES_H
