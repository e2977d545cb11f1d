//===- Driver.cpp - command line in, result out ---------------------------===//

#include "tools/fsdpc/Driver.h"

#include "cli/Options.h"
#include "tools/fsdpc/Compile.h"
#include "tools/fsdpc/Options.h"
#include "tools/fsdpc/Output.h"
#include "tools/fsdpc/Program.h"

#include "passes/MemoryReport.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <iostream>

using namespace mlir;

namespace fsdpc {

struct Driver::State {
  std::string name;
  CLI::App app;
  CLI::App *model = nullptr; ///< the group of the model's own options, once it has one
  Options options;
  std::string input; ///< the file of a model, for runFile

  State(std::string name, std::string description)
      : name(std::move(name)), app(std::move(description)) {}

  CLI::App &modelOptions();
  int compile(int argc, char **argv, const std::function<OwningOpRef<ModuleOp>(Context &)> &obtain);
  void write(ModuleOp module);
  /// What a model without a name is called: this program, or the file of it.
  std::string modelName() const {
    llvm::StringRef stem = llvm::sys::path::stem(input);
    return stem.empty() || stem == "-" ? name : stem.str();
  }
};

Driver::Driver(std::string name, std::string description)
    : state(std::make_unique<State>(name, std::move(description))) {
  state->app.name(name);
  state->app.set_help_flag("-h,--help", "print this and end");
}

Driver::~Driver() = default;

CLI::App &Driver::State::modelOptions() {
  if (!model)
    model = app.add_option_group("Model");
  return *model;
}

void Driver::option(const std::string &name, int64_t &value, const std::string &description,
                    cli::IntegerRange<int64_t> range) {
  cli::addInteger(state->modelOptions(), name, "N", value, description, range)
      ->default_str(std::to_string(value));
}

void Driver::option(const std::string &name, double &value, const std::string &description,
                    cli::NumberRange range) {
  cli::addNumber(state->modelOptions(), name, "X", value, description, range)
      ->default_str(CLI::detail::to_string(value));
}

void Driver::flag(const std::string &name, bool &value, const std::string &description) {
  cli::addFlag(state->modelOptions(), name, value, description);
}

void Driver::State::write(ModuleOp module) {
  Emit emit = options.getEmit();
  if (emit <= Emit::Scheduled)
    writeFile(options.output.empty() ? "-" : options.output, print(module, emit == Emit::Model));
  if (emit < Emit::Source && options.report.empty())
    return;
  if (emit < Emit::Scheduled)
    lower(module, options, emit, Emit::Scheduled);
  mlir::fsdp::MemoryReport report = mlir::fsdp::computeMemoryReport(module);
  std::string table;
  llvm::raw_string_ostream tableStream(table);
  report.print(tableStream);
  if (emit >= Emit::Source && !options.onlyReport()) {
    std::string called = module.getSymName()->str();
    mlir::fsdp::EmittedProgram program = emitProgram(module, options, called, table);
    if (emit == Emit::Source)
      writeSource(program, options, called);
    else
      writeBinary(program, options);
  }
  if (options.report.empty())
    return;
  if (options.report != "-")
    writeFile(options.report, llvm::formatv("{0:2}\n", report.toJSON()).str());
  // Beside a text on standard output the table would spoil it.
  (emit <= Emit::Scheduled && options.output.empty() ? llvm::errs() : llvm::outs()) << table;
}

int Driver::State::compile(int argc, char **argv,
                           const std::function<OwningOpRef<ModuleOp>(Context &)> &obtain) {
  auto say = [&](const std::string &message) {
    std::cerr << name << ": error: " << message << "\n";
  };
  try {
    try {
      cli::parse<UsageError>(app, normalizeArguments(argc, argv));
    } catch (const CLI::CallForHelp &help) {
      return app.exit(help);
    }
    options.check();
    Emit emit = options.getEmit();
    if (!options.output.empty())
      emit == Emit::Source ? checkFolderOutput(options.output) : checkFileOutput(options.output);
    if (options.report.size() > 1)
      checkFileOutput(options.report);
    Context context;
    OwningOpRef<ModuleOp> module = obtain(context);
    configure(*module, modelName(), options);
    lower(*module, options, Emit::Model, emit);
    write(*module);
    return 0;
  } catch (const UsageError &error) {
    say(std::string(error.what()) + "; see " + name + " --help");
    return 2;
  } catch (const ::fsdp::dsl::ModelError &error) {
    std::cerr << error.what() << "\n";
    return 1;
  } catch (const std::exception &error) {
    say(error.what());
    return 1;
  }
}

int Driver::run(int argc, char **argv, const Describe &describe) {
  state->options.declare(state->app);
  return state->compile(argc, argv, [&](Context &context) {
    ::fsdp::dsl::Model model(context.get());
    describe(model);
    return model.take();
  });
}

int Driver::runFile(int argc, char **argv) {
  cli::addText(state->app, "MODEL", "FILE", state->input, "global IR of a model (.mlir)")
      ->required();
  state->options.declare(state->app);
  return state->compile(argc, argv,
                        [&](Context &context) { return readModel(context, state->input); });
}

} // namespace fsdpc
