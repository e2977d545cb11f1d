//===- fsdpc-log.cpp - reads, draws and repeats training logs -------------===//

#include "base/AtomicFile.h"
#include "base/Error.h"
#include "base/Options.h"
#include "base/PrintableText.h"
#include "base/Sequences.h"
#include "base/StandardOutput.h"
#include "tools/fsdpc-log/Chart.h"
#include "tools/fsdpc-log/ChartPage.h"
#include "tools/fsdpc-log/Curves.h"
#include "tools/fsdpc-log/Follow.h"
#include "tools/fsdpc-log/LogReader.h"
#include "tools/fsdpc-log/LogTable.h"
#include "tools/fsdpc-log/RunCommand.h"
#include "tools/fsdpc-log/TensorBoard.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdpc_log;
using base::Error;

namespace {

/// An invalid command line.
struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::vector<std::string> files, fields;
  std::int64_t every = 1, run = 0;
  bool watches = false, printsCommand = false;
  std::string plot, tensorboard, x = "step", scale = "linear", xScale = "linear";
};

/// "a,b" into its parts.
std::string splitFields(const std::string &text, std::vector<std::string> &fields) {
  const std::vector<std::string> names = base::listElements(text);
  if (std::count(names.begin(), names.end(), "") > 0)
    return base::mismatch(text, "names of fields with ',' between them");
  fields.insert(fields.end(), names.begin(), names.end());
  return "";
}

