#include "runtime/TcpMeeting.h"
#include "runtime/Progress.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <poll.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

namespace {

constexpr std::uint64_t kHello = 0x66736470'6d656574, kAnswer = 0x66736470'616e7377;
// What a stranger is given to say something, and a rank to be answered.
constexpr double kPatience = 5;

struct Hello {
  std::uint64_t magic, identity;
  std::int32_t rank, size, port;
  char machine[132], host[64], program[64];
};

struct Answer {
  enum What : std::int32_t { Welcome, Refused, AllHere };
  std::uint64_t magic, nonce;
  std::int32_t what;
  char reason[508];
};

template <std::size_t N> void put(char (&field)[N], const std::string &text) {
  std::memset(field, 0, N);
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

std::string hostName() {
  char name[64] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

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

class Host {
public:
  Host(const Introduction &self, Socket listener, std::string at, double seconds)
      : self_(self), listener_(std::move(listener)), at_(std::move(at)), seconds_(seconds),
        lines_(static_cast<std::size_t>(self.size)), hellos_(lines_.size()) {
    hellos_[0] = {};
    put(hellos_[0].machine, self.machine);
    put(hellos_[0].host, hostName());
    hellos_[0].port = portOf(listener_);
  }

  Meeting run() {
    const double deadline = now() + seconds_;
    while (!missing().empty()) {
      if (now() > deadline)
        fail(format("waited %g s at %s for rank %s of %d%s (FSDP_TIMEOUT sets the longest wait in "
                    "seconds)",
                    seconds_, at_.c_str(), list(missing()).c_str(), self_.size,
                    refused_.empty() ? "" : ("; sent away: " + refused_).c_str()));
      look();
    }
    return all();
  }

private:
  /// One who has come and not said who he is.
  struct Guest {
    Socket socket;
    double deadline = 0;
    std::size_t got = 0;
    Hello hello{};
  };

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < self_.size; ++rank)
      if (!lines_[static_cast<std::size_t>(rank)])
        ranks.push_back(rank);
    return ranks;
  }

  void look() {
    entries_.assign(1, {listener_.descriptor(), POLLIN, 0});
    for (const auto &guest : guests_)
      entries_.push_back({guest->socket.descriptor(), POLLIN, 0});
    for (const Socket &line : lines_)
      if (line)
        entries_.push_back({line.descriptor(), POLLIN, 0});
    poll(entries_.data(), entries_.size(), 100);
    while (Socket taken = acceptFrom(listener_)) {
      guests_.push_back(std::make_unique<Guest>());
      guests_.back()->socket = std::move(taken);
      guests_.back()->deadline = now() + kPatience;
    }
    for (auto &guest : guests_)
      if (!listen(*guest))
        guest.reset();
    guests_.erase(std::remove(guests_.begin(), guests_.end(), nullptr), guests_.end());
    char nothing;
    for (std::size_t rank = 1; rank < lines_.size(); ++rank)
      if (lines_[rank] && lines_[rank].receive(&nothing, 1) == Socket::kEnded)
        fail(format("rank %zu on '%s' left while the job was starting", rank, hellos_[rank].host));
  }

  /// False when there is no more to hear from a guest.
  bool listen(Guest &guest) {
    auto *bytes = reinterpret_cast<char *>(&guest.hello);
    const long moved = guest.socket.receive(bytes + guest.got, sizeof(Hello) - guest.got);
    if (moved == Socket::kEnded || now() > guest.deadline)
      return false;
    guest.got += static_cast<std::size_t>(moved);
    if (guest.got >= sizeof guest.hello.magic && guest.hello.magic != kHello)
      return false;
    if (guest.got < sizeof(Hello))
      return true;
    const std::string fault = faultOf(guest.hello);
    answer(guest.socket, fault.empty() ? Answer::Welcome : Answer::Refused, fault);
    if (fault.empty()) {
      hellos_[static_cast<std::size_t>(guest.hello.rank)] = guest.hello;
      lines_[static_cast<std::size_t>(guest.hello.rank)] = std::move(guest.socket);
    } else if (refused_.empty()) {
      refused_ = fault;
    }
    return false;
  }

  std::string faultOf(Hello &hello) const {
    hello.host[sizeof hello.host - 1] = hello.program[sizeof hello.program - 1] = 0;
    hello.machine[sizeof hello.machine - 1] = 0;
    const std::string who = format("rank %d on '%s'", hello.rank, hello.host);
    if (hello.size != self_.size || hello.identity != self_.identity)
      return format("%s runs another program, or belongs to another job: got '%s' on %d ranks, "
                    "expected '%s' on %d, compiled alike, at %s",
                    who.c_str(), hello.program, hello.size, self_.program.c_str(), self_.size,
                    at_.c_str());
    if (hello.rank < 1 || hello.rank >= self_.size)
      return format("%s is none of the ranks 1 to %d that come to %s", who.c_str(), self_.size - 1,
                    at_.c_str());
    if (lines_[static_cast<std::size_t>(hello.rank)])
      return format("%s has come to %s already, from '%s': RANK has to differ on every process",
                    who.c_str(), at_.c_str(), hellos_[static_cast<std::size_t>(hello.rank)].host);
    return "";
  }

  static bool answer(Socket &to, Answer::What what, const std::string &reason,
                     std::uint64_t nonce = 0) {
    Answer text{kAnswer, nonce, what, {}};
    put(text.reason, reason);
    return to.sendAll(&text, sizeof text, kPatience);
  }

  [[noreturn]] void fail(const std::string &message) {
    for (Socket &line : lines_)
      if (line)
        answer(line, Answer::Refused, message);
    throw Unmet(message, Unmet::FirstRank);
  }

  Meeting all() {
    Meeting meeting;
    std::random_device random;
    meeting.nonce = (std::uint64_t(random()) << 32) | random();
    std::map<std::string, int> machines;
    for (std::size_t rank = 0; rank < lines_.size(); ++rank) {
      Member member;
      member.machine =
          machines.emplace(hellos_[rank].machine, static_cast<int>(machines.size())).first->second;
      member.port = hellos_[rank].port;
      // Who came through the loopback device is found by all where they have found rank 0.
      if (const Address seen = rank ? peerOf(lines_[rank]) : Address(); !seen.isLoopback())
        member.address = seen;
      std::memcpy(member.host, hellos_[rank].host, sizeof member.host);
      meeting.members.push_back(member);
    }
    for (std::size_t rank = 1; rank < lines_.size(); ++rank)
      if (!answer(lines_[rank], Answer::AllHere, "", meeting.nonce) ||
          !lines_[rank].sendAll(meeting.members.data(), meeting.members.size() * sizeof(Member),
                                kPatience))
        fail(format("rank %zu on '%s' left while the job was starting", rank, hellos_[rank].host));
    meeting.listener = std::move(listener_);
    meeting.lines = std::move(lines_);
    return meeting;
  }

  const Introduction &self_;
  Socket listener_;
  std::string at_;
  double seconds_;
  std::vector<Socket> lines_;
  std::vector<Hello> hellos_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::vector<pollfd> entries_;
  std::string refused_;
};

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

/// Introduces this rank at one address. Nothing: `reason` says why.
Socket introduce(const Address &address, const Hello &hello, double seconds, std::string &reason) {
  Socket line = connectTo(address, seconds, reason);
  if (!line)
    return line;
  Answer answer{};
  if (!line.sendAll(&hello, sizeof hello, seconds) ||
      !line.receiveAll(&answer, sizeof answer, seconds) || answer.magic != kAnswer) {
    reason = "what listens there is no rank of a job";
    return {};
  }
  if (answer.what == Answer::Refused)
    throw Unmet(answer.reason, Unmet::ThisRank);
  return line;
}

Socket findHost(const MeetingPlace &place, const Hello &hello, double seconds) {
  const double deadline = now() + seconds;
  std::string reason;
  for (useconds_t pause = 20'000; now() < deadline; pause = std::min(2 * pause, 500'000u)) {
    for (const Address &address : resolve(place.host, place.port, reason))
      if (Socket line = introduce(address, hello, std::min(kPatience, deadline - now()), reason))
        return line;
    usleep(pause);
  }
  throw Unmet(format("waited %g s for rank 0 at %s: %s (MASTER_ADDR and FSDP_PORT say where it "
                     "is, FSDP_TIMEOUT sets the longest wait in seconds)",
                     seconds, place.describe().c_str(), reason.c_str()),
              Unmet::FirstOfMachine);
}

