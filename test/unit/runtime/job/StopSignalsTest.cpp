// Signals that ask for the end of a run, which come more than once: from a terminal to the whole
// group and from the parent that passes them on, in any order and however far apart.
#include "runtime/job/StopSignals.h"
#include "runtime/job/ForkedRanks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsdp::rt;

namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() { close(ends[0]), close(ends[1]); }
  template <class T> void put(T value) const {
    EXPECT_EQ(write(ends[1], &value, sizeof value), ssize_t(sizeof value));
  }
  template <class T> T take() const {
    T value{};
    while (read(ends[0], &value, sizeof value) < 0 && errno == EINTR) {
    }
    return value;
  }
};

void pauseLongerThanOneSignal() { usleep(static_cast<useconds_t>(1.5e6 * kSameSignalSeconds)); }

/// A parent with one rank, which ends with status 0 when it is told to.
class StopSignals : public testing::Test {
protected:
  void SetUp() override {
    parent = fork();
    if (parent == 0) {
      handleStopSignals();
      ForkedRanks ranks(1, true);
      ranks.start([&](int) {
        toTest.put(getpid());
        while (!stopRequest().signal)
          usleep(1000);
        toTest.put(1);
        return toRank.take<int>();
      });
      int ended = -1;
      bool said = false;
      while (ranks.reap([&](int, int status) { ended = WEXITSTATUS(status); })) {
        ranks.await(0.1);
        if (ranks.isStopRequested() && !said)
          passedOn.put(1), said = true;
        if (ranks.isEndRequested())
          ranks.killAll();
      }
      _exit(ended);
    }
    rank = toTest.take<pid_t>();
  }
  int statusOfParent() const {
    int status = -1;
    EXPECT_EQ(waitpid(parent, &status, 0), parent);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  Pipe toTest, toRank, passedOn;
  pid_t parent = 0, rank = 0;
};

TEST_F(StopSignals, ALateSignalOfTheParentIsNotASecondOne) {
  kill(rank, SIGTERM);
  EXPECT_EQ(toTest.take<int>(), 1);
  pauseLongerThanOneSignal(); // as a parent that gets no processor
  kill(parent, SIGTERM);
  EXPECT_EQ(passedOn.take<int>(), 1);
  toRank.put(0);
  EXPECT_EQ(statusOfParent(), 0) << "the rank was ended while it saved";
}

TEST_F(StopSignals, ALateSignalToTheGroupIsNotASecondOne) {
  kill(parent, SIGTERM);
  EXPECT_EQ(passedOn.take<int>(), 1);
  EXPECT_EQ(toTest.take<int>(), 1);
  pauseLongerThanOneSignal();
  kill(rank, SIGTERM);
  toRank.put(0);
  EXPECT_EQ(statusOfParent(), 0) << "the rank was ended while it saved";
}

TEST_F(StopSignals, ASecondOneEndsTheRankAtOnce) {
  kill(rank, SIGTERM);
  EXPECT_EQ(toTest.take<int>(), 1);
  pauseLongerThanOneSignal();
  kill(rank, SIGTERM);
  EXPECT_EQ(statusOfParent(), statusOfSignal(SIGTERM));
}

// Of a terminal that is closed: by the shell, and by the system when the shell ends.
TEST_F(StopSignals, AHangUpNeverEndsARunAtOnce) {
  kill(parent, SIGHUP);
  EXPECT_EQ(passedOn.take<int>(), 1) << "the parent has ended the rank";
  EXPECT_EQ(toTest.take<int>(), 1);
  pauseLongerThanOneSignal();
  kill(parent, SIGHUP);
  kill(rank, SIGHUP);
  pauseLongerThanOneSignal();
  toRank.put(0);
  EXPECT_EQ(statusOfParent(), 0) << "the rank was ended while it saved";
  EXPECT_STREQ(nameOfStop(SIGHUP), "SIGHUP");
}

TEST_F(StopSignals, SoDoesOneThatTheParentPassesOnTwice) {
  kill(parent, SIGTERM);
  EXPECT_EQ(passedOn.take<int>(), 1);
  EXPECT_EQ(toTest.take<int>(), 1);
  pauseLongerThanOneSignal();
  kill(parent, SIGTERM);
  EXPECT_NE(statusOfParent(), 1) << "the rank waits";
}

} // namespace
