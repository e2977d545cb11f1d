//===- ReceivedBytesTest.cpp - what the report says comes to a rank --------===//
//
// CollectiveOpInterface::getReceivedBytes against the messages that the runtime requests.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/FSDPDialect.h"

#include "mlir/Parser/Parser.h"
#include "runtime/comm/MessageCommunicator.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

using namespace mlir;
namespace rt = ::fsdp::rt;

namespace {

/// A single rank: counts its requests to others, which repeat its requests and send zeros.
class Counter final : public rt::MessageCommunicator {
public:
  Counter(const rt::PeerContext &peer, std::vector<int> group)
      : MessageCommunicator("all", peer, std::move(group), 1) {}

  int64_t received = 0; ///< bytes, without the requests

protected:
  void send(const void *, std::size_t, int) override {}
  void receive(void *data, std::size_t bytes, int) override { asked.push_back({data, bytes}); }
  void finish(const Request &request) override {
    for (auto [data, bytes] : asked) {
      if (!opened) {
        ASSERT_EQ(bytes, sizeof(Request));
        const Request said = request.isTransfer() ? request.counterpart(rank()) : request;
        std::memcpy(data, &said, sizeof(Request));
        continue;
      }
      if (bytes > 0)
        std::memset(data, 0, bytes);
      received += static_cast<int64_t>(bytes);
    }
    asked.clear();
    opened = true;
  }
  bool awaits(int) override { return false; }

private:
  std::vector<std::pair<void *, std::size_t>> asked;
  bool opened = false;
};

class ReceivedBytesTest : public testing::Test {
protected:
  ReceivedBytesTest() { context.loadDialect<::mlir::fsdp::FSDPDialect, arith::ArithDialect>(); }

  /// The op's result for the collective `line`, which reads %x of type `type`.
  int64_t say(int ranks, const std::string &type, const std::string &line) {
    const std::string text =
        llvm::formatv("fsdp.mesh @mesh <[\"fsdp\"={0}]>\nfsdp.program @all role {{} {{\n"
                      "fsdp.segment @s train next [@s] {{\n"
                      "%x = arith.constant dense<0.0> : {1}\n{2}\n}\n}\n",
                      ranks, type, line);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    int64_t received = -1;
    if (module)
      module->walk(
          [&](::mlir::fsdp::CollectiveOpInterface op) { received = op.getReceivedBytes(); });
    EXPECT_GE(received, 0) << text;
    return received;
  }

  /// The largest request of one of `ranks` in `call`, which has room for 4096 floats on either
  /// side.
  static int64_t count(int ranks,
                       const std::function<void(rt::Communicator &, float *, float *)> &call) {
    std::vector<int> group;
    for (int rank = 0; rank < ranks; ++rank)
      group.push_back(rank);
    std::vector<float> source(4096), target(4096);
    int64_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      rt::PeerContext peer;
      peer.rank = rank;
      Counter counter(peer, group);
      call(counter, source.data(), target.data());
      most = std::max(most, counter.received);
    }
    return most;
  }

  MLIRContext context;
};

std::string shape(int64_t rows, int64_t size, int64_t columns) {
  return llvm::formatv("tensor<{0}x{1}x{2}xf32>", rows, size, columns);
}

constexpr int64_t kSizes[] = {1, 2, 3, 7, 8, 10, 12};
constexpr int kRanks[] = {2, 3, 4, 8};

TEST_F(ReceivedBytesTest, GathersAndScatters) {
  for (int n : kRanks)
    for (int64_t size : kSizes)
      for (int64_t rows : {1, 3}) {
        const int64_t local = llvm::divideCeil(size, n);
        const rt::ShardLayout tile{static_cast<size_t>(rows), static_cast<size_t>(local), 5,
                                   static_cast<size_t>(size)};
        const std::string whole = shape(rows, size, 5), part = shape(rows, local, 5);
        EXPECT_EQ(
            say(n, part,
                "%y = fsdp.all_gather %x dim 1 over [\"fsdp\"] : " + part + " -> " + whole),
            count(n, [&](auto &comm, float *from, float *to) { comm.allGather(from, to, tile); }))
            << whole << " of " << n;
        EXPECT_EQ(
            say(n, whole,
                "%y = fsdp.reduce_scatter %x dim 1 over [\"fsdp\"] : " + whole + " -> " + part),
            count(n,
                  [&](auto &comm, float *from, float *to) {
                    comm.perform(rt::CollectiveKind::ReduceScatter, tile, 0, rt::DType::F32, from,
                                 to);
                  }))
            << whole << " of " << n;
      }
}

