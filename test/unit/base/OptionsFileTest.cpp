//===- OptionsFileTest.cpp - options from TOML files ----------------------===//

#include "base/OptionsFile.h"
#include "base/Options.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <random>

using namespace base;

namespace {

/// An error of a command line.
struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Program {
  CLI::App app;
  std::vector<std::string> data, shards;
  std::string text, kind;
  std::int64_t steps = 0;
  bool shuffle = false, printsConfig = false;

  Program() {
    app.name("program");
    addList(app, "--data", "FILE", data, "");
    addRepeated(app, "--shard", "P", "", [this](const std::string &value) {
      shards.push_back(value);
      return value == "bad" ? std::string("got 'bad'") : std::string();
    });
    addText(app, "-o,--text", "TEXT", text, "");
    addInteger(app, "--steps", "N", steps, "", IntegerRange<std::int64_t>{1, 100})
        ->default_str("7");
    addChoice(app, "--kind", kind, "", {"a", "b"});
    addFlag(app, "--shuffle", shuffle, "");
    addOptionsFiles(app, printsConfig);
  }
  std::vector<std::string> parse(std::vector<std::string> words) {
    return parseArguments<Misuse>(app, std::move(words));
  }
};

class OptionsFileTest : public testing::Test {
protected:
  fsdp::rt::TemporaryFile file{"options.toml"};

  std::string at(const std::string &content) {
    file.write(content);
    return "@" + file.path;
  }
  /// The message of parsing `words`, with the path of the file as F.
  std::string faultOf(std::vector<std::string> words) {
    Program program;
    try {
      program.parse(std::move(words));
      return "";
    } catch (const Misuse &why) {
      std::string text = why.what();
      for (std::size_t i; (i = text.find(file.path)) != text.npos;)
        text.replace(i, file.path.size(), "F");
      return text;
    }
  }
};

using Words = std::vector<std::string>;

TEST_F(OptionsFileTest, OptionsOfAFileReplaceIt) {
  const std::string of = at("# a comment\nsteps = 1_0 # another\n\"data\" = [\"a#b\", 'c,d']\n"
                            "text = \"=\\\"\\u00e9\"\nshuffle = true\n");
  Program program;
  const Words words = program.parse({"--steps=3", "--data", "x", of, "--steps=4", "--data=y"});
  EXPECT_EQ(words, (Words{"--steps=3", "--data", "x", "--steps=10", "--data=a#b", "--data=c,d",
                          "--text==\"\u00e9", "--shuffle", "--steps=4", "--data=y"}));
  EXPECT_EQ(program.steps, 4);
  EXPECT_EQ(program.data, (Words{"x", "a#b", "c,d", "y"}));
  EXPECT_TRUE(program.shuffle);
  Program last;
  last.parse({"--steps=3", of});
  EXPECT_EQ(last.steps, 10);
}

TEST_F(OptionsFileTest, ALaterFalseTakesAFlagBack) {
  Program program;
  program.parse({"--shuffle", at("shuffle = false\n")});
  EXPECT_FALSE(program.shuffle);
}

TEST_F(OptionsFileTest, ValuesOfOptionsAreNoFiles) {
  Program program;
  program.parse({"--text", "@a", "-o", "@b", "--data", "@c"});
  EXPECT_EQ(program.text, "@b");
  EXPECT_EQ(program.data, Words{"@c"});
  EXPECT_EQ(faultOf({"--shuffle", "@none.toml"}),
            "@none.toml: cannot open 'none.toml': No such file or directory");
  EXPECT_EQ(faultOf({"--data", "a", "@"}), "got '@' without the name of a file");
}

TEST_F(OptionsFileTest, ErrorsNameFileLineAndKey) {
  const auto fault = [&](const std::string &content) { return faultOf({at(content)}); };
  EXPECT_EQ(
      fault("steps = 3\n\nstep = 4\n"),
      "'F', line 3: got the key 'step', which is not an option of 'program'; keys are the names "
      "of options, without their '--'");
  EXPECT_EQ(fault("print_config = true\n"),
            "'F', line 1: got the key 'print_config': '--print-config' is for the command line "
            "alone");
  EXPECT_EQ(fault("help = true\n"),
            "'F', line 1: got the key 'help': '--help' is for the command line alone");
  EXPECT_EQ(fault("h = true\n"),
            "'F', line 1: got the key 'h': '-h' is for the command line alone");
  EXPECT_EQ(fault("o = 'x'\n"), "'F', line 1: got the key 'o', expected 'text'");
  EXPECT_EQ(fault("--steps = 3\n"), "'F', line 1: got the key '--steps', expected 'steps'");
  EXPECT_EQ(fault("\nsteps = 101"),
            "'F', line 2: --steps: got '101', expected an integer from 1 to 100");
  EXPECT_EQ(fault("shard = [\n'a',\n'bad']"), "'F', line 1: --shard: got 'bad'");
  EXPECT_EQ(fault("kind = 3"), "'F', line 1: --kind: got '3', expected a or b");
  EXPECT_EQ(fault("steps = true"), "'F', line 1: steps: got true, expected a value");
  EXPECT_EQ(fault("data = false"), "'F', line 1: data: got false, expected texts");
  EXPECT_EQ(fault("steps = [1]"), "'F', line 1: steps: got a list, expected one value");
  EXPECT_EQ(fault("data = [[1]]"), "'F', line 1: data: got a list, expected a text or a number");
  EXPECT_EQ(fault("data = [true]"), "'F', line 1: data: got true, expected a text or a number");
  EXPECT_EQ(fault("text = 1979-05-27"),
            "'F', line 1: text: got a date or a time, expected a text or a number");
  EXPECT_EQ(fault("text = 'a'\ndata = \"b\\u0000c\""),
            "'F', line 2: data: got a text with a NUL character, which no option takes");
  EXPECT_EQ(fault("\xEF\xBB\xBFsteps = nan"), fault("steps = nan"));
  EXPECT_EQ(fault("shuffle = 1"), "'F', line 1: shuffle: got a value, expected true or false");
  EXPECT_EQ(fault("text = ''"),
            "'F', line 1: text: got an empty text; give a value or leave the key out");
  EXPECT_EQ(fault("[run]\nsteps = 1"), "'F', line 1: run: got a table, expected options without "
                                       "tables: a key and its value each");
  EXPECT_EQ(fault("[[run]]"), "'F', line 1: run: got a table, expected options without tables: a "
                              "key and its value each");
  EXPECT_EQ(fault("steps 1").substr(0, 27), "'F', line 1: it is not TOML");
  // A value on the command line is not blamed on a file.
  EXPECT_EQ(faultOf({"--steps=0", at("steps = 5")}),
            "--steps: got '0', expected an integer from 1 to 100");
}

TEST_F(OptionsFileTest, PrintedOptionsReadBack) {
  const std::vector<std::string> pieces = {"a",  "1", "-",      "e",  ".",  "0",   "_",
                                           "\"", "'", "\\",     " ",  "#",  "[",   "]",
                                           ",",  "=", "\u00e9", "\n", "\t", "true"};
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    Words words = {"--steps=5"};
    for (const char *option : {"--text=", "--data=", "--shard=", "--data="}) {
      std::string value;
      for (int left = 1 + random() % 6; left; --left)
        value += pieces[random() % pieces.size()];
      // CLI11 splits values that look like lists.
      if (value.front() != '[' || value.back() != ']')
        words.push_back(option + value);
    }
    Program first, second;
    first.parse(words);
    const std::string printed = optionsFileText(first.app, "program");
    second.parse({at(printed)});
    EXPECT_EQ(second.text, first.text) << printed;
    EXPECT_EQ(second.data, first.data) << printed;
    EXPECT_EQ(second.shards, first.shards) << printed;
    EXPECT_EQ(optionsFileText(second.app, "program"), printed);
  }
}

