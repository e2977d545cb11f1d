//===- PipelineOrderTest.cpp - order, memory and time of pipelines --------===//

#include "passes/schedule/PipelineOrder.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

using namespace mlir::fsdp::schedule;
using Action = PipelineAction::Kind;
using Schedule = PipelineSchedule::Kind;

namespace {

struct Pipeline {
  PipelineSchedule schedule;
  int64_t ranks, microbatches;

  bool isSplit() const { return schedule.kind == Schedule::zeroBubble; }
  int64_t stages() const { return ranks * schedule.chunks; }
  std::vector<RankOrder> order() const { return orderPipeline(schedule, ranks, microbatches); }
  std::string name() const {
    static const char *const kinds[] = {"gpipe", "1f1b", "interleaved", "zb"};
    return std::string(kinds[static_cast<int>(schedule.kind)]) + " with " + std::to_string(ranks) +
           " ranks, " + std::to_string(schedule.chunks) + " chunks, " +
           std::to_string(microbatches) + " microbatches";
  }
};

/// All schedules with up to 8 ranks, 24 microbatches and 4 chunks.
std::vector<Pipeline> smallPipelines() {
  std::vector<Pipeline> pipelines;
  for (int64_t ranks = 1; ranks <= 8; ++ranks)
    for (int64_t microbatches = 1; microbatches <= 24; ++microbatches) {
      for (Schedule kind : {Schedule::gpipe, Schedule::oneForwardOneBackward, Schedule::zeroBubble})
        pipelines.push_back({{kind, 1}, ranks, microbatches});
      for (int64_t chunks = 1; chunks <= 4 && microbatches % ranks == 0; ++chunks)
        pipelines.push_back({{Schedule::interleaved, chunks}, ranks, microbatches});
    }
  return pipelines;
}

std::vector<Pipeline> randomPipelines() {
  std::mt19937 random(29);
  auto draw = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % most); };
  std::vector<Pipeline> pipelines;
  while (pipelines.size() < 200) {
    const auto kind = static_cast<Schedule>(draw(4) - 1);
    const bool isInterleaved = kind == Schedule::interleaved;
    const int64_t ranks = draw(16);
    pipelines.push_back(
        {{kind, isInterleaved ? draw(5) : 1}, ranks, isInterleaved ? ranks * draw(4) : draw(40)});
  }
  return pipelines;
}

void forEachPipeline(const std::function<void(const Pipeline &)> &check) {
  for (const std::vector<Pipeline> &pipelines : {smallPipelines(), randomPipelines()})
    for (const Pipeline &pipeline : pipelines) {
      SCOPED_TRACE(pipeline.name());
      check(pipeline);
      if (testing::Test::HasFailure())
        return;
    }
}

std::string toText(const RankOrder &order) {
  std::string text;
  for (const PipelineAction &action : order)
    text += std::string(text.empty() ? "" : " ") + "FBW"[static_cast<int>(action.kind)] +
            std::to_string(action.stage) + "." + std::to_string(action.microbatch);
  return text;
}

TEST(PipelineOrderTest, WordsAreSchedules) {
  PipelineSchedule schedule;
  auto expectSchedule = [&](const char *text, Schedule kind, int64_t chunks) {
    EXPECT_EQ(parsePipelineSchedule(text, schedule), "");
    EXPECT_EQ(schedule.kind, kind) << text;
    EXPECT_EQ(schedule.chunks, chunks) << text;
  };
  expectSchedule("gpipe", Schedule::gpipe, 1);
  expectSchedule("interleaved:3", Schedule::interleaved, 3);
  expectSchedule("1f1b", Schedule::oneForwardOneBackward, 1);
  expectSchedule("interleaved:1024", Schedule::interleaved, 1024);
  expectSchedule("zb", Schedule::zeroBubble, 1);
  expectSchedule("interleaved:1", Schedule::interleaved, 1);
}

TEST(PipelineOrderTest, OtherTextsAreRefused) {
  for (std::string text : {"", "zb-h1", "1F1B", "gpipe ", "gpipe:2", "interleaved", "interleaved:",
                           "interleaved:0", "interleaved:-1", "interleaved:02", "interleaved:2x",
                           "interleaved:1025", "interleaved:99999999999999999999"}) {
    PipelineSchedule schedule = {Schedule::interleaved, 7};
    EXPECT_EQ(parsePipelineSchedule(text, schedule),
              "got '" + text +
                  "', expected gpipe, 1f1b, zb, or interleaved:V with V an integer from 1 to 1024");
    EXPECT_EQ(schedule.kind, Schedule::interleaved);
    EXPECT_EQ(schedule.chunks, 7);
  }
}

