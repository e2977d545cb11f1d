// Streams and events mean what CUDA's mean.
#include "runtime/device/Stream.h"

#include <atomic>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

void milliseconds(int count) { usleep(static_cast<useconds_t>(count) * 1000); }

struct Streams : testing::Test {
  Failure failure;
  Stream a{"a", 0, failure}, b{"b", 0, failure};
};

TEST_F(Streams, PerformInOrder) {
  // More actions than the ring has slots.
  std::vector<int> seen;
  std::vector<int> *to = &seen;
  for (int i = 0; i < 5000; ++i)
    a.push("append", [to, i] { to->push_back(i); });
  a.synchronize();
  ASSERT_EQ(seen.size(), 5000u);
  for (int i = 0; i < 5000; ++i)
    ASSERT_EQ(seen[i], i);
}

TEST_F(Streams, RunBesideEachOther) {
  std::atomic<int> met{0}, *at = &met;
  // Each waits for the other: serial streams would not get through.
  for (Stream *stream : {&a, &b})
    stream->push("meet", [at] {
      at->fetch_add(1);
      for (int tries = 0; at->load() % 2 && tries < 120000; ++tries)
        usleep(1000);
      if (at->load() != 2)
        throw Error("alone");
    });
  a.synchronize();
  b.synchronize();
}

TEST_F(Streams, WaitOrdersAfterTheRecord) {
  Event event;
  int value = 0, got = -1, *v = &value, *g = &got;
  for (int round = 1; round <= 200; ++round) {
    a.push("write", [v, round] {
      if (round % 50 == 0)
        milliseconds(5);
      *v = round;
    });
    a.record(event);
    b.wait(event);
    b.push("read", [v, g] { *g = *v; });
    b.synchronize();
    ASSERT_EQ(got, round);
  }
}

TEST_F(Streams, WaitForNothingRecordedIsNoWork) {
  Event event;
  b.wait(event);
  EXPECT_EQ(b.enqueued(), 0u);
  a.record(event);
  a.wait(event); // a stream is in order with itself
  EXPECT_EQ(a.enqueued(), 0u);
}

// A wait is for the latest record *before* the wait is enqueued, independent of later records of
// the event.
TEST_F(Streams, LaterRecordsDoNotChangeAWait) {
  Event event;
  std::atomic<bool> go{false}, *gate = &go;
  double when = 0, *at = &when;
  a.push("first", [] {});
  a.record(event);
  a.push("held", [gate] {
    for (int tries = 0; !*gate && tries < 120000; ++tries)
      usleep(1000);
  });
  b.wait(event); // for "first" only, though the stream is further on
  b.push("after first", [at] { *at = now(); });
  a.record(event);
  b.synchronize(); // would come only with the gate if it waited for more
  EXPECT_LT(a.completed(), 2u);
  EXPECT_GT(when, 0);
  go = true;
  a.synchronize();
}

// An event recorded again on another stream denotes only that record.
TEST_F(Streams, ARecordOnAnotherStreamReplaces) {
  Failure none;
  Stream c("c", 0, none);
  Event event;
  std::atomic<bool> go{false}, *gate = &go;
  a.push("held", [gate] {
    for (int tries = 0; !*gate && tries < 120000; ++tries)
      usleep(1000);
  });
  a.record(event);
  b.push("quick", [] {});
  b.record(event);
  c.wait(event);
  c.push("after quick", [] {});
  c.synchronize();
  EXPECT_EQ(a.completed(), 0u);
  go = true;
  a.synchronize();
}

TEST_F(Streams, AWaitHoldsUntilTheRecordIsReached) {
  Event event;
  std::atomic<bool> done{false}, *flag = &done;
  bool seen = false, *to = &seen;
  a.push("slow", [flag] {
    milliseconds(100);
    *flag = true;
  });
  a.record(event);
  b.wait(event);
  b.push("look", [flag, to] { *to = *flag; });
  b.synchronize();
  EXPECT_TRUE(seen);
}

TEST_F(Streams, AnErrorNamesTheActionAndStopsTheRest) {
  bool ran = false, *flag = &ran;
  std::atomic<bool> go{false}, *gate = &go;
  a.push("good", [gate] {
    for (int tries = 0; !*gate && tries < 120000; ++tries)
      usleep(1000);
  });
  a.push("bad", [] { throw Error("got 1, expected 2"); });
  a.push("after", [flag] { *flag = true; });
  go = true;
  EXPECT_THROW(a.synchronize(), Aborted);
  EXPECT_FALSE(ran);
  EXPECT_EQ(failure.error().describe(), "rank 0, 'bad': got 1, expected 2");
  EXPECT_THROW(b.push("more", [] {}), Aborted);
  EXPECT_THROW(b.synchronize(), Aborted);
}

