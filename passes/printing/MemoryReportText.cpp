//===- MemoryReportText.cpp - the report as JSON and as tables ------------===//

#include "passes/printing/MemoryReportText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Columns of a terminal.
static constexpr size_t kWidth = 100;
/// Rows of the list of buffers.
static constexpr size_t kMaxRows = 12;

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static llvm::json::Array toJSON(const std::vector<CollectiveCount> &counts) {
  llvm::json::Array array;
  for (const CollectiveCount &call : counts)
    array.push_back(llvm::json::Object{{"kind", call.kind},
                                       {"axes", llvm::json::Array(call.axes)},
                                       {"bytes", call.bytes},
                                       {"received", call.received},
                                       {"count", call.count}});
  return array;
}

static llvm::json::Array toJSON(const std::vector<WorkCount> &work) {
  llvm::json::Array array;
  for (const WorkCount &launches : work)
    array.push_back(llvm::json::Object{{"kind", launches.kind},
                                       {"direction", launches.direction},
                                       {"count", launches.count},
                                       {"flops", launches.cost.flops},
                                       {"bytes_read", launches.cost.bytesRead},
                                       {"bytes_written", launches.cost.bytesWritten}});
  return array;
}

static llvm::json::Array toJSON(const std::vector<TiedGradient> &tied) {
  llvm::json::Array array;
  for (const TiedGradient &gradient : tied)
    array.push_back(llvm::json::Object{{"unit", gradient.unit},
                                       {"reductions", gradient.reductions},
                                       {"doubled_bytes", gradient.doubled},
                                       {"once_memory", gradient.memory}});
  return array;
}

static llvm::json::Object toJSON(const MemoryPeak &peak) {
  llvm::json::Array buffers;
  for (const LiveBuffer &buffer : peak.buffers)
    buffers.push_back(llvm::json::Object{{"name", buffer.name},
                                         {"unit", buffer.unit},
                                         {"kind", stringifyBufferKind(buffer.kind)},
                                         {"bytes", buffer.bytes}});
  return llvm::json::Object{
      {"bytes", peak.bytes},          {"segment", peak.segment}, {"launch", peak.launch},
      {"stream", peak.stream},        {"unit", peak.unit},       {"direction", peak.direction},
      {"buffers", std::move(buffers)}};
}

/// Adds the numbers that differ by role; none where there is one role.
static void addRoles(const MemoryReport &report, llvm::json::Object &object) {
  if (report.roles.empty())
    return;
  const bool isPipeline = !report.pipelineAxis.empty();
  llvm::json::Array roles, copies;
  for (const RoleMemory &role : report.roles) {
    llvm::json::Object fields{
        {"role", role.name},           {"parameters", role.parameters},
        {"gradients", role.gradients}, {"optimizer", role.optimizer},
        {"gathered", role.gathered},   {"activations", role.activations},
        {"messages", role.messages},   {"arena", role.arena},
        {"flops", role.flops},         {"collectives", ::toJSON(role.collectives)}};
    if (isPipeline) {
      fields["units"] = llvm::json::Array(role.stage.units);
      fields["alive_microbatches"] = role.stage.alive;
      if (role.stage.idle >= 0)
        fields["idle"] = role.stage.idle;
    }
    roles.push_back(std::move(fields));
  }
  for (const TiedCopies &tied : report.tiedCopies)
    copies.push_back(llvm::json::Object{{"unit", tied.unit},
                                        {"names", llvm::json::Array(tied.names)},
                                        {"roles", llvm::json::Array(tied.roles)},
                                        {"parameters", tied.parameters},
                                        {"optimizer", tied.optimizer},
                                        {"used", tied.isUsed}});
  object["roles"] = std::move(roles);
  object["tied_copies"] = std::move(copies);
  object["work_role"] = report.workRole;
  if (isPipeline) {
    object["pipeline_axis"] = report.pipelineAxis;
    object["microbatches"] = report.microbatches;
    if (const double idle = report.getPipelineIdle(); idle >= 0)
      object["pipeline_idle"] = idle;
  }
}

