//===- DiagnosticText.h - text of findings -----------------------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_DIAGNOSTICTEXT_H
#define PASSES_SCHEDULE_DIAGNOSTICTEXT_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

inline std::string quote(const std::string &name) { return "'" + name + "'"; }

/// "'a', 'b'".
inline std::string quoteAll(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + quote(name);
  return text;
}

inline std::string describeBytes(int64_t begin, int64_t end) {
  return "bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

/// "all_reduce sum of 4 f32, 16 bytes".
std::string describe(const Collective &collective);

/// "'a' waits for 'b', which waits for 'a': none of them ever starts", for the names in a cycle.
std::string describeCircle(const std::vector<std::string> &names);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_DIAGNOSTICTEXT_H
