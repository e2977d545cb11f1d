//===- Findings.h - what the checker says, as text --------------*- C++ -*-===//

#ifndef TEST_UNIT_PASSES_FINDINGS_H
#define TEST_UNIT_PASSES_FINDINGS_H

#include "passes/schedule/Checker.h"

#include <string>
#include <vector>

namespace mlir::fsdp::schedule {

/// The messages of `findings`, one a line; "" for none.
inline std::string describeAll(const std::vector<Finding> &findings) {
  std::string text;
  for (const Finding &finding : findings)
    text += finding.message + "\n";
  return text;
}

} // namespace mlir::fsdp::schedule

#endif // TEST_UNIT_PASSES_FINDINGS_H