// The shards of flat units are rounded up; their padding is not sent.
TEST_F(ReceivedBytesTest, LongerShards) {
  for (int n : kRanks)
    for (int64_t size : {1, 12, 16, 40, 100}) {
      const int64_t local = llvm::alignTo(llvm::divideCeil(size, n), 16);
      const rt::ShardLayout tile{1, static_cast<size_t>(local), 1, static_cast<size_t>(size)};
      const std::string whole = llvm::formatv("tensor<{0}xf32>", size),
                        part = llvm::formatv("tensor<{0}xf32>", local);
      EXPECT_EQ(
          say(n, part, "%y = fsdp.all_gather %x dim 0 over [\"fsdp\"] : " + part + " -> " + whole),
          count(n, [&](auto &comm, float *from, float *to) { comm.allGather(from, to, tile); }))
          << whole << " of " << n;
      EXPECT_EQ(say(n, whole,
                    "%y = fsdp.reduce_scatter %x dim 0 over [\"fsdp\"] : " + whole + " -> " + part),
                count(n,
                      [&](auto &comm, float *from, float *to) {
                        comm.perform(rt::CollectiveKind::ReduceScatter, tile, 0, rt::DType::F32,
                                     from, to);
                      }))
          << whole << " of " << n;
    }
}

TEST_F(ReceivedBytesTest, AllReduces) {
  for (int n : kRanks)
    for (int64_t size : kSizes) {
      const std::string type = llvm::formatv("tensor<{0}xf32>", size);
      EXPECT_EQ(say(n, type, "%y = fsdp.all_reduce sum %x over [\"fsdp\"] : " + type),
                count(n, [&](auto &comm, float *from,
                             float *to) { comm.allReduce(from, to, static_cast<size_t>(size)); }))
          << type << " over " << n;
    }
}

TEST_F(ReceivedBytesTest, Exchanges) {
  for (int n : kRanks)
    for (int64_t split : kSizes)
      for (int64_t concat : kSizes) {
        const int64_t splitLocal = llvm::divideCeil(split, n),
                      concatLocal = llvm::divideCeil(concat, n);
        const std::string from = shape(split, concatLocal, 2), to = shape(splitLocal, concat, 2);
        const rt::AllToAllLayout layout{1,
                                        1,
                                        2,
                                        static_cast<size_t>(splitLocal),
                                        static_cast<size_t>(split),
                                        static_cast<size_t>(concatLocal),
                                        static_cast<size_t>(concat),
                                        true};
        EXPECT_EQ(
            say(n, from,
                "%y = fsdp.all_to_all %x split 0 concat 1 over [\"fsdp\"] : " + from + " -> " + to),
            count(n,
                  [&](auto &comm, float *given, float *got) {
                    comm.perform(rt::CollectiveKind::AllToAll, layout, 0, rt::DType::F32, given,
                                 got);
                  }))
            << from << " -> " << to << " of " << n;
      }
}

TEST_F(ReceivedBytesTest, PartsOfAnotherSize) {
  for (int n : kRanks)
    for (int64_t given : kSizes)
      for (int64_t got : kSizes) {
        const std::string from = shape(1, given, 5), to = shape(1, got, 5);
        const rt::RepartitionLayout layout{1, static_cast<size_t>(given), 5,
                                           static_cast<size_t>(got)};
        EXPECT_EQ(
            say(n, from,
                "%y = fsdp.all_to_all %x split 1 concat 1 over [\"fsdp\"] : " + from + " -> " + to),
            count(n,
                  [&](auto &comm, float *source, float *target) {
                    comm.perform(rt::CollectiveKind::Repartition, layout, 0, rt::DType::F32, source,
                                 target);
                  }))
            << from << " -> " << to << " of " << n;
      }
}

TEST_F(ReceivedBytesTest, FromOneRank) {
  const std::string type = "tensor<8xf32>";
  for (const std::vector<int> &sources :
       {std::vector<int>{0, 2, 1, 3}, {0, 1, 2, -1}, {3, 0, 1, 2}}) {
    const std::string list =
        llvm::formatv("[{0}, {1}, {2}, {3}]", sources[0], sources[1], sources[2], sources[3]);
    EXPECT_EQ(
        say(4, type, "%y = fsdp.collective_permute %x from " + list + " over [\"fsdp\"] : " + type),
        count(4,
              [&](auto &comm, float *from, float *to) {
                comm.perform(rt::CollectiveKind::Permute, rt::SourceRanks{sources.data(), 4}, 8,
                             rt::DType::F32, from, to);
              }))
        << list;
  }
  EXPECT_EQ(say(4, type, "%y = fsdp.broadcast %x from 1 over [\"fsdp\"] : " + type),
            count(4, [&](auto &comm, float *from, float *to) {
              comm.perform(rt::CollectiveKind::Broadcast, rt::Root{1}, 8, rt::DType::F32, from, to);
            }));
  EXPECT_EQ(say(4, type, "%y = fsdp.receive offset -1 over [\"fsdp\"] : " + type),
            count(4, [&](auto &comm, float *, float *to) {
              comm.receive(to, 8, rt::DType::F32, (comm.rank() + 3) % 4);
            }));
  EXPECT_EQ(say(4, type, "fsdp.send %x offset 1 over [\"fsdp\"] : " + type), 0);
}

} // namespace