llvm::json::Value mlir::fsdp::toJSON(const MemoryReport &report) {
  llvm::json::Object object{
      {"mesh", report.mesh},
      {"ranks", report.ranks},
      {"parameters", report.parameters},
      {"gradients", report.gradients},
      {"optimizer", report.optimizer},
      {"gathered", report.gathered},
      {"messages", report.messages},
      {"activations", report.activations},
      {"persistent", report.persistent},
      {"transient", report.transient},
      {"arena", report.arena},
      {"lower_bound", report.lowerBound},
      {"replicated_parameters", report.replicatedParameters},
      {"replicated_gradients", report.replicatedGradients},
      {"replicated_optimizer", report.replicatedOptimizer},
      {"peak", ::toJSON(report.peak)},
      {"collectives", ::toJSON(report.collectives)},
      {"evaluate_collectives", ::toJSON(report.evaluateCollectives)},
      {"tied_gradients", ::toJSON(report.tiedGradients)},
      {"work", ::toJSON(report.work)},
  };
  for (int kind = 0; kind < kBufferKinds; ++kind)
    object[("peak_" + stringifyBufferKind(static_cast<BufferKind>(kind))).str()] =
        report.peak.kinds[kind];
  addRoles(report, object);
  if (!report.contextAttention.empty())
    object["context_attention"] = report.contextAttention;
  if (!report.contextOrder.empty())
    object["context_order"] = report.contextOrder;
  object["peak_alignment"] = report.peak.alignment;
  return object;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string mlir::fsdp::formatBytes(int64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto size = static_cast<double>(bytes);
  int unit = 0;
  for (; size >= 1024 && unit < 5; ++unit)
    size /= 1024;
  const int digits = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*f %s", digits, size, units[unit]);
  return text;
}

std::string mlir::fsdp::formatPercent(double share) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.1f %%", 100 * share);
  return text;
}

