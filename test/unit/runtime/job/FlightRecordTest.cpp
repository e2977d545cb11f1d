// The latest actions of each rank: the rings that record them, and the file.
#include "runtime/job/FlightRecord.h"
#include "runtime/comm/RankActions.h"
#include "runtime/device/FlightTrack.h"
#include "runtime/program/CollectiveRequest.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <regex>
#include <sys/resource.h>
#include <thread>

using namespace base;
using namespace fsdp::rt;

namespace {

/// As a segment has it: zero, and nothing else.
std::unique_ptr<FlightTrack> track() { return std::make_unique<FlightTrack>(); }

CollectiveRequest barrier() {
  CollectiveRequest request{};
  request.kind = CollectiveKind::Barrier;
  return request;
}

/// The segment of ranks that all run.
SharedSegment segmentOf(int ranks) {
  const SharedSegment::Layout layout{ranks, 1, 64};
  SharedSegment segment(Mapping::anonymous(SharedSegment::bytesFor(layout)), layout);
  for (int rank = 0; rank < ranks; ++rank)
    segment.rank(rank).state = RankRecord::Running;
  return segment;
}

/// The text with T for every number of seconds.
std::string timeless(const std::string &text) {
  return std::regex_replace(text, std::regex("\\d+\\.\\d s"), "T s");
}

TEST(FlightTrack, KeepsActionsInTheirOrder) {
  const auto kept = track();
  EXPECT_TRUE(kept->actions().empty());
  const auto step = kept->begin(FlightAction::Mark, "step", "", 12);
  const CollectiveRequest request = barrier();
  kept->end(kept->begin(FlightAction::Collective, "", "all ranks", 7, &request));
  kept->begin(FlightAction::Wait, "gather", "comm");
  kept->end(step);
  const auto actions = kept->actions();
  ASSERT_EQ(actions.size(), 3u);
  EXPECT_EQ(actions[0].describe(), "step 12");
  EXPECT_EQ(actions[1].describe(), "'barrier', collective 7 over 'all ranks'");
  EXPECT_EQ(actions[2].describe(), "wait for 'gather' of stream 'comm'");
  EXPECT_GE(actions[0].end, actions[1].end);
  EXPECT_GE(actions[1].end, actions[1].begin);
  EXPECT_EQ(actions[2].end, 0);
}

TEST(FlightTrack, KeepsTheLatest) {
  const auto kept = track();
  const auto first = kept->begin(FlightAction::Launch, "first");
  for (int number = 1; number <= 200; ++number)
    kept->begin(FlightAction::Mark, "step", "", number);
  kept->end(first); // has been overwritten: nothing else ends
  const auto actions = kept->actions();
  ASSERT_EQ(actions.size(), FlightTrack::kActions);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    EXPECT_EQ(actions[i].number, std::int64_t(200 - FlightTrack::kActions + 1 + i));
    EXPECT_EQ(actions[i].end, 0);
  }
}

TEST(FlightTrack, CutsLongNames) {
  const auto kept = track();
  kept->label(std::string(100, 'l').c_str());
  kept->begin(FlightAction::Enqueued, std::string(100, 'n').c_str(), std::string(100, 'o').c_str(),
              3);
  EXPECT_EQ(kept->label(), std::string(15, 'l'));
  EXPECT_EQ(kept->actions()[0].describe(), "enqueued '" + std::string(35, 'n') + ".." +
                                               std::string(26, 'n') + "', collective 3 over '" +
                                               std::string(31, 'o') + "'");
  // The end says for what microbatch it is.
  const std::string end = " stage 15 microbatch 31";
  for (std::size_t length : {40, 41, 200}) {
    kept->begin(FlightAction::Launch, (std::string(length, 'n') + end).c_str());
    const std::string name = kept->actions().back().name;
    EXPECT_EQ(name.size(), 63u);
    EXPECT_EQ(name.find("..") == name.npos, length == 40);
    EXPECT_EQ(name.substr(name.size() - end.size()), end);
  }
}

// A reader that runs concurrently with the thread gets whole actions only.
TEST(FlightTrack, IsReadWhileItIsWritten) {
  const auto kept = track();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::int64_t number = 0; !stop; ++number)
      kept->end(kept->begin(FlightAction::Mark, std::string(40, char('a' + number % 26)).c_str(),
                            "", number));
  });
  std::size_t read = 0;
  for (int round = 0; round < 2000 || read < 1000; ++round)
    for (const FlightAction &action : kept->actions()) {
      ++read;
      ASSERT_EQ(action.name, std::string(40, char('a' + action.number % 26)));
    }
  stop = true;
  writer.join();
}

TEST(FlightRecord, IsInItsFolderForAnyProgramName) {
  const std::filesystem::path plain = temporaryFlightRecord("mlp");
  EXPECT_EQ(plain.filename(), "mlp.flight-record.txt");
  const std::filesystem::path path = temporaryFlightRecord("../../up/mlp");
  EXPECT_EQ(path.parent_path(), plain.parent_path());
  EXPECT_EQ(path.filename(), ".._.._up_mlp.flight-record.txt");
  const std::filesystem::path longName = temporaryFlightRecord(std::string(1024, 'n'));
  EXPECT_EQ(longName.parent_path(), plain.parent_path());
  EXPECT_LE(longName.filename().string().size(), 255u);
}

