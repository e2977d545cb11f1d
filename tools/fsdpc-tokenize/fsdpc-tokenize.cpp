//===- fsdpc-tokenize.cpp - token files of texts, and texts of token files ===//

#include "base/Error.h"
#include "base/Options.h"
#include "base/PrintableText.h"
#include "base/StandardOutput.h"
#include "tools/fsdpc-tokenize/Tokenization.h"

#include <csignal>
#include <cstdio>
#include <iostream>
#include <sched.h>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>

using namespace fsdpc;

namespace {

constexpr const char *kName = "fsdpc-tokenize";

/// An invalid command line.
struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::atomic<bool> stopped{false};
volatile std::sig_atomic_t stoppedBy = 0;

void stop(int number) {
  stoppedBy = number;
  stopped = true;
}

/// The cores that this process may use.
std::int64_t numCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    return CPU_COUNT(&cores);
  return std::max(1u, std::thread::hardware_concurrency());
}

struct Arguments {
  std::string tokenizer, appendEnd, decode;
  TokenizeOptions options;
};

void declare(CLI::App &app, Arguments &arguments) {
  TokenizeOptions &options = arguments.options;
  app.set_help_flag("--help,-h", "print this help and exit");
  app.set_version_flag("--version", std::string(kName) + " " + FSDP_VERSION,
                       "print the version and exit");
  app.add_option(
         "INPUT", options.inputs,
         "texts: a file whose name ends with .jsonl or .ndjson has a document on each line, "
         "another file is a document")
      ->type_name("FILE");
  base::addText(app, "--tokenizer", "FILE|FOLDER", arguments.tokenizer,
                "tokenizer.json, or the folder that has it");
  base::addText(app, "--out", "PREFIX", options.out,
                "the tokens are written to PREFIX_train_000000.bin and following, in llm.c's "
                "format; a folder "
                "of that name is created");
  base::addText(app, "--field", "NAME", options.documents.field,
                "the text of a line's JSON object (default: text)");
  base::addText(app, "--separator", "TEXT", options.documents.separator,
                "what stands between the documents of a text, and in none of them (default: a file "
                "is a document)");
  base::addText(app, "--append-end", "TOKEN|none", arguments.appendEnd,
                "token behind every document (default: 'eos_token' of tokenizer_config.json beside "
                "the tokenizer, or the one of <|endoftext|>, <|end_of_text|>, </s> that the "
                "vocabulary has)");
  base::addFlag(app, "--add-special-tokens", options.addSpecialTokens,
                "put the tokens around every document that the tokenizer puts around a text, such "
                "as <s>");
  base::addNumber(
      app, "--val-share", "X", options.validationShare,
      "share of the documents that go to PREFIX_val_000000.bin and following; a hash of "
      "a document's number decides (default: 0)",
      {/*least=*/0, /*aboveLeast=*/false, /*limit=*/1, /*isF32=*/false});
  base::addInteger(app, "--shard-tokens", "N", options.shardTokens,
                   "tokens of a file (default: 100000000)",
                   base::IntegerRange<std::int64_t>{1, kMaxShardTokens});
  base::addFlag(app, "--replace-invalid", options.documents.replaceInvalid,
                "take U+FFFD for bytes that are not UTF-8 (default: an error)");
  options.threads = numCores();
  base::addInteger(app, "--threads", "N", options.threads,
                   "threads that encode (default: the cores); the files do not depend on it",
                   base::IntegerRange<std::int64_t>{1, 1024});
  base::addText(app, "--decode", "FILE", arguments.decode,
                "print the text of a token file instead");
  app.footer(
      "Example: fsdpc-tokenize --tokenizer llama/ --out data/web --val-share 0.01 web.jsonl");
}

