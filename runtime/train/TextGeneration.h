//===- TextGeneration.h - goes on with a text token by token ----*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_TEXTGENERATION_H
#define FSDP_RUNTIME_TRAIN_TEXTGENERATION_H

#include "runtime/program/Program.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

class Device;

/// What `generate` was asked for.
struct GenerationOptions {
  std::string prompt;          ///< text, or @FILE
  std::int64_t tokens = 0;     ///< number of tokens at most
  double temperature = 1;      ///< of the scores; 0: always the likeliest token
  std::int64_t topK = 0;       ///< only the so many likeliest tokens are drawn; 0: all
  std::optional<double> stop;  ///< unused
};

/// Draws a token from `count` scores, the logarithms of weights, which are divided by the
/// temperature. Of equal scores the first is the likelier one. `draw` is in [0, 1).
std::int64_t sampleToken(const float *logits, std::int64_t count, double temperature,
                         std::int64_t topK, double draw);

/// The tokens that follow `prompt`, which is not empty, until there are `count` of them or `take`
/// returns false. Every rank calls this and gets the same tokens; `take` is called with each token
/// as it is drawn. Draw i depends on the seed and i alone. prompt.size() + count is at most the
/// context of the program.
void generateTokens(const Program &program, Device &device, const std::vector<std::int64_t> &prompt,
                    std::int64_t count, const GenerationOptions &options, std::uint64_t seed,
                    const std::function<bool(std::int64_t)> &take);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_TEXTGENERATION_H
