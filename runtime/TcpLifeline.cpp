#include "runtime/TcpLifeline.h"
#include "runtime/Bootstrap.h"
#include "runtime/Watchdog.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

namespace fsdp::rt {

namespace {

enum Kind : std::uint32_t { kAlive, kFailed, kDone, kAllDone };

struct Header {
  std::uint32_t kind;
  std::int32_t rank;
  std::uint32_t bytes;
};

struct Told {
  std::int32_t status, byAll;
  char action[128], message[1792];
};

constexpr std::uint64_t kCall = 0x66736470'63616c6c;
struct Call {
  std::uint64_t magic, nonce, id;
  std::int32_t rank;
};

// What a stranger is given to say something.
constexpr double kPatience = 5;
// How long a rank that has failed waits for rank 0 to say so.
constexpr double kAnswer = 1.5;
// Most time that a small message may take to leave this machine.
constexpr double kSending = 0.2;
/// Bytes that are read at once.
constexpr std::size_t kBuffer = 4096;

} // namespace

/// Who has connected and not said what for.
struct Lifeline::Caller {
  Socket socket;
  double deadline = 0;
  std::size_t got = 0;
  Call call{};
};

Lifeline::Lifeline(Meeting meeting, double timeoutSeconds)
    : rank_(meeting.rank), members_(std::move(meeting.members)), nonce_(meeting.nonce),
      silence_(silenceLimit(timeoutSeconds)), listener_(std::move(meeting.listener)),
      wakes_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  for (std::size_t i = 0; i < meeting.lines.size(); ++i)
    if (meeting.lines[i]) {
      lines_.emplace_back();
      lines_.back().socket = std::move(meeting.lines[i]);
      lines_.back().rank = static_cast<int>(i);
    }
}

Lifeline::~Lifeline() {
  stop_.store(true);
  wake();
  if (thread_.joinable())
    thread_.join();
}

void Lifeline::start(Failure &failure) {
  failure_ = &failure;
  // While the job runs, the thread allocates nothing.
  entries_.reserve(lines_.size() + 2);
  for (Line &line : lines_)
    line.bytes.reserve(2 * kBuffer);
  thread_ = std::thread([this] { run(); });
}

void Lifeline::wake() {
  const std::uint64_t one = 1;
  if (write(wakes_.descriptor(), &one, sizeof one) < 0)
    return; // it is awake
}

void Lifeline::report() {
  wake();
  const double deadline = now() + kAnswer;
  while (!cut_ && now() < deadline)
    if (settled_.waitFor(1, 0.02))
      return;
  if (settled_.value() == 0 && failure_->claimReport())
    rt::report(failure_->error());
}

