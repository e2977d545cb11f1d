//===- PipelineTransfersTest.cpp - messages of pipelines take few places --===//
//
// The segments of all ranks of a pipeline, in the order of each schedule: what their launches wait
// for is correct, bounds the places of messages, and costs no time.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/HappensBefore.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/MemoryPlanner.h"
#include "passes/schedule/PipelineOrder.h"
#include "passes/schedule/ProgramOrder.h"
#include "passes/schedule/Waits.h"
#include "test/Extent.h"
#include "test/unit/passes/Findings.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <functional>
#include <map>

using namespace mlir::fsdp::schedule;
using Action = PipelineAction::Kind;
using Schedule = PipelineSchedule::Kind;

namespace {

struct PipelineShape {
  PipelineSchedule schedule;
  int64_t ranks = 2, microbatches = 4;
  bool ahead = false; ///< an action's receives are issued before the action that precedes it
  /// Each stage passes on a value of the first stage, and its cotangent.
  bool passesOn = false;
  /// Activations, and cotangents, have streams and communicators of their own. Otherwise those of
  /// transfers to later ranks, and to earlier ones.
  bool ring = true;

  int64_t stages() const { return ranks * schedule.chunks; }
  bool isSplit() const { return schedule.kind == Schedule::zeroBubble; }
  std::string describe() const {
    static const char *const kinds[] = {"gpipe", "1f1b", "interleaved", "zb"};
    return std::string(kinds[static_cast<int>(schedule.kind)]) + " with " + std::to_string(ranks) +
           " ranks, " + std::to_string(schedule.chunks) + " chunks, " +
           std::to_string(microbatches) + " microbatches" + (ahead ? ", ahead" : "") +
           (passesOn ? ", passes on" : "") + (ring ? ", ring" : "");
  }
};

constexpr int64_t kBytes = 64; ///< of each buffer
constexpr PipelineDurations kDurations = {2, 2, 2};

/// The buffers of a rank by what they hold.
enum class Content { received, receivedBack, sent, sentBack, kept };

/// A step of a pipeline. The flops of a launch are its duration.
struct Pipeline {
  Problem problem;
  std::vector<IssueGroups> groups;                          ///< [rank]
  std::vector<std::map<Content, std::vector<int>>> buffers; ///< [rank]

  /// Orders launches, and adds waits.
  void issue() {
    for (size_t rank = 0; rank < groups.size(); ++rank) {
      Segment &segment = problem.roles[rank].segments[0];
      const std::vector<int> order = orderIssue(segment, groups[rank], 1);
      ASSERT_FALSE(findReordered(segment.launches, order));
      materializeWaits(segment);
      elideImpliedWaits(segment);
    }
  }

  /// The most buffers with this content that a rank needs at once.
  int64_t placesOf(size_t rank, Content content) const {
    std::vector<bool> wanted(problem.roles[rank].buffers.size(), false);
    if (auto found = buffers[rank].find(content); found != buffers[rank].end())
      for (int buffer : found->second)
        wanted[buffer] = true;
    return peaksOf(problem.roles[rank], SegmentTouches(problem.roles[rank], 0), {wanted}).front() /
           kBytes;
  }
};

/// Writes the segment of one rank.
class RankBuilder {
public:
  RankBuilder(const PipelineShape &shape, int64_t rank, Pipeline &pipeline)
      : shape(shape), rank(rank), pipeline(pipeline), groups(pipeline.groups.emplace_back()),
        contents(pipeline.buffers.emplace_back()) {
    role.name = "rank" + std::to_string(rank);
    role.streams = {"compute", "send_up", "send_down", "receive_up", "receive_down"};
    role.segments.push_back({"step", {}, {0}});
    groups.sends.resize(2);
    for (int64_t chunk = 0; chunk < shape.schedule.chunks; ++chunk)
      role.buffers.push_back({"gradients " + std::to_string(chunk * shape.ranks + rank), kBytes});
  }