TEST_F(OptionsFileTest, NumbersAreThoseOfToml) {
  const std::pair<const char *, const char *> numbers[] = {
      {"+3", "3"},          {"0x1F", "31"},    {"0o17", "15"},   {"0b101", "5"},
      {"1_000", "1000"},    {"-0x1", nullptr}, {"007", nullptr}, {"+1.5", "1.5"},
      {"1_0.2_5", "10.25"}, {"+1e+2", "1e+2"}, {"-2", "-2"},     {"+inf", "inf"}};
  for (const auto &[written, read] : numbers) {
    const std::string of = at("data = [\"\u00e9\", " + std::string(written) + ", 7]");
    if (!read) {
      EXPECT_NE(faultOf({of}).find("it is not TOML"), std::string::npos) << written;
      continue;
    }
    Program program;
    program.parse({of});
    EXPECT_EQ(program.data, (Words{"\u00e9", read, "7"}));
  }
  Program program; // text is printed as text, although it is a number in TOML
  program.parse({"--text=0x1F", "--data=+3", "--steps=5"});
  const std::string printed = optionsFileText(program.app, "program");
  EXPECT_NE(printed.find("data = \"+3\"\ntext = \"0x1F\"\nsteps = 5\n"), std::string::npos)
      << printed;
}

TEST_F(OptionsFileTest, ManyNumbersAreReadInOnePass) {
  // Each in a line, and all in one: a search from the beginning for each would take half a minute.
  constexpr int count = 40000;
  for (const char *between : {",", ",\n"}) {
    std::string text = "data = [";
    for (int i = 0; i < count; ++i)
      text += std::to_string(i) + ".5" + between;
    Program program;
    program.parse({at(text + "]")});
    ASSERT_EQ(program.data.size(), std::size_t(count));
    EXPECT_EQ(program.data.back(), std::to_string(count - 1) + ".5");
  }
}

TEST_F(OptionsFileTest, InvalidUtf8IsNotPrinted) {
  for (const char *option : {"--text=", "--data="}) {
    Program program;
    program.parse({std::string(option) + "caf\xe9"});
    try {
      optionsFileText(program.app, "program");
      ADD_FAILURE() << "TOML is UTF-8";
    } catch (const OptionsFileError &error) {
      EXPECT_EQ(std::string(error.what()),
                "--print-config: " + std::string(option).substr(0, 6) +
                    ": got 'caf\\xE9', which is not UTF-8, as TOML is: rename what it names");
    }
  }
}

TEST_F(OptionsFileTest, DefaultsArePrintedAsComments) {
  Program program;
  program.parse({"--shuffle", "--shard=a", "--kind=a", "--kind=b"});
  EXPECT_EQ(optionsFileText(program.app, "program"),
            "# program @FILE reads this.\nshard = \"a\"\nkind = \"b\"\nshuffle = true\n\n"
            "# Defaults of options that were not given:\n# steps = 7\n");
}

} // namespace
