//===- CommandLine.cpp ----------------------------------------------------===//

#include "runtime/CommandLine.h"

#include "runtime/Device.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace fsdp::rt {

std::optional<int> parseCommandLine(const Program &program, int argc, char **argv,
                                    Options &options) {
  CLI::App app("trains '" + std::string(program.name) + "' on " +
                   std::to_string(worldSize(program)) + " rank(s)",
               program.name);
  const bool tokens =
      std::any_of(program.inputs.begin(), program.inputs.end(),
                  [](const Input &input) { return input.source != Source::Tensor; });
  const std::string kind =
      tokens ? " (tokens, or bytes if the vocabulary is 256)" : " (safetensors)";
  app.add_option("--data", options.data, "data set to train on" + kind)->type_name("FILE");
  app.add_option("--steps", options.steps, "number of steps")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app.add_option("--epochs", options.epochs, "number of passes over the data, instead of --steps")
      ->type_name("E")
      ->check(CLI::PositiveNumber);
  app.add_option("--init", options.init,
                 "weights to start from (safetensors, an index of several, or their folder)")
      ->type_name("FILE");
  app.add_option("--export", options.exportTo,
                 "where to write the trained weights (safetensors); replaced in one move")
      ->type_name("FILE");
  app.add_option("--seed", options.seed, "seed of the initial weights")->type_name("S");
  app.add_option("--lr", options.learningRate, "learning rate, instead of the compiled one")
      ->type_name("X")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--val-data", options.valData, "data set to evaluate on" + kind)
      ->type_name("FILE");
  app.add_option("--eval-every", options.evalEvery,
                 "evaluate after every K steps and after the last one")
      ->type_name("K")
      ->check(CLI::PositiveNumber);
  app.add_flag("--shuffle", options.shuffle,
               "visit the samples of each epoch in another order, which the seed says");
  app.add_option("--log", options.log,
                 "write one JSON object a step to this file; one that is there is renamed FILE.1")
      ->type_name("FILE");
  app.add_option("--trace", options.trace,
                 "write when each launch of the latest steps ran to this file (for Perfetto)")
      ->type_name("FILE");
  app.add_flag("--report", options.report,
               "print the memory table; without --data, and do nothing else");
  options.communicator = program.communicator;
  app.add_option("--communicator", options.communicator, std::string("how ranks talk: ") + target::communicatorNames)
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "shm", "tcp", "mpi", "nccl", "loopback"}));
  app.add_flag("--trust-network", options.trustNetwork,
               "let ranks meet over the network without FSDP_JOB_TOKEN: anybody who reaches the "
               "port of rank 0 may join");

  const auto misused = [&](const std::string &why) {
    std::fprintf(stderr, "%s: error: %s; see --help\n", program.name, why.c_str());
    return 2;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError &error) {
    return misused(error.what());
  }

  if (options.report && options.data.empty())
    return std::nullopt;
  if (options.data.empty() && !program.inputs.empty())
    return misused("--data is missing: name the file to train on");
  if (options.steps && options.epochs)
    return misused("got both --steps and --epochs, expected one of them");
  if (!options.steps && !options.epochs)
    return misused("--steps is missing: say how many steps to train");
  const auto evaluates = [](const Segment &segment) {
    return segment.kind == SegmentKind::Evaluate;
  };
  if (!options.valData.empty() &&
      std::none_of(program.segments.begin(), program.segments.end(), evaluates))
    return misused("got --val-data, but this program was compiled without an evaluation");
  if (options.evalEvery && options.valData.empty())
    return misused("got --eval-every without --val-data: name the file to evaluate on");
  return std::nullopt;
}

} // namespace fsdp::rt
