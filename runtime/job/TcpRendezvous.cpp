#include "runtime/job/TcpRendezvous.h"
#include "base/PrintableText.h"
#include "base/WaitCounter.h"
#include "runtime/job/Process.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

// Time allowed for the handshake, in seconds.
constexpr double kHandshakeTimeout = 5;
// Time during which ranks that join late still receive the reason why the job does not start, in
// seconds.
constexpr double kLateJoinerGrace = 5;
// The most connections whose handshake is not complete.
constexpr std::size_t kMaxPendingConnections = 256;

std::string list(const std::vector<int> &ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == 16)
      return text + format(" and %zu more", ranks.size() - i);
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

class RendezvousServer : public std::enable_shared_from_this<RendezvousServer> {
public:
  RendezvousServer(const RendezvousPlace &place, const JoinRequest &self, Socket listener,
                   double seconds)
      : place_(place), self_(self), listener_(std::move(listener)), address_(place.describe()),
        seconds_(seconds), connections_(static_cast<std::size_t>(self.size)),
        ranks_(connections_.size()) {
    ranks_[0] = self;
    ranks_[0].port = portOf(listener_);
  }

  Rendezvous run() {
    const double deadline = now() + seconds_;
    while (!missing().empty()) {
      if (now() > deadline)
        throw failure(
            format("timed out after %g s at %s, waiting for rank %s of %d%s "
                   "(--timeout sets the timeout in seconds)",
                   seconds_, address_.c_str(), list(missing()).c_str(), self_.size,
                   firstRejection_.empty() ? "" : ("; rejected: " + firstRejection_).c_str()));
      poll();
      serve();
      checkConnections();
    }
    return welcomeAll();
  }

