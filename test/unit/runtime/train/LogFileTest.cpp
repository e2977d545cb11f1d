#include "runtime/train/LogFile.h"
#include "runtime/files/StandardStreams.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

void writeStep(LogFile &log, std::int64_t step) {
  JsonLine line;
  line.add("step", step);
  log.write(line, step);
}

std::string textOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class LogFileTest : public testing::Test {
protected:
  void TearDown() override { fs::remove_all(file.folder); }
  TemporaryFile file{"log"};
};

TEST_F(LogFileTest, LinesAreThereAtOnce) {
  LogFile log(file.path);
  writeStep(log, 1);
  EXPECT_EQ(file.read(), "{\"step\": 1}\n");
  EXPECT_EQ(log.previous(), "");
  log.finish();
}

TEST_F(LogFileTest, AnExistingLogGetsTheFirstFreeNumber) {
  file.write("first\n");
  ASSERT_EQ(chmod(file.path.c_str(), 0600), 0);
  EXPECT_EQ(LogFile(file.path).previous(), file.path + ".1");
  EXPECT_EQ(LogFile(file.path).previous(), "") << "an empty log is none";
  file.write("second\n");
  fs::create_directory(file.path + ".2"); // taken, whatever it is
  LogFile third(file.path);
  EXPECT_EQ(third.previous(), file.path + ".3");
  writeStep(third, 1);
  EXPECT_EQ(textOf(file.path + ".1"), "first\n");
  EXPECT_EQ(textOf(file.path + ".3"), "second\n");
  EXPECT_EQ(file.read(), "{\"step\": 1}\n");
  struct stat status;
  ASSERT_EQ(stat(file.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u) << "as the log before it";
}

TEST_F(LogFileTest, AnExistingLogTakesNoNameOfAnotherOutput) {
  file.write("first\n");
  fs::create_symlink("log.2", file.path + ".link");
  const OutputPath exported(file.path + ".1"), trace(file.path + ".link");
  const LogFile log(file.path, {exported.identity(), trace.identity()});
  EXPECT_EQ(log.previous(), file.path + ".3");
  EXPECT_FALSE(fs::exists(file.path + ".1"));
}

TEST_F(LogFileTest, ALogOfARunIsNotReplaced) {
  const std::string other = file.path + ".other";
  std::ofstream(other) << "old";
  EXPECT_EQ(messageOf([&] { requireNoLogOfARun(other); }), "no error");
  EXPECT_EQ(messageOf([&] { requireNoLogOfARun(file.path); }), "no error");
  const LogFile log(file.path);
  EXPECT_NE(messageOf([&] { requireNoLogOfARun(file.path); }).find("another run writes its log"),
            std::string::npos);
}

TEST_F(LogFileTest, ALinkStaysAndItsTargetIsRenamed) {
  std::ofstream(file.path + ".target") << "old";
  fs::create_symlink("log.target", file.path);
  LogFile log(file.path);
  EXPECT_EQ(fs::path(log.previous()).filename(), "log.target.1");
  EXPECT_TRUE(fs::is_symlink(file.path));
}

TEST_F(LogFileTest, ALogOfARunningProgramIsRefused) {
  std::string message;
  {
    LogFile first(file.path);
    writeStep(first, 1);
    message = messageOf([&] { LogFile second(file.path); });
    EXPECT_EQ(file.read(), "{\"step\": 1}\n");
    EXPECT_FALSE(fs::exists(file.path + ".1"));
  }
  EXPECT_NE(
      message.find("another run writes its log there; wait for its end or choose another file"),
      std::string::npos)
      << message;
  EXPECT_EQ(LogFile(file.path).previous(), file.path + ".1") << "the lock went with the run";
}

/// Many processes begin the same log at the same time: one has it, or they have it in turn.
TEST_F(LogFileTest, OneOfManyRunsHasTheLog) {
  constexpr int runs = 16;
  file.write("old\n");
  int gate[2], done[2];
  ASSERT_EQ(pipe(gate) | pipe(done), 0);
  for (int i = 0; i < runs; ++i)
    if (fork() == 0) {
      char byte;
      close(gate[1]);
      close(done[1]);
      (void)!read(gate[0], &byte, 1); // ends when the gate is closed
      int status = 1;
      try {
        LogFile log(file.path);
        writeStep(log, i);
        status = 0;
        (void)!read(done[0], &byte, 1);
      } catch (const std::exception &error) {
        status = std::strstr(error.what(), "another run writes its log there") ? 1 : 2;
      }
      _exit(status);
    }
  close(gate[0]);
  close(gate[1]);
  int counts[3] = {};
  int status;
  for (int i = 0; i < runs - 1; ++i) {
    ASSERT_GT(wait(&status), 0);
    ++counts[WEXITSTATUS(status)];
  }
  close(done[0]);
  close(done[1]);
  ASSERT_GT(wait(&status), 0);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the one that held the lock";
  EXPECT_EQ(counts[1], runs - 1);
  EXPECT_EQ(textOf(file.path + ".1"), "old\n");
  EXPECT_FALSE(fs::exists(file.path + ".2"));
  EXPECT_EQ(fs::file_size(file.path), file.read().find('\n') + 1) << "one line of one run";
}

TEST_F(LogFileTest, GoesBackToAStep) {
  LogFile log(file.path);
  log.writeHeader("{\"run\":{}}\n");
  JsonLine line;
  for (std::int64_t step = 5; step < 9; ++step) {
    line.add("step", step);
    line.add("seconds", 0.5 * double(step));
    log.write(line, step);
  }
  fs::rename(file.path, file.path + ".moved");
  log.goBack(6);
  EXPECT_EQ(log.dropped(), 2);
  EXPECT_EQ(log.lastSeconds(), 3);
  log.writeHeader("{\"rollback\":{}}\n");
  writeStep(log, 7);
  const std::string begin = "{\"run\":{}}\n{\"step\": 5, \"seconds\": 2.5}\n",
                    six = "{\"step\": 6, \"seconds\": 3}\n", back = "{\"rollback\":{}}\n";
  EXPECT_EQ(textOf(file.path + ".moved"), begin + six + back + "{\"step\": 7}\n");
  // A log that begins after a checkpoint to which the run goes back keeps no step.
  log.goBack(4);
  EXPECT_EQ(log.lastSeconds(), 0);
  writeStep(log, 5);
  EXPECT_EQ(textOf(file.path + ".moved"), "{\"run\":{}}\n{\"step\": 5}\n");
  log.finish();
}

TEST_F(LogFileTest, ContinuesFromALogWithARollback) {
  const std::string kept = "{\"step\": 1, \"seconds\": 7}\n{\"rollback\":{}}\n";
  file.write(kept + "{\"step\": 2, \"seconds\": 8}\n");
  LogFile log(file.path, {}, 1);
  EXPECT_EQ(log.previous(), "");
  EXPECT_EQ(log.lastSeconds(), 7);
  EXPECT_EQ(file.read(), kept);
}

TEST_F(LogFileTest, AFullDiskEndsTheLogNotTheRun) {
  testing::internal::CaptureStderr();
  LogFile log("/dev/full");
  writeStep(log, 7);
  writeStep(log, 8);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "note: cannot write '/dev/full' in step 7: No space left on device; training continues "
            "without it\n");
  EXPECT_EQ(messageOf([&] { log.finish(); }),
            "cannot write '/dev/full': No space left on device; training is done, but the log "
            "lacks the steps from 7 on; free some space or choose another location");
}