void declare(CLI::App &app, Options &options) {
  app.set_help_flag("-h,--help", "print this help and exit");
  app.set_version_flag("--version", std::string("fsdpc-log (fsdpc ") + FSDP_VERSION + ")",
                       "print the version of fsdpc and exit")
      ->disable_flag_override();
  app.add_option(
         "FILE", options.files,
         "logs that programs have written with --log; with --command also a checkpoint, the "
         "folder of a step or one of several (its latest)")
      ->type_name("");
  base::addInteger(app, "--every", "N", options.every,
                   "rows of the table: steps that are a multiple of N, the first, the last, and "
                   "those with an evaluation",
                   base::IntegerRange<std::int64_t>{1, INT64_MAX});
  base::addOption(app, "--fields", "A,B",
                  "columns of the table, beside that of the step, or panels of the chart",
                  [&](const std::string &text) {
                    options.fields.clear();
                    return splitFields(text, options.fields);
                  });
  base::addFlag(app, "--watch", options.watches,
                "print rows as they are added, also after a restart or in a new log of that name");
  base::addText(app, "--plot", "FILE.svg|FILE.html", options.plot,
                "draw the logs into one chart; the page shows values under the pointer");
  base::addText(app, "--x", "FIELD", options.x, "of the chart: step, tokens, seconds, epoch, …");
  base::addChoice(app, "--scale", options.scale, "of the fields in the chart", {"linear", "log"});
  base::addChoice(app, "--x-scale", options.xScale, "of the chart's x", {"linear", "log"});
  base::addText(app, "--tensorboard", "DIR", options.tensorboard,
                "write the logs as event files of TensorBoard, each into a folder of DIR");
  base::addFlag(app, "--command", options.printsCommand,
                "print the command that repeats the run of a log with a header (--log-header), or "
                "of a checkpoint");
  base::addInteger(app, "--run", "N", options.run,
                   "with --command: the run, of several that continued one another (the last)",
                   base::IntegerRange<std::int64_t>{1, INT64_MAX});
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void check(const CLI::App &app, const Options &options) {
  if (options.files.empty())
    throw Misuse("FILE is missing: name the log of a run");
  std::string mode;
  for (const char *name : {"--watch", "--plot", "--tensorboard", "--command"}) {
    if (app.count(name) == 0)
      continue;
    if (!mode.empty())
      throw Misuse("got both " + mode + " and " + name + ", expected one of them");
    mode = name;
  }
  const auto needs = [&](const char *option, bool fits, const std::string &what) {
    if (app.count(option) > 0 && !fits)
      throw Misuse(std::string("got ") + option + ", which applies to " + what);
  };
  const bool isTable = mode.empty() || options.watches;
  needs("--every", isTable, "the table");
  needs("--x", !options.plot.empty(), "--plot");
  needs("--scale", !options.plot.empty(), "--plot");
  needs("--x-scale", !options.plot.empty(), "--plot");
  needs("--run", options.printsCommand, "--command");
  needs("--fields", !options.printsCommand, "the table, --plot and --tensorboard");
  if ((options.watches || options.printsCommand) && options.files.size() > 1)
    throw Misuse("got " + std::to_string(options.files.size()) + " files with " + mode +
                 ", expected one");
  if (!options.plot.empty() && !endsWith(options.plot, ".svg") && !endsWith(options.plot, ".html"))
    throw Misuse("--plot: " + base::mismatch(options.plot, "a name that ends in .svg or .html"));
}

/// Whether a file contains `text`. False for a file that can be read only once.
bool hasText(const std::string &file, const std::string &text) {
  struct stat status;
  if (stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  bool found = false;
  std::string window;
  readBytes(file, [&](std::string_view bytes) {
    window.erase(0, window.size() - std::min(window.size(), text.size()));
    window += bytes;
    found = found || window.find(text) != window.npos;
  });
  return found;
}

/// Whether all files can be read again.
bool areRegular(const std::vector<std::string> &files) {
  return std::all_of(files.begin(), files.end(), [](const std::string &file) {
    struct stat status;
    return stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  });
}

void printTables(const Options &options) {
  // A field that no step of all logs has is refused before anything is printed, except of logs that
  // a program is writing into a pipe.
  const std::vector<std::string> late = LogTable::lateColumns();
  FieldNames names;
  bool keeps = !options.fields.empty() && areRegular(options.files);
  const std::size_t atOnce = isatty(STDOUT_FILENO) ? 1 : std::size_t(1) << 16; // bytes
  std::string kept;
  const auto put = [&](const std::string &text) {
    kept += text;
    if (keeps || kept.size() < atOnce)
      return;
    base::printResult(kept);
    kept.clear();
  };
  std::vector<std::string> notes;
  for (const std::string &file : options.files) {
    if (options.files.size() > 1)
      put((&file == &options.files.front() ? "" : "\n") + base::printable(file) + ":\n");
    LogTable table(options.fields, options.every);
    if (options.fields.empty())
      for (const std::string &name : late)
        if (hasText(file, "\"" + name + "\""))
          table.expect(name);
    readLog(file, [&](const LogEntry &entry) {
      if (keeps) {
        names.add(entry);
        keeps = !names.haveAll(options.fields, late);
      }
      put(table.add(entry));
    });
    put(table.finish());
    for (const std::string &name : table.missing())
      notes.push_back("no step of " + base::inQuotes(file) + " has " + base::inQuotes(name));
  }
  if (keeps)
    names.require(options.fields, "--fields", options.files, late);
  for (const std::string &text : notes)
    note(text);
  base::printResult(kept);
}

void plot(const Options &options) {
  const base::OutputPath output(options.plot);
  std::vector<base::NamedFile> named = {base::NamedFile::output("--plot", output)};
  for (const std::string &file : options.files)
    named.push_back(base::NamedFile::input("FILE", file));
  base::requireDistinct(named);
  const std::vector<std::string> fields =
      options.fields.empty() ? std::vector<std::string>{"loss"} : options.fields;
  Axis x;
  x.field = options.x;
  x.isLog = options.xScale == "log";
  const bool isLog = options.scale == "log";
  const Chart chart(readCurves(options.files, fields, x, isLog), fields, x, isLog);
  const std::string text =
      endsWith(options.plot, ".html") ? chartPage(chart) : chart.svg(/*isFile=*/true);
  base::AtomicFile file(output);
  file.write(text.data(), text.size());
  file.commit();
}

void run(const Options &options) {
  if (options.watches)
    watchLog(options.files.front(), options.fields, options.every);
  if (!options.plot.empty())
    return plot(options);
  if (!options.tensorboard.empty())
    return writeTensorBoard(options.files, options.tensorboard, options.fields);
  if (!options.printsCommand)
    return printTables(options);
  const std::string source = recordSource(options.files.front());
  const std::vector<nlohmann::json> records = readRecords(source);
  base::printResult(runCommand(
      records, options.run ? static_cast<std::size_t>(options.run) : records.size(), source));
}

int fail(const std::string &message, int status) {
  std::fprintf(stderr, "fsdpc-log: error: %s\n", base::printableMessage(message).c_str());
  return status;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("shows, draws and repeats the runs of training logs", "fsdpc-log");
  declare(app, options);
  app.footer("Without --watch, --plot, --tensorboard and --command it prints a table of each log.");
  try {
    try {
      base::parseArguments<Misuse>(app, std::vector<std::string>(argv + (argc > 0), argv + argc));
    } catch (const CLI::Success &asked) { // help or version
      return base::printAsked(app, asked);
    }
    check(app, options);
    run(options);
    return base::kExitDone;
  } catch (const Misuse &why) {
    return fail(std::string(why.what()) + "; see fsdpc-log --help", base::kExitBadCommandLine);
  } catch (const Error &error) {
    return fail(error.what(), error.status());
  } catch (const std::exception &error) {
    return fail(error.what(), base::kExitFailure);
  }
}
