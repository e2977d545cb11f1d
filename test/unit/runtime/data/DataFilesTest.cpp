#include "runtime/data/DataFiles.h"
#include "runtime/data/OpenDataset.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace fsdp::rt;

namespace {

namespace fs = std::filesystem;

/// A folder with files of the numbers of their bytes.
class DataFilesTest : public testing::Test {
protected:
  DataFilesTest() {
    std::string name = testing::TempDir() + "data-XXXXXX";
    folder = mkdtemp(name.data());
    for (const char *file : {"a:1", "b10.bin", "b2.bin", "b2.bin:3", "c", "w/c", "x[1]"})
      write(file, 20);
  }
  ~DataFilesTest() override { fs::remove_all(folder); }

  std::string at(const std::string &name) const { return folder + "/" + name; }
  void write(const std::string &name, std::size_t bytes, char value = 1) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    std::ofstream(at(name), std::ios::binary) << std::string(bytes, value);
  }

  std::vector<DataSource> sources(std::vector<std::string> words, bool takesWeights = true) const {
    for (std::string &word : words)
      word = at(word);
    return sourcesOf("--data", words, takesWeights);
  }
  /// Each source as "weight: files", without the folder.
  std::string text(const std::vector<std::string> &words) const {
    std::string text;
    for (const DataSource &source : sources(words)) {
      text += (text.empty() ? "" : "; ") + std::to_string(source.weight).substr(0, 5) + ":";
      for (const std::string &file : source.files)
        text += " " + file.substr(folder.size() + 1);
    }
    return text;
  }
  void refused(const std::vector<std::string> &words, const std::string &why,
               bool takesWeights = true) const {
    const std::string message = messageOf([&] { sources(words, takesWeights); });
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }

  std::string folder;
};

TEST_F(DataFilesTest, WordsWithoutWeightsAreOneSource) {
  EXPECT_EQ(text({"c"}), "1.000: c");
  EXPECT_EQ(text({"w/c", "b*.bin", "c"}), "1.000: w/c b10.bin b2.bin c") << "as bytes, not numbers";
  EXPECT_EQ(sources({"c", "w/*"}).front().name, at("c") + " " + at("w/*"));
  EXPECT_TRUE(sources({}).empty());
}

TEST_F(DataFilesTest, WordsWithWeightsAreSeparateSources) {
  EXPECT_EQ(text({"b*.bin:6", "c:2"}), "0.750: b10.bin b2.bin; 0.250: c");
  EXPECT_EQ(text({"c:1e308", "w/c:1e308"}), "0.500: c; 0.500: w/c");
  EXPECT_EQ(text({"c:0.5"}), "1.000: c");
  EXPECT_EQ(sources({"b*.bin:6"}).front().name, at("b*.bin"));
}

TEST_F(DataFilesTest, NamesOfFilesHaveNoWeights) {
  EXPECT_EQ(text({"a:1"}), "1.000: a:1");
  EXPECT_EQ(text({"b2.bin:3"}), "1.000: b2.bin:3") << "although there is a file before the colon";
  EXPECT_EQ(text({"b2.bin:3:4", "b2.bin:2"}), "0.666: b2.bin:3; 0.333: b2.bin");
  EXPECT_EQ(text({"a:*"}), "1.000: a:1");
  EXPECT_EQ(text({"b2.bin:?"}), "1.000: b2.bin:3");
  EXPECT_EQ(text({"x[1]"}), "1.000: x[1]") << "a pattern that is the name of a file";
  EXPECT_EQ(text({"no:where"}), "1.000: no:where") << "reported when it is opened";
  EXPECT_EQ(text({"w:1/c"}), "1.000: w:1/c");
}

TEST_F(DataFilesTest, RefusesWordsThatNameNothingOrTwice) {
  refused({"z*"}, "--data: no file matches '" + at("z*") + "'");
  refused({"c", "c"}, "--data: got one file as '" + at("c") + "' and as '" + at("c") +
                          "': name each file once");
  fs::create_symlink(at("c"), at("d"));
  refused({"c:1", "d:2"}, "got one file as '" + at("c") + "' and as '" + at("d") + "'");
  refused({"b2.bin", "b*.bin"}, "got one file as");
  for (const char *weight : {"0", "-1", "nan", "inf", "1e999", "many", "", "07"})
    refused({std::string("c:") + weight},
            "got the weight '" + std::string(weight) + "' in '" + at("c:") + weight +
                "', expected a finite number > 0; leave out files that should not be drawn");
  refused({"b*.bin:0"}, "got the weight '0'");
  refused({"c:1e-300", "w/c:1"}, "got the weight 1e-300 for '" + at("c") +
                                     "', which is less than 2^-40 of the largest, 1: it would "
                                     "never be drawn; leave it out, or give it a larger weight");
  refused({"c:1", "w/c"}, "got a weight for '" + at("c") + "' and none for '" + at("w/c") +
                              "': give every file and pattern one (FILE:WEIGHT), or none");
  refused({"c:1"}, "got a weight for '" + at("c") + "', expected none: every sample is evaluated",
          /*takesWeights=*/false);
}