Meeting visit(const MeetingPlace &place, const Introduction &self, double seconds) {
  Meeting meeting;
  meeting.listener = listenOn(0);
  Hello hello{};
  hello.magic = kHello;
  hello.identity = self.identity;
  hello.rank = self.rank;
  hello.size = self.size;
  hello.port = portOf(meeting.listener);
  put(hello.machine, self.machine);
  put(hello.host, hostName());
  put(hello.program, self.program);
  Socket line = findHost(place, hello, seconds);
  Answer answer{};
  // Rank 0 gives up first, and says who is missing.
  if (!line.receiveAll(&answer, sizeof answer, seconds + kPatience))
    throw Unmet(format("rank 0 at %s left while the job was starting", place.describe().c_str()),
                Unmet::FirstOfMachine);
  if (answer.what == Answer::Refused)
    throw Unmet(answer.reason, Unmet::FirstRank);
  meeting.nonce = answer.nonce;
  meeting.members.resize(static_cast<std::size_t>(self.size));
  if (!line.receiveAll(meeting.members.data(), meeting.members.size() * sizeof(Member), kPatience))
    throw Unmet(format("rank 0 at %s left while the job was starting", place.describe().c_str()),
                Unmet::FirstOfMachine);
  const Address host = peerOf(line);
  for (Member &member : meeting.members)
    member.address = (member.address.size ? member.address : host).withPort(member.port);
  meeting.lines.push_back(std::move(line));
  return meeting;
}

} // namespace

std::string MeetingPlace::describe() const {
  return format("%s:%d (%s)", host.c_str(), port, portFrom.c_str());
}

Meeting meet(const MeetingPlace &place, const Introduction &self, double seconds) {
  if (self.rank > 0) {
    Meeting meeting = visit(place, self, seconds);
    meeting.rank = self.rank;
    return meeting;
  }
  Socket listener;
  try {
    listener = listenOn(place.port);
  } catch (const Error &error) {
    throw Unmet(format("%s; it is the port of %s, where the ranks of all machines meet: set "
                       "FSDP_PORT to a free one for every rank",
                       error.what(), place.describe().c_str()),
                Unmet::ThisRank);
  }
  return Host(self, std::move(listener), place.describe(), seconds).run();
}

std::string machineIdentity() {
  if (const char *given = std::getenv("FSDP_MACHINE"))
    return given;
  char boot[40] = {};
  if (std::FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(boot, sizeof boot, file))
      boot[0] = 0;
    std::fclose(file);
  }
  boot[std::strcspn(boot, "\n")] = 0;
  struct stat memory {}, processes {};
  stat("/dev/shm", &memory);
  stat("/proc/self/ns/pid", &processes);
  return format("%s-%zu-%zu-%d", *boot ? boot : hostName().c_str(), std::size_t(memory.st_dev),
                std::size_t(processes.st_ino), static_cast<int>(getuid()));
}

} // namespace fsdp::rt