  void build(const RankOrder &order) {
    for (size_t i = 0; i < order.size(); ++i) {
      receive(order[i]);
      const size_t begin = role.segments[0].launches.size();
      at = "." + std::to_string(order[i].stage) + "." + std::to_string(order[i].microbatch);
      stage = order[i].stage;
      switch (order[i].kind) {
      case Action::forward:
        forward();
        break;
      case Action::backward:
        backward();
        break;
      case Action::weightGradient:
        addWeightGradient(kDurations.weightGradient);
        break;
      }
      if (shape.ahead)
        groups.partBegins.push_back(findComputation(begin));
    }
    pipeline.problem.roles.push_back(std::move(role));
  }

private:
  using Names = std::vector<std::string>;

  bool isFirst() const { return stage == 0; }
  bool isLast() const { return stage + 1 == shape.stages(); }

  int bufferOf(const std::string &name, Content content) {
    auto [entry, isNew] = known.try_emplace(name, static_cast<int>(role.buffers.size()));
    if (isNew) {
      role.buffers.push_back({name, kBytes, 0});
      contents[content].push_back(entry->second);
    }
    return entry->second;
  }
  int findComputation(size_t from) const {
    while (role.segments[0].launches[from].stream != 0)
      ++from;
    return static_cast<int>(from);
  }
  static Access whole(int buffer) { return {buffer, 0, kBytes}; }

  int launch(const std::string &name, int stream, const std::vector<int> &reads,
             const std::vector<int> &writes, int64_t duration = 0) {
    Launch launch;
    launch.name = name;
    launch.stream = stream;
    for (int buffer : reads)
      launch.reads.push_back(whole(buffer));
    for (int buffer : writes)
      launch.writes.push_back(whole(buffer));
    launch.cost.flops = duration;
    role.segments[0].launches.push_back(std::move(launch));
    return static_cast<int>(role.segments[0].launches.size()) - 1;
  }

  void setTransfer(int launch, int64_t from, int64_t to, bool back) {
    const std::string name = std::to_string(from) + " to " + std::to_string(to) +
                             (!shape.ring ? ""
                              : back      ? " back"
                                          : " forth");
    std::vector<Communicator> &communicators = pipeline.problem.communicators;
    size_t index = 0;
    while (index < communicators.size() && communicators[index].name != name)
      ++index;
    if (index == communicators.size())
      communicators.push_back({name, {static_cast<int>(from), static_cast<int>(to)}});
    Collective collective{static_cast<int>(index), "send", kBytes};
    collective.transfer = true;
    role.segments[0].launches[launch].collective = collective;
  }

  void receive(const PipelineAction &action) {
    const bool back = action.kind == Action::backward;
    const int64_t source = action.stage + (back ? 1 : -1);
    if (action.kind == Action::weightGradient || source < 0 || source >= shape.stages())
      return;
    const int64_t from = source % shape.ranks;
    const std::string of =
        "." + std::to_string(action.stage) + "." + std::to_string(action.microbatch);
    for (const std::string &value : valuesOf(back)) {
      const int buffer = bufferOf(value + of, back ? Content::receivedBack : Content::received);
      const bool isDown = shape.ring ? back : from > rank;
      groups.receives.push_back(launch("receive " + value + of, isDown ? 4 : 3, {}, {buffer}));
      setTransfer(groups.receives.back(), from, rank, back);
    }
  }

  void send(int buffer, bool back) {
    const int64_t to = (stage + (back ? -1 : 1) + shape.ranks) % shape.ranks;
    const bool isDown = shape.ring ? back : to < rank;
    const int number = launch("send " + role.buffers[buffer].name, isDown ? 2 : 1, {buffer}, {});
    setTransfer(number, rank, to, back);
    groups.sends[back].back().push_back(number);
  }

  /// What is received for an action, in order.
  Names valuesOf(bool back) const {
    if (!shape.passesOn)
      return {back ? "g" : "x"};
    return back ? Names{"gskip", "g"} : Names{"skip", "x"};
  }
  /// Buffers of this action, if it receives them.
  std::vector<int> receivedOf(bool back) {
    std::vector<int> buffers;
    if (back ? !isLast() : !isFirst())
      for (const std::string &value : valuesOf(back))
        buffers.push_back(known.at(value + at));
    return buffers;
  }

