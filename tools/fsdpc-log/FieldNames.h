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
  /// Error: no step has a field of `fields`, which `option` names; it lists those that there are.
  /// `mayLack`: fields that it may name none the less. Steps of no log refuse nothing.
  void require(const std::vector<std::string> &fields, const char *option,
               const std::vector<std::string> &files,
               const std::vector<std::string> &mayLack = {}) const;

  /// Whether it would refuse none of them.
  bool haveAll(const std::vector<std::string> &fields,
               const std::vector<std::string> &mayLack) const;

private:
  std::set<std::string, std::less<>> names;
};

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_FIELDNAMES_H