TEST_F(Streams, TheFirstErrorStays) {
  EXPECT_TRUE(failure.raise(Error("first", 3).at(2, "here")));
  EXPECT_FALSE(failure.raise(Error("second").at(1, "there")));
  EXPECT_EQ(failure.error().describe(), "rank 2, 'here': first");
  EXPECT_EQ(failure.error().status(), 3);
  EXPECT_TRUE(failure.claimReport());
  EXPECT_FALSE(failure.claimReport());
}

TEST_F(Streams, CloseWithWorkLeft) {
  Failure none;
  Stream never("never", 0, none);
  Event event;
  {
    Stream held("held", 0, none);
    never.push("long", [] { milliseconds(50); });
    never.record(event);
    held.wait(event);
    held.push("not performed", [] { FAIL(); });
  }
  never.synchronize();
}

TEST_F(Streams, AnObserverSeesEachAction) {
  struct Seen {
    std::vector<std::string> names, kinds;
    double seconds = 0, processor = 0, flops = 0;
    std::size_t bytes = 0;
  } seen;
  a.observe({[](void *user, const StreamAction &action) {
               static_cast<Seen *>(user)->names.push_back(action.name);
               static_cast<Seen *>(user)->kinds.push_back(action.work.kind);
               static_cast<Seen *>(user)->seconds += action.end - action.start;
               static_cast<Seen *>(user)->processor += action.processor;
               static_cast<Seen *>(user)->flops += action.work.flops;
               static_cast<Seen *>(user)->bytes += action.bytes;
             },
             &seen});
  a.push("one", [] { milliseconds(20); }, Work{"sleep", 12}, 8);
  a.push("two", [] {});
  a.synchronize();
  EXPECT_EQ(seen.names, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(seen.kinds, (std::vector<std::string>{"sleep", "fused"}));
  EXPECT_EQ(seen.flops, 12);
  EXPECT_EQ(seen.bytes, 8u);
  EXPECT_GE(seen.seconds, 0.02);
  EXPECT_LT(seen.processor, 0.02) << "a thread that sleeps does not run";
}

TEST_F(Streams, AnObserverGetsTheAwaitedLaunch) {
  struct Seen {
    std::vector<std::string> names, kinds, awaited;
  } seen;
  b.observe({[](void *user, const StreamAction &action) {
               static_cast<Seen *>(user)->names.push_back(action.name);
               static_cast<Seen *>(user)->kinds.push_back(action.work.kind);
               static_cast<Seen *>(user)->awaited.push_back(action.awaited ? action.awaited : "");
             },
             &seen});
  Event early, event;
  a.record(early);
  a.push("first", [] {});
  a.record(event);
  b.wait(event);
  a.push("second", [] {}); // for nobody
  b.push("use", [] {});
  b.wait(early);
  b.synchronize();
  EXPECT_EQ(seen.names, (std::vector<std::string>{"first", "use", "start"}));
  EXPECT_EQ(seen.kinds, (std::vector<std::string>{"wait", "fused", "wait"}));
  EXPECT_EQ(seen.awaited, (std::vector<std::string>{"a", "", "a"}));
  a.synchronize();
}

TEST(WaitCounter, WaitEndsAtItsLimit) {
  WaitCounter progress;
  double start = now();
  EXPECT_FALSE(progress.waitFor(1, 0.05));
  EXPECT_GE(now() - start, 0.05);
  EXPECT_EQ(progress.advance(3), 3u);
  EXPECT_TRUE(progress.waitFor(3, 0));
}

TEST(WaitCounter, WakesAtExactlyTheTarget) {
  WaitCounter progress;
  const double start = now();
  bool reached = false;
  std::thread waiter([&] { reached = progress.waitFor(2, 120); });
  for (int i = 0; i < 2; ++i) {
    milliseconds(50); // long enough for the waiter to sleep
    progress.advance();
  }
  waiter.join();
  EXPECT_TRUE(reached);
  EXPECT_LT(now() - start, 60);
}

// Many waiters at different targets, one that advances: none sleeps through its target.
TEST(WaitCounter, NoWakeIsLost) {
  WaitCounter progress;
  const double start = now();
  std::atomic<int> late{0};
  std::vector<std::thread> waiters;
  for (int w = 0; w < 6; ++w)
    waiters.emplace_back([&, w] {
      for (std::uint64_t target = w + 1; target <= 3000; target += 6)
        late += !progress.waitFor(target, 120);
    });
  for (int i = 0; i < 3000; ++i) {
    progress.advance();
    if (i % 100 == 0)
      usleep(200);
  }
  for (std::thread &waiter : waiters)
    waiter.join();
  EXPECT_EQ(late, 0);
  EXPECT_LT(now() - start, 60) << "a waiter came by its limit alone";
}

} // namespace
