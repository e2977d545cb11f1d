//===- Driver.cpp - command line in, result out ---------------------------===//

#include "tools/fsdpc/Driver.h"

#include "base/Error.h"
#include "base/Options.h"
#include "base/PrintableText.h"
#include "base/ShellWords.h"
#include "dsl/LibrarySources.h"
#include "dsl/Model.h"
#include "dsl/ModelIR.h"
#include "tools/fsdpc/Compile.h"
#include "tools/fsdpc/NewToken.h"
#include "tools/fsdpc/Options.h"
#include "tools/fsdpc/Output.h"
#include "tools/fsdpc/PlanChoice.h"
#include "tools/fsdpc/PlanFit.h"
#include "tools/fsdpc/PlanSeries.h"
#include "tools/fsdpc/PlanTable.h"
#include "tools/fsdpc/Program.h"
#include "tools/fsdpc/StageChoice.h"
#include "tools/fsdpc/Toolchain.h"
#include "tools/output/OutputFile.h"

#include "passes/explain/PlanPage.h"
#include "passes/printing/MemoryReportText.h"
#include "passes/printing/PredictionText.h"
#include "passes/scheduled/ScheduleFindings.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <csignal>
#include <iostream>
#include <map>
#include <optional>
#include <unistd.h>
#include <utility>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

struct Driver::State {
  /// Describes or reads the model.
  using Obtain = std::function<OwningOpRef<ModuleOp>(Context &)>;

  std::string name;
  CLI::App app;
  CLI::App *model = nullptr; ///< the group of the model's own options, once it has one
  Options options;
  std::string input;                               ///< the file of a model, for runFile
  std::string asked;                               ///< the command of a search, as given
  base::OutputPath result, report, timeline, page; ///< but a folder
  std::string choice;                              ///< the choices of `auto`, with reasons
  CompiledPlan scheduled;                          ///< the plan of `choice`, if it was kept
  std::optional<MemoryVerdict> verdict;            ///< on --memory-limit
  std::optional<PlanFacts> known;                  ///< of the first plan
  ir::ScheduleFindings findings;                   ///< likewise, until it is written
  std::vector<ir::ShardingPicture> shardings;      ///< for the page
  std::optional<PlanRequest> request;              ///< for `plan`, which compiles no program
  base::OutputPath table, curves;                  ///< of its JSON, of its SVG
  int64_t *blocks = nullptr;                       ///< the model's number of equal blocks
  struct Size {
    int64_t *value;
    base::IntegerRange<int64_t> range;
  };
  std::map<std::string, Size> sizes; ///< its integers, by option
  std::string from;                  ///< the folder of --from
  std::function<void()> takeConfig;
  bool printsConfig = false;
  /// The mesh that the model is described for, where it is that of a program.
  MeshAxes described;
  bool describes = false;

  State(std::string name, std::string description)
      : name(std::move(name)), app(std::move(description)) {}

  CLI::App &modelOptions();
  int compile(int argc, char **argv, const Obtain &obtain);
  void openOutputs();
  PlanModel modelOf(ModuleOp module, Context &context, const Obtain &obtain);
  SizedModel sizedModel(Context &context, const Obtain &obtain);
  void choose(PlanModel &model);
  void judge(PlanModel &model, ModuleOp plan);
  std::vector<OwningOpRef<ModuleOp>> plan(Context &context, const Obtain &obtain);
  void search(Context &context, const Obtain &obtain);
  void write(llvm::ArrayRef<OwningOpRef<ModuleOp>> plans);
  std::string commandWith(const std::string &given, const char *word = "") const;
  /// The command that compiles the plan, quoted for a shell.
  std::string command() const { return commandWith(options.given); }
  std::vector<std::string> omittedOptions() const;
  void writePage(ModuleOp module, const ir::StepSimulation &simulation, llvm::json::Value report);
  void writeReport(std::vector<llvm::json::Value> reports, const std::string &table);
  void printTable(const std::string &table, llvm::ArrayRef<const base::OutputPath *> results);
  /// The name of a model without a name: that of this program, or of its file.
  std::string modelName() const {
    llvm::StringRef stem = llvm::sys::path::stem(input);
    return stem.empty() || stem == "-" ? name : stem.str();
  }
};

