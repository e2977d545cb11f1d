#include "runtime/job/RendezvousSocket.h"
#include "base/Error.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr int kSocketType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
/// The first bytes of a message; the identity's text follows.
constexpr std::string_view kMagic = "fsdp-memory-1\n";

/// The abstract address for a key: a zero byte, then the name.
struct SocketAddress {
  explicit SocketAddress(const std::string &key) {
    const std::string name =
        format("fsdp-%d-%s", static_cast<int>(geteuid()), digestText(contentDigest(key)).c_str());
    storage.sun_family = AF_UNIX;
    std::memcpy(storage.sun_path + 1, name.data(), name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }

  sockaddr_un storage{};
  socklen_t bytes;
};

/// The message with room for the one descriptor that goes with it.
struct Message {
  Message(char *text, std::size_t size) : part{text, size} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

/// The process at the other end.
ucred peerOf(const Descriptor &connection) {
  ucred peer{0, static_cast<uid_t>(-1), 0};
  socklen_t size = sizeof peer;
  getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return peer;
}

[[noreturn]] void refuse(const std::string &why) {
  throw Error("the ranks of this machine cannot share memory: " + why +
              "; set FSDP_JOB_ID to another name on every rank, or run with --communicator=mpi");
}

Descriptor openSocket() {
  Descriptor opened(socket(AF_UNIX, kSocketType, 0));
  if (!opened)
    refuse(format("cannot open a Unix socket: %s", std::strerror(errno)));
  return opened;
}

/// Connects to the first rank. Nothing: it does not listen. Error: the listener is another user's.
Descriptor connectTo(const SocketAddress &address) {
  Descriptor connection = openSocket();
  if (connect(connection.get(), address.get(), address.bytes) != 0)
    return {};
  if (const ucred peer = peerOf(connection); peer.uid != geteuid())
    refuse(format("process %d of user %d holds the name of this job's socket, expected a process "
                  "of user %d",
                  static_cast<int>(peer.pid), static_cast<int>(peer.uid),
                  static_cast<int>(geteuid())));
  return connection;
}

bool awaitInput(const Descriptor &from, double seconds) {
  pollfd entry{from.get(), POLLIN, 0};
  return poll(&entry, 1, static_cast<int>(seconds * 1e3)) > 0;
}

} // namespace

RendezvousSocket::RendezvousSocket(const std::string &key, const Descriptor &memory,
                                   const RunIdentity &identity)
    : listener_(openSocket()), memory_(memory), message_(kMagic) {
  message_ += identity.text();
  const SocketAddress address(key);
  if (bind(listener_.get(), address.get(), address.bytes) != 0 ||
      listen(listener_.get(), SOMAXCONN) != 0) {
    const int reason = errno;
    if (const Descriptor other = connectTo(address))
      refuse(format("another job of this name is starting now (its rank 0 is process %d)",
                    static_cast<int>(peerOf(other).pid)));
    refuse(format("cannot listen on a Unix socket: %s", std::strerror(reason)));
  }
}

void RendezvousSocket::serve(double seconds) const {
  if (!awaitInput(listener_, seconds))
    return;
  while (const Descriptor connection{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)}) {
    if (peerOf(connection).uid != geteuid())
      continue;
    std::string text = message_;
    Message message(text.data(), text.size());
    cmsghdr *descriptor = CMSG_FIRSTHDR(&message.header);
    descriptor->cmsg_level = SOL_SOCKET;
    descriptor->cmsg_type = SCM_RIGHTS;
    descriptor->cmsg_len = CMSG_LEN(sizeof(int));
    const int memory = memory_.get();
    std::memcpy(CMSG_DATA(descriptor), &memory, sizeof memory);
    // Ranks that wait for a rank that has since died detect its absence.
    static_cast<void>(sendmsg(connection.get(), &message.header, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
}

std::optional<SharedMemory> receiveMemory(const std::string &key, double seconds) {
  const Descriptor connection = connectTo(SocketAddress(key));
  if (!connection || !awaitInput(connection, seconds))
    return std::nullopt;
  std::string text(kMagic.size() + RunIdentity::kMaxBytes, '\0');
  Message message(text.data(), text.size());
  const ssize_t got = recvmsg(connection.get(), &message.header, MSG_CMSG_CLOEXEC);
  const cmsghdr *descriptor = got > 0 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (!descriptor || descriptor->cmsg_type != SCM_RIGHTS)
    return std::nullopt;
  int memory = -1;
  std::memcpy(&memory, CMSG_DATA(descriptor), sizeof memory);
  SharedMemory received{Descriptor(memory), {}};
  text.resize(static_cast<std::size_t>(got));
  if (text.compare(0, kMagic.size(), kMagic) != 0)
    return std::nullopt;
  received.identity = RunIdentity::parse(std::string_view(text).substr(kMagic.size()));
  return received;
}

} // namespace fsdp::rt
