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

// What a stranger is given to say something.
constexpr double kPatience = 5;
// How long a rank that has failed waits for rank 0 to say so.
constexpr double kAnswer = 1.5;
// Most time that a small message may take to leave this machine.
constexpr double kSending = 0.2;
/// Bytes that are read at once.
constexpr std::size_t kBuffer = 4096;
/// Context of the proof that opens a connection; the job's nonce is in what it proves.
constexpr const char *kBetweenRanks = "between ranks";
/// Strangers that are listened to at the same time.
constexpr std::size_t kMostCallers = 1024;

} // namespace

/// Who has connected and not said what for.
struct ControlChannel::Caller {
  Socket socket;
  double deadline = 0;
  std::size_t got = 0;
  char bytes[kFrameOverhead + ConnectRequest::kBytes] = {};
};

ControlChannel::ControlChannel(Rendezvous rendezvous, double timeoutSeconds)
    : rank_(rendezvous.rank), peers_(std::move(rendezvous.peers)), nonce_(rendezvous.nonce),
      token_(std::move(rendezvous.token)), loopbackOnly_(rendezvous.loopbackOnly),
      silence_(silenceLimit(timeoutSeconds)), listener_(std::move(rendezvous.listener)),
      wakes_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  for (std::size_t i = 0; i < rendezvous.lines.size(); ++i)
    if (rendezvous.lines[i]) {
      lines_.emplace_back();
      lines_.back().socket = std::move(rendezvous.lines[i]);
      lines_.back().rank = static_cast<int>(i);
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
  // While the job runs, the thread allocates nothing.
  entries_.reserve(lines_.size() + 2);
  for (Line &line : lines_)
    line.bytes.reserve(kBuffer + ControlMessage::kMost);
  thread_ = startThread("the connections between ranks", [this] { run(); });
}

void ControlChannel::wake() {
  const std::uint64_t one = 1;
  if (write(wakes_.descriptor(), &one, sizeof one) < 0)
    return; // it is awake
}

void ControlChannel::report() {
  wake();
  const double deadline = now() + kAnswer;
  while (!cut_ && now() < deadline)
    if (settled_.waitFor(1, 0.02))
      return;
  if (settled_.value() == 0 && failure_->claimReport())
    rt::report(failure_->error());
}

