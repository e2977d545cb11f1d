#include "runtime/execution/Context.h"

#include <algorithm>

namespace fsdp::rt {

using namespace base;

Context::Context(Job &job, Table<const char *> streams, int events)
    : job_(job), base_(job.arena()), events_(events), outputEvents_(streams.size()),
      workers_(job.threads(), job.hasCoreForEachThread()) {
  // Every rank creates the same communicators in the same order, as this may be a collective.
  if (streams.size() > kChannels)
    throw Error(
        format("the program has %zu streams, expected at most %d", streams.size(), kChannels));
  const Table<CommunicatorSpec> specs = job.options().communicators;
  const int world = static_cast<int>(specs.size());
  streamOf_.assign(specs.size(), -1);
  for (int index = 0; index < world; ++index)
    for (std::size_t stream = 0; stream < streams.size(); ++stream) {
      if (stream > 0 && specs[static_cast<std::size_t>(index)].isTransfer()) {
        communicators_.emplace_back();
        continue;
      }
      communicators_.push_back(job.communicator(index, static_cast<int>(stream)));
      communicators_.back()->keepIn(job.streamFlight(static_cast<int>(stream)));
      communicators_.back()->limitLink(job.options().linkBandwidth);
    }
  communicators_.push_back(job.communicator(world));
  communicators_.back()->keepIn(job.hostFlight());
  for (std::size_t stream = 0; stream < streams.size(); ++stream)
    streams_.push_back(std::make_unique<Stream>(streams[stream], job.rank(), job.failure(),
                                                job.streamFlight(static_cast<int>(stream)),
                                                &workers_));
}

Context::~Context() {
  // After an exception a stream may wait for ranks that will not join.
  job_.setClosing(true);
  for (auto &stream : streams_)
    stream->stop();
  for (auto &stream : streams_)
    stream->close();
  job_.setClosing(false);
}

Communicator &Context::comm(int index, int stream) {
  const auto i = static_cast<std::size_t>(index);
  const CommunicatorSpec &spec = job_.options().communicators[i];
  if (!spec.isTransfer())
    return *communicators_[i * streams_.size() + static_cast<std::size_t>(stream)];
  Communicator &communicator = *communicators_[i * streams_.size()];
  if (streamOf_[i] < 0) {
    streamOf_[i] = stream;
    communicator.keepIn(job_.streamFlight(stream));
  }
  if (streamOf_[i] != stream)
    throw Error(format("communicator '%s' got the streams '%s' and '%s', expected one", spec.name,
                       streams_[static_cast<std::size_t>(streamOf_[i])]->name().c_str(),
                       streams_[static_cast<std::size_t>(stream)]->name().c_str()));
  return communicator;
}

void Context::enqueue(int stream, const char *name, Table<ByteRange> read, Table<ByteRange> written,
                      void **addresses, const void *closure, std::size_t size,
                      void (*perform)(void *), Work work) {
  std::size_t bytes = 0;
  for (const Table<ByteRange> &ranges : {read, written})
    for (const ByteRange &range : ranges) {
      if (range.bytes)
        peakBytes_ = std::max(peakBytes_, range.offset + range.bytes);
      *addresses++ = base_ + range.offset;
      bytes += range.bytes;
    }
  streams_[stream]->push(name, closure, size, perform, work, bytes);
}

void Context::synchronize() {
  for (auto &stream : streams_)
    stream->synchronize();
}

void Context::awaitOutputs() {
  for (const Event &left : outputEvents_)
    if (left.stream)
      left.stream->synchronize(left.position);
}

void Context::observe(int stream, StreamObserver observer) {
  streams_[stream]->synchronize();
  streams_[stream]->observe(observer);
}

} // namespace fsdp::rt