Driver::Driver(std::string name, std::string description)
    : state(std::make_unique<State>(name, std::move(description))) {
  state->app.name(name);
  state->app.set_help_flag("-h,--help", "print this help and exit");
  state->app
      .set_version_flag(
          "--version",
          [name] {
            const std::string version = readVersion();
            return name == "fsdpc" ? "fsdpc " + version : name + " (fsdpc " + version + ")";
          },
          "print the version of fsdpc and exit")
      ->disable_flag_override();
  base::addOptionsFiles(state->app, state->printsConfig);
}

Driver::~Driver() = default;

CLI::App &Driver::State::modelOptions() {
  if (!model)
    model = app.add_option_group("Model");
  return *model;
}

void Driver::option(const std::string &name, int64_t &value, const std::string &description,
                    base::IntegerRange<int64_t> range) {
  state->sizes[name] = {&value, range};
  base::addInteger(state->modelOptions(), name, "N", value, description, range)
      ->default_str(std::to_string(value));
}

void Driver::blocks(const std::string &name, int64_t &value, const std::string &description) {
  state->blocks = &value;
  option(name, value, description, {1, ::fsdp::dsl::kMaxBlocks});
}

void Driver::option(const std::string &name, double &value, const std::string &description,
                    base::NumberRange range) {
  base::addNumber(state->modelOptions(), name, "X", value, description, range)
      ->default_str(CLI::detail::to_string(value));
}

void Driver::option(const std::string &name, std::string &value, const std::string &type,
                    const std::string &description) {
  base::addText(state->modelOptions(), name, type, value, description);
}

void Driver::flag(const std::string &name, bool &value, const std::string &description) {
  base::addFlag(state->modelOptions(), name, value, description);
}

bool Driver::isGiven(const std::string &name) const {
  const CLI::Option *found = state->app.get_option_no_throw(name);
  return found && !found->empty();
}

void Driver::from(const std::string &file, TakeConfig take) {
  base::addText(state->modelOptions(), "--from", "DIR", state->from,
                "sizes and constants of the model from DIR/" + file);
  state->takeConfig = [this, file, take = std::move(take)] {
    ::fsdp::dsl::ModelConfig config(file);
    config.read(state->from, [this](const std::string &option) { return isGiven(option); });
    take(config);
    if (const std::string &fit = state->options.fit; !fit.empty() && config.sets("--" + fit))
      throw UsageError("got --fit=" + fit + " beside --from, which takes it from " + file);
    for (const std::string &remark : config.finish())
      std::cerr << base::printableLines(state->name + ": note: " + remark) << "\n";
  };
}

/// Before the work: refuses outputs that cannot be written or would overwrite the model.
void Driver::State::openOutputs() {
  std::vector<base::NamedFile> named;
  const auto open = [&](base::OutputPath &file, const char *option, const std::string &path) {
    if (path.empty())
      return;
    file = openOutput(path);
    named.push_back(base::NamedFile::output(option, file));
  };
  if (!input.empty() && input != "-")
    named.push_back(base::NamedFile::input("MODEL", input));
  if (options.getEmit() == Emit::Source && !options.output.empty()) {
    checkFolderOutput(options.output);
    named.push_back(
        {"-o", options.output, base::identityOf(options.output), base::NamedFile::Replaced});
    if (standsInFolder(input, options.output))
      throw UsageError("model " + base::inQuotes(input) + " is in the folder that -o replaces, " +
                       base::inQuotes(options.output) + "; choose another location");
  } else if (!options.onlyReport()) {
    open(result, "-o", options.output.empty() ? "-" : options.output);
  }
  open(report, "--report", options.report.size() > 1 ? options.report : "");
  open(timeline, "--timeline", options.timeline);
  open(page, "--explain", options.explain);
  open(table, "--json", options.json);
  open(curves, "--svg", request ? request->svg : "");
  try {
    base::requireDistinct(named);
  } catch (const base::Error &error) {
    throw UsageError(error.what());
  }
}

