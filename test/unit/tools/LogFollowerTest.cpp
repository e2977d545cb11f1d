#include "base/Error.h"
#include "test/unit/base/TemporaryFile.h"
#include "tools/fsdpc-log/Follow.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

using namespace fsdpc_log;
using fsdp::rt::TemporaryFile;
namespace fs = std::filesystem;

namespace {

class LogFollowerTest : public testing::Test {
protected:
  void TearDown() override { fs::remove_all(file.folder); }
  void append(const std::string &text) {
    std::ofstream(file.path, std::ios::binary | std::ios::app) << text;
  }
  static std::string step(int number, const std::string &more = "") {
    return "{\"step\": " + std::to_string(number) + more + "}\n";
  }
  std::string seen() {
    text.clear();
    follower.poll();
    return text;
  }

  TemporaryFile file{"log"};
  std::string text; ///< steps, and in brackets what is said
  LogFollower follower{file.path,
                       [this](const LogEntry &entry) {
                         text += entry.kind == LogEntry::Step ? std::to_string(entry.step) + " "
                                                              : "restart ";
                       },
                       [this](const std::string &what) { text += "[" + what + "] "; }};
};

TEST_F(LogFollowerTest, WaitsForTheFileAndForWholeLines) {
  EXPECT_EQ(seen(), "");
  append(step(1) + "{\"step\"");
  EXPECT_EQ(seen(), "1 ");
  append(": 2}\n");
  EXPECT_EQ(seen(), "2 ");
  EXPECT_EQ(seen(), "");
}

TEST_F(LogFollowerTest, ContinuesInANewLogOfThatName) {
  append(step(1));
  EXPECT_EQ(seen(), "1 ");
  append(step(2)); // before it is renamed, and not seen yet
  fs::rename(file.path, file.path + ".1");
  EXPECT_EQ(seen(), "2 ");
  append(step(1));
  EXPECT_EQ(seen(), "['" + file.path + "' is a new log] 1 ");
}

TEST_F(LogFollowerTest, ContinuesWhereLaterStepsWereRemoved) {
  append(step(1) + step(2) + step(3) + step(4));
  EXPECT_EQ(seen(), "1 2 3 4 ");
  fs::resize_file(file.path, 2 * step(1).size());
  append("{\"restart\": {}}\n" + step(3));
  EXPECT_EQ(seen(), "[2 lines were removed from the log] restart 3 ");
  // Of the same size as before, or longer: the lines tell it.
  fs::resize_file(file.path, step(1).size());
  append(step(2, ", \"loss\": 7") + step(3) + step(4));
  EXPECT_EQ(seen(), "[3 lines were removed from the log] 2 3 4 ");
  // An incomplete line is cut off.
  append("{\"st");
  EXPECT_EQ(seen(), "");
  fs::resize_file(file.path, fs::file_size(file.path) - 4);
  append(step(5));
  EXPECT_EQ(seen(), "5 ");
}

/// 5,000 steps: more than it keeps to compare.
std::string longLog() {
  std::string all;
  for (int i = 0; i < 5000; ++i)
    all += "{\"step\": " + std::to_string(i) + ", \"note\": \"" + std::string(600, 'x') + "\"}\n";
  return all;
}

TEST_F(LogFollowerTest, CountsTheRemovedLinesOfALongLog) {
  append(longLog());
  seen();
  // To within the fourth line, of which the run removes the beginning.
  fs::resize_file(file.path, longLog().find("\"step\": 3,"));
  EXPECT_EQ(seen(), "[4997 lines were removed from the log] ");
  fs::resize_file(file.path, longLog().find("{\"step\": 3,"));
  append(step(3) + step(4));
  EXPECT_EQ(seen(), "3 4 ");
  fs::resize_file(file.path, longLog().find("{\"step\": 2,"));
  append(step(2));
  EXPECT_EQ(seen(), "[3 lines were removed from the log] 2 ") << "steps 2, 3 and 4";
}

TEST_F(LogFollowerTest, CountsTheRemovedLinesOfALongLogThatHasNewOnes) {
  append(longLog());
  seen();
  fs::resize_file(file.path, longLog().find("{\"step\": 1000,"));
  append(step(1000) + step(1001));
  EXPECT_EQ(seen(), "[4000 lines were removed from the log] 1000 1001 ");
  fs::resize_file(file.path, longLog().find("{\"step\": 1000,"));
  EXPECT_EQ(seen(), "[2 lines were removed from the log] ");
  fs::resize_file(file.path, longLog().find("{\"step\": 998,"));
  append(step(998, ", \"loss\": 1"));
  EXPECT_EQ(seen(), "[2 lines were removed from the log] 998 ");
}

// Of bytes that change while size and time remain, only a reader of the file would know.
TEST_F(LogFollowerTest, DoesNotReadAnIdleLog) {
  append(step(1) + step(2));
  EXPECT_EQ(seen(), "1 2 ");
  EXPECT_EQ(seen(), ""); // compares once more what was written while it opened the log
  const auto time = fs::last_write_time(file.path);
  std::ofstream(file.path, std::ios::binary) << step(1) << step(3);
  fs::last_write_time(file.path, time);
  EXPECT_EQ(seen(), "");
  fs::last_write_time(file.path, time + std::chrono::seconds(1));
  EXPECT_EQ(seen(), "[1 line was removed from the log] 3 ");
}

TEST_F(LogFollowerTest, BeginsAnewWhereNothingIsLeft) {
  append(longLog());
  seen();
  fs::resize_file(file.path, 0);
  append(step(1));
  EXPECT_EQ(seen(), "[5000 lines were removed from the log] 1 ");
}

TEST_F(LogFollowerTest, AFolderIsRefused) {
  fs::create_directory(file.path);
  EXPECT_THROW(follower.poll(), base::Error);
}

} // namespace