void ControlChannel::finish() {
  finished_.store(true);
  wake();
  while (!ended_.waitFor(1, 0.05))
    failure_->check();
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void ControlChannel::run() {
  double last = now(), said = 0;
  while (!stop_) {
    poll();
    const double time = now();
    // This process may itself have been stopped.
    const double elapsed = std::min(time - last, 0.5);
    last = time;
    for (Line &line : lines_) {
      line.silent += elapsed;
      if (line.socket && line.silent > silence_ && !failure_->raised())
        failure_->raise(
            Error(format("not responding: no heartbeat for %.1f s from '%s'", line.silent,
                         peers_[static_cast<std::size_t>(line.rank)].host.c_str()))
                .at(line.rank, ""));
    }
    if (time - said > std::min(1.0, silence_ / 5)) {
      for (Line &line : lines_)
        send(line, ControlMessage::Alive);
      said = time;
    }
    broadcastFailure();
    endTogether();
  }
}

void ControlChannel::poll() {
  entries_.assign({{wakes_.descriptor(), POLLIN, 0}, {listener_.descriptor(), POLLIN, 0}});
  for (const auto &caller : callers_)
    entries_.push_back({caller->socket.descriptor(), POLLIN, 0});
  for (const Line &line : lines_)
    if (line.socket)
      entries_.push_back({line.socket.descriptor(), POLLIN, 0});
  ::poll(entries_.data(), entries_.size(), 100);
  std::uint64_t wakes;
  if (entries_[0].revents && read(wakes_.descriptor(), &wakes, sizeof wakes) < 0)
    return;
  acceptConnections();
  for (Line &line : lines_)
    if (line.socket)
      receiveFrom(line);
}

void ControlChannel::receiveFrom(Line &line) {
  char buffer[kBuffer];
  for (;;) {
    const long moved = line.socket.receive(buffer, sizeof buffer);
    if (moved > 0) {
      line.silent = 0;
      line.bytes.insert(line.bytes.end(), buffer, buffer + moved);
    }
    if (!handleMessages(line) || moved == Socket::kEnded)
      return ended(line);
    if (moved == 0)
      return;
  }
}

bool ControlChannel::handleMessages(Line &line) {
  // What is not whole stays: less than a message.
  std::size_t taken = 0;
  for (ControlMessage message;;) {
    const std::string_view left(line.bytes.data() + taken, line.bytes.size() - taken);
    const std::size_t bytes =
        ControlMessage::decode(left, static_cast<int>(peers_.size()), message);
    if (bytes == ControlMessage::kMalformed)
      return false;
    if (bytes == 0)
      break;
    taken += bytes;
    handleMessage(line, message);
  }
  line.bytes.erase(line.bytes.begin(), line.bytes.begin() + static_cast<long>(taken));
  return true;
}

void ControlChannel::handleMessage(Line &line, const ControlMessage &message) {
  switch (message.kind) {
  case ControlMessage::Alive:
    break;
  case ControlMessage::Failed:
    failure_->raise(*message.error);
    if (rank_ > 0) {
      told_ = true;
      settled_.advance(); // rank 0 has printed it
    }
    break;
  case ControlMessage::Done:
    line.done = true;
    break;
  case ControlMessage::AllDone:
    if (rank_ > 0) {
      allDone_ = true;
      ended_.advance();
    }
    break;
  }
}

void ControlChannel::ended(Line &line) {
  line.socket = Socket();
  if (rank_ > 0)
    cut_ = true;
  if (allDone_)
    return;
  failure_->raise(
      Error(
          format("exited unexpectedly on '%s': it was killed, or exited before the end of the job",
                 peers_[static_cast<std::size_t>(line.rank)].host.c_str()))
          .at(line.rank, ""));
}

void ControlChannel::broadcastFailure() {
  if (told_ || !failure_->raised())
    return;
  told_ = true;
  const Error error = failure_->error();
  if (rank_ == 0 && failure_->claimReport())
    rt::report(error);
  for (Line &line : lines_)
    send(line, ControlMessage::Failed, &error);
  if (rank_ == 0)
    settled_.advance();
}

void ControlChannel::endTogether() {
  if (!finished_ || failure_->raised())
    return;
  if (rank_ > 0) {
    if (!std::exchange(saidDone_, true))
      send(lines_[0], ControlMessage::Done);
    return;
  }
  const auto all = [&](auto is) { return std::all_of(lines_.begin(), lines_.end(), is); };
  if (!allDone_ && all([](const Line &line) { return line.done; })) {
    allDone_ = true;
    for (Line &line : lines_)
      send(line, ControlMessage::AllDone);
  }
  // Stays until all have read that: closing before might take it back.
  if (allDone_ && all([](const Line &line) { return !line.socket; }))
    ended_.advance();
}

void ControlChannel::send(Line &line, ControlMessage::Kind kind, const Error *error) {
  if (!line.socket)
    return;
  char text[ControlMessage::kMost];
  // What does not leave is found by the silence, or by the end of the connection.
  line.socket.sendAll(text, ControlMessage::encode(kind, error, text), kSending);
}

//===----------------------------------------------------------------------===//
// Connections for data
//===----------------------------------------------------------------------===//

void ControlChannel::acceptConnections() {
  while (callers_.size() < kMostCallers) {
    Socket taken = acceptFrom(listener_);
    if (!taken)
      break;
    if (loopbackOnly_ && !peerOf(taken).isLoopback())
      continue;
    callers_.push_back(std::make_unique<Caller>());
    callers_.back()->socket = std::move(taken);
    callers_.back()->deadline = now() + kPatience;
  }
  for (auto &caller : callers_)
    if (!handleCaller(*caller))
      caller.reset();
  callers_.erase(std::remove(callers_.begin(), callers_.end(), nullptr), callers_.end());
}

bool ControlChannel::handleCaller(Caller &caller) {
  const long moved =
      caller.socket.receive(caller.bytes + caller.got, sizeof caller.bytes - caller.got);
  if (moved == Socket::kEnded || now() > caller.deadline)
    return false;
  caller.got += static_cast<std::size_t>(moved);
  const std::string_view got(caller.bytes, caller.got);
  if (frameBytes(got, FrameKind::Connect, ConnectRequest::kBytes) == 0)
    return false;
  if (caller.got < sizeof caller.bytes)
    return true;
  const auto payload = openFrame(got, token_, kBetweenRanks);
  const auto request =
      payload ? ConnectRequest::decode(*payload, static_cast<int>(peers_.size())) : std::nullopt;
  // The higher rank opens the connection.
  if (!request || request->nonce != nonce_ || request->to != rank_ || request->from <= rank_)
    return false;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    arrived_[{request->from, request->id}] = std::move(caller.socket);
  }
  arrivals_.advance();
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
      const std::uint64_t seen = arrivals_.value();
      {
        std::lock_guard<std::mutex> guard(mutex_);
        const auto found = arrived_.find({peer, id});
        if (found != arrived_.end()) {
          Socket line = std::move(found->second);
          arrived_.erase(found);
          return line;
        }
      }
      arrivals_.waitFor(seen + 1, 0.05);
      continue;
    }
    const std::string frame =
        sealFrame(FrameKind::Connect, ConnectRequest{nonce_, id, rank_, peer}.encode(), token_,
                  kBetweenRanks);
    if (Socket line = connectTo(info.address, std::min(kPatience, deadline - now()), reason))
      if (line.sendAll(frame.data(), frame.size(), kPatience))
        return line;
    usleep(20'000);
  }
  throw Error(format("timed out after %g s waiting for a connection with rank %d on '%s' (%s): %s; "
                     "ranks connect to "
                     "each other directly, on any port",
                     seconds, peer, info.host.c_str(), info.address.describe().c_str(),
                     reason.c_str()));
}

} // namespace fsdp::rt