/// 1234567 as "1,234,567".
static std::string group(int64_t number) {
  std::string digits = std::to_string(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

/// The beginning of `text`, whole characters of UTF-8 in at most `width` bytes.
static std::string fit(StringRef text, size_t width) {
  if (text.size() <= width)
    return text.str();
  size_t end = std::max<size_t>(width, 3) - 3;
  while (end > 0 && (text[end] & 0xc0) == 0x80)
    --end;
  return (text.take_front(end) + "...").str();
}

/// An explanation of the bytes of a kind if its name is not sufficient.
static StringRef noteOn(BufferKind kind) {
  switch (kind) {
  case BufferKind::accumulators:
    return "gradients over microbatches";
  case BufferKind::gathered:
    return "unsharded parameters";
  case BufferKind::gradients:
    return "whole, then reduced to shards";
  case BufferKind::logits:
    return "and their cotangent";
  case BufferKind::recomputed:
    return "activations computed again";
  case BufferKind::saved:
    return "activations kept for backward";
  case BufferKind::messages:
    return "to and from other stages";
  default:
    return "";
  }
}

static std::string nameFor(BufferKind kind) {
  std::string name = stringifyBufferKind(kind).str();
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

namespace {
/// Equal buffers of several units, as one row.
struct BufferRow {
  size_t number;
  const LiveBuffer *first, *last;
  int64_t count = 0, bytes = 0;
  std::string name; ///< without the unit
};
} // namespace

/// The name of `buffer` within its unit; the whole name if it does not begin with the unit's.
static StringRef nameInUnit(const LiveBuffer &buffer) {
  StringRef name = buffer.name;
  if (!buffer.unit.empty() && name.consume_front(buffer.unit) && name.consume_front("."))
    return name;
  return buffer.name;
}

/// "h.0..11" for buffers of the units h.0 to h.11.
static std::string unitsOf(const BufferRow &row) {
  StringRef first = row.first->unit, last = row.last->unit;
  if (first == last)
    return first.str();
  if (std::make_pair(last.size(), last) <
      std::make_pair(first.size(), first)) // gathers of backward
    std::swap(first, last);
  auto [prefix, number] = last.rsplit('.');
  bool isNumbered = first.rsplit('.').first == prefix && prefix != last;
  return (first + ".." + (isNumbered ? number : last)).str();
}

static void printBuffers(const MemoryPeak &peak, llvm::raw_ostream &os) {
  std::vector<BufferRow> rows;
  llvm::StringMap<size_t> known;
  for (const LiveBuffer &buffer : peak.buffers) {
    std::string alike = llvm::formatv("{0}\n{1}\n{2}", nameInUnit(buffer),
                                      stringifyBufferKind(buffer.kind), buffer.bytes);
    auto [at, isNew] = known.try_emplace(alike, rows.size());
    if (isNew)
      rows.push_back({rows.size(), &buffer, &buffer, 0, 0, nameInUnit(buffer).str()});
    BufferRow &row = rows[at->second];
    ++row.count;
    row.last = &buffer;
    row.bytes += buffer.bytes;
  }
  llvm::sort(rows, [](const BufferRow &a, const BufferRow &b) {
    return std::make_pair(-a.bytes, a.number) < std::make_pair(-b.bytes, b.number);
  });
  os << "  largest of " << peak.buffers.size() << " buffers (the JSON report has all of them)\n";
  auto rest = static_cast<int64_t>(peak.buffers.size());
  int64_t restBytes = 0;
  for (auto [i, row] : llvm::enumerate(rows)) {
    if (i >= kMaxRows) {
      restBytes += row.bytes;
      continue;
    }
    rest -= row.count;
    const bool several = row.count > 1;
    std::string name = several ? std::to_string(row.count) + " x *." + row.name : row.first->name;
    std::string line =
        llvm::formatv("  {0,16} {1,10}  {2,-13}{3,-15} ", group(row.bytes), formatBytes(row.bytes),
                      nameFor(row.first->kind), fit(unitsOf(row), 15));
    os << line << fit(name, kWidth - line.size()) << "\n";
  }
  if (rest > 0)
    os << llvm::formatv("  {0,16} {1,10}  in {2} others\n", group(restBytes),
                        formatBytes(restBytes), rest);
}

static void printPeak(const MemoryPeak &peak, int64_t arena, llvm::raw_ostream &os) {
  if (peak.launch.empty())
    return;
  std::string title = "alive at the peak of " + fit(peak.segment, 24) + ": at the start of '";
  os << title << fit(peak.launch, kWidth - title.size() - 1) << "'\n";
  std::string of = peak.unit.empty() ? "" : ", unit " + fit(peak.unit, 16);
  std::string where = "stream " + fit(peak.stream, 12) + of + ", " + peak.direction;
  os << llvm::formatv("  {0,-57}{1,8}\n", where, "of arena");
  auto row = [&](StringRef what, int64_t bytes, StringRef note) {
    if (bytes == 0)
      return;
    double share = 100.0 * static_cast<double>(bytes) / static_cast<double>(arena);
    std::string percent;
    llvm::raw_string_ostream(percent) << llvm::format("%.1f%%", share);
    os << llvm::formatv("  {0,-14} {1,31} {2,10} {3,7}", what, group(bytes), formatBytes(bytes),
                        percent);
    if (!note.empty())
      os << "  " << note;
    os << "\n";
  };
  for (int i = 0; i < kBufferKinds; ++i) {
    auto kind = static_cast<BufferKind>(i);
    row(nameFor(kind), peak.kinds[i], noteOn(kind));
  }
  row("alignment", peak.alignment, "");
  row("gaps", arena - peak.bytes, "in the plan of this arena");
  printBuffers(peak, os);
}

/// The bytes that a rank receives in all calls of `counts`, by their axes.
static std::vector<std::pair<std::string, int64_t>>
sumReceived(const std::vector<CollectiveCount> &counts) {
  std::vector<std::pair<std::string, int64_t>> sums;
  for (const CollectiveCount &call : counts) {
    const std::string axes = llvm::join(call.axes, ", ");
    auto sum = llvm::find_if(sums, [&](auto &known) { return known.first == axes; });
    if (sum == sums.end())
      sum = sums.insert(sums.end(), {axes, 0});
    sum->second += call.count * call.received;
  }
  return sums;
}

/// Of several roles, the sums of the one that receives most over these axes.
static void printReceived(const MemoryReport &report,
                          std::vector<CollectiveCount> MemoryReport::*counts,
                          std::vector<CollectiveCount> RoleMemory::*ofRole, llvm::raw_ostream &os) {
  for (auto &[axes, bytes] : sumReceived(report.*counts)) {
    int64_t most = report.roles.empty() ? bytes : 0;
    for (const RoleMemory &role : report.roles)
      for (auto &[other, ofThem] : sumReceived(role.*ofRole))
        if (other == axes)
          most = std::max(most, ofThem);
    os << llvm::formatv("  {0,16} {1,10}  received over {2}{3}\n", group(most), formatBytes(most),
                        axes, report.roles.empty() ? "" : ", by the role that receives most");
  }
}

/// `words` in lines of the terminal's width, behind `begin` and below one another.
static void printWrapped(const std::string &begin, ArrayRef<std::string> words,
                         llvm::raw_ostream &os) {
  std::string line = begin;
  for (auto [i, word] : llvm::enumerate(words)) {
    const std::string next =
        fit(word, kWidth - begin.size() - 2) + (i + 1 < words.size() ? "," : "");
    if (line.size() + 1 + next.size() > kWidth && line.size() > begin.size()) {
      os << line << "\n";
      line = std::string(begin.size(), ' ');
    }
    line += " " + next;
  }
  os << line << "\n";
}

/// "h.0..11" for consecutive units of a stage that are numbered.
static std::vector<std::string> joinUnits(ArrayRef<std::string> units) {
  std::vector<std::string> joined;
  auto split = [](StringRef unit) -> std::pair<StringRef, int64_t> {
    auto [prefix, word] = unit.rsplit('.');
    int64_t number = -1;
    return {prefix, word.getAsInteger(10, number) ? -1 : number};
  };
  for (size_t first = 0, end = 0; first < units.size(); first = end) {
    const auto [prefix, number] = split(units[first]);
    for (end = first + 1; end < units.size() && number >= 0; ++end) {
      const auto [other, next] = split(units[end]);
      if (other != prefix || next != number + static_cast<int64_t>(end - first))
        break;
    }
    joined.push_back(end - first > 1
                         ? units[first] + ".." + std::to_string(split(units[end - 1]).second)
                         : units[first]);
  }
  return joined;
}

/// Prints each role. The numbers that are printed of all ranks are the largest of any role.
static void printRoles(const MemoryReport &report, llvm::raw_ostream &os) {
  if (report.roles.empty())
    return;
  static constexpr size_t kNameWidth = 11;
  const bool isPipeline = !report.pipelineAxis.empty();
  os << "memory of each role";
  if (isPipeline)
    os << ": " << report.roles.size() << " ranks along " << report.pipelineAxis << ", "
       << report.microbatches << (report.microbatches == 1 ? " microbatch" : " microbatches");
  os << "\n"
     << llvm::formatv("  {0,-11}{1,9}{2,11}{3,10}{4,10}{5,9}{6,12}{7,9}", "", "arena", "parameters",
                      "gradients", "optimizer", "gathered", "activations", "messages");
  os << (isPipeline ? " alive    idle\n" : "\n");
  for (const RoleMemory &role : report.roles) {
    os << llvm::formatv("  {0,-11}{1,9}{2,11}{3,10}{4,10}{5,9}{6,12}{7,9}",
                        fit(role.name, kNameWidth), formatBytes(role.arena),
                        formatBytes(role.parameters), formatBytes(role.gradients),
                        formatBytes(role.optimizer), formatBytes(role.gathered),
                        formatBytes(role.activations), formatBytes(role.messages));
    if (isPipeline)
      os << llvm::formatv("{0,6}{1,8}", role.stage.alive,
                          role.stage.idle < 0 ? "?" : formatPercent(role.stage.idle));
    os << "\n";
  }
  if (isPipeline) {
    os << "  alive: the most microbatches whose activations a rank keeps for backward, once for "
          "each "
          "stage\n  idle: of the time from the first forward to the last backward of all ranks, "
          "with transfers free\n        and forward, cotangents and weight gradients of a "
          "microbatch "
          "equally long\n";
    if (llvm::any_of(report.roles, [](const RoleMemory &role) { return role.stage.idle < 0; }))
      os << "  ?: not known, as a rank returns to the forward or the backward of a microbatch more "
            "than once\n";
    for (const RoleMemory &role : report.roles)
      printWrapped("  units of " + fit(role.name, kNameWidth) + ":", joinUnits(role.stage.units),
                   os);
  }
  for (const TiedCopies &tied : report.tiedCopies)
    printWrapped(tied.isUsed ? "  tied:" : "  unused:",
                 {(tied.isUsed ? tied.unit : llvm::join(tied.names, ", ")) +
                      (tied.isUsed || tied.names.size() == 1 ? " has" : " have") +
                      " a copy on each of " + llvm::join(tied.roles, ", "),
                  group(tied.parameters) + " bytes of parameters each",
                  group(tied.optimizer) + " of the optimizer each"},
                 os);
}

void mlir::fsdp::print(const MemoryReport &report, llvm::raw_ostream &os) {
  auto row = [&](StringRef what, const std::string &left, int64_t right, StringRef note = "") {
    os << llvm::formatv("  {0,-14} {1,15} {2,15} {3,10}", what, left, group(right),
                        formatBytes(right));
    if (!note.empty())
      os << "  " << note;
    os << "\n";
  };
  os << "memory of each of " << report.ranks << (report.ranks == 1 ? " rank" : " ranks") << " ("
     << report.mesh << (report.contextAttention.empty() ? "" : "; attention over context: ")
     << report.contextAttention << (report.contextOrder == "zigzag" ? ", in zigzag order" : "")
     << "), in bytes" << (report.roles.empty() ? "\n" : ", each row the most of any role\n");
  os << llvm::formatv("  {0,-14} {1,15} {2,15}\n", "", "replicated", "sharded");
  row("parameters", group(report.replicatedParameters), report.parameters);
  row("gradients", group(report.replicatedGradients), report.gradients);
  row("optimizer", group(report.replicatedOptimizer), report.optimizer);
  row("total",
      group(report.replicatedParameters + report.replicatedGradients + report.replicatedOptimizer),
      report.parameters + report.gradients + report.optimizer);
  row("gathered", "", report.gathered, "peak unsharded parameters");
  if (report.messages > 0)
    row("messages", "", report.messages, "peak of transfers between stages");
  row("activations", "", report.activations, "peak of all other transient buffers");
  row("arena", "", report.arena,
      formatBytes(report.persistent) + " persistent, " + formatBytes(report.transient) +
          " transient");
  row("lower bound", "", report.lowerBound, "of the arena, for this schedule");
  printRoles(report, os);
  printPeak(report.peak, report.arena, os);
  size_t kindWidth = 15;
  for (const auto *counts : {&report.collectives, &report.evaluateCollectives})
    for (const CollectiveCount &call : *counts)
      kindWidth = std::max(kindWidth, call.kind.size() + 1);
  for (auto [title, counts] :
       {std::make_pair("collectives of a training step", &report.collectives),
        std::make_pair("collectives of an evaluation step", &report.evaluateCollectives)}) {
    if (counts->empty())
      continue;
    os << title << (report.roles.empty() ? "\n" : ", each as often as in the role that has most\n");
    for (const CollectiveCount &call : *counts)
      os << llvm::formatv("  {0,4} x {1}over {2}, {3} bytes per call, {4} received\n", call.count,
                          call.kind + std::string(kindWidth - call.kind.size(), ' '),
                          llvm::join(call.axes, ", "), group(call.bytes), group(call.received));
    if (counts == &report.collectives)
      printReceived(report, &MemoryReport::collectives, &RoleMemory::collectives, os);
    else
      printReceived(report, &MemoryReport::evaluateCollectives, &RoleMemory::evaluateCollectives,
                    os);
    if (counts != &report.collectives)
      continue;
    for (const TiedGradient &tied : report.tiedGradients)
      os << llvm::formatv(
          "  {0,16} {1,10}  of these because unit {2} is reduced {3} times\n"
          "  {4,16} {5,10}  of gradients, whole in backward, with --tied-gradients=once\n",
          group(tied.doubled), formatBytes(tied.doubled), tied.unit, tied.reductions,
          group(tied.memory), formatBytes(tied.memory));
  }
}

llvm::json::Value mlir::fsdp::joinReports(std::vector<llvm::json::Value> reports) {
  if (reports.size() == 1)
    return std::move(reports.front());
  llvm::json::Array plans;
  for (llvm::json::Value &report : reports)
    plans.push_back(std::move(report));
  return llvm::json::Object{{"plans", std::move(plans)}};
}