  /// After a failure: sends it to ranks that join late.
  void rejectLateRanks(const std::string &message) {
    failureText_ = message;
    const double deadline = now() + kLateJoinerGrace;
    while (!missing().empty() && now() < deadline) {
      poll();
      serve();
    }
  }

private:
  /// A connection that has not identified its rank yet.
  struct PendingConnection {
    Socket socket;
    double deadline = 0;
    std::string challenge, bytes;
  };

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < self_.size; ++rank)
      if (!connections_[static_cast<std::size_t>(rank)])
        ranks.push_back(rank);
    return ranks;
  }

  void poll() {
    entries_.clear();
    if (pending_.size() < kMaxPendingConnections)
      entries_.push_back({listener_.descriptor(), POLLIN, 0});
    for (const auto &connection : pending_)
      entries_.push_back({connection->socket.descriptor(), POLLIN, 0});
    for (const Socket &connection : connections_)
      if (connection && failureText_.empty())
        entries_.push_back({connection.descriptor(), POLLIN, 0});
    ::poll(entries_.data(), entries_.size(), 100);
  }

  void serve() {
    acceptConnections();
    for (auto &connection : pending_)
      if (!handlePending(*connection))
        connection.reset();
    pending_.erase(std::remove(pending_.begin(), pending_.end(), nullptr), pending_.end());
  }

  void checkConnections() {
    char nothing;
    for (std::size_t rank = 1; rank < connections_.size(); ++rank)
      if (connections_[rank] && connections_[rank].receive(&nothing, 1) == Socket::kEnded)
        fail(format("rank %zu on '%s' disconnected while the job was starting", rank,
                    ranks_[rank].host.c_str()));
  }

  void acceptConnections() {
    while (pending_.size() < kMaxPendingConnections) {
      Socket taken = acceptFrom(listener_);
      if (!taken)
        return;
      const Address peer = peerOf(taken);
      if (place_.loopbackOnly && !peer.isLoopback()) {
        noteRejection(format("%s connected over the network to a job without FSDP_JOB_TOKEN",
                             peer.describe().c_str()));
        continue;
      }
      auto connection = std::make_unique<PendingConnection>();
      connection->socket = std::move(taken);
      connection->deadline = now() + kHandshakeTimeout;
      connection->challenge = randomNonce();
      const std::string frame = sealFrame(FrameKind::Challenge, connection->challenge, "", "");
      if (connection->socket.sendAll(frame.data(), frame.size(), 0))
        pending_.push_back(std::move(connection));
    }
  }

  /// False when the connection is handled and can be dropped.
  bool handlePending(PendingConnection &connection) {
    for (;;) {
      const std::size_t whole = frameBytes(connection.bytes, FrameKind::Join, JoinRequest::kMax);
      if (whole == 0 || now() > connection.deadline)
        return false;
      const std::size_t got = connection.bytes.size();
      if (got == whole && whole > kFrameHeader) {
        handleJoin(connection);
        return false;
      }
      connection.bytes.resize(whole);
      const long moved = connection.socket.receive(&connection.bytes[got], whole - got);
      connection.bytes.resize(got + static_cast<std::size_t>(std::max(moved, 0l)));
      if (moved == Socket::kEnded)
        return false;
      if (moved == 0)
        return true;
    }
  }

  void handleJoin(PendingConnection &connection) {
    const auto payload = openFrame(connection.bytes, place_.token, connection.challenge);
    const auto request = payload ? JoinRequest::decode(*payload) : std::nullopt;
    if (!request) {
      // Its message is not trusted, and the answer must not depend on the token ([Note: order of
      // proofs]).
      noteRejection(format("%s has a different FSDP_JOB_TOKEN",
                           peerOf(connection.socket).describe().c_str()));
      const std::string frame = rejection();
      connection.socket.sendAll(frame.data(), frame.size(), kHandshakeTimeout);
      return;
    }
    const std::string fault = faultOf(*request);
    if (!fault.empty()) {
      noteRejection(fault);
      answer(connection.socket, request->nonce, {JoinAnswer::Refused, 0, fault, {}});
      return;
    }
    const auto rank = static_cast<std::size_t>(request->rank);
    ranks_[rank] = *request;
    connections_[rank] = std::move(connection.socket);
    if (!failureText_.empty()) {
      answer(connections_[rank], request->nonce, {JoinAnswer::Failed, 0, failureText_, {}});
      return;
    }
    const std::string difference = request->identity.differenceFrom(self_.identity, request->rank);
    if (!difference.empty())
      fail(difference);
    answer(connections_[rank], request->nonce, {JoinAnswer::Welcome, 0, "", {}});
  }

  void noteRejection(const std::string &fault) {
    if (firstRejection_.empty())
      firstRejection_ = fault;
  }

  /// Why a request is not from a rank that is expected; empty if it is.
  std::string faultOf(const JoinRequest &request) const {
    const std::string who = format("rank %d on '%s'", request.rank, request.host.c_str());
    if (request.size != self_.size || request.job != self_.job)
      return format("%s runs another program, or belongs to another job: got %s on %d ranks, "
                    "expected %s on %d, at %s",
                    who.c_str(), request.job.c_str(), request.size, self_.job.c_str(), self_.size,
                    address_.c_str());
    if (request.rank < 1 || request.rank >= self_.size)
      return format("%s is not one of the ranks 1 to %d expected at %s", who.c_str(),
                    self_.size - 1, address_.c_str());
    if (connections_[static_cast<std::size_t>(request.rank)])
      return format("%s has already joined at %s, from '%s': RANK must differ on every process",
                    who.c_str(), address_.c_str(),
                    ranks_[static_cast<std::size_t>(request.rank)].host.c_str());
    return "";
  }

  bool answer(Socket &to, const std::string &nonce, const JoinAnswer &text) const {
    const std::string frame = sealFrame(FrameKind::Answer, text.encode(), place_.token, nonce);
    return to.sendAll(frame.data(), frame.size(), kHandshakeTimeout);
  }

  /// Ends the job, with an error that is sent to late ranks too.
  [[noreturn]] void fail(const std::string &message) {
    throw failure(message,
                  [self = shared_from_this(), message] { self->rejectLateRanks(message); });
  }

  /// The error, after it is sent to all ranks that have joined.
  RendezvousError failure(const std::string &message,
                          std::function<void()> informOthers = nullptr) {
    for (std::size_t rank = 1; rank < connections_.size(); ++rank)
      if (connections_[rank])
        answer(connections_[rank], ranks_[rank].nonce, {JoinAnswer::Failed, 0, message, {}});
    return RendezvousError(message, RendezvousError::FirstRank, std::move(informOthers));
  }

  Rendezvous welcomeAll() {
    JoinAnswer found;
    found.kind = JoinAnswer::AllJoined;
    const std::string random = randomNonce();
    std::memcpy(&found.nonce, random.data(), sizeof found.nonce);
    std::map<std::string, int> machines;
    for (std::size_t rank = 0; rank < connections_.size(); ++rank) {
      PeerInfo peer;
      peer.machine =
          machines.emplace(ranks_[rank].machine, static_cast<int>(machines.size())).first->second;
      // A rank that connected through the loopback device is on the machine of rank 0, which all
      // ranks have reached.
      if (const Address seen = rank ? peerOf(connections_[rank]) : Address(); !seen.isLoopback())
        peer.address.host = seen.host;
      peer.address.port = ranks_[rank].port;
      peer.host = ranks_[rank].host;
      found.peers.push_back(std::move(peer));
    }
    for (std::size_t rank = 1; rank < connections_.size(); ++rank)
      if (!answer(connections_[rank], ranks_[rank].nonce, found))
        fail(format("rank %zu on '%s' disconnected while the job was starting", rank,
                    ranks_[rank].host.c_str()));
    Rendezvous result;
    result.peers = std::move(found.peers);
    result.nonce = found.nonce;
    result.listener = std::move(listener_);
    result.connections = std::move(connections_);
    return result;
  }

  const RendezvousPlace place_;
  const JoinRequest self_;
  Socket listener_;
  std::string address_;
  double seconds_;
  std::vector<Socket> connections_;
  std::vector<JoinRequest> ranks_; ///< rank 0 is this one
  std::vector<std::unique_ptr<PendingConnection>> pending_;
  std::vector<pollfd> entries_;
  std::string firstRejection_, failureText_;
};

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

