//===- Readers.h - what takes bytes of others -------------------*- C++ -*-===//
//
// Every reader of the project as one function of bytes, for libFuzzer (Fuzz.cpp), and for the
// replay that every check runs (ReplayTest.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TEST_FUZZ_READERS_H
#define TEST_FUZZ_READERS_H

#include <random>
#include <string>
#include <vector>

namespace fsdp::fuzz {

/// The result for the bytes. `complaint` is set if a reader accepts invalid bytes, or refuses them
/// without a message.
struct Outcome {
  bool taken = false;
  std::string complaint;
};

struct Reader {
  const char *name;
  Outcome (*read)(const std::string &bytes);
  /// Something right, in several variants.
  std::string (*right)(std::mt19937 &random);
  /// Whether it is text, for the mutator.
  bool isText;
};

Outcome readWeights(const std::string &bytes);
Outcome readIndex(const std::string &bytes);
Outcome readSamples(const std::string &bytes);
Outcome readTokens(const std::string &bytes);
/// Bytes are tried as they are, and with the checksum that they should have.
Outcome readManifest(const std::string &bytes);
/// A file of options, @FILE.
Outcome readOptionsFile(const std::string &bytes);
/// A command line of a generated program, an argument a line.
Outcome readProgramOptions(const std::string &bytes);
/// The same of fsdpc, and what it makes of the options by themselves.
Outcome readCompilerOptions(const std::string &bytes);
/// A module: what is taken prints as a text that is read as the same module.
Outcome readModule(const std::string &bytes);

/// A tokenizer.json: one that is taken encodes texts as tokens of its own, and decodes them.
Outcome readTokenizer(const std::string &bytes);
std::string rightTokenizer(std::mt19937 &random);

/// A log, as fsdpc-log takes it: its table, chart, events and commands.
Outcome readLog(const std::string &bytes);

extern const std::vector<Reader> runtimeReaders, compilerReaders, logReaders;

} // namespace fsdp::fuzz

#endif // TEST_FUZZ_READERS_H