TEST(FlightRecord, NamesRanksThatWaitForAHangingRank) {
  const SharedSegment segment = segmentOf(3);
  EXPECT_EQ(describeHang(segment, 1), "");
  const CollectiveRequest request = barrier();
  segment.flight(1)[2].label("compute");
  segment.flight(1)[0].begin(FlightAction::Mark, "step", "", 3);
  segment.flight(1)[2].begin(FlightAction::Launch, "endless");
  segment.flight(0)[0].begin(FlightAction::Collective, "", "all", 7, &request);
  segment.flight(2)[0].begin(FlightAction::Collective, "", "all", 7, &request);
  EXPECT_EQ(
      timeless(describeHang(segment, 1)),
      "; its latest action: launch 'endless' of stream 'compute', under way for T s; waiting in "
      "'barrier', collective 7 over 'all': rank 0, 2");
  EXPECT_EQ(timeless(describeLatest(segment, 0)),
            "'barrier', collective 7 over 'all', under way for T s");
  segment.flight(2)[0].end(1);
  EXPECT_EQ(timeless(describeLatest(segment, 2)),
            "'barrier', collective 7 over 'all', ended T s ago");
}

// Two stages wait for the next one: that which waits for none is named, although it has issued a
// receive ahead.
TEST(FlightRecord, NamesTheRankThatOthersWaitForInTurn) {
  const SharedSegment segment = segmentOf(3);
  const CollectiveRequest receive =
      CollectiveRequest::transfer(CollectiveKind::Receive, 4, DType::F32, 1, 2);
  for (int rank = 0; rank < 3; ++rank) {
    segment.flight(rank)->label(format("pipeline%d", rank).c_str());
    FlightTrack &track = segment.flight(rank)[3];
    track.label("receive_down");
    track.begin(FlightAction::Launch,
                format("h.%d.add receive stage %d microbatch 2", rank, rank).c_str());
    track.begin(FlightAction::Collective, "", "pipeline down", 5, &receive);
    segment.flight(rank)[1].label("compute");
  }
  EXPECT_EQ(roleOf(segment, 2), "pipeline2");
  segment.flight(1)[1].begin(FlightAction::Wait, "h.1.add receive", "receive_down");
  segment.flight(2)[1].begin(FlightAction::Launch, "h.2.mlp.gemm stage 2 microbatch 1");
  const std::string busy =
      "launch 'h.2.mlp.gemm stage 2 microbatch 1' of stream 'compute', under way for T s";
  EXPECT_EQ(describeBusy(segment, 1, 0), "");
  EXPECT_EQ(timeless(describeBusy(segment, 2, 0)), busy);
  EXPECT_EQ(describeBusy(segment, 2, 60), "") << "a launch that takes no longer than others";
  EXPECT_EQ(timeless(describeBusyRanks(segment, {1}, 0)),
            "; rank 2 (pipeline2) waits for no other rank: " + busy);
  EXPECT_EQ(describeBusyRanks(segment, {2}, 0), "");
  EXPECT_EQ(timeless(describeState(segment, 2)), " (pipeline2; latest action: " + busy + ")");
  EXPECT_EQ(timeless(describeState(segment, 1)),
            " (pipeline1; latest action: launch 'h.1.add receive stage 1 microbatch 2' of stream "
            "'receive_down' in 'receive of f32 x4 from rank 1 of the group (message 2)', "
            "collective 5 over "
            "'pipeline down', under way for T s)");
  EXPECT_EQ(timeless(describeHang(segment, 2)),
            "; its role: pipeline2; its latest action: " + busy +
                "; waiting in 'receive of f32 x4 from rank 1 of the group (message 2)', collective "
                "5 over 'pipeline "
                "down': rank 0 (pipeline0) in 'h.0.add receive stage 0 microbatch 2', 1 "
                "(pipeline1) in 'h.1.add receive stage 1 microbatch 2'");
  segment.rank(2).state = RankRecord::Done;
  EXPECT_EQ(describeBusy(segment, 2, 0), "");
}

// A host that reads a file enqueues nothing. What a device does of what was enqueued is not known.
TEST(FlightRecord, NamesAHostThatDoesNotComeBack) {
  const SharedSegment segment = segmentOf(2);
  EXPECT_EQ(describeBusy(segment, 0, 0), "") << "nothing is known of it";
  for (int rank = 0; rank < 2; ++rank) {
    segment.flight(rank)[1].label("compute");
    segment.flight(rank)[0].begin(FlightAction::Mark, "step", "", 3);
    segment.flight(rank)[1].end(segment.flight(rank)[1].begin(FlightAction::Launch, "last"));
  }
  segment.flight(1)[0].end(segment.flight(1)[0].begin(FlightAction::Enqueued, "sum", "all", 1));
  EXPECT_EQ(timeless(describeBusyRanks(segment, {}, 0)),
            "; rank 0 waits for no other rank: nothing under way in 'step 3'; its last action: "
            "launch 'last' of stream 'compute', ended T s ago");
}

