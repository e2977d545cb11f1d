//===- GenerationCommandLine.cpp - ./PROGRAM generate ---------------------===//

#include "base/MappedFile.h"
#include "base/Options.h"
#include "runtime/train/CommandLineParts.h"

namespace fsdp::rt {

std::optional<int> parseGeneration(Plans plans, int argc, char **argv, Options &options) {
  const Program &program = *plans[0];
  CLI::App app("generates text with the weights of '" + std::string(program.name) +
                   "', and trains nothing. The text goes to standard output.",
               std::string(program.name) + " generate");
  declareHelp(app, program, options);
  options.steps = 0;
  GenerationOptions &generation = options.generation.emplace();
  std::string prompt;
  base::addText(app, "--prompt", "TEXT|@FILE", prompt,
                "text to continue, or the file with it; token ids such as '12 5 7' where "
                "no tokenizer.json is beside the weights and the vocabulary is not bytes");
  base::addInteger(app, "--tokens", "N", generation.tokens, "number of tokens at most",
                   base::IntegerRange<std::int64_t>{1, INT32_MAX});
  base::addNumber(
      app, "--temperature", "T", generation.temperature,
      "scores of tokens are divided by it; 0: the likeliest token each time (default 1)",
      {/*least=*/0, /*aboveLeast=*/false, /*limit=*/1e6, /*isF32=*/false});
  base::addInteger(app, "--top-k", "K", generation.topK,
                   "draw from the K likeliest tokens only (default: all)",
                   base::IntegerRange<std::int64_t>{1, INT32_MAX});
  base::addInteger(app, "--seed", "S", generation.seed, "seed of the draws (default 0)",
                   base::IntegerRange<std::uint64_t>());
  base::addText(
      app, "--scores", "FILE", generation.scores,
      "write the ids and the scores (logits, F32) of all tokens to this safetensors file");
  base::addText(app, "--tokenizer", "DIR", options.tokenizer,
                "folder with the tokenizer.json to use, instead of that beside the weights");
  declareWeights(app, options);
  declareJob(app, plans, options);
  app.footer("Of an option that is given several times the last value counts; --init adds up.");
  return parseAfterWord(program, app, argc, argv, options, "generate", [&] {
    if (!program.generation.generate)
      throw Misuse("got generate, but this program was compiled without --generate");
    if (prompt.empty())
      throw Misuse("--prompt is missing: give the text to continue");
    if (generation.tokens == 0)
      throw Misuse("--tokens is missing: give the number of tokens to generate");
    requireWeights(options, "generate with");
    if (prompt.front() != '@') {
      generation.prompt = prompt;
      return;
    }
    try {
      const base::MappedFile file(prompt.substr(1));
      generation.prompt.assign(file.data(), file.size());
    } catch (const base::Error &error) {
      throw Misuse("--prompt: " + error.describe());
    }
  });
}

} // namespace fsdp::rt
