//===- LogReaders.cpp - the reader of logs --------------------------------===//

#include "base/Error.h"
#include "test/fuzz/Readers.h"
#include "tools/fsdpc-log/Chart.h"
#include "tools/fsdpc-log/ChartPage.h"
#include "tools/fsdpc-log/LogReader.h"
#include "tools/fsdpc-log/LogTable.h"
#include "tools/fsdpc-log/RunCommand.h"
#include "tools/fsdpc-log/TensorBoard.h"

#include <limits>

using namespace fsdpc_log;

namespace fsdp::fuzz {

namespace {

/// What fsdpc-log makes of a log, but for files: a complaint, or nothing.
class LogOutputs {
public:
  void add(const LogEntry &entry) {
    text += table.add(entry);
    if (entry.kind == LogEntry::Run)
      records.push_back(entry.record);
    if (entry.kind != LogEntry::Step) {
      run.marks.push_back({last, describeRecord(entry)});
      return;
    }
    scalarEvent(1, entry.step, entry.values);
    const double *loss = entry.find("loss");
    if (isDrawable(static_cast<double>(entry.step), isLog) && loss) {
      last = static_cast<double>(entry.step);
      const bool isShown = isDrawable(*loss, isLog);
      hasPoint = hasPoint || isShown;
      run.ofField[0].push_back({last, isShown ? *loss : std::numeric_limits<double>::quiet_NaN()});
    }
  }

  std::string finish() {
    text += table.finish();
    for (std::size_t number = 1; number <= records.size(); ++number)
      try {
        const std::string command = runCommand(records, number, "log");
        // Everything but the last line is a comment, whatever a record says.
        for (std::size_t at = 0; at != command.size(); at = command.find('\n', at) + 1)
          if (command[at] != '#' && command.find('\n', at) + 1 != command.size())
            return "a command of two lines";
      } catch (const base::Error &) { // a record that lacks something
      }
    if (!hasPoint)
      return "";
    Axis x;
    x.field = "step";
    x.isLog = isLog;
    run.name = "log";
    for (Mark &mark : run.marks) // which may say so
      mark.text = "mark";
    const std::string page = chartPage(Chart({run}, {"loss"}, x, isLog));
    const std::string picture = page.substr(0, page.find("<script"));
    for (const char *wrong : {"nan", "inf"})
      if (picture.find(wrong) != picture.npos)
        return std::string("a chart with '") + wrong + "'";
    return "";
  }

  bool isLog = false;

private:
  LogTable table{{}, 3};
  std::string text;
  std::vector<nlohmann::json> records;
  RunCurves run{"", {{}}, {}};
  double last = 1;
  bool hasPoint = false;
};

std::string rightLog(std::mt19937 &random) {
  std::string text;
  for (int step = 1; step < 8; ++step) {
    if (random() % 6 == 0)
      text += R"({"run": {"model": "m", "mesh": "fsdp=2", "steps": 9, "batch": 2, "version": "1",
 "program": "./t", "arguments": "--data 'a b'", "ranks": 2, "files": {"data": {"path": "d"}}}})"
              "\n";
    text += "{\"step\": " + std::to_string(step) + ", \"loss\": " + std::to_string(random() / 1e9) +
            ", \"seconds\": 1e" + std::to_string(random() % 9) + "}\n";
    if (random() % 6 == 0)
      text += "{\"restart\": {\"number\": 1, \"after_step\": 2, \"cause\": \"c\"}}\n";
  }
  return text;
}

} // namespace

Outcome readLog(const std::string &bytes) {
  for (const bool isLog : {false, true}) {
    LogOutputs outputs;
    outputs.isLog = isLog;
    EntryStream stream([&](const LogEntry &entry) { outputs.add(entry); });
    stream.add(bytes);
    stream.end();
    if (const std::string complaint = outputs.finish(); !complaint.empty())
      return {true, complaint};
    if (stream.taken == 0)
      return {false, stream.skipped.empty() && bytes.find_first_not_of("\r\n") != bytes.npos
                         ? "skipped without a message"
                         : ""};
  }
  return {true, ""};
}

const std::vector<Reader> logReaders = {{"log", readLog, rightLog, true}};

} // namespace fsdp::fuzz
