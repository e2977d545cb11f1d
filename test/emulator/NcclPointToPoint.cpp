//===- NcclPointToPoint.cpp - ncclSend and ncclRecv of the emulated NCCL ------------===//
//
// As NCCL's sources do it (enqueue.cc, group.cc): calls between ncclGroupStart and ncclGroupEnd are
// one operation of their stream, and make progress together; a call outside of a group is a group
// by itself. The n-th send of a rank to another one meets the n-th receive of that one from it.
// Neither is complete before the other one has come: NCCL may buffer a little of a send, but who
// relies on that hangs with larger messages. A send to itself needs its receive in the same group.
// Two ranks are connected at the first message between them on a communicator: the host of each
// waits in its call for that of the other (transport.cc, ncclTransportP2pSetup).
//
//===----------------------------------------------------------------------===//

#include "NcclComm.h"

#include "Capture.h"
#include "Emulator.h"
#include "Failure.h"
#include "Memory.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace emulator {

namespace {

/// The operations of one group on one stream.
struct Batch {
  ncclComm_t comm;
  cudaStream_t stream;
  std::vector<Post> posts;
};

thread_local std::vector<Batch> batches;

/// Copies the data of matched calls. False if the two calls do not agree.
bool deliver(const Post &send, const Post &receive, int sender, int receiver) {
  if (send.bytes == receive.bytes && send.type == receive.type) {
    std::memcpy(receive.buffer, send.buffer, send.bytes);
    return true;
  }
  recordFailure(
      cudaErrorLaunchFailure,
      formatted(
          "rank %d sends %zu bytes of type %d to rank %d, which receives %zu bytes of type %d",
          sender, send.bytes, int(send.type), receiver, receive.bytes, int(receive.type)));
  return false;
}

/// Performs what can be, leaves the rest for those that come later. True when all is done.
bool start(const Batch &batch, const PointRef &done) {
  Group &group = *batch.comm->group;
  const int rank = batch.comm->rank;
  auto mine = std::make_shared<PendingBatch>(PendingBatch{batch.posts.size(), done, batch.comm});
  std::vector<std::shared_ptr<PendingBatch>> finished;
  {
    std::lock_guard<std::mutex> lock(group.mutex);
    for (Post post : batch.posts) {
      post.batch = mine;
      const std::pair<int, int> way =
          post.sends ? std::make_pair(rank, post.peer) : std::make_pair(post.peer, rank);
      Group::Mail &mail = group.mail[way];
      std::deque<Post> &waiting = post.sends ? mail.receives : mail.sends;
      if (waiting.empty()) {
        (post.sends ? mail.sends : mail.receives).push_back(post);
        continue;
      }
      const Post other = waiting.front();
      waiting.pop_front();
      deliver(post.sends ? post : other, post.sends ? other : post, way.first, way.second);
      for (const auto &one : {post.batch, other.batch})
        if (--one->open == 0)
          finished.push_back(one);
    }
  }
  bool all = false;
  for (const auto &one : finished) {
    --one->comm->unfinished;
    if (one == mine)
      all = true;
    else
      complete(one->done);
  }
  return all;
}

/// Waits for the hosts of those with whom `batch` is the first to exchange a message.
bool connect(const Batch &batch) {
  Group &group = *batch.comm->group;
  const int rank = batch.comm->rank;
  std::unique_lock<std::mutex> lock(group.mutex);
  for (const Post &post : batch.posts)
    post.sends ? group.senders.insert({rank, post.peer})
               : group.receivers.insert({post.peer, rank});
  return meet(lock, group, batch.comm, [&] {
    return std::all_of(batch.posts.begin(), batch.posts.end(), [&](const Post &post) {
      return post.sends ? group.receivers.count({rank, post.peer})
                        : group.senders.count({post.peer, rank});
    });
  });
}

ncclResult_t checkSelf(const Batch &batch) {
  int sends = 0, receives = 0;
  for (const Post &post : batch.posts)
    if (post.peer == batch.comm->rank)
      ++(post.sends ? sends : receives);
  if (sends > receives)
    return say(ncclInvalidUsage, "Trying to send to self without a matching recv");
  if (receives > sends)
    return say(ncclInvalidUsage, "Trying to recv to self without a matching send");
  return ncclSuccess;
}

ncclResult_t post(const char *call, Post entry, std::size_t count, ncclComm_t comm,
                  cudaStream_t stream) {
  const Use use(comm, call);
  if (use.status != ncclSuccess)
    return use.status;
  if (stuck() != cudaSuccess)
    return say(ncclUnhandledCudaError, failure());
  if (entry.peer < 0 || entry.peer >= comm->group->size)
    return say(ncclInvalidArgument,
               formatted("%s : invalid root %d (root should be in the 0..%d range)", call,
                         entry.peer, comm->group->size));
  const std::size_t element = bytesOf(entry.type);
  if (!element)
    return say(ncclInvalidArgument, formatted("%s : invalid type %d", call, int(entry.type)));
  entry.bytes = count * element;
  if (entry.bytes)
    if (const std::string wrong =
            checkRange("buffer", entry.buffer, entry.bytes, MemoryKind::Device);
        !wrong.empty())
      return say(ncclInvalidArgument, formatted("%s: ", call) + wrong);
  if (const ncclResult_t status = charge(comm))
    return status;
  Batch *batch = nullptr;
  for (Batch &other : batches)
    if (other.comm == comm && other.stream == stream)
      batch = &other;
  if (!batch)
    batch = &batches.emplace_back(Batch{comm, stream, {}});
  batch->posts.push_back(entry);
  return ncclSuccess;
}

void enqueueBatch(const Batch &batch, cudaStream_t stream) {
  const LaunchOrder order(batch.comm);
  order.require();
  order.enqueue(stream, "ncclSend and ncclRecv",
                [batch](const PointRef &done) { return start(batch, done); });
}

} // namespace