/// `module`, and where the number of its blocks is an option the same with fewer.
PlanModel Driver::State::modelOf(ModuleOp module, Context &context, const Obtain &obtain) {
  PlanModel model(module, modelName());
  if (!blocks)
    return model;
  model.blocks = *blocks;
  model.describe = [this, &context, &obtain](int64_t fewer) {
    const int64_t whole = std::exchange(*blocks, fewer);
    llvm::scope_exit restore([&] { *blocks = whole; });
    try {
      return obtain(context);
    } catch (const ::fsdp::dsl::ModelError &) {
      return OwningOpRef<ModuleOp>();
    }
  };
  return model;
}

/// The model with the sizes of its options.
SizedModel Driver::State::sizedModel(Context &context, const Obtain &obtain) {
  auto find = [this](llvm::StringRef option) -> std::optional<int64_t> {
    auto found = sizes.find("--" + option.str());
    return found == sizes.end() ? std::nullopt : std::optional<int64_t>(*found->second.value);
  };
  // Standard input can be read only once.
  auto whole = std::make_shared<OwningOpRef<ModuleOp>>();
  auto with = [&, this, whole](llvm::StringRef option, int64_t value,
                               llvm::function_ref<void(PlanModel &)> use) {
    if (option.empty()) {
      if (!*whole)
        *whole = obtain(context);
      PlanModel model = modelOf(**whole, context, obtain);
      return use(model);
    }
    const auto [size, range] = sizes.at("--" + option.str());
    const int64_t given = *size;
    llvm::scope_exit restore([&, size = size] { *size = given; });
    if (std::string wrong = base::parseInteger(std::to_string(value), range, *size); !wrong.empty())
      throw ::fsdp::dsl::ModelError(::fsdp::dsl::Where::here(), "--" + option.str() + ": " + wrong);
    OwningOpRef<ModuleOp> module = obtain(context);
    PlanModel model = modelOf(*module, context, obtain);
    use(model);
  };
  return {find, with};
}

/// Replaces the `auto` options by the choices of the cost model, and keeps that plan.
void Driver::State::choose(PlanModel &model) {
  const bool keeps =
      options.needsOneSchedule() && !options.choosesStages(options.getMeshes().front());
  const PlanChoice chosen = choosePlan(model, options, keeps ? &scheduled : nullptr);
  choice = chosen.reason;
  options.choseMicrobatches = options.pipeline.accumulate == kAutomaticCount;
  options.pipeline = chosen.plan.pipeline;
  std::cerr << name << ": note: chose " << choice << "\n";
}

/// Options that printed commands do not copy from the command line but state themselves.
std::vector<std::string> Driver::State::omittedOptions() const {
  std::vector<std::string> names = {"--fit", "--json"};
  if (request)
    llvm::append_range(names, PlanRequest::getChosenOptions());
  if (!options.fit.empty())
    names.push_back("--" + options.fit);
  if (request && request->isSeries() && sizes.count("--batch"))
    names.push_back("--batch");
  return names;
}

/// The command of these options, quoted for a shell, with `word` before them.
std::string Driver::State::commandWith(const std::string &given, const char *word) const {
  std::string words = name + word;
  if (!input.empty())
    base::addShellWord(words, input);
  return words + (given.empty() ? "" : " ") + given;
}