TEST(PipelineOrderTest, OrdersOfTwoRanks) {
  auto expectOrder = [](PipelineSchedule schedule, int64_t microbatches, const char *first,
                        const char *second) {
    const std::vector<RankOrder> orders = orderPipeline(schedule, 2, microbatches);
    ASSERT_EQ(orders.size(), 2U);
    EXPECT_EQ(toText(orders[0]), first);
    EXPECT_EQ(toText(orders[1]), second);
  };
  expectOrder({Schedule::gpipe, 1}, 3, "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2",
              "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2");
  expectOrder({Schedule::oneForwardOneBackward, 1}, 3, "F0.0 F0.1 B0.0 F0.2 B0.1 B0.2",
              "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2");
  expectOrder({Schedule::oneForwardOneBackward, 1}, 1, "F0.0 B0.0", "F1.0 B1.0");
  expectOrder({Schedule::zeroBubble, 1}, 3, "F0.0 F0.1 B0.0 W0.0 F0.2 B0.1 W0.1 B0.2 W0.2",
              "F1.0 B1.0 F1.1 B1.1 W1.0 F1.2 B1.2 W1.1 W1.2");
  expectOrder({Schedule::interleaved, 2}, 4,
              "F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3",
              "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3");
}

TEST(PipelineOrderTest, EachActionRunsOnceOnItsRank) {
  forEachPipeline([](const Pipeline &pipeline) {
    const std::vector<RankOrder> orders = pipeline.order();
    ASSERT_EQ(static_cast<int64_t>(orders.size()), pipeline.ranks);
    std::set<PipelineAction> actions;
    size_t count = 0;
    for (int64_t rank = 0; rank < pipeline.ranks; ++rank)
      for (const PipelineAction &action : orders[rank]) {
        EXPECT_EQ(action.stage % pipeline.ranks, rank);
        EXPECT_TRUE(action.stage >= 0 && action.stage < pipeline.stages());
        EXPECT_TRUE(action.microbatch >= 0 && action.microbatch < pipeline.microbatches);
        EXPECT_TRUE(pipeline.isSplit() || action.kind != Action::weightGradient);
        actions.insert(action);
        ++count;
      }
    EXPECT_EQ(actions.size(), count);
    EXPECT_EQ(static_cast<int64_t>(count),
              pipeline.stages() * pipeline.microbatches * (pipeline.isSplit() ? 3 : 2));
  });
}

/// Gradients are added up in the same order in all schedules.
TEST(PipelineOrderTest, MicrobatchesOfAStageAreInOrder) {
  forEachPipeline([](const Pipeline &pipeline) {
    std::map<std::pair<Action, int64_t>, int64_t> next;
    for (const RankOrder &order : pipeline.order())
      for (const PipelineAction &action : order)
        ASSERT_EQ(action.microbatch, next[std::make_pair(action.kind, action.stage)]++)
            << action.describe();
  });
}

/// The pairs of stage and microbatch that are alive, as sets.
int64_t countAlive(const RankOrder &order, Action last) {
  std::set<std::pair<int64_t, int64_t>> alive;
  size_t peak = 0;
  for (const PipelineAction &action : order) {
    if (action.kind == Action::forward)
      alive.insert({action.stage, action.microbatch});
    peak = std::max(peak, alive.size());
    if (action.kind == last)
      alive.erase({action.stage, action.microbatch});
  }
  return static_cast<int64_t>(peak);
}

TEST(PipelineOrderTest, ActivationsAtThePeak) {
  forEachPipeline([](const Pipeline &pipeline) {
    const Schedule kind = pipeline.schedule.kind;
    const int64_t p = pipeline.ranks, K = pipeline.microbatches, V = pipeline.schedule.chunks;
    const std::vector<RankOrder> orders = pipeline.order();
    for (int64_t s = 0; s < p; ++s) {
      const int64_t expected = kind == Schedule::gpipe                   ? K
                               : kind == Schedule::oneForwardOneBackward ? std::min(p - s, K)
                               : kind == Schedule::zeroBubble
                                   ? std::min(p, K)
                                   : std::min(K * V, 2 * (p - s - 1) + (V - 1) * p + 1);
      EXPECT_EQ(
          countAlive(orders[s], pipeline.isSplit() ? Action::weightGradient : Action::backward),
          expected)
          << "rank " << s;
    }
  });
}