class RendezvousClient {
public:
  RendezvousClient(const RendezvousPlace &place, JoinRequest self)
      : place_(place), self_(std::move(self)) {}

  Rendezvous run(double seconds) {
    Rendezvous result;
    result.listener = listenOn(0);
    self_.port = portOf(result.listener);
    Socket connection = findServer(seconds);
    // Rank 0 has the shorter timeout, and reports the missing ranks.
    const std::optional<JoinAnswer> answer = receiveAnswer(connection, seconds + kHandshakeTimeout);
    if (!answer)
      throw RendezvousError(
          format("rank 0 at %s disconnected while the job was starting", place_.describe().c_str()),
          RendezvousError::FirstOfMachine);
    if (answer->kind != JoinAnswer::AllJoined)
      throw RendezvousError(answer->reason, RendezvousError::FirstRank);
    result.nonce = answer->nonce;
    result.peers = answer->peers;
    for (PeerInfo &peer : result.peers)
      if (peer.address.host.empty())
        peer.address.host = peerOf(connection).host;
    result.connections.push_back(std::move(connection));
    return result;
  }

private:
  /// The answer of a rank 0 that knows the token; nothing if none arrived.
  std::optional<JoinAnswer> receiveAnswer(Socket &connection, double seconds) {
    std::string frame;
    const bool came =
        receiveFrame(connection, FrameKind::Answer, JoinAnswer::most(self_.size), seconds, frame);
    if (!came && !beginsRejection(frame))
      return std::nullopt;
    const auto payload = came ? openFrame(frame, place_.token, self_.nonce) : std::nullopt;
    if (!payload)
      throw RendezvousError(format("rank 0 at %s has a different FSDP_JOB_TOKEN than rank %d: set "
                                   "it to the same secret on every rank",
                                   place_.describe().c_str(), self_.rank),
                            RendezvousError::ThisRank);
    return JoinAnswer::decode(*payload, self_.size);
  }

