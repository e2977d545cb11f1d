//===- MemoryReportText.h - the report as JSON and as tables ----*- C++ -*-===//

#ifndef PASSES_PRINTING_MEMORYREPORTTEXT_H
#define PASSES_PRINTING_MEMORYREPORTTEXT_H

#include "passes/scheduled/MemoryReport.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

llvm::json::Value toJSON(const MemoryReport &report);

/// 1234567 as "1.18 MiB", with three digits.
std::string formatBytes(int64_t bytes);
/// 0.375 as "37.5 %".
std::string formatPercent(double share);

/// Text tables, at most 100 columns wide: replicated against sharded, the live buffers at the
/// peak, the collectives.
void print(const MemoryReport &report, llvm::raw_ostream &os);

/// The report of the only plan, or an object with the reports of all plans.
llvm::json::Value joinReports(std::vector<llvm::json::Value> reports);

} // namespace mlir::fsdp

#endif // PASSES_PRINTING_MEMORYREPORTTEXT_H