TEST(PipelineOrderTest, IdleTime) {
  std::mt19937 random(30);
  auto draw = [&] { return 1 + static_cast<int64_t>(random() % 9); };
  forEachPipeline([&](const Pipeline &pipeline) {
    const int64_t p = pipeline.ranks, K = pipeline.microbatches;
    const int64_t count = K * pipeline.schedule.chunks;
    auto expectIdle = [&](int64_t F, int64_t B, int64_t W) {
      const PipelineTimes times = timePipeline(pipeline.order(), {F, B, W});
      ASSERT_EQ(times.fault, "");
      const int64_t total = F + B + W, unsplit = (p - 1) * total;
      EXPECT_EQ(times.idle, std::vector<int64_t>(p, times.makespan - count * total));
      if (!pipeline.isSplit())
        EXPECT_EQ(times.idle[0], unsplit);
      else if (K >= p && W <= std::min(F, B))
        EXPECT_EQ(times.idle[0], (p - 1) * (F + B - W));
      else
        EXPECT_LE(times.idle[0], unsplit);
    };
    expectIdle(1, 1, 1); // of a chunk: of a rank's whole part the idle time is divided by V
    expectIdle(draw(), draw(), draw());
  });
}

/// Of three stages the middle one is frozen: its backward takes as long as cotangents do. The first
/// backward reaches the first rank at 1 + 1 + 1 + 2 + 1; from there on each microbatch takes 3, and
/// the last one has no forward behind it.
TEST(PipelineOrderTest, FrozenStagesHaveNoWeightGradients) {
  const std::vector<RankOrder> orders = orderPipeline({Schedule::oneForwardOneBackward, 1}, 3, 6);
  const PipelineTimes times = timePipeline(orders, {}, {1});
  EXPECT_EQ(times.makespan, 6 + 5 * 3 + 2);
  EXPECT_EQ(times.idle, (std::vector<int64_t>{5, 11, 5}));
  EXPECT_EQ(timePipeline(orders, {}).idle, (std::vector<int64_t>{6, 6, 6}));
}

/// Runs follow those before them on the rank and their operands, and no run could start earlier.
TEST(PipelineOrderTest, ActionsRunAsSoonAsTheyCan) {
  forEachPipeline([](const Pipeline &pipeline) {
    const std::vector<RankOrder> orders = pipeline.order();
    const PipelineDurations durations = {2, 3, 1};
    const PipelineTimes times = timePipeline(orders, durations);
    std::map<PipelineAction, PipelineTimes::Run> runs;
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      ASSERT_EQ(times.runs[rank].size(), orders[rank].size());
      for (size_t i = 0; i < orders[rank].size(); ++i)
        runs[orders[rank][i]] = times.runs[rank][i];
    }
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      int64_t free = 0;
      for (const PipelineAction &action : orders[rank]) {
        const auto [start, end] = runs.at(action);
        int64_t earliest = free;
        auto follow = [&](Action kind, int64_t stage) {
          earliest = std::max(earliest, runs.at({kind, stage, action.microbatch}).end);
        };
        if (action.kind == Action::forward && action.stage > 0)
          follow(Action::forward, action.stage - 1);
        if (action.kind == Action::backward)
          follow(Action::forward, action.stage);
        if (action.kind == Action::backward && action.stage + 1 < pipeline.stages())
          follow(Action::backward, action.stage + 1);
        if (action.kind == Action::weightGradient)
          follow(Action::backward, action.stage);
        ASSERT_EQ(start, earliest) << action.describe();
        ASSERT_EQ(end - start, action.kind == Action::forward          ? 2
                               : action.kind == Action::weightGradient ? 1
                               : pipeline.isSplit()                    ? 3
                                                                       : 4);
        free = end;
      }
      EXPECT_LE(free, times.makespan);
    }
  });
}

TEST(PipelineOrderTest, ActionsThatCannotStartAreNamed) {
  std::vector<RankOrder> orders = orderPipeline({Schedule::oneForwardOneBackward, 1}, 2, 2);
  ASSERT_EQ(toText(orders[0]), "F0.0 F0.1 B0.0 B0.1");
  std::swap(orders[0][1], orders[0][2]);
  std::swap(orders[1][0], orders[1][2]); // F1.1 before B1.0
  const PipelineTimes times = timePipeline(orders, {});
  EXPECT_EQ(times.fault, "rank 0 cannot run backward of microbatch 0 in stage 0 before backward of "
                         "microbatch 0 in stage 1; rank 1 cannot run forward of microbatch 1 in "
                         "stage 1 before forward of microbatch 1 in stage 0");
  EXPECT_TRUE(times.runs.empty() && times.idle.empty() && times.makespan == 0);

  orders = orderPipeline({Schedule::zeroBubble, 1}, 1, 1);
  ASSERT_EQ(toText(orders[0]), "F0.0 B0.0 W0.0");
  std::swap(orders[0][1], orders[0][2]);
  EXPECT_EQ(timePipeline(orders, {}).fault, "rank 0 cannot run weight gradient of microbatch 0 in "
                                            "stage 0 before backward of microbatch 0 in stage 0");
}