/// Options that belong to the other use.
void check(const CLI::App &app, const Arguments &arguments) {
  if (arguments.tokenizer.empty())
    throw Misuse("--tokenizer is missing; name a tokenizer.json or its folder");
  if (!arguments.decode.empty()) {
    for (const char *name : {"INPUT", "--out", "--field", "--separator", "--add-special-tokens",
                             "--val-share", "--shard-tokens", "--replace-invalid", "--threads"})
      if (app.get_option(name)->count())
        throw Misuse(std::string(name) + " has no effect with --decode; leave it out");
    return;
  }
  if (arguments.options.inputs.empty())
    throw Misuse("there is no input; name files of text, or give --decode");
  if (arguments.options.out.empty())
    throw Misuse("--out is missing; give the beginning of the names of the token files");
}

void print(const TokenizeResult &result, const Arguments &arguments,
           const tokenizer::Tokenizer &tokenizer) {
  const TokenizeOptions &options = arguments.options;
  for (const TokenFiles::Written &file : result.files)
    std::printf("%s: %lld tokens\n", base::printable(file.path).c_str(),
                static_cast<long long>(file.tokens));
  std::printf("documents: %lld", static_cast<long long>(result.documents));
  if (options.validationShare > 0)
    std::printf(", of which %lld for validation",
                static_cast<long long>(result.validationDocuments));
  if (result.emptyDocuments)
    std::printf(", of which %lld are empty and left out",
                static_cast<long long>(result.emptyDocuments));
  if (options.end)
    std::printf("; each ends with '%s' (%u)\n", base::printable(options.end->text).c_str(),
                options.end->id);
  else
    std::printf("; nothing stands between them\n");
  std::printf(
      "tokens: %lld of %lld bytes of text, %.2f bytes each; the model needs a vocabulary of "
      "at least %zu\n",
      static_cast<long long>(result.tokens), static_cast<long long>(result.textBytes),
      static_cast<double>(result.textBytes) / static_cast<double>(result.tokens),
      tokenizer.vocabularySize());
  std::printf("time: %.2f s, %.1f MB/s on %lld threads\n", result.seconds,
              static_cast<double>(result.textBytes) / 1e6 / std::max(result.seconds, 1e-9),
              static_cast<long long>(options.threads));
}

int run(int argc, char **argv) {
  CLI::App app("makes token files for training from texts, by a tokenizer.json");
  app.name(kName);
  Arguments arguments;
  declare(app, arguments);
  try {
    base::parseArguments<Misuse>(app, std::vector<std::string>(argv + 1, argv + argc));
  } catch (const CLI::Success &asked) {
    return base::printAsked(app, asked);
  }
  check(app, arguments);
  const auto tokenizer = tokenizer::Tokenizer::load(arguments.tokenizer);
  arguments.options.end = chooseEndToken(tokenizer, arguments.tokenizer, arguments.appendEnd);
  if (!arguments.decode.empty()) {
    printTokens(tokenizer, arguments.decode, arguments.options.end);
    return base::kExitDone;
  }
  for (const int number : {SIGHUP, SIGINT, SIGTERM})
    if (std::signal(number, stop) == SIG_IGN)
      std::signal(number, SIG_IGN);
  print(tokenizeFiles(tokenizer, arguments.options, stopped), arguments, tokenizer);
  return base::kExitDone;
}

/// All files are open until the end.
void raiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace

int main(int argc, char **argv) {
  std::signal(SIGPIPE, SIG_IGN); // a reader that is gone is an error of the write
  std::signal(SIGXFSZ, SIG_IGN); // as is a limit of the file size
  raiseFileLimit();
  const auto say = [](const std::string &message) {
    std::cerr << kName << ": error: " << base::printableMessage(message) << "\n";
  };
  try {
    return run(argc, argv);
  } catch (const Misuse &error) {
    say(std::string(error.what()) + "; see " + kName + " --help");
    return base::kExitBadCommandLine;
  } catch (const base::NoReader &) {
    return base::kExitNoReader;
  } catch (const std::exception &error) {
    say(error.what());
  }
  if (stoppedBy) {
    std::signal(stoppedBy, SIG_DFL);
    std::raise(stoppedBy);
  }
  return base::kExitFailure;
}
