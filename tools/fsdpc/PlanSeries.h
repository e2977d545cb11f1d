//===- PlanSeries.h - the best plans as devices or batch grow ---*- C++ -*-===//
// `plan --scaling=1,8,64` and `plan --batch-sweep=8,16,32`: one search for each number.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PLANSERIES_H
#define TOOLS_FSDPC_PLANSERIES_H

#include "tools/fsdpc/PlanSearch.h"
#include "llvm/Support/JSON.h"

namespace fsdpc {

/// The best plan on a number of devices with a batch.
struct SeriesRow {
  int64_t devices = 0;
  std::optional<int64_t> batch; ///< nothing if the model has no option for it
  std::optional<RankedPlan> plan;
  std::string reason; ///< why there is no plan
  std::string command;
  /// For scaling: throughput of a device, relative to the first row that has a plan. Otherwise
  /// computation / (computation + exposed communication).
  double efficiency = 0;
};

struct PlanSeries {
  std::string key;   ///< in JSON: "strong_scaling", "weak_scaling", "batch_sweep"
  std::string title; ///< "strong scaling: a batch of 512"
  std::vector<SeriesRow> rows;
};

struct PlanSeriesResult {
  std::vector<PlanSeries> all;
  std::string note; ///< the omitted series, and the reason; or empty
  std::string machine;
  int64_t limit = 0;
};

/// The series of `request`. `command` as in PlanTable.h, without --batch if the model has it.
/// Throws UsageError if the model has no --batch to vary, Failure if no row has a plan.
PlanSeriesResult searchSeries(const SizedModel &model, const PlanRequest &request,
                              const Options &options, const std::string &command);

/// The series as tables, data, and curves.
void print(const PlanSeriesResult &result, llvm::raw_ostream &os);
llvm::json::Value toJSON(const PlanSeriesResult &result);
std::string drawSvg(const PlanSeriesResult &result);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANSERIES_H