/// Prints the fastest plans of the model, or the other requested series, after the command and the
/// version that reproduce the result.
void Driver::State::search(Context &context, const Obtain &obtain) {
  const SizedModel model = sizedModel(context, obtain);
  const std::string words = command();
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << asked << "  (fsdpc " << readVersion() << ")\n";
  llvm::json::Value data = nullptr;
  if (!options.fit.empty()) {
    const PlanFit fit = fitModel(model, request ? &*request : nullptr, options, words);
    fit.print(stream);
    data = fit.toJSON();
  } else if (request->isSeries()) {
    const PlanSeriesResult series = searchSeries(model, *request, options, words);
    print(series, stream);
    data = toJSON(series);
    if (!curves.empty())
      writeOutput(curves, drawSvg(series));
  } else {
    model.with("", 0, [&](PlanModel &whole) {
      const PlanSearchResult found = searchPlans(whole, *request, options);
      if (found.best.empty())
        throw Failure(found.explainNone(*request));
      print(found, *request, words, options.machine, stream);
      data = toJSON(found, *request, words, options.machine);
    });
  }
  (*data.getAsObject())["asked"] = asked;
  (*data.getAsObject())["version"] = readVersion();
  if (!table.empty())
    writeOutput(table, llvm::formatv("{0:2}\n", data).str());
  printTable(text, {&table, &curves});
}

/// Judges the memory of `plan`, compiled from `model`. Throws Failure where a program would not
/// keep to the limit.
void Driver::State::judge(PlanModel &model, ModuleOp plan) {
  if (options.getEmit() < Emit::Scheduled) {
    OwningOpRef<ModuleOp> scheduled(plan.clone());
    lower(*scheduled, options, options.getEmit(), Emit::Scheduled);
    known = PlanFacts::of(*scheduled);
  } else if (!known) {
    known = PlanFacts::of(plan);
  }
  verdict = judgeMemory(model, options, known->memory.arena, command());
  if (verdict->fits() || options.onlyReport() || options.getEmit() < Emit::Source)
    return;
  std::string text;
  llvm::raw_string_ostream stream(text);
  verdict->print(stream);
  throw Failure("the plan does not fit --memory-limit, and no program was written\n" +
                llvm::StringRef(text).rtrim().str());
}

/// The model for each mesh, in the requested phase.
std::vector<OwningOpRef<ModuleOp>> Driver::State::plan(Context &context, const Obtain &obtain) {
  OwningOpRef<ModuleOp> model = obtain(context), original;
  auto warn = [&](const std::string &remark) {
    if (!remark.empty())
      std::cerr << base::printableLines(name + ": warning: " + remark) << "\n";
  };
  for (auto step : model->getOps<ir::StepOp>())
    warn(options.optimizer.remarkOnGroups(step));
  if (options.choosesPlan() || !options.memoryLimit.empty())
    original = model->clone();
  PlanModel candidates = modelOf(original.get(), context, obtain);
  if (options.choosesPlan())
    choose(candidates);
  const std::vector<MeshAxes> meshes = options.getMeshes();
  std::vector<OwningOpRef<ModuleOp>> plans;
  if (scheduled.module) {
    warn(options.remarkOnPipeline(*scheduled.module));
    plans.push_back(std::move(scheduled.module));
    known = std::move(scheduled.facts);
  }
  for (const MeshAxes &mesh : llvm::ArrayRef(meshes).drop_front(plans.size())) {
    const bool last = plans.size() + 1 == meshes.size();
    plans.push_back(last ? std::move(model) : OwningOpRef<ModuleOp>(model->clone()));
    inPlan(mesh, meshes.size() > 1, [&] {
      // Regions have the sizes of one mesh.
      if (describes && mesh != described && hasManualRegions(*plans.back())) {
        described = mesh;
        plans.back() = obtain(context);
      }
      Options own = meshes.size() > 1 ? options.forMesh(mesh, meshes) : options;
      OwningOpRef<ModuleOp> cut;
      const std::string stages = cutStages(*plans.back(), modelName(), mesh, name, own, cut);
      if (meshes.size() == 1 && !stages.empty())
        choice += (choice.empty() ? "" : "; ") + stages;
      if (cut) {
        warn(own.remarkOnPipeline(*cut));
        plans.back() = std::move(cut);
        return;
      }
      ModuleOp module = *plans.back();
      configure(module, modelName(), mesh, own);
      warn(own.remarkOnPipeline(module));
      Emit done = Emit::Model;
      if (!page.empty()) {
        lower(module, own, done, Emit::Global);
        done = Emit::Global;
        FailureOr<std::vector<ir::ShardingPicture>> drawn = ir::drawShardings(module);
        if (failed(drawn))
          throw Failure("the shardings were not drawn");
        shardings = std::move(*drawn);
      }
      lower(module, own, done, own.getEmit(), plans.size() == 1 ? &findings : nullptr);
    });
  }
  if (!options.memoryLimit.empty())
    judge(candidates, *plans.front());
  return plans;
}