  void forward() {
    if (!isLast()) {
      groups.sends[0].emplace_back();
      if (shape.passesOn && isFirst()) {
        const int skip = bufferOf("made skip" + at, Content::sent);
        launch("skip" + at, 0, {}, {skip});
        send(skip, false);
      } else if (shape.passesOn) {
        send(known.at("skip" + at), false);
      }
    }
    const int hidden = bufferOf("h" + at, Content::kept);
    launch("begin" + at, 0, receivedOf(false), {hidden});
    const int result = bufferOf("y" + at, isLast() ? Content::kept : Content::sent);
    launch("end" + at, 0, {hidden}, {result}, kDurations.forward);
    if (!isLast())
      send(result, false);
  }

  void backward() {
    if (!isFirst())
      groups.sends[1].emplace_back();
    if (shape.passesOn && !isFirst() && !isLast())
      send(known.at("gskip" + at), true);
    const int inner = bufferOf("d" + at, Content::kept);
    std::vector<int> reads = receivedOf(true), writes = {inner};
    reads.push_back(known.at("h" + at));
    if (isLast())
      reads.push_back(known.at("y" + at));
    if (isLast() && shape.passesOn)
      writes.push_back(bufferOf("made gskip" + at, Content::sentBack));
    launch("begin back" + at, 0, reads, writes);
    if (isLast() && shape.passesOn)
      send(writes.back(), true);
    const int64_t duration =
        kDurations.backward + (shape.isSplit() ? 0 : kDurations.weightGradient);
    std::vector<int> results;
    if (!isFirst())
      results.push_back(bufferOf("gx" + at, Content::sentBack));
    launch("end back" + at, 0, {inner}, results, duration);
    if (!isFirst())
      send(results[0], true);
    if (!shape.isSplit())
      addWeightGradient(0);
  }

  void addWeightGradient(int64_t duration) {
    const int gradients = static_cast<int>(stage / shape.ranks);
    std::vector<int> reads = receivedOf(false);
    reads.insert(reads.end(), {known.at("d" + at), gradients});
    const int number = launch("weights" + at, 0, reads, {gradients}, duration);
    role.segments[0].launches[number].inPlace = {{static_cast<int>(reads.size()) - 1, 0}};
  }