void Lifeline::finish() {
  finished_.store(true);
  wake();
  while (!ended_.waitFor(1, 0.05))
    failure_->check();
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void Lifeline::run() {
  double last = now(), said = 0;
  while (!stop_) {
    look();
    const double time = now();
    // This process may itself have been stopped.
    const double elapsed = std::min(time - last, 0.5);
    last = time;
    for (Line &line : lines_) {
      line.silent += elapsed;
      if (line.socket && line.silent > silence_ && !failure_->raised())
        failure_->raise(
            Error(format("hangs: no sign of life for %.1f s from '%s'", line.silent,
                         members_[static_cast<std::size_t>(line.rank)].host))
                .at(line.rank, ""));
    }
    if (time - said > std::min(1.0, silence_ / 5)) {
      for (Line &line : lines_)
        send(line, kAlive, rank_);
      said = time;
    }
    spread();
    endTogether();
  }
}

void Lifeline::look() {
  entries_.assign({{wakes_.descriptor(), POLLIN, 0}, {listener_.descriptor(), POLLIN, 0}});
  for (const auto &caller : callers_)
    entries_.push_back({caller->socket.descriptor(), POLLIN, 0});
  for (const Line &line : lines_)
    if (line.socket)
      entries_.push_back({line.socket.descriptor(), POLLIN, 0});
  poll(entries_.data(), entries_.size(), 100);
  std::uint64_t wakes;
  if (entries_[0].revents && read(wakes_.descriptor(), &wakes, sizeof wakes) < 0)
    return;
  takeCallers();
  for (Line &line : lines_)
    if (line.socket)
      listen(line);
}

void Lifeline::listen(Line &line) {
  char buffer[kBuffer];
  for (;;) {
    const long moved = line.socket.receive(buffer, sizeof buffer);
    if (moved > 0) {
      line.silent = 0;
      line.bytes.insert(line.bytes.end(), buffer, buffer + moved);
    }
    Header header;
    while (line.bytes.size() >= sizeof header) {
      std::memcpy(&header, line.bytes.data(), sizeof header);
      const std::size_t whole = sizeof header + header.bytes;
      if (line.bytes.size() < whole)
        break;
      understand(line, header.kind, header.rank, line.bytes.data() + sizeof header);
      line.bytes.erase(line.bytes.begin(), line.bytes.begin() + static_cast<long>(whole));
    }
    if (moved == Socket::kEnded)
      return ended(line);
    if (moved == 0)
      return;
  }
}

void Lifeline::understand(Line &line, std::uint32_t kind, int rank, const char *payload) {
  switch (kind) {
  case kFailed: {
    Told told;
    std::memcpy(&told, payload, sizeof told);
    const Error error = Error(told.message, told.status).at(rank, told.action);
    failure_->raise(told.byAll ? error.byAll() : error);
    if (rank_ > 0) {
      told_ = true;
      settled_.advance(); // rank 0 has printed it
    }
    break;
  }
  case kDone:
    line.done = true;
    break;
  case kAllDone:
    allDone_ = true;
    ended_.advance();
    break;
  default:
    break;
  }
}

void Lifeline::ended(Line &line) {
  line.socket = Socket();
  if (rank_ > 0)
    cut_ = true;
  if (allDone_)
    return;
  failure_->raise(Error(format("died without a word on '%s': it was killed, or exited in the middle "
                               "of the job",
                               members_[static_cast<std::size_t>(line.rank)].host))
                      .at(line.rank, ""));
}

void Lifeline::spread() {
  if (told_ || !failure_->raised())
    return;
  told_ = true;
  const Error error = failure_->error();
  if (rank_ == 0 && failure_->claimReport())
    rt::report(error);
  Told told{};
  told.status = error.status();
  told.byAll = error.isByAll();
  std::snprintf(told.action, sizeof told.action, "%s", error.action().c_str());
  std::snprintf(told.message, sizeof told.message, "%s", error.what());
  for (Line &line : lines_)
    send(line, kFailed, error.rank(), &told, sizeof told);
  if (rank_ == 0)
    settled_.advance();
}

void Lifeline::endTogether() {
  if (!finished_ || failure_->raised())
    return;
  if (rank_ > 0) {
    if (!std::exchange(saidDone_, true))
      send(lines_[0], kDone, rank_);
    return;
  }
  const auto all = [&](auto is) { return std::all_of(lines_.begin(), lines_.end(), is); };
  if (!allDone_ && all([](const Line &line) { return line.done; })) {
    allDone_ = true;
    for (Line &line : lines_)
      send(line, kAllDone, 0);
  }
  // Stays until all have read that: closing before might take it back.
  if (allDone_ && all([](const Line &line) { return !line.socket; }))
    ended_.advance();
}

void Lifeline::send(Line &line, std::uint32_t kind, int rank, const void *payload,
                    std::size_t bytes) {
  if (!line.socket)
    return;
  char text[sizeof(Header) + sizeof(Told)];
  const Header header{kind, rank, static_cast<std::uint32_t>(bytes)};
  std::memcpy(text, &header, sizeof header);
  if (bytes)
    std::memcpy(text + sizeof header, payload, bytes);
  // What does not leave is found by the silence, or by the end of the connection.
  line.socket.sendAll(text, sizeof header + bytes, kSending);
}

//===----------------------------------------------------------------------===//
// Connections for data
//===----------------------------------------------------------------------===//

void Lifeline::takeCallers() {
  while (Socket taken = acceptFrom(listener_)) {
    callers_.push_back(std::make_unique<Caller>());
    callers_.back()->socket = std::move(taken);
    callers_.back()->deadline = now() + kPatience;
  }
  for (auto &caller : callers_)
    if (!listen(*caller))
      caller.reset();
  callers_.erase(std::remove(callers_.begin(), callers_.end(), nullptr), callers_.end());
}

bool Lifeline::listen(Caller &caller) {
  auto *bytes = reinterpret_cast<char *>(&caller.call);
  const long moved = caller.socket.receive(bytes + caller.got, sizeof(Call) - caller.got);
  if (moved == Socket::kEnded || now() > caller.deadline)
    return false;
  caller.got += static_cast<std::size_t>(moved);
  if (caller.got < sizeof(Call))
    return true;
  if (caller.call.magic != kCall || caller.call.nonce != nonce_)
    return false;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    arrived_[{caller.call.rank, caller.call.id}] = std::move(caller.socket);
  }
  arrivals_.advance();
  return false;
}

Socket Lifeline::join(int peer, std::uint64_t id, const std::function<void()> &check,
                      double seconds) {
  const Member &member = members_[static_cast<std::size_t>(peer)];
  const double deadline = now() + seconds;
  std::string reason = "it did not call";
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
    const Call call{kCall, nonce_, id, rank_};
    if (Socket line = connectTo(member.address, std::min(kPatience, deadline - now()), reason))
      if (line.sendAll(&call, sizeof call, kPatience))
        return line;
    usleep(20'000);
  }
  throw Error(format("waited %g s for a connection with rank %d on '%s' (%s): %s; ranks connect to "
                     "each other directly, on any port",
                     seconds, peer, member.host, member.address.describe().c_str(),
                     reason.c_str()));
}

} // namespace fsdp::rt
