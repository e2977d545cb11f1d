// Which of NCCL's ways are used: decided on plain data.
#include "runtime/comm/cuda/NcclChoices.h"
#include "base/Error.h"
#include "runtime/train/RunHeader.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace base;
using namespace fsdp::rt;

namespace {

std::map<std::string, std::string> variables;

const char *variable(const char *name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

std::string describe(int version, const std::vector<GatherGroup> &groups) {
  return describeGathers(version, NcclChoices::from(variable), groups, variable);
}

TEST(NcclChoices, ConnectsTransfersInRounds) {
  using Rounds = std::vector<int>;
  EXPECT_EQ(transferRounds(4, 1, false), (Rounds{0, 1, 0, -1}));
  EXPECT_EQ(transferRounds(4, -1, false), (Rounds{-1, 0, 1, 0}));
  EXPECT_EQ(transferRounds(2, 1, true), (Rounds{0, 1}));
  EXPECT_EQ(transferRounds(5, 1, true), (Rounds{0, 1, 0, 1, 2}));
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (int step = 1 - ranks; step < ranks; ++step)
      for (bool inRing : {false, true}) {
        if (step == 0)
          continue;
        const Rounds rounds = transferRounds(ranks, step, inRing);
        std::set<std::pair<int, int>> ends; // rank and round
        for (int rank = 0; rank < ranks; ++rank) {
          const int next = rank + step, peer = inRing ? (next + ranks) % ranks : next;
          const int round = rounds[static_cast<std::size_t>(rank)];
          ASSERT_EQ(round >= 0, peer >= 0 && peer < ranks) << ranks << " by " << step;
          if (round >= 0) {
            EXPECT_TRUE(ends.insert({rank, round}).second) << ranks << " by " << step;
            EXPECT_TRUE(ends.insert({peer, round}).second) << ranks << " by " << step;
            EXPECT_LT(round, 3);
          }
        }
      }
}

TEST(NcclChoices, CopyEnginesByVersionSizeAndNodes) {
  struct Case {
    int version, ranks, nodes;
    bool good;
  };
  for (const Case &c : {
           Case{22705, 8, 1, false}, // without them
           Case{22809, 2, 1, true},   Case{22903, 2, 1, true},   Case{22907, 2, 1, false},
           Case{23007, 2, 1, false},  Case{23101, 2, 1, false},  Case{23102, 2, 1, true},
           Case{22809, 8, 1, true},   Case{22809, 9, 1, false},  Case{22903, 16, 1, false},
           Case{22809, 17, 1, false}, Case{22809, 18, 1, true},  Case{22809, 24, 1, true},
           Case{22907, 25, 1, false}, Case{22809, 33, 1, false}, Case{22809, 36, 1, true},
           Case{23003, 9, 1, true},   Case{23003, 32, 1, true},  Case{22809, 8, 2, true},
           Case{23004, 16, 2, true},  Case{22809, 16, 4, false}, Case{23007, 16, 2, false},
           Case{23102, 2, 2, false},
       })
    EXPECT_EQ(whyNoCopyEngines(c.version, c.ranks, c.nodes) == nullptr, c.good)
        << c.version << " " << c.ranks << " ranks on " << c.nodes;
}

TEST(NcclChoices, OfTheEnvironment) {
  variables = {};
  NcclChoices choices = NcclChoices::from(variable);
  EXPECT_TRUE(choices.window);
  EXPECT_FALSE(choices.always);
  EXPECT_FALSE(choices.copyEngines);
  variables = {{"FSDP_NCCL_WINDOW", "0"}, {"FSDP_NCCL_ALWAYS", "1"}};
  choices = NcclChoices::from(variable);
  EXPECT_FALSE(choices.window);
  EXPECT_TRUE(choices.always);
  variables = {{"FSDP_NCCL_WINDOW", "1"}, {"FSDP_NCCL_COPY_ENGINES", "1"}};
  EXPECT_EQ(NcclChoices::from(variable).copyEngines, true);
  variables = {{"FSDP_NCCL_WINDOW", "0"}, {"FSDP_NCCL_COPY_ENGINES", "0"}};
  EXPECT_EQ(NcclChoices::from(variable).copyEngines, false);
  variables = {{"FSDP_NCCL_WINDOW", "0"}, {"FSDP_NCCL_COPY_ENGINES", "1"}};
  EXPECT_THROW(NcclChoices::from(variable), Error);
  variables = {{"FSDP_NCCL_COPY_ENGINES", "no"}};
  EXPECT_THROW(NcclChoices::from(variable), Error);
}

TEST(NcclChoices, KernelsOfAllCommunicatorsFit) {
  EXPECT_EQ(blocksOfEach(132, 1), 128);
  EXPECT_EQ(blocksOfEach(132, 8), 16);
  EXPECT_EQ(blocksOfEach(132, 9), 8);
  EXPECT_EQ(blocksOfEach(132, 200), 1);
}

TEST(NcclChoices, LaunchOrderNeedsDriverAndRuntime) {
  EXPECT_NO_THROW(requireLaunchOrder(12030, 12030, 2));
  EXPECT_THROW(requireLaunchOrder(12020, 13000, 2), Error);
  EXPECT_THROW(requireLaunchOrder(13000, 12020, 2), Error);
}

TEST(NcclChoices, AreDescribed) {
  variables = {};
  const std::vector<GatherGroup> groups = {{"fsdp", 8, 1}, {"data", 2, 1}, {"one", 1, 1}};
  EXPECT_EQ(describe(22809, groups), "all-gathers by copy engines");
  EXPECT_EQ(describe(22809, {{"one", 1, 1}}), "");
  EXPECT_EQ(describe(22907, groups), "all-gathers by copy engines, by kernels over 'data' (2 "
                                     "ranks: NCCL 2.29.7 to 2.31.1 may hang)");
  EXPECT_EQ(
      describe(22903, {{"fsdp", 16, 1}}),
      "all-gathers by kernels over 'fsdp' (NCCL before 2.30.3 races at this number of ranks)");
  EXPECT_EQ(describe(23007, {{"fsdp", 16, 2}}),
            "all-gathers by kernels over 'fsdp' (several nodes: NCCL 2.30.7 and later send through "
            "the CPU)");
  EXPECT_EQ(describe(22705, {{"fsdp", 8, 1}}),
            "all-gathers by kernels over 'fsdp' (NCCL has none before 2.28)");
  variables = {{"NCCL_CTA_POLICY", "2"}, {"NCCL_DEBUG", "INFO"}, {"NCCL_NVLS_ENABLE", "0"}};
  EXPECT_EQ(describe(22809, groups),
            "all-gathers by copy engines; set: NCCL_CTA_POLICY=2, NCCL_NVLS_ENABLE=0");
  variables = {{"NCCL_SYM_CE_THRESHOLD", kNoSymmetricThreshold}}; // the program's own
  EXPECT_EQ(describe(22809, groups), "all-gathers by copy engines");
  EXPECT_FALSE(mayCopyUnasked(variable));
  variables = {{"NCCL_SYM_CE_THRESHOLD", "0"}};
  EXPECT_EQ(describe(22809, groups), "all-gathers by copy engines; set: NCCL_SYM_CE_THRESHOLD=0");
  EXPECT_TRUE(mayCopyUnasked(variable));
  variables = {{"NCCL_SYM_CE_THRESHOLD", ""}, {"NCCL_CTA_POLICY", ""}}; // as if not set
  EXPECT_EQ(describe(22809, groups), "all-gathers by copy engines");
  EXPECT_FALSE(mayCopyUnasked(variable));
  variables = {{"NCCL_CTA_POLICY", "0"}};
  EXPECT_TRUE(mayCopyUnasked(variable));
  variables = {{"FSDP_NCCL_COPY_ENGINES", "1"}};
  EXPECT_EQ(describe(22907, groups), "all-gathers by copy engines (FSDP_NCCL_COPY_ENGINES=1)");
  variables = {{"FSDP_NCCL_COPY_ENGINES", "0"}};
  EXPECT_EQ(describe(22809, groups), "all-gathers by kernels (FSDP_NCCL_COPY_ENGINES=0)");
  variables = {{"FSDP_NCCL_WINDOW", "0"}};
  EXPECT_EQ(describe(22809, groups), "all-gathers by kernels (FSDP_NCCL_WINDOW=0)");
}

TEST(NcclChoices, AreInTheFirstLines) {
  Program program{};
  program.name = "m", program.options = program.compilation = program.modelDigest = "";
  const Options options;
  const Hyperparameters rate;
  RunHeader header{
      program, options, 3, rate, "fsdp=8", 0, "NCCL 2.28.9", "all-gathers by copy engines", {}};
  EXPECT_NE(header.text().find("  NCCL 2.28.9\nall-gathers by copy engines\n"), std::string::npos)
      << header.text();
  EXPECT_NE(header.line().find("\"collectives\":\"all-gathers by copy engines\""),
            std::string::npos)
      << header.line();
  header.collectives = "";
  EXPECT_EQ(header.line().find("collectives"), std::string::npos);
}

TEST(NcclChoices, NodesAreCountedAsNcclDoes) {
  EXPECT_EQ(nodeKey(nullptr, "a", "boot"), nodeKey(nullptr, "a", "boot"));
  EXPECT_NE(nodeKey(nullptr, "a", "boot"), nodeKey(nullptr, "b", "boot"));
  EXPECT_NE(nodeKey(nullptr, "a", "boot"), nodeKey(nullptr, "a", "reboot"));
  EXPECT_EQ(nodeKey("x", "a", "boot"), nodeKey("x", "b", "reboot"));
  EXPECT_NE(nodeKey("x", "a", "boot"), nodeKey("y", "a", "boot"));
}

} // namespace
