#include "runtime/job/ControlChannel.h"
#include "base/Thread.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/Watchdog.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

// Time allowed for the handshake, in seconds.
constexpr double kHandshakeTimeout = 5;
// Time for which a rank that has failed waits for rank 0 to report it, in seconds.
constexpr double kReportTimeout = 1.5;
// The most time for a small message to be sent, in seconds.
constexpr double kSendTimeout = 0.2;
/// Bytes read at once.
constexpr std::size_t kBufferBytes = 4096;
/// Context of the proof that opens a connection; the proven payload contains the job's nonce.
constexpr const char *kBetweenRanks = "between ranks";
/// The most connections whose handshake is not complete.
constexpr std::size_t kMaxPendingConnections = 1024;

} // namespace

/// A connection whose request has not arrived yet.
struct ControlChannel::PendingConnection {
  Socket socket;
  double deadline = 0;
  std::size_t received = 0;
  char bytes[kFrameOverhead + ConnectRequest::kBytes] = {};
};

ControlChannel::ControlChannel(Rendezvous rendezvous, double timeoutSeconds)
    : rank_(rendezvous.rank), peers_(std::move(rendezvous.peers)), nonce_(rendezvous.nonce),
      token_(std::move(rendezvous.token)), loopbackOnly_(rendezvous.loopbackOnly),
      heartbeatTimeout_(heartbeatTimeout(timeoutSeconds)),
      listener_(std::move(rendezvous.listener)),
      wakeEvent_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  for (std::size_t i = 0; i < rendezvous.connections.size(); ++i)
    if (rendezvous.connections[i]) {
      connections_.emplace_back();
      connections_.back().socket = std::move(rendezvous.connections[i]);
      connections_.back().rank = static_cast<int>(i);
    }
}

ControlChannel::~ControlChannel() {
  stop_.store(true);
  wake();
  if (thread_.joinable())
    thread_.join();
}

void ControlChannel::start(Failure &failure) {
  failure_ = &failure;
  // The thread allocates nothing while the job runs.
  entries_.reserve(connections_.size() + 2);
  for (Connection &connection : connections_)
    connection.bytes.reserve(kBufferBytes + ControlMessage::kMax);
  thread_ = startThread("the connections between ranks", [this] { run(); });
}

void ControlChannel::wake() {
  const std::uint64_t one = 1;
  if (write(wakeEvent_.descriptor(), &one, sizeof one) < 0)
    return; // the counter is at its limit: the thread is awake
}

void ControlChannel::report() {
  wake();
  const double deadline = now() + kReportTimeout;
  while (!isFirstRankLost_ && now() < deadline)
    if (failureReported_.waitFor(1, 0.02))
      return;
  if (failureReported_.value() == 0 && failure_->claimReport())
    rt::report(failure_->error());
}

