//===- TextGeneration.h - generates text token by token ---------*- C++ -*-===//
//
// The run of `./PROGRAM generate`, of programs that were compiled with --generate: only these refer
// to `generateText` (runtime/program/Program.h), and link the code that it needs.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_TEXTGENERATION_H
#define FSDP_RUNTIME_TRAIN_TEXTGENERATION_H

#include "base/OutputPath.h"
#include "runtime/program/Program.h"
#include "runtime/train/BesideFiles.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fsdp::rt {

class Device;

/// The request to `generate`.
struct GenerationOptions {
  std::string prompt;      ///< the text itself
  std::int64_t tokens = 0; ///< number of tokens at most; 0: nothing is generated
  double temperature = 1;  ///< scores are divided by it; 0: always the likeliest token
  std::uint64_t seed = 0;  ///< of the draws
  std::int64_t topK = 0;   ///< only the so many likeliest tokens are drawn; 0: all
  std::string scores;      ///< file for the scores of each token; empty: none
};

/// One rank's run: parameters are on the device.
struct TextRun {
  const Program &program;
  Device *device; ///< null: tokenizer and prompt are only checked, before the ranks start
  const GenerationOptions &options;
  const BesideFiles &beside;      ///< the weights; a tokenizer.json among them is used
  const base::OutputPath &scores; ///< the prompt of the options, checked
};

/// Draws one of `count` tokens by their scores, the logarithms of weights. Of equal scores the
/// first is the likelier one; NaN is never drawn. `draw` is in [0, 1).
std::int64_t sampleToken(const float *scores, std::int64_t count, const GenerationOptions &options,
                         double draw);

/// The tokens that follow `prompt`, which is not empty, until there are `options.tokens` of them or
/// `take`, which is called with each, returns false. All ranks call this, and get the same tokens.
/// Draw i depends on the seed and i alone. The prompt and the tokens fit in the context. `scores`,
/// on rank 0 the `vocabulary` scores that the token was drawn by and nullptr on the others, is
/// valid during the call.
void generateTokens(const TextRun &run, const std::vector<std::int32_t> &prompt,
                    const std::function<bool(std::int32_t token, const float *scores)> &take);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_TEXTGENERATION_H
