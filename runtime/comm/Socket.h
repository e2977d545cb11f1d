//===- Socket.h - TCP sockets and addresses -------------------------------===//
#ifndef FSDP_RUNTIME_COMM_SOCKET_H
#define FSDP_RUNTIME_COMM_SOCKET_H

#include "base/Descriptor.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Owns a socket, or none. Sockets are non-blocking and without delay.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}

  explicit operator bool() const { return bool(descriptor_); }
  int descriptor() const { return descriptor_.get(); }

  /// The result of a transfer: bytes moved (0: would block), or the end of the connection.
  static constexpr long kEnded = -1;
  /// Moves as many bytes as possible without blocking. kEnded: the connection is closed (errno is
  /// 0) or lost (errno has the reason).
  long send(const void *data, std::size_t bytes);
  long receive(void *data, std::size_t bytes);
  /// Moves all bytes, within `seconds`. False on failure.
  bool sendAll(const void *data, std::size_t bytes, double seconds);
  bool receiveAll(void *data, std::size_t bytes, double seconds);

private:
  base::Descriptor descriptor_;
};

/// A numeric IPv4 or IPv6 address with a port.
struct Address {
  std::string host; ///< "10.0.0.1", "fe80::1%eth0"; empty for none
  int port = 0;

  bool isLoopback() const;
  /// "10.0.0.1:29501", "[fe80::1]:29501"
  std::string describe() const;
};

/// Whether `host` is a numeric address.
bool isNumericHost(const std::string &host);
/// Listens on every address of this machine; `port` 0 takes a free one. Error: the port is taken.
Socket listenOn(int port);
int portOf(const Socket &listener);
/// The next connection that waits at a listener, or nothing.
Socket acceptFrom(const Socket &listener);
/// The addresses of a host's name. If there are none, `reason` has the cause.
std::vector<Address> resolve(const std::string &host, int port, std::string &reason);
/// Connects within `seconds`. Returns nothing on failure; `reason` has the cause.
Socket connectTo(const Address &address, double seconds, std::string &reason);
/// The address at the other end; an IPv4 address also where it came through an IPv6 socket.
Address peerOf(const Socket &socket);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_SOCKET_H
