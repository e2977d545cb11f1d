#include "base/Error.h"
#include "test/unit/base/TemporaryFile.h"
#include "tools/fsdpc-log/Follow.h"

#include <gtest/gtest.h>

#include <filesystem>

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

TEST_F(LogFollowerTest, BeginsAnewWhereNothingIsLeft) {
  std::string all;
  for (int i = 0; i < 5000; ++i) // more than it compares
    all += step(i, ", \"note\": \"" + std::string(600, 'x') + "\"");
  append(all);
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
