//===- IssueOrderTest.cpp - issue order keeps what a segment computes -----===//

#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/ProgramOrder.h"

#include "gtest/gtest.h"

#include <numeric>
#include <random>

using namespace mlir::fsdp::schedule;

namespace {

Launch makeLaunch(std::string name, std::vector<Access> reads, std::vector<Access> writes) {
  Launch launch;
  launch.name = std::move(name);
  launch.reads = std::move(reads);
  launch.writes = std::move(writes);
  return launch;
}

/// The definition, pair by pair.
bool isReordered(const std::vector<Launch> &issued, const std::vector<int> &order) {
  auto isMinimum = [](const Launch &launch, const Access &access) {
    return std::find(launch.minima.begin(), launch.minima.end(), access) != launch.minima.end();
  };
  auto conflict = [&](const Launch &a, const Launch &b) {
    auto touch = [&](const std::vector<Access> &ours, const std::vector<Access> &theirs) {
      for (const Access &one : ours)
        for (const Access &other : theirs)
          if (one.overlaps(other) && !(isMinimum(a, one) && isMinimum(b, other)))
            return true;
      return false;
    };
    return touch(a.writes, b.writes) || touch(a.writes, b.reads) || touch(a.reads, b.writes);
  };
  for (size_t second = 0; second < issued.size(); ++second)
    for (size_t first = 0; first < second; ++first)
      if (order[first] > order[second] && conflict(issued[first], issued[second]))
        return true;
  return false;
}

TEST(ProgramOrderTest, FindsEachConflictThatIsReordered) {
  std::mt19937 random(7);
  auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  int reordered = 0;
  const int cases = 5000;
  for (int i = 0; i < cases; ++i) {
    const int count = 2 + draw(8), buffers = 1 + draw(12);
    auto access = [&] {
      const int begin = draw(4);
      return Access{draw(buffers), begin, begin + 1 + draw(4)};
    };
    std::vector<Launch> issued;
    for (int l = 0; l < count; ++l) {
      Launch launch = makeLaunch("l" + std::to_string(l), {access()}, {});
      if (draw(3) == 0)
        launch.writes.push_back(access());
      if (draw(4) == 0) {
        launch.minima.push_back(access());
        launch.reads.push_back(launch.minima.back());
        launch.writes.push_back(launch.minima.back());
      }
      issued.push_back(std::move(launch));
    }
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    for (int swaps = draw(3); swaps > 0; --swaps)
      std::swap(order[draw(count)], order[draw(count)]);
    const std::optional<ReorderedAccess> found = findReordered(issued, order);
    ASSERT_EQ(found.has_value(), isReordered(issued, order)) << "case " << i;
    if (!found)
      continue;
    ++reordered;
    // The pair that is named shows it alone.
    const int first = std::min(found->earlier, found->later);
    const int second = std::max(found->earlier, found->later);
    ASSERT_EQ(first, found->later);
    ASSERT_TRUE(isReordered({issued[first], issued[second]}, {order[first], order[second]}));
  }
  EXPECT_GT(reordered, cases / 10);
  EXPECT_LT(reordered, cases * 9 / 10);
}

/// A random segment: deferred updates of some shards, at a rate of the last step, then gathers of
/// shards with a use each, reads of shards by the computation, updates, and new rates, in any
/// order.
struct RandomSegment {
  Segment segment;
  IssueGroups groups;
};

RandomSegment makeSegment(std::mt19937 &random) {
  auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  RandomSegment result;
  std::vector<Launch> &launches = result.segment.launches;
  auto add = [&](std::string name, std::vector<Access> reads, std::vector<Access> writes) {
    launches.push_back(makeLaunch(std::move(name), std::move(reads), std::move(writes)));
    return static_cast<int>(launches.size()) - 1;
  };
  int buffers = 0;
  auto whole = [](int buffer) { return Access{buffer, 0, 64}; };
  const int notes = buffers++, input = buffers++, rate = buffers++;
  result.groups.early.push_back(add("input", {}, {whole(input)}));
  int activation = input;
  const int units = 1 + draw(6);
  std::vector<int> shards, gathered;
  for (int u = 0; u < units; ++u) {
    shards.push_back(buffers++);
    gathered.push_back(buffers++);
    if (draw(3) == 0) // not deferred
      continue;
    const int update =
        add("u" + std::to_string(u) + ".update", {whole(shards[u]), whole(notes), whole(rate)},
            {whole(shards[u]), whole(notes)});
    launches[update].minima.push_back(whole(notes));
    result.groups.updates.push_back(update);
  }
  for (int uses = draw(3 * units); uses > 0; --uses) {
    const int u = draw(units);
    const std::string name = "u" + std::to_string(u);
    auto compute = [&](const std::string &kind, int operand) {
      const int next = buffers++;
      add(name + kind, {whole(activation), whole(operand)}, {whole(next)});
      activation = next;
    };
    switch (draw(6)) {
    case 5:
      add("rate", {}, {whole(rate)});
      break;
    case 2: // the next microbatch
      result.groups.early.push_back(add("input", {}, {whole(input)}));
      compute(".copy", input);
      break;
    case 0:
      compute(".readShard", shards[u]);
      break;
    case 1:
      add(name + ".updateNow", {whole(shards[u]), whole(activation)}, {whole(shards[u])});
      break;
    default:
      result.groups.gathers.push_back(
          {add(name + ".gather", {whole(shards[u])}, {whole(gathered[u])})});
      compute(".use", gathered[u]);
      gathered[u] = buffers++;
    }
  }
  return result;
}

TEST(IssueOrderTest, LoadsAMicrobatchOnceTheOneBeforeIsCopied) {
  auto whole = [](int buffer) { return Access{buffer, 0, 64}; };
  const int staged = 0, alone = 1;
  Segment segment;
  segment.launches = {makeLaunch("load 0", {}, {whole(staged)}),
                      makeLaunch("copy 0", {whole(staged)}, {whole(2)}),
                      makeLaunch("use 0", {whole(2)}, {whole(3)}),
                      makeLaunch("load 1", {}, {whole(staged)}),
                      makeLaunch("load of another", {}, {whole(alone)}),
                      makeLaunch("copy 1", {whole(staged)}, {whole(4)}),
                      makeLaunch("load 2", {}, {whole(staged)})};
  IssueGroups groups;
  groups.early = {0, 3, 4, 6};
  const std::vector<int> order = orderIssue(segment, groups, 1);
  EXPECT_EQ(order, (std::vector<int>{0, 4, 1, 3, 2, 5, 6}));
}

TEST(IssueOrderTest, KeepsConflictingAccessesInOrder) {
  std::mt19937 random(11);
  int moved = 0;
  for (int i = 0; i < 1500; ++i) {
    RandomSegment drawn = makeSegment(random);
    const std::vector<Launch> before = drawn.segment.launches;
    const int prefetch = static_cast<int>(random() % 4);
    const std::vector<int> order = orderIssue(drawn.segment, drawn.groups, prefetch);
    moved += !std::is_sorted(order.begin(), order.end());
    for (size_t l = 0; l < order.size(); ++l)
      ASSERT_EQ(drawn.segment.launches[l].name, before[order[l]].name);
    const auto found = findReordered(drawn.segment.launches, order);
    ASSERT_FALSE(found) << "case " << i << ": '" << drawn.segment.launches[found->later].name
                        << "' is issued before '" << drawn.segment.launches[found->earlier].name
                        << "'";
  }
  EXPECT_GT(moved, 750);
}

TEST(IssueOrderTest, IsThatOfEachLargerPrefetchUnlessItIsLimited) {
  std::mt19937 random(12);
  auto issue = [](RandomSegment drawn, int prefetch, bool *isLimited = nullptr) {
    const std::vector<int> order = orderIssue(drawn.segment, drawn.groups, prefetch, isLimited);
    std::vector<std::vector<int>> waits;
    for (const Launch &launch : drawn.segment.launches)
      waits.push_back(launch.waits);
    return std::make_pair(order, waits);
  };
  int unlimited = 0, changing = 0;
  for (int i = 0; i < 1000; ++i) {
    RandomSegment drawn = makeSegment(random);
    for (const Launch &launch : drawn.segment.launches)
      if (launch.name.find(".use") != std::string::npos && random() % 2)
        drawn.groups.gradients.push_back({launch.writes.front().buffer});
    for (int prefetch = 0; prefetch < 5; ++prefetch) {
      bool isLimited = false;
      const auto result = issue(drawn, prefetch, &isLimited);
      for (int larger : {prefetch + 1, prefetch + 2, 100}) {
        const bool isSame = issue(drawn, larger) == result;
        ASSERT_TRUE(isSame || isLimited) << "case " << i << ", prefetch " << prefetch;
        changing += !isSame;
      }
      unlimited += !isLimited;
    }
  }
  EXPECT_GT(unlimited, 1000);
  EXPECT_GT(changing, 1000);
}

/// Messages between the streams of a computation (0), of sends (1), receives (2) and reductions
/// (3).
class MessagesTest : public testing::Test {
protected:
  int add(const std::string &name, int stream, const std::vector<int> &reads,
          const std::vector<int> &writes) {
    auto whole = [](const std::vector<int> &buffers) {
      std::vector<Access> accesses;
      for (int buffer : buffers)
        accesses.push_back({buffer, 0, 64});
      return accesses;
    };
    segment.launches.push_back(makeLaunch(name, whole(reads), whole(writes)));
    segment.launches.back().stream = stream;
    return static_cast<int>(segment.launches.size()) - 1;
  }