  const PipelineShape &shape;
  const int64_t rank;
  Pipeline &pipeline;
  IssueGroups &groups;
  std::map<Content, std::vector<int>> &contents;
  Role role;
  std::map<std::string, int> known; ///< buffers by name
  std::string at;                   ///< suffix of the names of an action
  int64_t stage = 0;
};

Pipeline makePipeline(const PipelineShape &shape) {
  Pipeline pipeline;
  pipeline.groups.reserve(shape.ranks); // builders refer to them
  pipeline.buffers.reserve(shape.ranks);
  const std::vector<RankOrder> orders =
      orderPipeline(shape.schedule, shape.ranks, shape.microbatches);
  for (int64_t rank = 0; rank < shape.ranks; ++rank)
    RankBuilder(shape, rank, pipeline).build(orders[rank]);
  return pipeline;
}

Pipeline makeIssued(const PipelineShape &shape) {
  Pipeline pipeline = makePipeline(shape);
  pipeline.issue();
  return pipeline;
}

/// Schedules with up to 5 ranks and 12 microbatches, under ./check --all 8 and 16.
void forEachShape(const std::function<void(const PipelineShape &)> &check) {
  const int64_t ranks = ::fsdp::test::casesOf(5, 8), microbatches = ::fsdp::test::casesOf(12, 16);
  for (int64_t p = 2; p <= ranks; ++p)
    for (int64_t k = 1; k <= microbatches; ++k) {
      if (k > 2 && k != p - 1 && k != p && k != p + 1 && k != 2 * p && k != microbatches)
        continue;
      std::vector<PipelineSchedule> schedules = {
          {Schedule::gpipe, 1}, {Schedule::oneForwardOneBackward, 1}, {Schedule::zeroBubble, 1}};
      for (int64_t chunks = 1; chunks <= 3 && k % p == 0; ++chunks)
        schedules.push_back({Schedule::interleaved, chunks});
      for (const PipelineSchedule &schedule : schedules)
        for (int choices = 0; choices < 8; ++choices) {
          if (schedule.kind != Schedule::interleaved && (choices & 4) != 0)
            continue; // activations go to later ranks only, so that both are one
          const PipelineShape shape{schedule,          p, k, (choices & 1) != 0, (choices & 2) != 0,
                                    (choices & 4) != 0};
          SCOPED_TRACE(shape.describe());
          check(shape);
          if (testing::Test::HasFailure())
            return;
        }
    }
}

TEST(PipelineTransfersTest, TheCheckerFindsNoFault) {
  forEachShape([](const PipelineShape &shape) {
    Pipeline pipeline = makeIssued(shape);
    for (Role &role : pipeline.problem.roles)
      applyPlan(planMemory(role), role);
    EXPECT_EQ(describeAll(checkSchedule(pipeline.problem)), "");
  });
}

/// Two ranks of 1f1b wait for one another if they do nothing until their messages are sent.
TEST(PipelineTransfersTest, TheCheckerFindsSendsThatBlock) {
  Pipeline pipeline = makeIssued({{Schedule::oneForwardOneBackward, 1}});
  for (Role &role : pipeline.problem.roles) {
    std::vector<Launch> &launches = role.segments[0].launches;
    for (size_t l = 1; l < launches.size(); ++l)
      if (launches[l - 1].name.rfind("send ", 0) == 0)
        launches[l].waits.push_back(static_cast<int>(l) - 1);
  }
  const std::vector<Finding> findings = checkSchedule(pipeline.problem);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].fault, Fault::deadlock);
  EXPECT_EQ(findings[0].message,
            "'send y.0.1' of role 'rank0' (from 'rank0' to 'rank1') waits for 'weights.1.0' of "
            "role 'rank1', which waits for 'receive g.0.0' of role 'rank0' (from 'rank1' to "
            "'rank0'), which waits for 'send y.0.1' of role 'rank0' (from 'rank0' to 'rank1'): "
            "none of them ever starts");
}

/// The largest number of pairs of stage and microbatch whose activations a rank holds at once: from
/// the start of the forward to the end of the backward or, if it is an action, of the weight
/// gradient.
int64_t peakActivations(const RankOrder &order) {
  const bool isSplit = std::any_of(order.begin(), order.end(), [](const PipelineAction &action) {
    return action.kind == Action::weightGradient;
  });
  int64_t alive = 0, peak = 0;
  for (const PipelineAction &action : order) {
    alive += (action.kind == Action::forward) -
             (action.kind == (isSplit ? Action::weightGradient : Action::backward));
    peak = std::max(peak, alive);
  }
  return peak;
}

TEST(PipelineTransfersTest, PlacesOfMessages) {
  forEachShape([](const PipelineShape &shape) {
    const Pipeline pipeline = makeIssued(shape);
    const std::vector<RankOrder> orders =
        orderPipeline(shape.schedule, shape.ranks, shape.microbatches);
    const int64_t values = shape.passesOn ? 2 : 1;
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      // What passes on is known to be sent when the second message after it is computed.
      const int64_t passed = shape.passesOn ? 3 + shape.ahead : 0;
      EXPECT_LE(pipeline.placesOf(rank, Content::received),
                values * std::max(peakActivations(orders[rank]) + shape.ahead, passed));
      EXPECT_LE(pipeline.placesOf(rank, Content::receivedBack), 1 + shape.ahead + passed);
      EXPECT_LE(pipeline.placesOf(rank, Content::sent), values * 2);
      EXPECT_LE(pipeline.placesOf(rank, Content::sentBack), values * 2);
    }
  });
}