TEST_F(DataFilesTest, RefusesFoldersOfPatternsThatCannotBeRead) {
  fs::create_symlink(at("nowhere"), at("dangling"));
  EXPECT_EQ(text({"*/*"}), "1.000: w/c");
  fs::create_symlink(at("loop"), at("loop"));
  refused({"loop/*"},
          "--data: cannot look for files that match '" + at("loop/*") + "': '" + at("loop"));
}

constexpr Input kInputs[] = {
    {"tokens", {4}, 0, ArenaSpan<std::int32_t>{0, 4}, 1, 1, {0}, 256, Source::Tokens},
};

TEST_F(DataFilesTest, FilesOfADataSetAreOneAfterAnother) {
  write("c", 9, 3);       // two samples, as the last token has no target
  write("w/c", 5, 5);     // one
  write("b2.bin", 16, 7); // three
  std::vector<std::int64_t> samples;
  const auto data = openDataset({at("c"), at("w/c"), at("b2.bin")}, kInputs, samples);
  EXPECT_EQ(samples, (std::vector<std::int64_t>{2, 1, 3}));
  ASSERT_EQ(data->samples(), 6);
  std::string read;
  for (std::int64_t sample = 0; sample < 6; ++sample) {
    std::int32_t tokens[4];
    data->read(0, sample, tokens);
    EXPECT_EQ(tokens[0], tokens[3]);
    read += std::to_string(tokens[0]);
  }
  EXPECT_EQ(read, "335777");
}

TEST_F(DataFilesTest, FilesOfOtherFormsAreRefused) {
  const auto tokens = [](std::uint32_t magic, std::uint32_t version, std::size_t bytes) {
    std::string text(1024 + 8 * bytes, '\0');
    const std::uint32_t header[] = {magic, version, 8};
    text.replace(0, sizeof header, reinterpret_cast<const char *>(header), sizeof header);
    return text;
  };
  std::ofstream(at("narrow"), std::ios::binary) << tokens(20240520, 1, 2);
  std::ofstream(at("wide"), std::ios::binary) << tokens(20240801, 7, 4);
  const auto refused = [&](const std::string &first, const std::string &second) {
    return messageOf([&] {
      std::vector<std::int64_t> samples;
      openDataset({at(first), at(second)}, kInputs, samples);
    });
  };
  EXPECT_EQ(refused("narrow", "wide"),
            "'" + at("wide") + "': got 32-bit tokens, expected 16-bit tokens as '" + at("narrow") +
                "' has: the files of a run are written by one tokenizer, in one form; convert this "
                "one or leave it out");
  EXPECT_NE(refused("wide", "c").find("got bytes, expected 32-bit tokens"), std::string::npos);
  EXPECT_EQ(refused("c", "w/c"), "no error");
  write("empty", 0);
  EXPECT_EQ(refused("c", "empty"),
            "'" + at("empty") + "': got 0 tokens, expected at least 5 for one sample of 4");
}

// As many files stay open as a data set has; the limit of a process is often 1024.
TEST_F(DataFilesTest, ManyFilesMayBeOpen) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<std::string> paths;
  for (int i = 0; i < 100; ++i) {
    write("m" + std::to_string(i), 5);
    paths.push_back(at("m" + std::to_string(i)));
  }
  std::vector<std::int64_t> samples;
  EXPECT_EQ(openDataset(paths, kInputs, samples)->samples(), 100);
  setrlimit(RLIMIT_NOFILE, &before);
  // Where the limit may not be raised.
  limit.rlim_max = 64;
  EXPECT_EXIT(
      {
        setrlimit(RLIMIT_NOFILE, &limit);
        std::fputs(messageOf([&] { openDataset(paths, kInputs, samples); }).c_str(), stderr);
        _exit(0);
      },
      testing::ExitedWithCode(0),
      "cannot open '.*': Too many open files; raise the limit \\(ulimit -n\\), or join files");
}

} // namespace