ncclResult_t flushPointToPoint() {
  ncclResult_t result = ncclSuccess;
  for (const Batch &batch : std::exchange(batches, {})) {
    if (const ncclResult_t wrong = checkSelf(batch)) {
      result = wrong;
      continue;
    }
    ++batch.comm->unfinished;
    batch.comm->posts = true;
    const ncclResult_t status = perform(batch.comm, [batch] {
      if (!connect(batch)) {
        --batch.comm->unfinished;
        return say(ncclSystemError,
                   "a host waits in its first message with a rank whose host does not come");
      }
      if (isCaptured(batch.stream)) {
        --batch.comm->unfinished;
        const Issue issue = [batch](cudaStream_t lane) {
          ++batch.comm->unfinished;
          enqueueBatch(batch, lane);
        };
        return addNode(batch.stream, cudaGraphNodeTypeKernel, issue) == cudaSuccess
                   ? ncclSuccess
                   : say(ncclUnhandledCudaError, "the capture of the stream has ended");
      }
      enqueueBatch(batch, batch.stream);
      return stuck() == cudaSuccess ? ncclSuccess : say(ncclUnhandledCudaError, failure());
    });
    if (status != ncclSuccess)
      result = status;
  }
  return result;
}

} // namespace emulator

using namespace emulator;

ncclResult_t ncclSend(const void *buffer, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  ncclGroupStart();
  const ncclResult_t status = post(
      "ncclSend", {true, const_cast<void *>(buffer), 0, type, peer, nullptr}, count, comm, stream);
  const ncclResult_t ended = ncclGroupEnd();
  return status == ncclSuccess ? ended : status;
}

ncclResult_t ncclRecv(void *buffer, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  ncclGroupStart();
  const ncclResult_t status =
      post("ncclRecv", {false, buffer, 0, type, peer, nullptr}, count, comm, stream);
  const ncclResult_t ended = ncclGroupEnd();
  return status == ncclSuccess ? ended : status;
}
