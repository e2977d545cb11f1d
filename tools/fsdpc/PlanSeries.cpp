//===- PlanSeries.cpp -----------------------------------------------------===//

#include "tools/fsdpc/PlanSeries.h"
#include "passes/printing/LineChart.h"
#include "passes/printing/MemoryReportText.h"
#include "tools/fsdpc/PlanTable.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

namespace ir = mlir::fsdp;

namespace fsdpc {

/// Plans of each row that are compiled exactly, and rows of a sweep without values.
static constexpr size_t kCompiledPlans = 3, kSweptBatches = 10;

namespace {
class SeriesSearch {
public:
  SeriesSearch(const SizedModel &model, const PlanRequest &request, const Options &options,
               const std::string &command)
      : model(model), request(request), reference(request.getReferenceDevices()), options(options),
        command(command) {
    this->request.best = kCompiledPlans;
    this->request.takesEstimates = false;
  }
  PlanSeriesResult run();

private:
  const SeriesRow &findBest(int64_t devices, std::optional<int64_t> batch);
  void scale(std::optional<int64_t> batch);
  void sweep(int64_t batch);

  const SizedModel &model;
  PlanRequest request; ///< of the row that is searched
  int64_t reference;   ///< the number of devices of the given batch
  const Options &options;
  std::string command;
  std::map<std::pair<int64_t, int64_t>, SeriesRow> known;
  PlanSeriesResult result;
};
} // namespace

const SeriesRow &SeriesSearch::findBest(int64_t devices, std::optional<int64_t> batch) {
  auto [entry, isNew] = known.try_emplace({devices, batch.value_or(0)});
  SeriesRow &row = entry->second;
  if (!isNew)
    return row;
  row.devices = devices;
  row.batch = batch;
  request.devices = devices;
  auto search = [&](PlanModel &sized) {
    const PlanSearchResult found = searchPlans(sized, request, options);
    result.limit = found.limit;
    if (found.best.empty()) {
      row.reason = found.explainNone(request);
      return;
    }
    row.plan = found.best.front();
    row.efficiency = row.plan->computing / (row.plan->computing + row.plan->exposed);
    row.command = commandOf(
        row.plan->spec, command + (batch ? " --batch=" + std::to_string(*batch) : std::string()),
        options.machine);
  };
  model.with(batch ? "batch" : "", batch.value_or(0), search);
  return row;
}

/// Efficiencies against the throughput of a device of the first row that has a plan.
static void compareDevices(PlanSeries &series) {
  auto rateOf = [](const SeriesRow &row) {
    return row.plan->itemsPerSecond / static_cast<double>(row.devices);
  };
  auto first = llvm::find_if(series.rows, [](const SeriesRow &row) { return bool(row.plan); });
  for (SeriesRow &row : series.rows)
    if (row.plan)
      row.efficiency = rateOf(row) / rateOf(*first);
}

/// Adds strong scaling, and weak scaling where the model has a `batch` to vary.
void SeriesSearch::scale(std::optional<int64_t> batch) {
  PlanSeries strong{
      "strong_scaling", "strong scaling: a batch of the same size on all devices", {}};
  for (int64_t devices : request.scaling)
    strong.rows.push_back(findBest(devices, batch));
  compareDevices(strong);
  result.all.push_back(std::move(strong));
  if (!batch) {
    result.note = "weak scaling is left out: the batch of a model in a file is fixed; the program "
                  "of a model that has --batch shows it";
    return;
  }
  PlanSeries weak{"weak_scaling",
                  llvm::formatv("weak scaling: on each device the share of a batch of {0} on {1}",
                                *batch, reference)
                      .str(),
                  {}};
  for (int64_t devices : request.scaling) {
    if (*batch * devices % reference != 0)
      throw UsageError(llvm::formatv("weak scaling has no whole batch on --scaling={0}, got "
                                     "--batch={1} on {2}; give a batch that {2} divides, or name "
                                     "the devices that it is for by --devices",
                                     devices, *batch, reference));
    weak.rows.push_back(findBest(devices, *batch * devices / reference));
  }
  compareDevices(weak);
  result.all.push_back(std::move(weak));
}

/// Adds the batches of the request, or doubles `batch` until nothing fits.
void SeriesSearch::sweep(int64_t batch) {
  PlanSeries series{"batch_sweep",
                    "plans for " + std::to_string(request.devices) +
                        (request.devices == 1 ? " device" : " devices"),
                    {}};
  for (int64_t given : request.batches)
    series.rows.push_back(findBest(request.devices, given));
  while (request.batches.empty() && series.rows.size() < kSweptBatches &&
         (series.rows.empty() || series.rows.back().plan)) {
    series.rows.push_back(findBest(request.devices, batch));
    batch *= 2;
  }
  result.all.push_back(std::move(series));
}

PlanSeriesResult SeriesSearch::run() {
  const std::optional<int64_t> batch = model.find("batch");
  if (request.sweepsBatch && !batch)
    throw UsageError("--batch-sweep varies --batch, and the model has no such option; a file of a "
                     "model has one batch, the program of a model can have others");
  if (request.sweepsBatch)
    sweep(*batch);
  else
    scale(batch);
  result.machine = options.findMachine(result.all.front().rows.back().devices).name;
  auto hasPlan = [](const SeriesRow &row) { return bool(row.plan); };
  if (llvm::none_of(result.all,
                    [&](const PlanSeries &series) { return llvm::any_of(series.rows, hasPlan); }))
    throw Failure(result.all.front().rows.back().reason);
  return std::move(result);
}

PlanSeriesResult searchSeries(const SizedModel &model, const PlanRequest &request,
                              const Options &options, const std::string &command) {
  return SeriesSearch(model, request, options, command).run();
}

//===----------------------------------------------------------------------===//
// Text and data
//===----------------------------------------------------------------------===//

static bool hasTokens(const PlanSeriesResult &result) {
  for (const PlanSeries &series : result.all)
    for (const SeriesRow &row : series.rows)
      if (row.plan)
        return row.plan->itemsAreTokens;
  return false;
}

static std::string percent(double part) { return llvm::formatv("{0:f1} %", part * 100).str(); }

void print(const PlanSeriesResult &result, llvm::raw_ostream &os) {
  os << "the fastest plans on machine " << result.machine << ", each with at most "
     << ir::formatBytes(result.limit) << "; times are a model, not a measurement\n";
  static constexpr const char *columns =
      "{0,7} {1,7} {2,10} {3,12} {4,12} {5,7} {6,10} {7,10} {8,11}  {9}\n";
  const char *items = hasTokens(result) ? "tokens/s" : "samples/s";
  for (const PlanSeries &series : result.all) {
    os << series.title << "\n"
       << llvm::formatv(columns, "devices", "batch", "step", items, "of a device", "MFU", "exposed",
                        "efficiency", "arena", "plan");
    for (const SeriesRow &row : series.rows) {
      const std::string batch = row.batch ? std::to_string(*row.batch) : "";
      if (!row.plan) {
        os << llvm::formatv("{0,7} {1,7} {2}\n", row.devices, batch, row.reason);
        continue;
      }
      const RankedPlan &plan = *row.plan;
      auto rate = [&](int64_t devices) {
        return llvm::formatv("{0:f0}", plan.itemsPerSecond / static_cast<double>(devices)).str();
      };
      os << llvm::formatv(columns, row.devices, batch, milliseconds(plan.step), rate(1),
                          rate(row.devices), percent(plan.mfu), milliseconds(plan.exposed),
                          percent(row.efficiency), ir::formatBytes(plan.arena),
                          summarize(plan.spec));
    }
    os << "commands\n";
    for (const SeriesRow &row : series.rows)
      if (row.plan)
        os << llvm::formatv("{0,7} {1,7} {2}\n", row.devices,
                            row.batch ? std::to_string(*row.batch) : "", row.command);
  }
  if (!result.note.empty())
    os << result.note << "\n";
}

llvm::json::Value toJSON(const PlanSeriesResult &result) {
  llvm::json::Object fields{{"machine", result.machine}, {"memory_limit", result.limit}};
  for (const PlanSeries &series : result.all) {
    llvm::json::Array rows;
    for (const SeriesRow &row : series.rows) {
      llvm::json::Object of = row.plan ? toJSON(*row.plan) : llvm::json::Object();
      of["devices"] = row.devices;
      if (row.batch)
        of["batch"] = *row.batch;
      if (row.plan) {
        of["efficiency"] = row.efficiency;
        of["command"] = row.command;
      } else {
        of["reason"] = row.reason;
      }
      rows.push_back(std::move(of));
    }
    fields[series.key] = std::move(rows);
  }
  if (!result.note.empty())
    fields["note"] = result.note;
  return fields;
}

//===----------------------------------------------------------------------===//
// Curves
//===----------------------------------------------------------------------===//

/// A line of the rows that have a plan.
static ir::ChartLine lineOf(const PlanSeries &series, const std::string &name,
                            llvm::function_ref<double(const SeriesRow &)> y) {
  ir::ChartLine line{name, {}};
  for (const SeriesRow &row : series.rows)
    if (row.plan)
      line.points.emplace_back(
          static_cast<double>(series.key == "batch_sweep" ? *row.batch : row.devices), y(row));
  return line;
}

std::string drawSvg(const PlanSeriesResult &result) {
  const std::string items = hasTokens(result) ? "tokens" : "samples";
  const bool scales = result.all.front().key != "batch_sweep";
  const std::string x = scales ? "devices" : "batch (samples of a step on all devices)";
  std::vector<ir::LineChart> charts = {
      {"Throughput on machine " + result.machine, x, items + "/s", scales, {}},
      {scales ? "Efficiency: throughput of a device against the fewest devices"
              : "Efficiency: computation / (computation + exposed communication)",
       x,
       "%",
       false,
       {}},
      {"MFU", x, "%", false, {}},
      {"Exposed communication", x, "% of a step", false, {}},
      {"Memory of a device", x, "GiB", false, {}}};
  for (const PlanSeries &series : result.all) {
    const std::string name = scales ? series.key.substr(0, series.key.find('_')) : "fastest plan";
    static constexpr double (*values[])(const SeriesRow &) = {
        [](const SeriesRow &row) { return row.plan->itemsPerSecond; },
        [](const SeriesRow &row) { return row.efficiency * 100; },
        [](const SeriesRow &row) { return row.plan->mfu * 100; },
        [](const SeriesRow &row) { return row.plan->exposed / row.plan->step * 100; },
        [](const SeriesRow &row) { return static_cast<double>(row.plan->arena) * 0x1p-30; }};
    for (auto [chart, value] : llvm::zip_equal(charts, values))
      chart.lines.push_back(lineOf(series, name, value));
    if (scales) {
      ir::ChartLine ideal = charts[0].lines.back();
      ideal.name = name + ", ideal";
      ideal.isIdeal = true;
      for (auto &[devices, rate] : ideal.points)
        rate = ideal.points.front().second * devices / ideal.points.front().first;
      charts[0].lines.push_back(std::move(ideal));
    }
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  ir::drawSvg(charts, os);
  return text;
}

} // namespace fsdpc
