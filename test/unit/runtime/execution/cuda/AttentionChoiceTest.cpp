#include "runtime/execution/cuda/AttentionChoice.h"

#include "base/Error.h"
#include "runtime/train/Hyperparameters.h"
#include "runtime/train/RunHeader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

using namespace fsdp::rt;
using base::Error;

namespace {

/// One of two ranks, of which rank 0 broadcasts before rank 1 receives.
class OneOfTwo final : public Communicator {
public:
  explicit OneOfTwo(int rank) : Communicator("all ranks", rank, 2) {}

private:
  void doMove(const void *source, void *target, const Request &request, const int *) override {
    sent.resize(request.total);
    if (rank() == 0)
      std::memcpy(sent.data(), source, sent.size());
    else
      std::memcpy(target, sent.data(), sent.size());
  }
  void doReduceScatter(const void *, void *, const Request &) override { std::abort(); }
  void doGroup(const Request &, const GroupedCollective *, std::size_t) override { std::abort(); }
  void doAllReduce(const void *, void *, const Request &) override { std::abort(); }
  void doBarrier(const Request &) override { std::abort(); }
  void doSend(const void *, const Request &) override { std::abort(); }
  void doReceive(void *, const Request &) override { std::abort(); }

  static std::vector<char> sent;
};
std::vector<char> OneOfTwo::sent;

std::size_t choose(int rank, std::size_t (*findVersion)()) {
  OneOfTwo world(rank);
  return chooseCudnn(world, findVersion);
}

std::size_t newer() { return 92800; }
std::size_t older() { return 92501; }
std::size_t none() { throw Error("no library here", base::kExitNoDevice); }

class AttentionChoice : public ::testing::Test {
protected:
  void set(const char *value) { setenv("FSDP_ATTENTION", value, /*overwrite=*/1); }
  ~AttentionChoice() override { unsetenv("FSDP_ATTENTION"); }
};

TEST_F(AttentionChoice, IsThatOfRank0) {
  EXPECT_EQ(choose(0, none), 0u);
  set("cudnn"); // of rank 1 alone
  EXPECT_EQ(choose(1, none), 0u);
  EXPECT_EQ(choose(0, newer), 92800u);
  set("own");
  EXPECT_EQ(choose(1, newer), 92800u);
  EXPECT_EQ(choose(0, none), 0u);
  set("");
  EXPECT_EQ(choose(0, none), 0u);
}

std::string failureOf(int rank, std::size_t (*findVersion)(), bool isByAll, int status) {
  try {
    choose(rank, findVersion);
  } catch (const Error &error) {
    EXPECT_EQ(error.isByAll(), isByAll);
    EXPECT_EQ(error.status(), status);
    return error.what();
  }
  return "";
}

TEST_F(AttentionChoice, FailuresOfRank0AreThoseOfAll) {
  set("fast");
  const char *const text =
      "environment variable 'FSDP_ATTENTION' got 'fast', expected own or cudnn";
  for (int rank : {0, 1})
    EXPECT_EQ(failureOf(rank, newer, true, base::kExitBadCommandLine), text);
  set("cudnn");
  for (int rank : {0, 1})
    EXPECT_EQ(failureOf(rank, rank == 0 ? none : newer, true, base::kExitNoDevice),
              "no library here");
}

TEST_F(AttentionChoice, RanksHaveOneVersion) {
  set("cudnn");
  choose(0, newer);
  EXPECT_EQ(
      failureOf(1, older, false, base::kExitNoDevice),
      "FSDP_ATTENTION=cudnn got cuDNN 9.25.1 on rank 1, expected 9.28.0 as on rank 0: install "
      "the same version on all machines");
}

TEST(AttentionLibraryOfARun, IsInItsHeader) {
  Program program{};
  program.name = "m", program.options = program.compilation = program.modelDigest = "";
  const Options options;
  const Hyperparameters rate;
  RunHeader header{program, options, 3, rate, "fsdp=1", 0, "", "", {}};
  EXPECT_EQ(header.text().find("attention"), std::string::npos);
  EXPECT_EQ(header.line().find("attention"), std::string::npos);
  header.attention = {"cuDNN 9.28.0", "4096 bytes on stream 'compute'"};
  EXPECT_NE(header.text().find("\nattention by cuDNN 9.28.0, scratch memory 4096 bytes on stream "
                               "'compute'\n"),
            std::string::npos)
      << header.text();
  EXPECT_NE(header.line().find("\"attention\":\"cuDNN 9.28.0\""), std::string::npos)
      << header.line();
  header.attention.workspace = "";
  EXPECT_NE(header.text().find("\nattention by cuDNN 9.28.0\n"), std::string::npos);
}

} // namespace
