#include "runtime/comm/Socket.h"
#include "base/Error.h"
#include "base/WaitCounter.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

void withoutDelay(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Waits until `descriptor` is ready for `events`. False at the deadline.
bool awaitReady(int descriptor, short events, double deadline) {
  for (;;) {
    const double left = deadline - now();
    pollfd entry{descriptor, events, 0};
    const int ready = poll(&entry, 1, std::max(0, static_cast<int>(left * 1e3)));
    if (ready > 0)
      return true;
    if (left <= 0 || (ready < 0 && errno != EINTR))
      return false;
  }
}

} // namespace

long Socket::send(const void *data, std::size_t bytes) {
  for (;;) {
    const ssize_t moved = ::send(descriptor(), data, bytes, MSG_NOSIGNAL);
    if (moved >= 0)
      return moved;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      return 0;
    if (errno != EINTR)
      return kEnded;
  }
}

long Socket::receive(void *data, std::size_t bytes) {
  for (;;) {
    const ssize_t moved = recv(descriptor(), data, bytes, 0);
    if (moved > 0)
      return moved;
    if (moved == 0) {
      errno = 0;
      return bytes ? kEnded : 0;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      return 0;
    if (errno != EINTR)
      return kEnded;
  }
}

bool Socket::sendAll(const void *data, std::size_t bytes, double seconds) {
  const double deadline = now() + seconds;
  auto *from = static_cast<const char *>(data);
  while (bytes) {
    const long moved = send(from, bytes);
    if (moved == kEnded || (moved == 0 && !awaitReady(descriptor(), POLLOUT, deadline)))
      return false;
    from += moved, bytes -= static_cast<std::size_t>(moved);
  }
  return true;
}

bool Socket::receiveAll(void *data, std::size_t bytes, double seconds) {
  const double deadline = now() + seconds;
  auto *to = static_cast<char *>(data);
  while (bytes) {
    const long moved = receive(to, bytes);
    if (moved == kEnded || (moved == 0 && !awaitReady(descriptor(), POLLIN, deadline)))
      return false;
    to += moved, bytes -= static_cast<std::size_t>(moved);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Addresses

namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo *)>;

/// The addresses that getaddrinfo finds; `status` is its error, or 0. A null `host` means every
/// address of this machine.
Addresses find(const char *host, int port, int family, int flags, int &status) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  status = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  return {status == 0 ? found : nullptr, [](addrinfo *list) {
            if (list)
              freeaddrinfo(list);
          }};
}

Address addressOf(const sockaddr *address, socklen_t size) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(address, size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  constexpr std::string_view kMapped = "::ffff:"; // before an IPv4 address in an IPv6 one
  std::string text = host;
  if (text.compare(0, kMapped.size(), kMapped) == 0 && text.find('.') != text.npos)
    text.erase(0, kMapped.size());
  return {text, std::atoi(port)};
}

/// The address of a socket by `ask`: getsockname or getpeername.
Address addressBy(int (*ask)(int, sockaddr *, socklen_t *), const Socket &socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto *address = reinterpret_cast<sockaddr *>(&storage);
  return ask(socket.descriptor(), address, &size) == 0 ? addressOf(address, size) : Address();
}

} // namespace

bool Address::isLoopback() const { return host == "::1" || host.compare(0, 4, "127.") == 0; }

std::string Address::describe() const {
  const bool isIPv6 = host.find(':') != host.npos;
  return format(isIPv6 ? "[%s]:%d" : "%s:%d", host.c_str(), port);
}

bool isNumericHost(const std::string &host) {
  int status = 0;
  return find(host.c_str(), 0, AF_UNSPEC, AI_NUMERICHOST, status) != nullptr;
}

std::vector<Address> resolve(const std::string &host, int port, std::string &reason) {
  int status = 0;
  const Addresses found = find(host.c_str(), port, AF_UNSPEC, 0, status);
  if (status != 0)
    reason = gai_strerror(status);
  std::vector<Address> addresses;
  for (const addrinfo *at = found.get(); at; at = at->ai_next)
    addresses.push_back(addressOf(at->ai_addr, at->ai_addrlen));
  return addresses;
}

Address peerOf(const Socket &socket) { return addressBy(getpeername, socket); }
int portOf(const Socket &listener) { return addressBy(getsockname, listener).port; }

// Connections

Socket listenOn(int port) {
  // One IPv6 socket serves both families where the machine has both.
  int reason = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    int status = 0;
    const Addresses any = find(nullptr, port, family, AI_PASSIVE, status);
    const int on = 1, off = 0;
    if (Socket listener(any ? socket(family, kKind, 0) : -1); listener) {
      setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      setsockopt(listener.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (bind(listener.descriptor(), any->ai_addr, any->ai_addrlen) == 0 &&
          listen(listener.descriptor(), SOMAXCONN) == 0)
        return listener;
    }
    reason = errno;
    if (reason == EADDRINUSE)
      break;
  }
  throw Error(format("cannot listen on port %d: %s", port, std::strerror(reason)));
}

Socket acceptFrom(const Socket &listener) {
  Socket taken(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (taken)
    withoutDelay(taken.descriptor());
  return taken;
}

Socket connectTo(const Address &address, double seconds, std::string &reason) {
  int status = 0;
  const Addresses to = find(address.host.c_str(), address.port, AF_UNSPEC, AI_NUMERICHOST, status);
  if (!to) {
    reason = gai_strerror(status);
    return {};
  }
  Socket made(socket(to->ai_family, kKind, 0));
  int error = errno;
  if (made) {
    withoutDelay(made.descriptor());
    if (connect(made.descriptor(), to->ai_addr, to->ai_addrlen) == 0)
      return made;
    error = errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (!awaitReady(made.descriptor(), POLLOUT, now() + seconds))
        error = ETIMEDOUT;
      else if (getsockopt(made.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && !error)
        return made;
    }
  }
  reason = std::strerror(error);
  return {};
}

} // namespace fsdp::rt
