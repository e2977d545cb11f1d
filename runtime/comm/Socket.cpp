#include "runtime/comm/Socket.h"
#include "base/Error.h"
#include "base/WaitCounter.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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
//===----------------------------------------------------------------------===//

namespace {

Address addressOf(const void *socketAddress, std::size_t size) {
  Address address;
  address.size = static_cast<std::uint32_t>(std::min(size, sizeof address.bytes));
  std::memcpy(address.bytes, socketAddress, address.size);
  return address;
}

template <class T> T as(const Address &address) {
  T result{};
  std::memcpy(&result, address.bytes, std::min<std::size_t>(address.size, sizeof result));
  return result;
}

sa_family_t familyOf(const Address &address) { return as<sockaddr>(address).sa_family; }

const sockaddr *pointerTo(const sockaddr_storage &storage) {
  return reinterpret_cast<const sockaddr *>(&storage);
}

} // namespace

bool Address::isValid() const {
  return size == 0 || (size == sizeof(sockaddr_in) && familyOf(*this) == AF_INET) ||
         (size == sizeof(sockaddr_in6) && familyOf(*this) == AF_INET6);
}

bool Address::isLoopback() const {
  if (size && familyOf(*this) == AF_INET)
    return ntohl(as<sockaddr_in>(*this).sin_addr.s_addr) >> 24 == 127;
  const auto six = as<sockaddr_in6>(*this);
  return size && IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
}

Address Address::withPort(int port) const {
  if (size && familyOf(*this) == AF_INET) {
    auto four = as<sockaddr_in>(*this);
    four.sin_port = htons(static_cast<std::uint16_t>(port));
    return addressOf(&four, sizeof four);
  }
  auto six = as<sockaddr_in6>(*this);
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  return addressOf(&six, sizeof six);
}

std::string Address::describe() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (size && familyOf(*this) == AF_INET) {
    const auto four = as<sockaddr_in>(*this);
    inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    return format("%s:%d", text, ntohs(four.sin_port));
  }
  const auto six = as<sockaddr_in6>(*this);
  inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  return format("[%s]:%d", text, ntohs(six.sin6_port));
}

Address peerOf(const Socket &socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(socket.descriptor(), reinterpret_cast<sockaddr *>(&storage), &size) != 0)
    return {};
  Address address = addressOf(&storage, size);
  if (storage.ss_family != AF_INET6)
    return address;
  const auto six = as<sockaddr_in6>(address);
  if (!IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
    return address;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  std::memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, 4);
  return addressOf(&four, sizeof four);
}

//===----------------------------------------------------------------------===//
// Meeting points
//===----------------------------------------------------------------------===//

Socket listenOn(int port) {
  // One socket for both families where the machine has both.
  int reason = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    Socket listener(socket(family, kKind, 0));
    if (!listener) {
      reason = errno;
      continue;
    }
    const int on = 1, off = 0;
    setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_in);
    const std::uint16_t number = htons(static_cast<std::uint16_t>(port));
    if (family == AF_INET6) {
      setsockopt(listener.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      auto &six = reinterpret_cast<sockaddr_in6 &>(storage);
      six.sin6_family = AF_INET6;
      six.sin6_port = number;
      size = sizeof six;
    } else {
      auto &four = reinterpret_cast<sockaddr_in &>(storage);
      four.sin_family = AF_INET;
      four.sin_port = number;
    }
    if (bind(listener.descriptor(), pointerTo(storage), size) == 0 &&
        listen(listener.descriptor(), SOMAXCONN) == 0)
      return listener;
    reason = errno;
    if (reason == EADDRINUSE)
      break;
  }
  throw Error(format("cannot listen on port %d: %s", port, std::strerror(reason)));
}

int portOf(const Socket &listener) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(listener.descriptor(), reinterpret_cast<sockaddr *>(&storage), &size);
  // Both families have the port at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in &>(storage).sin_port);
}

Socket acceptFrom(const Socket &listener) {
  Socket taken(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (taken)
    withoutDelay(taken.descriptor());
  return taken;
}

std::vector<Address> resolve(const std::string &host, int port, std::string &reason) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  std::vector<Address> addresses;
  if (status != 0) {
    reason = gai_strerror(status);
    return addresses;
  }
  for (const addrinfo *at = found; at; at = at->ai_next)
    if (at->ai_addrlen <= sizeof(Address::bytes))
      addresses.push_back(addressOf(at->ai_addr, at->ai_addrlen));
  freeaddrinfo(found);
  return addresses;
}

Socket connectTo(const Address &address, double seconds, std::string &reason) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.bytes, std::min<std::size_t>(address.size, sizeof address.bytes));
  Socket made(socket(storage.ss_family, kKind, 0));
  int error = errno;
  if (made) {
    withoutDelay(made.descriptor());
    if (connect(made.descriptor(), pointerTo(storage), address.size) == 0)
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
