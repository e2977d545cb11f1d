#include "tools/fsdpc-log/LogTable.h"

#include "base/Error.h"
#include "base/PrintableText.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fsdpc_log {

using base::format;

namespace {

constexpr const char *kUsual[] = {"step", "loss",   "grad_norm", "lr",       "tokens_per_s",
                                  "mfu",  "tflops", "epoch",     "val_loss", "val_perplexity"};
constexpr std::size_t kMinWidth = 10;

std::size_t widthOf(const std::string &field) { return std::max(field.size(), kMinWidth); }

std::string aligned(const std::string &text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

/// The text of a field of a record, or nothing.
std::string textOf(const nlohmann::json &record, const char *name) {
  const auto found = record.find(name);
  if (found == record.end())
    return "";
  const std::string text =
      found->is_string() ? found->get<std::string>()
                         : found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return base::printableMessage(text);
}

} // namespace

std::string shownValue(const std::string &field, double value) {
  if (std::isnan(value))
    return "nan";
  const bool isCount = field == "tokens_per_s" || field == "tokens" || field == "peak_bytes" ||
                       field == "workspace" || field == "library_bytes";
  if (isCount && std::isfinite(value)) {
    static constexpr const char *units[] = {"", "k", "M", "B", "T"};
    int unit = 0;
    for (; std::abs(value) >= 999.5 && unit < 4; ++unit)
      value /= 1000;
    return format("%.3g%s", value, units[unit]);
  }
  if (field == "mfu")
    return format("%.1f%%", 100 * value);
  if (field == "seconds" && value >= 0 && value < 1e12) {
    const auto whole = static_cast<long long>(value);
    return whole >= 3600 ? format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60)
                         : format("%lld:%02lld", whole / 60, whole % 60);
  }
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return format("%.0f", value);
  return format("%.6g", value);
}

std::string describeRecord(const LogEntry &entry) {
  const nlohmann::json &record = entry.record;
  if (entry.kind == LogEntry::Restart)
    return "restart " + textOf(record, "number") + " after step " + textOf(record, "after_step") +
           ", on " + textOf(record, "mesh") + ": " + textOf(record, "cause");
  if (entry.kind == LogEntry::Rollback)
    return "rollback " + textOf(record, "number") + " from step " + textOf(record, "from_step") +
           " to step " + textOf(record, "to_step") + ": " + textOf(record, "cause");
  std::string text = "run: " + textOf(record, "model") + ", mesh " + textOf(record, "mesh") + ", " +
                     textOf(record, "steps") + " steps of " + textOf(record, "batch") +
                     " samples, fsdpc " + textOf(record, "version");
  if (const auto resumed = record.find("resumed"); resumed != record.end())
    text += ", resumed from step " + textOf(*resumed, "step");
  return text;
}

LogTable::LogTable(std::vector<std::string> fields, std::int64_t every)
    : given(std::move(fields)), every(every) {
  if (!given.empty() && std::find(given.begin(), given.end(), "step") == given.end())
    given.insert(given.begin(), "step");
}

bool LogTable::updateColumns(const LogEntry &entry) {
  if (!given.empty()) {
    seen.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i)
      seen[i] = seen[i] || entry.find(given[i]);
    return std::exchange(columns, given) != given;
  }
  std::vector<std::string> next;
  for (const char *name : kUsual)
    if (std::find(columns.begin(), columns.end(), name) != columns.end() || entry.find(name))
      next.push_back(name);
  const bool changed = next != columns;
  columns = std::move(next);
  return changed;
}

std::string LogTable::row(const LogEntry &entry) {
  const auto line = [&](const auto &textOf) {
    std::string text;
    for (const std::string &name : columns)
      text += aligned(textOf(name), widthOf(name)) + "  ";
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text;
  if (updateColumns(entry) || !hasHead)
    text = line([](const std::string &name) { return base::printable(name); });
  hasRow = hasHead = true;
  return text + line([&](const std::string &name) {
           const double *value = entry.find(name);
           return value ? shownValue(name, *value) : std::string();
         });
}

bool LogTable::showsEvaluation(const LogEntry &entry) const {
  return std::any_of(entry.values.begin(), entry.values.end(), [&](const auto &value) {
    return value.first.rfind("val_", 0) == 0 &&
           (given.empty() || std::find(given.begin(), given.end(), value.first) != given.end());
  });
}

std::string LogTable::add(const LogEntry &entry) {
  if (entry.kind != LogEntry::Step)
    return finish() + "-- " + describeRecord(entry) + "\n";
  if (!hasRow || entry.step % every == 0 || (every > 1 && showsEvaluation(entry))) {
    waiting.reset();
    return row(entry);
  }
  waiting = entry;
  return "";
}

std::string LogTable::finish() {
  const std::string text = waiting ? row(*waiting) : "";
  waiting.reset();
  return text;
}

std::vector<std::string> LogTable::missing() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!seen[i])
      names.push_back(given[i]);
  return names;
}

} // namespace fsdpc_log
