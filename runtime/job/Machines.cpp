#include "runtime/job/Machines.h"
#include "base/WaitCounter.h"
#include "runtime/job/ForkedRanks.h"
#include "runtime/job/JobToken.h"
#include "runtime/job/StopSignals.h"
#include "runtime/job/Watchdog.h"

#include <algorithm>
#include <cstdlib>
#include <poll.h>

namespace fsdp::rt {

using namespace base;

namespace {

// Most time that a message may take to leave this machine.
constexpr double kSending = 1;
// How long machine 0 stays for others to read how the job has ended.
constexpr double kLinger = 3;
constexpr int kMostRanks = 65536;

} // namespace

Machines::~Machines() {
  // Closing before that, with something unread of theirs, might take it back.
  const double deadline = now() + kLinger;
  const auto anyOpen = [&] {
    return std::any_of(lines_.begin(), lines_.end(),
                       [](const Line &line) { return bool(line.socket); });
  };
  if (index() == 0 && result_)
    while (anyOpen() && now() < deadline)
      poll();
}

void Machines::meet(const std::string &job, const RunIdentity &identity, double timeoutSeconds,
                    bool trustNetwork) {
  if (std::exchange(met_, true))
    return;
  timeout_ = timeoutSeconds;
  silence_ = silenceLimit(timeoutSeconds);
  const std::string token = jobToken([](const char *name) { return std::getenv(name); });
  requireToken(place_, token, trustNetwork);
  JoinRequest self;
  self.rank = place_.rank;
  self.size = place_.size;
  self.machine = machineIdentity();
  self.host = hostName();
  self.job = job;
  self.identity = identity;
  RendezvousPlace place{place_.address, place_.port, place_.portFrom, token,
                        token.empty() && !trustNetwork};
  place.who = "machine";
  Rendezvous met = rendezvous(place, self, timeoutSeconds);
  for (std::size_t i = 0; i < met.lines.size(); ++i)
    if (met.lines[i]) {
      lines_.emplace_back();
      lines_.back().socket = std::move(met.lines[i]);
      lines_.back().machine = static_cast<int>(i);
      lines_.back().host = met.peers[i].host;
    }
}

Machines::Attempt Machines::begin() {
  Attempt attempt;
  if (port_ == 0) // or a failure of the attempt that has begun already
    failure_.reset();
  result_.reset();
  ended_ = isLost_ = isLast_ = false;
  for (Line &line : lines_) {
    line.ended = line.heard = false;
    line.silent = 0;
  }
  last_ = now();
  if (index() == 0) {
    attempt.listener = listenOn(0);
    attempt.port = portOf(attempt.listener);
    attempt.number = ++attempt_;
    for (Line &line : lines_)
      send(line, MachineMessage::Begin, {}, attempt.port);
    return attempt;
  }
  const double deadline = now() + timeout_;
  while (port_ == 0) {
    if (now() > deadline)
      throw Error(format("timed out after %g s waiting for machine 0 ('%s') to begin attempt %d "
                         "(--timeout sets the timeout in "
                         "seconds)",
                         timeout_, lines_[0].host.c_str(), attempt_ + 1));
    poll();
    if (failure_)
      throw *failure_;
  }
  attempt.number = attempt_;
  attempt.port = std::exchange(port_, 0);
  return attempt;
}

void Machines::poll() {
  const double time = now();
  const double elapsed = std::min(time - last_, 0.5); // this process may itself have been stopped
  last_ = time;
  std::vector<pollfd> entries;
  for (const Line &line : lines_)
    if (line.socket)
      entries.push_back({line.socket.descriptor(), POLLIN, 0});
  ::poll(entries.data(), entries.size(), 10);
  const bool says = time - said_ > std::min(1.0, silence_ / 5);
  for (Line &line : lines_) {
    if (!line.socket)
      continue;
    line.silent += elapsed;
    receive(line);
    if (line.socket && line.silent > (line.heard ? silence_ : timeout_))
      lose(line, format("not responding: no heartbeat for %.1f s", line.silent));
    if (line.socket && says)
      send(line, MachineMessage::Alive);
  }
  if (says)
    said_ = time;
  settle();
}

void Machines::receive(Line &line) {
  char buffer[4096];
  for (;;) {
    const long moved = line.socket.receive(buffer, sizeof buffer);
    if (moved > 0) {
      line.silent = 0;
      line.bytes.append(buffer, static_cast<std::size_t>(moved));
    }
    for (MachineMessage message;;) {
      const std::size_t bytes = MachineMessage::decode(line.bytes, kMostRanks, message);
      if (bytes == MachineMessage::kMalformed)
        return lose(line, "sent something that is no message of a job");
      if (bytes == 0)
        break;
      line.bytes.erase(0, bytes);
      take(line, message);
    }
    if (moved == Socket::kEnded)
      return result_ ? void(line.socket = Socket())
                     : lose(line, "exited unexpectedly: it was killed, or ended before the job");
    if (moved == 0)
      return;
  }
}

void Machines::take(Line &line, const MachineMessage &message) {
  const bool isOfThis = message.attempt == attempt_;
  switch (message.kind) {
  case MachineMessage::Alive:
    line.heard |= isOfThis;
    return;
  case MachineMessage::Begin:
    if (index() > 0 && message.attempt == attempt_ + 1) {
      attempt_ = message.attempt;
      port_ = message.port;
      failure_.reset();
    }
    return;
  case MachineMessage::Failed:
    if (isOfThis)
      fail(*message.error);
    return;
  case MachineMessage::Ended:
    if (!isOfThis || index() > 0)
      return;
    line.ended = true;
    line.status = message.status;
    isLast_ |= message.isLast;
    consider(message.error);
    return;
  case MachineMessage::Result:
    if (isOfThis && index() > 0)
      result_ = {message.status, message.error, message.isLast, message.progress};
    return;
  }
}

void Machines::fail(const Error &error) {
  if (failure_)
    return;
  failure_ = error;
  for (Line &line : lines_)
    send(line, MachineMessage::Failed, failure_);
}

void Machines::lose(Line &line, const std::string &why) {
  line.socket = Socket();
  const Error error(format("machine %d ('%s'): %s; its ranks are lost, and the job ends",
                           line.machine, line.host.c_str(), why.c_str()));
  isLost_ = true;
  failure_.reset();
  fail(error);
}

void Machines::end(int status, const std::optional<Error> &cause, int progress, bool isLast) {
  ended_ = true;
  isLast_ |= isLast;
  status_ = status;
  progress_ = progress;
  if (index() == 0)
    consider(cause);
  for (Line &line : lines_)
    if (index() > 0)
      send(line, MachineMessage::Ended, cause, 0, status);
  settle();
}

/// What a rank's own machine knows of its end is more than what other ranks have seen.
void Machines::consider(const std::optional<Error> &cause) {
  if (cause && !isLost_ && (!failure_ || (cause->rank() >= 0 && cause->rank() == failure_->rank())))
    failure_ = cause;
}

void Machines::settle() {
  if (result_ || !ended_)
    return;
  if (index() > 0) {
    if (isLost_) // machine 0
      result_ = Result{failure_->status(), failure_, true, 0};
    return;
  }
  int status = status_;
  for (const Line &line : lines_) {
    if (line.socket && !line.ended)
      return;
    status = std::max(status, line.status);
  }
  const bool isStopped = failure_ && isStatusOfSignal(status);
  if (failure_ && !isLost_ && (isLast_ || isStopped))
    failure_ = notRestarted(*failure_, isLast_ ? kNotRestartedAsLeft : kNotRestartedAfterSignal);
  isLast_ |= isStopped;
  result_ = Result{failure_ ? failure_->status() : status, failure_, isLost_ || isLast_, progress_};
  for (Line &line : lines_)
    send(line, MachineMessage::Result, failure_, 0, result_->status);
}

void Machines::send(Line &line, MachineMessage::Kind kind, const std::optional<Error> &error,
                    int port, int status) {
  if (!line.socket)
    return;
  MachineMessage message;
  message.kind = kind;
  message.attempt = attempt_;
  message.port = port;
  message.status = status;
  message.isLast = isLost_ || isLast_;
  message.progress = progress_;
  message.error = error;
  const std::string bytes = message.encode();
  // What does not leave is found by the silence, or by the end of the connection.
  line.socket.sendAll(bytes.data(), bytes.size(), kSending);
}

} // namespace fsdp::rt