void Driver::State::write(llvm::ArrayRef<OwningOpRef<ModuleOp>> plans) {
  const Emit emit = options.getEmit();
  if (emit <= Emit::Scheduled) {
    std::string text;
    for (const OwningOpRef<ModuleOp> &module : plans) {
      if (emit > Emit::Global)
        verifyOperations(*module);
      text += (text.empty() ? "" : "// -----\n\n") +
              print(*module, emit == Emit::Model || options.emitLocations);
    }
    writeOutput(result, text);
  }
  if (emit < Emit::Source && !options.predicts())
    return;
  std::vector<llvm::json::Value> reports;
  std::vector<ir::PlanSource> sources;
  std::string tables;
  for (const OwningOpRef<ModuleOp> &module : plans) {
    if (emit < Emit::Scheduled)
      lower(*module, options, emit, Emit::Scheduled);
    std::optional<ir::ScheduleProblem> schedule;
    if (findings.verified || options.predicts() || !known)
      schedule = translate(*module, std::exchange(findings.verified, std::nullopt));
    const PlanFacts facts =
        known ? *std::exchange(known, std::nullopt) : PlanFacts::of(*module, *schedule);
    std::optional<ir::StepSimulation> simulation;
    const int64_t ranks = ir::getMeshOp(*module).getMesh().getNumRanks();
    if (options.predicts())
      simulation.emplace(*module, options.findMachine(ranks), std::move(*schedule));
    std::string table;
    llvm::raw_string_ostream stream(table);
    print(facts.memory, stream);
    sources.push_back(makeSource(*module, table, facts.work, options));
    if (!simulation)
      continue;
    // The program itself prints only its memory, which is its property; times are not.
    if (!timeline.empty())
      writeOutput(timeline, simulation->writeTimeline());
    const ir::Prediction prediction = simulation->predict();
    print(prediction, stream);
    reports.push_back(toJSON(facts.memory));
    llvm::json::Object &fields = *reports.back().getAsObject();
    addTo(fields, prediction);
    if (!choice.empty()) {
      stream << "chosen: " << choice << "\n";
      fields["chosen"] = choice;
    }
    if (verdict) {
      verdict->print(stream);
      verdict->addTo(fields);
    }
    if (!page.empty())
      writePage(*module, *simulation, reports.back());
    tables += table;
  }
  if (emit >= Emit::Source && !options.onlyReport()) {
    std::string called = ModuleOp(*plans.front()).getSymName()->str();
    ir::EmittedProgram program = emitProgram(sources, options, called, {name, input});
    if (emit == Emit::Source)
      writeSource(std::move(program), options, called);
    else
      writeBinary(program, options, result);
  }
  if (!options.report.empty())
    writeReport(std::move(reports), tables);
}

void Driver::State::writePage(ModuleOp module, const ir::StepSimulation &simulation,
                              llvm::json::Value report) {
  const std::string title = module.getSymName()->str();
  writeOutput(page,
              ir::writePage({title, command(), std::move(report), shardings}, module, simulation));
}

void Driver::State::writeReport(std::vector<llvm::json::Value> reports, const std::string &table) {
  if (!report.empty())
    writeOutput(report, llvm::formatv("{0:2}\n", ir::joinReports(std::move(reports))).str());
  printTable(table, {&result, &report, &timeline, &page});
}

void Driver::State::printTable(const std::string &table,
                               llvm::ArrayRef<const base::OutputPath *> results) {
  try {
    printBeside(table, results);
  } catch (const std::runtime_error &failure) {
    if (options.onlyReport()) // only the table was requested
      throw;
    std::cerr << name << ": note: " << failure.what()
              << "; the table was not printed, all other output was written\n";
  }
}

