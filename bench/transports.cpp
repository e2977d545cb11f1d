//===- transports.cpp - messages by gloo and by sockets as the runtime uses them -----------===//
//
// Two processes on one machine exchange messages both ways: nonblocking sockets and poll, as
// TcpCommunicator moves them, and gloo's TCP transport, in turns; medians of five rounds.
// docs/design/runtime.md has the decision that rests on it. Needs Debian's libgloo-dev:
//   g++ -O2 -std=c++17 bench/transports.cpp -lgloo -lpthread -o transports && ./transports
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <memory>
#include <netinet/tcp.h>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void exchange(int line, const char *out, char *in, size_t bytes) {
  for (size_t sent = 0, received = 0; sent < bytes || received < bytes;) {
    const ssize_t got =
        received < bytes ? recv(line, in + received, bytes - received, MSG_DONTWAIT) : 0;
    const ssize_t gone =
        sent < bytes ? send(line, out + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    received += std::max<ssize_t>(got, 0);
    sent += std::max<ssize_t>(gone, 0);
    if (got > 0 || gone > 0)
      continue;
    pollfd wait{line,
                static_cast<short>((received < bytes ? POLLIN : 0) | (sent < bytes ? POLLOUT : 0)),
                0};
    poll(&wait, 1, 50);
  }
}

/// Seconds of a call.
static double timed(int calls, const std::function<void()> &call) {
  const double begin = now();
  for (int i = 0; i < calls; ++i)
    call();
  return (now() - begin) / calls;
}

int main() {
  char pattern[] = "/tmp/transports-XXXXXX";
  const std::string folder = mkdtemp(pattern);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto *where = reinterpret_cast<sockaddr *>(&address);
  if (bind(listener, where, length) || listen(listener, 1) || getsockname(listener, where, &length))
    return 1;
  const int rank = fork() ? 0 : 1;
  int line = rank == 0 ? accept(listener, nullptr, nullptr) : socket(AF_INET, SOCK_STREAM, 0);
  if (rank == 1 && connect(line, where, length))
    return 1;
  const int on = 1;
  setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  context->connectFullMesh(store, device);
  for (size_t bytes = 64; bytes <= (size_t(64) << 20); bytes *= 32) {
    std::vector<char> out(bytes, 1), in(bytes);
    auto outBuffer = context->createUnboundBuffer(out.data(), bytes),
         inBuffer = context->createUnboundBuffer(in.data(), bytes);
    const int calls = static_cast<int>(std::clamp<size_t>((size_t(256) << 20) / bytes, 4, 2000));
    std::vector<double> sockets, gloo;
    for (int round = 0; round < 5; ++round) {
      sockets.push_back(timed(calls, [&] { exchange(line, out.data(), in.data(), bytes); }));
      gloo.push_back(timed(calls, [&] {
        inBuffer->recv(1 - rank, 7);
        outBuffer->send(1 - rank, 7);
        outBuffer->waitSend();
        inBuffer->waitRecv();
      }));
    }
    std::sort(sockets.begin(), sockets.end());
    std::sort(gloo.begin(), gloo.end());
    if (rank == 0)
      std::printf("%9zu bytes: sockets %8.1f us, gloo %8.1f us, gloo/sockets %.2f\n", bytes,
                  sockets[2] * 1e6, gloo[2] * 1e6, gloo[2] / sockets[2]);
  }
  if (rank == 0) {
    wait(nullptr);
    std::filesystem::remove_all(folder);
  }
}
