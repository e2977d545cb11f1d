//===- TcpMessages.h - messages between ranks over TCP --------------------===//
//
// Received data is untrusted. All of it is decoded here: sizes are limited before anything is
// stored, numbers are in their ranges and text is printable, or the message is rejected. Test:
// TcpMessagesTest.cpp, also with malformed messages.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_JOB_TCPMESSAGES_H
#define FSDP_RUNTIME_JOB_TCPMESSAGES_H

#include "base/Error.h"
#include "runtime/comm/Socket.h"
#include "runtime/job/RunIdentity.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::rt {

//===----------------------------------------------------------------------===//
// Frames: eight bytes for the kind, the size of the payload, the payload, and a proof that the
// sender knows the job's token and the context of this connection
//===----------------------------------------------------------------------===//

enum class FrameKind : std::uint64_t {
  Challenge = 0x66736470'63686c31, ///< rank 0 to a process that connects to it
  Join = 0x66736470'6a6f6931,      ///< a rank to rank 0
  Answer = 0x66736470'616e7331,    ///< rank 0 to a rank that has proved the token
  Rejected = 0x66736470'72656a31,  ///< rank 0 to one that has not: without payload and token
  Connect = 0x66736470'636f6e31,   ///< a rank to another one that it opens a connection to
};

/// SHA-256 (FIPS 180-4), as 32 bytes.
std::string sha256(std::string_view bytes);
/// HMAC-SHA-256 (RFC 2104) of the bytes.
std::string hmacSha256(std::string_view key, std::string_view bytes);

/// Of a proof, which is an HMAC-SHA-256; around a payload.
constexpr std::size_t kDigest = 32, kFrameHeader = 16, kFrameOverhead = kFrameHeader + kDigest;

/// The frame around a payload. `context` is known to both ends, as the key is.
std::string sealFrame(FrameKind kind, std::string_view payload, std::string_view key,
                      std::string_view context);
/// Size in bytes of the frame that `got` begins; kFrameHeader if the header is incomplete. 0: not a
/// frame of that kind with a payload of at most `most` bytes.
std::size_t frameBytes(std::string_view got, FrameKind kind, std::size_t most);
/// The payload of a complete frame; nothing if the proof is wrong.
std::optional<std::string_view> openFrame(std::string_view frame, std::string_view key,
                                          std::string_view context);
/// Waits for a complete frame. False: other data arrived, or no frame in time.
bool receiveFrame(Socket &socket, FrameKind kind, std::size_t most, double seconds,
                  std::string &frame);
/// The frame that rejects a process that has not proved the token. [Note: order of proofs] The
/// receiver of a proof can test guesses of the token against it, any number of times. So rank 0, to
/// which anybody can connect, sends no byte that depends on the token before the other side has
/// proved it over rank 0's nonce.
std::string rejection();
/// Whether `got` begins with the header of that frame.
bool beginsRejection(std::string_view got);

/// 32 random bytes.
std::string randomNonce();
constexpr std::size_t kNonceBytes = 32;

//===----------------------------------------------------------------------===//
// Payloads
//===----------------------------------------------------------------------===//

/// The description that a rank sends of itself.
struct JoinRequest {
  int rank = 0, size = 1;
  int port = 0; ///< the port on which it listens
  /// Equal on ranks that can share memory, and on no others.
  std::string machine;
  std::string host; ///< name of its machine, for messages
  /// Describes the program and the job that it belongs to.
  std::string job;
  /// How it was started.
  RunIdentity identity;
  std::string nonce;

  std::string encode() const;
  static std::optional<JoinRequest> decode(std::string_view payload);
  static constexpr std::size_t kMax = RunIdentity::kMaxBytes + 1024, kMaxOfMachine = 160;
};

/// The entry about a rank that every rank receives.
struct PeerInfo {
  int machine = 0;  ///< equal for ranks that can share memory
  Address address;  ///< where it listens; without a host: on that of rank 0
  std::string host; ///< name of its machine, for messages
};

struct JoinAnswer {
  enum Kind {
    Welcome,
    Refused, ///< this rank does not belong to the job
    Failed,  ///< the job cannot start; rank 0 reports why
    AllJoined,
  };
  Kind kind = Welcome;
  std::uint64_t nonce = 0;     ///< AllJoined: different for every job
  std::string reason;          ///< Refused, Failed
  std::vector<PeerInfo> peers; ///< AllJoined: by rank

  std::string encode() const;
  static std::optional<JoinAnswer> decode(std::string_view payload, int size);
  static constexpr std::size_t most(int size) { return 1024 + std::size_t(size) * 160; }
};

/// Opens a connection for data between two ranks.
struct ConnectRequest {
  std::uint64_t nonce = 0, id = 0;
  int from = 0, to = 0;

  std::string encode() const;
  static std::optional<ConnectRequest> decode(std::string_view payload, int size);
  static constexpr std::size_t kBytes = 32;
};

/// A message over the connections with rank 0 while the job runs.
struct ControlMessage {
  enum Kind : std::uint32_t { Alive, Failed, Done, AllDone };
  Kind kind = Alive;
  std::optional<base::Error> error; ///< Failed

  static constexpr std::size_t kMax = 2048;
  /// Writes the message to `to`, without allocating, and returns its bytes.
  static std::size_t encode(Kind kind, const base::Error *error, char (&to)[kMax]);
  /// Decodes the message that `got` begins with: returns its size in bytes, 0 if it is incomplete,
  /// and kMalformed if it is not a message.
  static std::size_t decode(std::string_view got, int size, ControlMessage &message);
  static constexpr std::size_t kMalformed = ~std::size_t(0);
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_TCPMESSAGES_H