TEST(FlightRecord, SaysWhichRanksHaveARole) {
  const SharedSegment segment = segmentOf(3);
  const TemporaryFile file;
  for (int rank = 0; rank < 3; ++rank) {
    segment.flight(rank)->label(rank < 2 ? "pipeline0" : "pipeline1");
    segment.flight(rank)[0].begin(FlightAction::Mark, "step", "", 1);
  }
  segment.failure().raise(Error("the fault"));
  writeFlightRecord(segment, file.path, 4, 3);
  EXPECT_NE(file.read().find("was written\n# pipeline0: rank 4, 5\n# pipeline1: rank 6\n"),
            std::string::npos)
      << file.read();
}

TEST(FlightRecord, IsWrittenOnceAfterAFailure) {
  const SharedSegment segment = segmentOf(2);
  const TemporaryFile file, again;
  segment.flight(0)[0].end(segment.flight(0)[0].begin(FlightAction::Mark, "step", "", 1));
  segment.flight(1)[1].label("comm");
  segment.flight(1)[1].begin(FlightAction::Launch, "h.0.gather");
  writeFlightRecord(segment, file.path, 0, 2);
  EXPECT_EQ(file.read(), "") << "there was no failure";
  segment.failure().raise(Error("the fault").at(1, ""));
  writeFlightRecord(segment, "", 0, 2); // not asked for, and so not taken
  writeFlightRecord(segment, file.path, 0, 2);
  const std::string text = file.read();
  EXPECT_EQ(text.find("# rank 1: the fault\n"), 0u) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("rank 0    host        took \\d+\\.\\d{6} s")))
      << text;
  EXPECT_NE(text.find("  step 1\n"), text.npos) << text;
  EXPECT_NE(text.find("rank 1    comm        under way         launch 'h.0.gather'\n"), text.npos)
      << text;
  EXPECT_LT(text.find("step 1"), text.find("h.0.gather"));
  writeFlightRecord(segment, again.path, 0, 2);
  EXPECT_EQ(again.read(), "");
}

// Ranks elsewhere write their own.
TEST(FlightRecord, NamesTheRankWhereOthersAreElsewhere) {
  const SharedSegment segment = segmentOf(1);
  const TemporaryFile file("record.txt.rank-5");
  segment.flight(0)[0].begin(FlightAction::Mark, "step", "", 1);
  segment.failure().raise(Error("the fault"));
  writeFlightRecord(segment, file.folder + "/record.txt", 5, 8);
  EXPECT_NE(file.read().find("rank 5    host        under way         step 1\n"),
            std::string::npos);
}

// Where it would stand is the other run's.
TEST(FlightRecord, IsNotWrittenOfARunThatWasRefusedForAnother) {
  const SharedSegment segment = segmentOf(1);
  const TemporaryFile file;
  file.write("of the other run");
  segment.flight(0)[0].begin(FlightAction::Mark, "step", "", 1);
  segment.failure().raise(Error("the log is another run's").asRefusal().byAll().at(0, ""));
  EXPECT_TRUE(segment.failure().error().isRefusal() && segment.failure().error().isByAll());
  testing::internal::CaptureStderr();
  writeFlightRecord(segment, file.path, 0, 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(file.read(), "of the other run");
}

// No byte of it is written unless all have room; the previous contents stay.
TEST(FlightRecord, IsWholeOrNotThere) {
  const SharedSegment segment = segmentOf(1);
  const TemporaryFile file;
  file.write("of the last failure");
  for (int number = 0; number < 60; ++number)
    segment.flight(0)[0].begin(FlightAction::Mark, "step", "", number);
  segment.failure().raise(Error("the fault"));
  std::signal(SIGXFSZ, SIG_IGN); // as programs do
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  testing::internal::CaptureStderr();
  setrlimit(RLIMIT_FSIZE, &small);
  writeFlightRecord(segment, file.path, 0, 1);
  setrlimit(RLIMIT_FSIZE, &before);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("warning: the last actions of each rank are lost: cannot write '"), said.npos)
      << said;
  EXPECT_EQ(file.read(), "of the last failure");
  const auto names = std::distance(std::filesystem::directory_iterator(file.folder),
                                   std::filesystem::directory_iterator());
  EXPECT_EQ(names, 1) << "a half-written file is left";
}

TEST(FlightRecord, ReportsAPathThatCannotBeWritten) {
  const SharedSegment segment = segmentOf(1);
  segment.failure().raise(Error("the fault"));
  testing::internal::CaptureStderr();
  writeFlightRecord(segment, "/no/such/folder/record.txt", 0, 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("warning: the last actions of each rank are lost: "), 0u) << said;
}

} // namespace
