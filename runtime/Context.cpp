#include "runtime/Context.h"

namespace fsdp::rt {

Context::Context(Job &job, Table<const char *> streams, int events)
    : job_(job), base_(job.arena()), events_(events) {
  // Every rank makes the same communicators in the same order: making one may be a collective.
  for (std::size_t i = 0; i <= job.options().communicators.size(); ++i)
    communicators_.push_back(job.communicator(static_cast<int>(i)));
  for (const char *name : streams)
    streams_.push_back(std::make_unique<Stream>(name, job.rank(), job.failure()));
}

Context::~Context() {
  // When an exception takes us here, a stream may wait for ranks that will not come.
  job_.leave();
  streams_.clear();
}

void Context::synchronize() {
  for (auto &stream : streams_)
    stream->synchronize();
}

void Context::observe(StreamObserver observer) {
  synchronize();
  for (auto &stream : streams_)
    stream->observe(observer);
}

} // namespace fsdp::rt