int Driver::State::compile(int argc, char **argv, const Obtain &obtain) {
  // A standard descriptor that is closed would become that of the next file opened.
  llvm::sys::Process::FixupStandardFileDescriptors();
  // A closed reader becomes an error of the write; the signal would leave the temporary folder.
  std::signal(SIGPIPE, SIG_IGN);
  auto say = [&](const std::string &message) {
    std::cerr << base::printableLines(name + ": error: " + message) << "\n";
  };
  auto misused = [&](const std::string &why) {
    say(base::printable(why) + "; see " + name + " --help");
    return 2;
  };
  // The command word, not an option: it comes first.
  if (argc > 1 && llvm::StringRef(argv[1]) == "plan") {
    --argc;
    ++argv;
    request.emplace().declare(app);
  }
  try {
    try {
      base::parseArguments<UsageError>(app, normalizeArguments(argc, argv));
    } catch (const CLI::Success &asked) { // help or version
      return base::printAsked(app, asked);
    }
    if (printsConfig) {
      std::string before = name + (request ? " plan" : "");
      if (!input.empty())
        base::addShellWord(before, input);
      try {
        llvm::outs() << base::optionsFileText(app, before);
      } catch (const base::OptionsFileError &error) {
        throw UsageError(error.what());
      }
      finishPrinting(llvm::outs());
      return 0;
    }
    if (request)
      request->apply(app, options);
    else if (!options.fit.empty())
      options.refuseOutputs(app, "--fit");
    else if (!options.json.empty())
      throw UsageError(
          "--json writes what --fit or 'plan' finds, got neither; give one of them, or "
          "--report=FILE.json for the plan of the options");
    if (!from.empty())
      takeConfig();
    options.given = Options::listGiven(app, omittedOptions());
    asked = commandWith(Options::listGiven(app, {"--json", "--svg"}), request ? " plan" : "");
    if (!options.fit.empty())
      options.report = "-"; // so that no path of a program is asked for
    if (options.choosesAttention())
      options.pipeline.contextAttention = kFastestWord;
    options.check();
    openOutputs();
    Context context;
    if (request || !options.fit.empty()) {
      search(context, obtain);
      return 0;
    }
    write(leaveUndestroyed(plan(context, obtain)));
    return 0;
  } catch (const UsageError &error) {
    return misused(error.what());
  } catch (const base::NoReader &) {
    return base::kExitNoReader;
  } catch (const ::fsdp::dsl::ModelError &error) {
    const bool isOfLibrary = ::fsdp::dsl::LibrarySources::contain(error.where.file);
    if (isOfLibrary && dynamic_cast<const ::fsdp::dsl::OptionError *>(&error))
      return misused(error.message);
    if (isOfLibrary)
      say(error.message);
    else
      std::cerr << base::printableLines(error.what()) << "\n";
    return 1;
  } catch (const std::exception &error) {
    say(error.what());
    return 1;
  }
}

int Driver::run(int argc, char **argv, const Describe &describe, ::fsdp::dsl::Where where) {
  state->options.declare(state->app);
  state->describes = true;
  return state->compile(argc, argv, [&](Context &context) {
    context.describesProgram(state->name, ::fsdp::dsl::LibrarySources::contain);
    ::fsdp::dsl::Model model(context.get(), where);
    if (state->described.empty())
      state->described = state->options.getMeshes().front();
    describeFor(model, state->described);
    describe(model);
    OwningOpRef<ModuleOp> module = ::fsdp::dsl::take(model, where);
    // Messages that concern no line of the model name the program, as they name a module's file.
    (*module)->setLoc(FileLineColLoc::get(&context.get(), state->name, 0, 0));
    return module;
  });
}

int Driver::runFile(int argc, char **argv) {
  declareNewToken(state->app);
  base::addText(state->app, "MODEL", "FILE", state->input, "global IR of a model (.mlir)")
      ->required();
  state->options.declare(state->app);
  return state->compile(argc, argv,
                        [&](Context &context) { return readModel(context, state->input); });
}

} // namespace fsdpc