/// Messages from one rank to another one, of one kind. On two ranks both neighbors are the same.
struct Channel {
  int64_t from, to;
  Action kind;
  bool operator<(const Channel &other) const {
    return std::tie(from, to, kind) < std::tie(other.from, other.to, other.kind);
  }
};

/// Runs `orders` with a place for one message at both ends of each channel: a rank may not compute
/// the next message before the last one is sent, and does not post a receive before it has used the
/// last message. The n-th send matches the n-th receive, in the order of the actions that compute
/// and use them. Returns the fault, if any.
std::string runOverChannels(const std::vector<RankOrder> &orders, int64_t stages) {
  const auto ranks = static_cast<int64_t>(orders.size());
  auto step = [](const PipelineAction &action) { return action.kind == Action::forward ? 1 : -1; };
  auto isTransfer = [&](int64_t from, int64_t to) {
    return from >= 0 && from < stages && to >= 0 && to < stages && from % ranks != to % ranks;
  };
  struct Traffic {
    std::vector<PipelineAction> receives; ///< actions that use messages
    std::vector<PipelineAction> sends; ///< messages by the action that uses them, so far computed
    size_t received = 0, used = 0;
  };
  std::map<Channel, Traffic> channels;
  auto incoming = [&](const PipelineAction &action) -> Traffic * {
    const int64_t from = action.stage - step(action);
    const bool receives = action.kind != Action::weightGradient && isTransfer(from, action.stage);
    return receives ? &channels[{from % ranks, action.stage % ranks, action.kind}] : nullptr;
  };
  auto outgoing = [&](const PipelineAction &action) -> Traffic * {
    const int64_t to = action.stage + step(action);
    const bool sends = action.kind != Action::weightGradient && isTransfer(action.stage, to);
    return sends ? &channels[{action.stage % ranks, to % ranks, action.kind}] : nullptr;
  };
  for (const RankOrder &order : orders)
    for (const PipelineAction &action : order)
      if (Traffic *traffic = incoming(action))
        traffic->receives.push_back(action);

  std::vector<size_t> next(orders.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (auto &[channel, traffic] : channels)
      if (traffic.received < traffic.sends.size() && traffic.received == traffic.used) {
        if (traffic.received == traffic.receives.size())
          return "nothing receives what " + traffic.sends.back().describe() + " uses";
        const PipelineAction &sent = traffic.sends[traffic.received];
        const PipelineAction &wanted = traffic.receives[traffic.received++];
        if (!(sent == wanted))
          return "sent for " + sent.describe() + ", received for " + wanted.describe();
        progress = true;
      }
    for (size_t rank = 0; rank < orders.size(); ++rank)
      for (; next[rank] < orders[rank].size(); ++next[rank], progress = true) {
        const PipelineAction &action = orders[rank][next[rank]];
        Traffic *in = incoming(action), *out = outgoing(action);
        if ((in && in->received == in->used) || (out && out->received < out->sends.size()))
          break;
        if (in)
          ++in->used;
        if (out)
          out->sends.push_back({action.kind, action.stage + step(action), action.microbatch});
      }
  }
  for (size_t rank = 0; rank < orders.size(); ++rank)
    if (next[rank] < orders[rank].size())
      return "deadlock before " + orders[rank][next[rank]].describe();
  return "";
}

TEST(PipelineOrderTest, MessagesMeetInOrderWithOnePlaceAtEachEnd) {
  forEachPipeline([](const Pipeline &pipeline) {
    EXPECT_EQ(runOverChannels(pipeline.order(), pipeline.stages()), "");
  });
}

/// The channels of the test above detect crossed and missing messages, and a deadlock.
TEST(PipelineOrderTest, WrongOrdersDoNotPassTheChannels) {
  auto makeOrders = [] { return orderPipeline({Schedule::interleaved, 2}, 2, 2); };
  ASSERT_EQ(toText(makeOrders()[0]), "F0.0 F0.1 F2.0 F2.1 B2.0 B2.1 B0.0 B0.1");
  std::vector<RankOrder> orders = makeOrders();
  std::swap(orders[0][0], orders[0][1]);
  EXPECT_EQ(runOverChannels(orders, 4), "sent for forward of microbatch 1 in stage 1, received for "
                                        "forward of microbatch 0 in stage 1");
  orders = makeOrders();
  orders[0].erase(orders[0].begin() + 2);
  EXPECT_EQ(runOverChannels(orders, 4), "sent for forward of microbatch 0 in stage 2, received for "
                                        "forward of microbatch 1 in stage 2");
  orders = makeOrders();
  std::swap(orders[0][1], orders[0][4]);
  EXPECT_EQ(runOverChannels(orders, 4), "deadlock before backward of microbatch 0 in stage 2");
}

} // namespace
