//===- Driver.h - the compiler as a library for model programs --*- C++ -*-===//
//
//   int main(int argc, char **argv) {
//     fsdpc::Driver driver("regression", "one layer");
//     int64_t in = 8, batch = 32;
//     driver.option("--in", in, "features of a sample");
//     driver.option("--batch", batch, "samples of a step, on all ranks together");
//     return driver.run(argc, argv, [&](fsdp::dsl::Model &model) { ... model.loss(...); });
//   }
// The program accepts these options and all of fsdpc's: mesh, strategy, kind and path of the
// output.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_DRIVER_H
#define TOOLS_FSDPC_DRIVER_H

#include "base/Numbers.h"
#include "dsl/Model.h"
#include <functional>
#include <memory>
#include <string>

namespace fsdpc {

class Driver {
public:
  /// `name` is the name of the generated program; `description` is one line for `--help`.
  Driver(std::string name, std::string description);
  ~Driver();

  /// An option of the model: an integer. `value` holds the default, and must live until `run`
  /// returns; so below. Values outside `range` are refused.
  void option(const std::string &name, int64_t &value, const std::string &description,
              base::IntegerRange<int64_t> range = {1, ::fsdp::dsl::kMaxSize});
  /// The number of equal blocks, from 1 to dsl::kMaxBlocks. `plan` ranks large models by models
  /// with fewer.
  void blocks(const std::string &name, int64_t &value, const std::string &description);
  /// A number, by default finite and at least 0.
  void option(const std::string &name, double &value, const std::string &description,
              base::NumberRange range = {});
  /// A text; the help shows `type` for it.
  void option(const std::string &name, std::string &value, const std::string &type,
              const std::string &description);
  /// Given or not.
  void flag(const std::string &name, bool &value, const std::string &description);

  using TakeConfig = std::function<void(::fsdp::dsl::ModelConfig &)>;
  /// The option --from=DIR: the sizes of the model are those of `file` in the folder DIR, such as
  /// "config.json". `take` reads them before the model is described; values that the model cannot
  /// compute with, and options of the model that contradict the file, are errors.
  void from(const std::string &file, TakeConfig take);
  /// Whether the option `name` was given; false if there is no such option. Valid only in `take`
  /// and in the description.
  bool isGiven(const std::string &name) const;

  using Describe = std::function<void(::fsdp::dsl::Model &)>;
  /// Reads the command line, lets `describe` describe the model, compiles it and writes the
  /// outputs. Returns the exit status: 0 done, 1 bad input or failure, 2 bad command line.
  /// `where` is the source line of messages about the whole model.
  int run(int argc, char **argv, const Describe &describe,
          ::fsdp::dsl::Where where = ::fsdp::dsl::Where::here());
  /// The same for a model in the file that the command line names (the `fsdpc` tool).
  int runFile(int argc, char **argv);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace fsdpc

#endif // TOOLS_FSDPC_DRIVER_H
