//===- DeviceJob.h - a job whose communicators are the device's -------------===//
//
// Lets the conformance suite, which compares memory of the host, run on the collectives of a
// device.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_DEVICEJOB_H
#define FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_DEVICEJOB_H

#include "runtime/execution/cuda/Launch.h"
#include "runtime/job/SharedJob.h"
#include "runtime/launches/Collectives.h"
#include "test/unit/runtime/comm/Conformance.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

/// Performs a call as the action `name` of the context, which throws what it gives.
#define CHECK(context, name, ...) (context).at(name).check((__VA_ARGS__), __FILE__, __LINE__)

namespace fsdp::rt {

enum : int { kCompute, kGather };
constexpr const char *kStreams[] = {"compute", "gather"};
constexpr std::size_t kArena = std::size_t(40) << 20;

/// A device's communicator for memory of the host: brings it to the arena, performs, brings it
/// back. Buffers that overlap on the host overlap in the arena.
class OnDevice final : public Communicator {
public:
  OnDevice(Context &c, int index, std::unique_ptr<Communicator> host)
      : Communicator(host->name(), c.rankIn(index), c.sizeOf(index)), c_(c), index_(index),
        host_(std::move(host)) {}

protected:
  void doMove(const void *source, void *target, const Request &request,
              const int *sources) override {
    const TransferRuns moves(request, size(), sources);
    const std::size_t element = sizeInBytes(request.type);
    Placed at = bring(source, moves.sourceCount() * element, target, moves.targetCount() * element);
    perform(request, at, sources);
    take(at, target, moves.targetCount() * element);
  }
  void doReduceScatter(const void *whole, void *piece, const Request &request) override {
    const ShardLayout tile = layoutOf(request);
    const std::size_t element = sizeInBytes(request.type);
    Placed at = bring(whole, tile.wholeCount() * element, piece, tile.pieceCount() * element);
    perform(request, at);
    take(at, piece, tile.pieceCount() * element);
  }
  void doGroup(const Request &, const GroupedCollective *members, std::size_t count) override {
    std::vector<GroupedCollective> placed(members, members + count);
    std::byte *free = c_.base();
    const auto bring = [&](const void *memory, std::size_t bytes) {
      std::byte *at = free;
      CHECK(c_, "bring", cudaMemcpy(at, memory, bytes, cudaMemcpyHostToDevice));
      free += (bytes + 255) / 256 * 256;
      return at;
    };
    std::vector<std::size_t> targetBytes;
    for (GroupedCollective &member : placed) {
      const ShardLayout tile = layoutOf(member.request);
      const std::size_t element = sizeInBytes(member.request.type);
      const bool gathers = member.request.kind == CollectiveKind::AllGather;
      const std::size_t piece = tile.pieceCount() * element, whole = tile.wholeCount() * element;
      targetBytes.push_back(gathers ? whole : piece);
      member.source = bring(member.source, gathers ? piece : whole);
      member.target = bring(member.target, targetBytes.back());
    }
    CHECK(c_, "bring", cudaStreamSynchronize(nullptr));
    CHECK(c_, "group", fsdp::rt::performGroup(comm(), placed.data(), count, stream()));
    for (std::size_t i = 0; i < count; ++i)
      CHECK(c_, "take",
            cudaMemcpyAsync(members[i].target, placed[i].target, targetBytes[i],
                            cudaMemcpyDeviceToHost, stream()));
    c_.synchronize();
  }
  void doAllReduce(const void *source, void *target, const Request &request) override {
    const std::size_t bytes = request.total * sizeInBytes(request.type);
    Placed at = bring(source, bytes, target, bytes);
    perform(request, at);
    take(at, target, bytes);
  }
  void doBarrier(const Request &) override { host_->barrier(); }
  void doSend(const void *source, const Request &request) override {
    Placed at = bring(source, request.total * sizeInBytes(request.type), source, 0);
    CHECK(c_, "send",
          fsdp::rt::send(comm(), Peer{request.root - rank()}, at.source, request.total,
                         request.type, stream()));
    c_.synchronize();
  }
  void doReceive(void *target, const Request &request) override {
    const std::size_t bytes = request.total * sizeInBytes(request.type);
    Placed at = bring(target, 0, target, bytes);
    CHECK(c_, "receive",
          fsdp::rt::receive(comm(), Peer{request.root - rank()}, at.target, request.total,
                            request.type, stream()));
    c_.heldReceives().release(stream()); // the copy is no launch, which would do it
    take(at, target, bytes);
  }

private:
  struct Placed {
    const std::byte *source;
    std::byte *target;
  };

  void perform(const Request &request, const Placed &at, const int *sources = nullptr) {
    CHECK(c_, nameOf(request.kind),
          fsdp::rt::perform(comm(), request, sources, at.source, at.target, stream()));
  }
  cudaStream_t stream() const { return c_.stream(kGather); }
  Comm comm() const { return c_.comm(index_, kGather); }

  Placed bring(const void *source, std::size_t sourceBytes, const void *target,
               std::size_t targetBytes) {
    const auto *from = static_cast<const std::byte *>(source);
    const auto *to = static_cast<const std::byte *>(target);
    std::byte *first = c_.base(), *second = c_.base() + kArena / 2;
    if (from < to + targetBytes && to < from + sourceBytes) {
      const std::byte *low = std::min(from, to);
      first = c_.base() + (from - low), second = c_.base() + (to - low);
    }
    CHECK(c_, "bring", cudaMemcpy(second, target, targetBytes, cudaMemcpyHostToDevice));
    CHECK(c_, "bring", cudaMemcpy(first, source, sourceBytes, cudaMemcpyHostToDevice));
    CHECK(c_, "bring", cudaStreamSynchronize(nullptr)); // until it is there
    return {first, second};
  }
  void take(const Placed &at, void *target, std::size_t bytes) {
    CHECK(c_, "take", cudaMemcpyAsync(target, at.target, bytes, cudaMemcpyDeviceToHost, stream()));
    c_.synchronize();
  }

  Context &c_;
  int index_;
  std::unique_ptr<Communicator> host_;
};

/// A job whose communicators are the device's.
class DeviceJob final : public Job {
public:
  DeviceJob(Job &host, Context &c)
      : Job(host.mesh(), host.options(), host.rank()), host_(host), c_(c) {
    memory_.resize(kConformanceArena);
    peer_.arena = memory_.data();
    peer_.arenaBytes = memory_.size();
    peer_.failure = &host.failure();
  }
  std::unique_ptr<Communicator> communicator(int index, int) override {
    auto host = host_.communicator(index, 1); // the context has the world's first channel
    if (index == static_cast<int>(options_.communicators.size()))
      return host; // over all ranks is for the host's memory
    return std::make_unique<OnDevice>(c_, index, std::move(host));
  }

private:
  Job &host_;
  Context &c_;
  std::vector<std::byte> memory_;
};

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_DEVICEJOB_H