TEST(PipelineTransfersTest, MemoryDoesNotGrowWithMicrobatches) {
  for (const Schedule kind :
       {Schedule::oneForwardOneBackward, Schedule::zeroBubble, Schedule::interleaved})
    for (int64_t p = 2; p <= ::fsdp::test::casesOf(5, 8); ++p)
      for (int choices = 0; choices < 4; ++choices) {
        const int64_t chunks = kind == Schedule::interleaved ? 2 : 1;
        PipelineShape shape{{kind, chunks}, p, 3 * p, (choices & 1) != 0, (choices & 2) != 0};
        auto arenas = [&] {
          std::vector<int64_t> bytes;
          for (const Role &role : makeIssued(shape).problem.roles)
            bytes.push_back(planMemory(role).arena);
          return bytes;
        };
        const std::vector<int64_t> few = arenas();
        shape.microbatches *= 2;
        EXPECT_EQ(arenas(), few) << shape.describe();
      }
}

/// Without the waits a rank keeps all messages, so that the bounds above are theirs.
TEST(PipelineTransfersTest, WithoutWaitsAllMessagesStay) {
  Pipeline pipeline = makePipeline({{Schedule::oneForwardOneBackward, 1}, 3, 16});
  for (IssueGroups &groups : pipeline.groups)
    groups = {};
  pipeline.issue();
  for (const Content content :
       {Content::received, Content::receivedBack, Content::sent, Content::sentBack})
    EXPECT_EQ(pipeline.placesOf(1, content), 16);
}

/// The time of a step where transfers take `transfer`, on any number of streams.
int64_t timeOf(const Problem &problem, int64_t transfer) {
  std::vector<std::vector<int>> dependencies;
  std::vector<int64_t> durations;
  std::map<std::pair<int, size_t>, int> transfers; // by communicator and number
  for (const Role &role : problem.roles) {
    const std::vector<Launch> &launches = role.segments[0].launches;
    std::vector<size_t> numbers(problem.communicators.size(), 0);
    std::vector<int> nodes, last(role.streams.size(), -1);
    for (const Launch &launch : launches) {
      int node = static_cast<int>(durations.size());
      bool isNew = true;
      if (launch.collective) {
        const int communicator = launch.collective->communicator;
        std::tie(node, isNew) = [&] {
          auto [entry, added] =
              transfers.try_emplace({communicator, numbers[communicator]++}, node);
          return std::make_pair(entry->second, added);
        }();
      }
      if (isNew) {
        dependencies.emplace_back();
        durations.push_back(launch.collective ? transfer : launch.cost.flops);
      }
      for (int wait : launch.waits)
        dependencies[node].push_back(nodes[wait]);
      if (last[launch.stream] >= 0)
        dependencies[node].push_back(last[launch.stream]);
      last[launch.stream] = node;
      nodes.push_back(node);
    }
  }
  std::vector<int> order;
  Dependencies graph;
  for (const auto &list : dependencies) {
    for (int node : list)
      graph.add(node);
    graph.close();
  }
  EXPECT_TRUE(findCycle(graph, order).empty());
  std::vector<int64_t> ends(durations.size(), 0);
  int64_t end = 0;
  for (int node : order) {
    for (int dependency : dependencies[node])
      ends[node] = std::max(ends[node], ends[dependency]);
    end = std::max(end, ends[node] += durations[node]);
  }
  return end;
}

/// As long as a transfer takes no longer than a forward.
TEST(PipelineTransfersTest, WaitsForSendsTakeNoTime) {
  forEachShape([](const PipelineShape &shape) {
    Pipeline free = makePipeline(shape);
    for (IssueGroups &groups : free.groups)
      groups.sends.clear();
    free.issue();
    const Pipeline pipeline = makeIssued(shape);
    for (int64_t transfer = 0; transfer <= kDurations.forward; ++transfer)
      EXPECT_EQ(timeOf(pipeline.problem, transfer), timeOf(free.problem, transfer))
          << "transfers take " << transfer;
    const std::vector<RankOrder> orders =
        orderPipeline(shape.schedule, shape.ranks, shape.microbatches);
    EXPECT_EQ(timeOf(pipeline.problem, 0), timePipeline(orders, kDurations).makespan);
  });
}

} // namespace