  /// Joins at one address. Returns no connection on failure; `reason_` has the cause.
  Socket join(const Address &address, double seconds) {
    if (place_.loopbackOnly && !address.isLoopback()) {
      reason_ = "it is not a loopback address, and FSDP_JOB_TOKEN is not set";
      return {};
    }
    Socket connection = connectTo(address, seconds, reason_);
    if (!connection)
      return connection;
    reason_ = "the process that listens there is not a rank of a job";
    std::string frame;
    if (!receiveFrame(connection, FrameKind::Challenge, kNonceBytes, seconds, frame))
      return {};
    const auto challenge = openFrame(frame, "", "");
    if (!challenge)
      return {};
    self_.nonce = randomNonce();
    const std::string join = sealFrame(FrameKind::Join, self_.encode(), place_.token, *challenge);
    if (!connection.sendAll(join.data(), join.size(), seconds))
      return {};
    const std::optional<JoinAnswer> answer = receiveAnswer(connection, seconds);
    if (!answer)
      return {};
    if (answer->kind != JoinAnswer::Welcome)
      throw RendezvousError(answer->reason, answer->kind == JoinAnswer::Refused
                                                ? RendezvousError::ThisRank
                                                : RendezvousError::FirstRank);
    return connection;
  }

  Socket findServer(double seconds) {
    const double deadline = now() + seconds;
    for (useconds_t pause = 20'000; now() < deadline; pause = std::min(2 * pause, 500'000u)) {
      for (const Address &address : resolve(place_.host, place_.port, reason_))
        if (Socket connection = join(address, std::min(kHandshakeTimeout, deadline - now())))
          return connection;
      usleep(pause);
    }
    throw RendezvousError(
        format("timed out after %g s waiting for rank 0 at %s: %s (MASTER_ADDR and FSDP_PORT give "
               "its address, --timeout sets the timeout in seconds)",
               seconds, place_.describe().c_str(), reason_.c_str()),
        RendezvousError::FirstOfMachine);
  }

  const RendezvousPlace &place_;
  JoinRequest self_;
  std::string reason_;
};

Rendezvous rendezvousAs(const RendezvousPlace &place, JoinRequest &self, double seconds) {
  if (self.rank > 0)
    return RendezvousClient(place, self).run(seconds);
  Socket listener;
  try {
    listener = listenOn(place.port);
  } catch (const Error &error) {
    throw RendezvousError(format("%s; it is the port of %s, where the ranks of all machines "
                                 "connect: set FSDP_PORT to a free one for every rank",
                                 error.what(), place.describe().c_str()),
                          RendezvousError::ThisRank);
  }
  return std::make_shared<RendezvousServer>(place, self, std::move(listener), seconds)->run();
}

} // namespace

std::string RendezvousPlace::describe() const {
  return format("%s:%d (%s)", host.c_str(), port, portFrom.c_str());
}

Rendezvous rendezvous(const RendezvousPlace &place, JoinRequest self, double seconds) {
  // As sent to the other ranks.
  self.machine = printable(self.machine, JoinRequest::kMaxOfMachine);
  self.host = printableHost(self.host);
  Rendezvous result = rendezvousAs(place, self, seconds);
  result.rank = self.rank;
  result.token = place.token;
  result.loopbackOnly = place.loopbackOnly;
  return result;
}

std::string hostName() {
  char name[64] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string machineIdentity() {
  if (const char *given = std::getenv("FSDP_MACHINE"))
    return given;
  const std::string boot = bootIdentity();
  struct stat network{}, processes{};
  stat("/proc/self/ns/net", &network); // of the socket that passes the memory
  stat("/proc/self/ns/pid", &processes);
  return format("%s-%zu-%zu-%d", boot.empty() ? hostName().c_str() : boot.c_str(),
                std::size_t(network.st_ino), std::size_t(processes.st_ino),
                static_cast<int>(getuid()));
}

} // namespace fsdp::rt