void ControlChannel::finish() {
  isFinished_.store(true);
  wake();
  while (!jobEnded_.waitFor(1, 0.05))
    failure_->check();
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void ControlChannel::run() {
  double last = now(), lastSent = 0;
  while (!stop_) {
    poll();
    const double time = now();
    // The time in which this process was stopped does not count.
    const double elapsed = std::min(time - last, 0.5);
    last = time;
    for (Connection &connection : connections_) {
      connection.sinceHeartbeat += elapsed;
      if (connection.socket && connection.sinceHeartbeat > heartbeatTimeout_ && !failure_->raised())
        failure_->raise(
            Error(format("not responding: no heartbeat for %.1f s from '%s'",
                         connection.sinceHeartbeat,
                         peers_[static_cast<std::size_t>(connection.rank)].host.c_str()))
                .at(connection.rank, ""));
    }
    if (time - lastSent > std::min(1.0, heartbeatTimeout_ / 5)) {
      for (Connection &connection : connections_)
        send(connection, ControlMessage::Alive);
      lastSent = time;
    }
    broadcastFailure();
    finishTogether();
  }
}

void ControlChannel::poll() {
  entries_.assign({{wakeEvent_.descriptor(), POLLIN, 0}, {listener_.descriptor(), POLLIN, 0}});
  for (const auto &connection : pending_)
    entries_.push_back({connection->socket.descriptor(), POLLIN, 0});
  for (const Connection &connection : connections_)
    if (connection.socket)
      entries_.push_back({connection.socket.descriptor(), POLLIN, 0});
  ::poll(entries_.data(), entries_.size(), 100);
  std::uint64_t wakes;
  if (entries_[0].revents && read(wakeEvent_.descriptor(), &wakes, sizeof wakes) < 0)
    return;
  acceptConnections();
  for (Connection &connection : connections_)
    if (connection.socket)
      receiveFrom(connection);
}

void ControlChannel::receiveFrom(Connection &connection) {
  char buffer[kBufferBytes];
  for (;;) {
    const long moved = connection.socket.receive(buffer, sizeof buffer);
    if (moved > 0) {
      connection.sinceHeartbeat = 0;
      connection.bytes.insert(connection.bytes.end(), buffer, buffer + moved);
    }
    if (!handleMessages(connection) || moved == Socket::kEnded)
      return handleEnd(connection);
    if (moved == 0)
      return;
  }
}

bool ControlChannel::handleMessages(Connection &connection) {
  // An incomplete message stays in the buffer.
  std::size_t taken = 0;
  for (ControlMessage message;;) {
    const std::string_view left(connection.bytes.data() + taken, connection.bytes.size() - taken);
    const std::size_t bytes =
        ControlMessage::decode(left, static_cast<int>(peers_.size()), message);
    if (bytes == ControlMessage::kMalformed)
      return false;
    if (bytes == 0)
      break;
    taken += bytes;
    handleMessage(connection, message);
  }
  connection.bytes.erase(connection.bytes.begin(),
                         connection.bytes.begin() + static_cast<long>(taken));
  return true;
}

void ControlChannel::handleMessage(Connection &connection, const ControlMessage &message) {
  switch (message.kind) {
  case ControlMessage::Alive:
    break;
  case ControlMessage::Failed:
    failure_->raise(*message.error);
    if (rank_ > 0) {
      isFailureSent_ = true;
      failureReported_.advance(); // rank 0 has printed it
    }
    break;
  case ControlMessage::Done:
    connection.done = true;
    break;
  case ControlMessage::AllDone:
    if (rank_ > 0) {
      areAllDone_ = true;
      jobEnded_.advance();
    }
    break;
  }
}

void ControlChannel::handleEnd(Connection &connection) {
  connection.socket = Socket();
  if (rank_ > 0)
    isFirstRankLost_ = true;
  if (areAllDone_)
    return;
  failure_->raise(
      Error(
          format("exited unexpectedly on '%s': it was killed, or exited before the end of the job",
                 peers_[static_cast<std::size_t>(connection.rank)].host.c_str()))
          .at(connection.rank, ""));
}

void ControlChannel::broadcastFailure() {
  if (isFailureSent_ || !failure_->raised())
    return;
  isFailureSent_ = true;
  const Error error = failure_->error();
  if (rank_ == 0 && failure_->claimReport())
    rt::report(error);
  for (Connection &connection : connections_)
    send(connection, ControlMessage::Failed, &error);
  if (rank_ == 0)
    failureReported_.advance();
}

void ControlChannel::finishTogether() {
  if (!isFinished_ || failure_->raised())
    return;
  if (rank_ > 0) {
    if (!std::exchange(isDoneSent_, true))
      send(connections_[0], ControlMessage::Done);
    return;
  }
  const auto all = [&](auto is) {
    return std::all_of(connections_.begin(), connections_.end(), is);
  };
  if (!areAllDone_ && all([](const Connection &connection) { return connection.done; })) {
    areAllDone_ = true;
    for (Connection &connection : connections_)
      send(connection, ControlMessage::AllDone);
  }
  // Stays until all have read that: an earlier close could discard it.
  if (areAllDone_ && all([](const Connection &connection) { return !connection.socket; }))
    jobEnded_.advance();
}

void ControlChannel::send(Connection &connection, ControlMessage::Kind kind, const Error *error) {
  if (!connection.socket)
    return;
  char text[ControlMessage::kMax];
  // A failed send is detected by the heartbeat timeout, or by the end of the connection.
  connection.socket.sendAll(text, ControlMessage::encode(kind, error, text), kSendTimeout);
}

//===----------------------------------------------------------------------===//
// Connections for data
//===----------------------------------------------------------------------===//

void ControlChannel::acceptConnections() {
  while (pending_.size() < kMaxPendingConnections) {
    Socket taken = acceptFrom(listener_);
    if (!taken)
      break;
    if (loopbackOnly_ && !peerOf(taken).isLoopback())
      continue;
    pending_.push_back(std::make_unique<PendingConnection>());
    pending_.back()->socket = std::move(taken);
    pending_.back()->deadline = now() + kHandshakeTimeout;
  }
  for (auto &connection : pending_)
    if (!handlePending(*connection))
      connection.reset();
  pending_.erase(std::remove(pending_.begin(), pending_.end(), nullptr), pending_.end());
}

bool ControlChannel::handlePending(PendingConnection &connection) {
  const long moved = connection.socket.receive(connection.bytes + connection.received,
                                               sizeof connection.bytes - connection.received);
  if (moved == Socket::kEnded || now() > connection.deadline)
    return false;
  connection.received += static_cast<std::size_t>(moved);
  const std::string_view received(connection.bytes, connection.received);
  if (frameBytes(received, FrameKind::Connect, ConnectRequest::kBytes) == 0)
    return false;
  if (connection.received < sizeof connection.bytes)
    return true;
  const auto payload = openFrame(received, token_, kBetweenRanks);
  const auto request =
      payload ? ConnectRequest::decode(*payload, static_cast<int>(peers_.size())) : std::nullopt;
  // The higher rank opens the connection.
  if (!request || request->nonce != nonce_ || request->to != rank_ || request->from <= rank_)
    return false;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    joined_[{request->from, request->id}] = std::move(connection.socket);
  }
  joinCount_.advance();
  return false;
}

Socket ControlChannel::join(int peer, std::uint64_t id, const std::function<void()> &check,
                            double seconds) {
  const PeerInfo &info = peers_[static_cast<std::size_t>(peer)];
  const double deadline = now() + seconds;
  std::string reason = "it did not connect";
  while (now() < deadline) {
    check();
    if (peer > rank_) {
      const std::uint64_t seen = joinCount_.value();
      {
        std::lock_guard<std::mutex> guard(mutex_);
        const auto found = joined_.find({peer, id});
        if (found != joined_.end()) {
          Socket connection = std::move(found->second);
          joined_.erase(found);
          return connection;
        }
      }
      joinCount_.waitFor(seen + 1, 0.05);
      continue;
    }
    const std::string frame =
        sealFrame(FrameKind::Connect, ConnectRequest{nonce_, id, rank_, peer}.encode(), token_,
                  kBetweenRanks);
    if (Socket connection =
            connectTo(info.address, std::min(kHandshakeTimeout, deadline - now()), reason))
      if (connection.sendAll(frame.data(), frame.size(), kHandshakeTimeout))
        return connection;
    usleep(20'000);
  }
  throw Error(format("timed out after %g s waiting for a connection with rank %d on '%s' (%s): %s; "
                     "ranks connect to "
                     "each other directly, on any port",
                     seconds, peer, info.host.c_str(), info.address.describe().c_str(),
                     reason.c_str()));
}

} // namespace fsdp::rt