TEST_F(LogFileTest, ALostResultIsAnErrorAndNoNote) {
  for (const bool isResult : {false, true}) { // weights without a step are evaluated as step 0
    testing::internal::CaptureStderr();
    LogFile log("/dev/full");
    if (isResult)
      log.holdsResult();
    writeStep(log, 0);
    EXPECT_EQ(testing::internal::GetCapturedStderr().empty(), isResult);
    EXPECT_EQ(messageOf([&] { log.finish(); }),
              isResult ? "cannot write '/dev/full': No space left on device; free some space or "
                         "choose another location"
                       : "cannot write '/dev/full': No space left on device; training is done, but "
                         "the log lacks the steps from 0 on; free some space or choose another "
                         "location");
  }
}

TEST_F(LogFileTest, ALogThatIsGivenUpEndsWithAWholeLine) {
  EXPECT_EXIT(
      {
        prepareStandardStreams(); // no signal at the limit
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 30;
        setrlimit(RLIMIT_FSIZE, &limit);
        LogFile log(file.path);
        for (int step = 1; step < 9; ++step)
          writeStep(log, step);
        _exit(messageOf([&] { log.finish(); }).find("from 3 on") != std::string::npos ? 0 : 1);
      },
      testing::ExitedWithCode(0), "note: cannot write");
  EXPECT_EQ(file.read(), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST_F(LogFileTest, AFailedCreationIsAnError) {
  EXPECT_NE(messageOf([] { LogFile other("/nowhere/log"); }).find("cannot create '/nowhere/log'"),
            std::string::npos);
}

TEST_F(LogFileTest, ANameWithoutRoomForANumberIsCut) {
  const std::string longName = file.folder + "/" + std::string(254, 'x'),
                    aside = file.folder + "/" + std::string(253, 'x') + ".1";
  std::ofstream(longName) << "old\n";
  EXPECT_EQ(LogFile(longName).previous(), aside);
  EXPECT_EQ(textOf(aside), "old\n");
  EXPECT_EQ(textOf(longName), "");
}

} // namespace