  /// The launches that wait, each with those that it waits for.
  std::string order() {
    orderIssue(segment, groups, 1);
    std::string text;
    for (const Launch &launch : segment.launches) {
      for (size_t i = 0; i < launch.waits.size(); ++i)
        text += (i > 0 ? ", " : launch.name + ": ") + segment.launches[launch.waits[i]].name;
      text += launch.waits.empty() ? "" : "\n";
    }
    return text;
  }

  Segment segment;
  IssueGroups groups;
};

TEST_F(MessagesTest, ReceivesWaitForTheComputationBefore) {
  groups.receives.push_back(add("receive 0", 2, {}, {0}));
  add("use 0", 0, {0}, {1});
  add("use 0 again", 0, {0}, {2});
  add("reduce", 3, {2}, {3});
  groups.receives.push_back(add("receive 1", 2, {}, {4}));
  groups.receives.push_back(add("receive 2", 2, {}, {5}));
  add("use 1", 0, {4}, {6});
  EXPECT_EQ(order(), "receive 1: use 0 again\nreceive 2: use 0 again\n");
}

TEST_F(MessagesTest, ReceivesAreIssuedBeforeThePartThatPrecedesTheirs) {
  for (int part = 0; part < 3; ++part) {
    const std::string number = std::to_string(part);
    for (const int buffer : {4 * part, 4 * part + 1})
      groups.receives.push_back(add("receive" + number, 2, {}, {buffer}));
    groups.partBegins.push_back(add("begin" + number, 0, {4 * part}, {4 * part + 2}));
    add("end" + number, 0, {4 * part + 1}, {4 * part + 3});
  }
  EXPECT_EQ(order(), "receive2: end0\nreceive2: end0\n");
  std::string names;
  for (const Launch &launch : segment.launches)
    names += launch.name + " ";
  EXPECT_EQ(names, "receive0 receive0 receive1 receive1 begin0 end0 receive2 receive2 begin1 end1 "
                   "begin2 end2 ");
}

/// A gradient that is received in the place of the one that a deferred update reads, and a message
/// behind it.
TEST_F(MessagesTest, ReceivesStayBehindLaunchesThatUseTheirPlaceAndInTheirOrder) {
  groups.partBegins.push_back(add("begin0", 0, {}, {0}));
  add("update", 0, {9}, {1});
  groups.receives.push_back(add("receive 9", 2, {}, {9}));
  groups.receives.push_back(add("receive 2", 2, {}, {2}));
  groups.partBegins.push_back(add("begin1", 0, {2, 9}, {3}));
  order();
  std::string names;
  for (const Launch &launch : segment.launches)
    names += launch.name + " ";
  EXPECT_EQ(names, "begin0 update receive 9 receive 2 begin1 ");
}

/// Part of a gradient is received, and the message is issued before the launches that the budget of
/// gradients waits for: what computes the rest waits for them, the message does not.
TEST_F(MessagesTest, ReceivedGradientsWaitForNothingThatIsIssuedLater) {
  groups.partBegins.push_back(add("begin", 0, {}, {0}));
  for (int gradient = 1; gradient < 3; ++gradient) {
    const std::string number = std::to_string(gradient);
    add("make " + number, 0, {0}, {gradient});
    add("reduce " + number, 3, {gradient}, {10 + gradient});
  }
  groups.receives.push_back(add("receive 3", 2, {}, {3}));
  groups.partBegins.push_back(add("make 3", 0, {0}, {3}));
  add("reduce 3", 3, {3}, {13});
  groups.gradients = {{1}, {2}, {3}};
  EXPECT_EQ(order(), "make 3: make 1, reduce 1\n");
  std::string names;
  for (const Launch &launch : segment.launches)
    names += launch.name + "; ";
  EXPECT_EQ(names, "receive 3; begin; make 1; reduce 1; make 2; reduce 2; make 3; reduce 3; ");
}

/// Inputs are issued first, before a receive that precedes them in the program.
TEST_F(MessagesTest, ReceivesWaitForWhatIsIssuedBefore) {
  groups.receives.push_back(add("receive 0", 2, {}, {0}));
  groups.early.push_back(add("input", 0, {}, {1}));
  groups.receives.push_back(add("receive 1", 2, {}, {2}));
  EXPECT_EQ(order(), "receive 0: input\nreceive 1: input\n");
}

/// Two messages a part; those of another direction in between do not count.
TEST_F(MessagesTest, MessagesWaitForThoseOfThePartBeforeThePrevious) {
  groups.sends.resize(2);
  for (int part = 0; part < 4; ++part) {
    const std::string number = std::to_string(part);
    groups.sends[0].emplace_back();
    for (int message = 0; message < 2; ++message) {
      const std::string name = (message ? "y" : "x") + number;
      const int value = 2 * part + message;
      add(name, 0, {}, {value});
      groups.sends[0].back().push_back(add("send " + name, 1, {value}, {}));
    }
    add("back" + number, 0, {}, {10 + part});
    groups.sends[1].push_back({add("send back" + number, 1, {10 + part}, {})});
  }
  EXPECT_EQ(order(), "x2: send x0, send y0\ny2: send x0, send y0\nback2: send back0\n"
                     "x3: send x1, send y1\ny3: send x1, send y1\nback3: send back1\n");
}

/// What is sent may have the place of what is reduced to it.
TEST_F(MessagesTest, OperandsOfReducedMessagesWait) {
  groups.sends.emplace_back();
  for (int part = 0; part < 3; ++part) {
    const std::string number = std::to_string(part);
    add("inner" + number, 0, {}, {3 * part});
    add("own" + number, 0, {3 * part}, {3 * part + 1});
    add("sum" + number, 3, {3 * part + 1}, {3 * part + 2});
    groups.sends[0].push_back({add("send" + number, 1, {3 * part + 2}, {})});
  }
  EXPECT_EQ(order(), "own2: send0\n");
}

/// What is received and passed on, and what was computed before the part, has its place anyway.
TEST_F(MessagesTest, MessagesThatAreThereDoNotWait) {
  groups.sends.emplace_back();
  add("before", 0, {}, {0});
  for (int part = 0; part < 4; ++part) {
    const int received = 1 + part;
    const int receive = add("receive" + std::to_string(part), 2, {}, {received});
    groups.sends[0].push_back(
        {add("send" + std::to_string(part), 1, {part == 3 ? 0 : received}, {})});
    groups.receives.push_back(receive);
  }
  EXPECT_EQ(order(), "receive0: before\nreceive1: before\nreceive2: before\nreceive3: before\n");
}

/// Two values of one buffer, of which a part sends one each.
TEST_F(MessagesTest, OnlyTheWritersOfWhatIsSentWait) {
  groups.sends.emplace_back();
  for (int part = 0; part < 3; ++part) {
    const std::string number = std::to_string(part);
    const int sent = add("sent" + number, 0, {}, {part}),
              kept = add("kept" + number, 0, {}, {part});
    segment.launches[sent].writes[0] = {part, 0, 32};
    segment.launches[kept].writes[0] = {part, 32, 64};
    const int send = add("send" + number, 1, {part}, {});
    segment.launches[send].reads[0] = {part, 0, 32};
    groups.sends[0].push_back({send});
  }
  EXPECT_EQ(order(), "sent2: send0\n");
}

} // namespace
