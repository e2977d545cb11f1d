//===- FreePort.h - ports for jobs that a test starts -----------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_FREEPORT_H
#define FSDP_TEST_UNIT_RUNTIME_FREEPORT_H

#include "runtime/comm/Socket.h"

#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

/// A socket that is bound to a port (0: one that the system chooses) and does not listen. While it
/// is open the system gives the port to nobody else; connections to it are refused; and who asks
/// for it by its number, and may reuse addresses as listenOn() does, gets it.
inline fsdp::rt::Socket holdPort(int port) {
  fsdp::rt::Socket held(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(held.descriptor(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
    return {};
  const int on = 1; // not before: the system would choose ports that others hold so too
  setsockopt(held.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return held;
}

/// A TCP port that, like the next one, no other process uses during the lifetime of this process.
inline int freePort() {
  static std::vector<fsdp::rt::Socket> held;
  for (;;) {
    fsdp::rt::Socket first = holdPort(0);
    const int port = fsdp::rt::portOf(first);
    fsdp::rt::Socket second = holdPort(port + 1);
    if (!second)
      continue;
    held.push_back(std::move(first));
    held.push_back(std::move(second));
    return port;
  }
}

#endif // FSDP_TEST_UNIT_RUNTIME_FREEPORT_H
