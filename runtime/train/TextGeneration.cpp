#include "runtime/train/TextGeneration.h"

#include "base/AtomicFile.h"
#include "base/Error.h"
#include "base/Safetensors.h"
#include "base/WaitCounter.h"
#include "runtime/device/InputSource.h"
#include "runtime/execution/Device.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/numerics/Random.h"
#include "runtime/train/TextCodec.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

/// The tokens of a plan, and their positions, which follow one another.
class Positioned final : public InputSource {
public:
  Positioned(int tokensInput, std::vector<std::int32_t> tokens, std::int64_t first)
      : tokensInput(tokensInput), tokens(std::move(tokens)), positions(this->tokens.size()) {
    std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(first));
  }

  void load(int index, void *target, std::size_t bytes) override {
    std::memcpy(target, (index == tokensInput ? tokens : positions).data(), bytes);
  }

private:
  int tokensInput;
  std::vector<std::int32_t> tokens, positions;
};

/// The value that rank 0 sends instead of a token after the reader of the text has closed the pipe.
constexpr std::int32_t kNoReader = -1;

/// Runs a plan to its end, as the tokens are read while it runs.
void runWith(Device &device, const ExecutionPlan &plan, Positioned source) {
  device.run(plan, &source, /*prefetchNext=*/false);
  device.finish();
}

/// Leaves the keys and values of all tokens but the last.
void prefill(const TextRun &run, const std::vector<std::int32_t> &prompt) {
  const Generation &plans = run.program.generation;
  const auto last = static_cast<std::int64_t>(prompt.size()) - 1;
  std::int64_t done = 0;
  const auto token = [&](std::int64_t i) { return prompt[static_cast<std::size_t>(i)]; };
  // Rows that a plan of many tokens writes after the prompt are replaced before they are read.
  while (!plans.prefill.runs.empty() && last - done > 1) {
    std::vector<std::int32_t> part(static_cast<std::size_t>(plans.prefillTokens), 0);
    for (std::int64_t i = 0; i < plans.prefillTokens && done + i < last; ++i)
      part[static_cast<std::size_t>(i)] = token(done + i);
    runWith(*run.device, plans.prefill, {plans.prefillInput, std::move(part), done});
    done = std::min(done + plans.prefillTokens, last);
  }
  for (; done < last; ++done)
    runWith(*run.device, plans.decode, {plans.decodeInput, {token(done)}, done});
}

/// The output of --scores: ids of the prompt, and the id and the scores of each token after it.
class ScoresFile {
public:
  ScoresFile(const OutputPath &path, std::vector<std::int32_t> prompt, std::int64_t vocabulary)
      : file(path), prompt(std::move(prompt)), vocabulary(vocabulary) {}

  void add(std::int32_t token, const float *row) {
    tokens.push_back(token);
    scores.insert(scores.end(), row, row + vocabulary);
  }

  void commit() {
    const auto length = [](const auto &list) { return static_cast<std::int64_t>(list.size()); };
    const std::string header = safetensorsHeader({{"prompt", {length(prompt)}, "I32"},
                                                  {"tokens", {length(tokens)}, "I32"},
                                                  {"scores", {length(tokens), vocabulary}}});
    file.write(header.data(), header.size());
    file.write(prompt.data(), prompt.size() * sizeof prompt[0]);
    file.write(tokens.data(), tokens.size() * sizeof tokens[0]);
    file.write(scores.data(), scores.size() * sizeof scores[0]);
    file.commit();
  }

private:
  AtomicFile file;
  std::vector<std::int32_t> prompt, tokens;
  std::vector<float> scores;
  std::int64_t vocabulary;
};

} // namespace

std::int64_t sampleToken(const float *scores, std::int64_t count, const GenerationOptions &options,
                         double draw) {
  std::vector<std::int64_t> order;
  for (std::int64_t token = 0; token < count; ++token)
    if (!std::isnan(scores[token]))
      order.push_back(token);
  const auto likelier = [&](std::int64_t one, std::int64_t other) {
    return scores[one] != scores[other] ? scores[one] > scores[other] : one < other;
  };
  if (order.empty())
    return 0;
  const std::int64_t best = *std::min_element(order.begin(), order.end(), likelier);
  if (options.temperature == 0 || options.topK == 1)
    return best;
  if (options.topK > 0 && options.topK < static_cast<std::int64_t>(order.size())) {
    std::nth_element(order.begin(), order.begin() + options.topK, order.end(), likelier);
    order.resize(static_cast<std::size_t>(options.topK));
    std::sort(order.begin(), order.end());
  }
  const auto weightOf = [&](std::int64_t token) {
    return std::exp((double(scores[token]) - double(scores[best])) / options.temperature);
  };
  double total = 0;
  for (std::int64_t token : order)
    total += weightOf(token);
  double left = draw * total;
  for (std::int64_t token : order)
    if ((left -= weightOf(token)) < 0)
      return token;
  return best; // the remainder of rounding
}

void generateTokens(const TextRun &run, const std::vector<std::int32_t> &prompt,
                    const std::function<bool(std::int32_t, const float *)> &take) {
  const Generation &plans = run.program.generation;
  Device &device = *run.device;
  device.mark({"prefill", 1});
  prefill(run, prompt);
  const Random draws(run.options.seed, hashName("generate"));
  std::int32_t token = prompt.back();
  const auto first = static_cast<std::int64_t>(prompt.size()) - 1;
  bool isRead = true;
  for (std::int64_t i = 0; i < run.options.tokens; ++i) {
    device.mark({"decode", i + 1});
    runWith(device, plans.decode, {plans.decodeInput, {token}, first + i});
    // Processors of two kinds may differ in the last bits.
    const float *scores = nullptr;
    if (device.rank() == 0) {
      scores = device.read(plans.logits);
      token = static_cast<std::int32_t>(sampleToken(scores, plans.vocabulary, run.options,
                                                    draws.uniform(static_cast<std::uint64_t>(i))));
    }
    if (!isRead) // the other ranks wait for a token
      token = kNoReader;
    device.world().broadcast(&token, sizeof token, 0);
    if (token == kNoReader)
      throw NoReader("the text is no longer read");
    try {
      if (!take(token, scores))
        return;
    } catch (const NoReader &) {
      isRead = false;
    }
  }
  if (!isRead)
    throw NoReader("the text is no longer read");
}

void generateText(const TextRun &run) {
  const Generation &plans = run.program.generation;
  const std::unique_ptr<TextCodec> codec = TextCodec::open(run.program, run.beside);
  const std::vector<std::int32_t> prompt = codec->encode(run.options.prompt);
  if (prompt.empty())
    throw Error("--prompt got no token, expected at least one: the text to continue",
                kExitBadCommandLine)
        .byAll();
  const std::int64_t most = plans.context - static_cast<std::int64_t>(prompt.size());
  if (run.options.tokens > most)
    throw Error(format("--prompt got %zu tokens and --tokens %lld, expected at most %lld tokens "
                       "together: the context that the program was compiled for; request less, or "
                       "compile with a larger --context",
                       prompt.size(), static_cast<long long>(run.options.tokens),
                       static_cast<long long>(plans.context)),
                kExitBadCommandLine)
        .byAll();
  if (!run.device)
    return;
  codec->follow(prompt);
  const bool shows = run.device->rank() == 0;
  std::optional<ScoresFile> scores;
  if (shows && !run.scores.empty())
    scores.emplace(run.scores, prompt, plans.vocabulary);
  const double begin = now();
  double firstToken = 0;
  std::int64_t count = 0;
  const auto show = [&](const std::string &text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    finishOutput();
  };
  generateTokens(run, prompt, [&](std::int32_t token, const float *row) {
    if (count++ == 0)
      firstToken = now();
    if (scores)
      scores->add(token, row);
    if (codec->isEnd(token))
      return false;
    if (shows)
      show(codec->add(token));
    return true;
  });
  if (!shows)
    return;
  show(codec->finish() + "\n");
  if (scores)
    scores->commit();
  const double seconds = now() - firstToken;
  std::fprintf(stderr, "%zu tokens of the prompt in %.3g s, %lld after it", prompt.size(),
               firstToken > 0 ? firstToken - begin : 0.0, static_cast<long long>(count));
  if (count > 1)
    std::fprintf(stderr, ", %.4g tokens/s",
                 static_cast<double>(count - 1) / std::max(seconds, 1e-9));
  std::fprintf(stderr, "\n");
}

} // namespace fsdp::rt
