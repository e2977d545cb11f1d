#include "runtime/job/TcpMessages.h"
#include "base/Failure.h"
#include "base/PrintableText.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr std::size_t kMaxOfHost = 63, kMaxOfAddress = 64, kMaxOfJob = 256, kMaxOfReason = 768;

/// Appends numbers and text.
class FieldWriter {
public:
  void number(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  void text(std::string_view value, std::size_t most) {
    value = value.substr(0, most);
    number(value.size());
    bytes_.append(value);
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// Decodes them. A value that does not fit makes good() false.
class FieldReader {
public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  int number(int low, int high) {
    const auto value = static_cast<std::int64_t>(number());
    good_ = good_ && value >= low && value <= high;
    return good_ ? static_cast<int>(value) : low;
  }
  std::string_view text(std::size_t most) {
    const std::uint64_t bytes = number();
    good_ = good_ && bytes <= most;
    return take(good_ ? bytes : 0);
  }
  /// Whether all values fitted and no bytes remain.
  bool good() const { return good_ && left_.empty(); }

private:
  std::string_view take(std::size_t bytes) {
    good_ = good_ && bytes <= left_.size();
    if (!good_)
      return "";
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  std::string_view left_;
  bool good_ = true;
};

constexpr int kMaxRanks = 65535, kLastPort = 65535;

std::string proofContext(std::string_view context, std::string_view headed) {
  FieldWriter writer;
  writer.text(context, context.size());
  writer.text(headed, headed.size());
  return writer.take();
}

} // namespace

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

std::string sealFrame(FrameKind kind, std::string_view payload, std::string_view key,
                      std::string_view context) {
  FieldWriter writer;
  writer.number(static_cast<std::uint64_t>(kind));
  writer.text(payload, payload.size());
  std::string frame = writer.take();
  const Digest256 proof = hmacSha256(key, proofContext(context, frame));
  return frame.append(reinterpret_cast<const char *>(proof.data()), proof.size());
}

std::size_t frameBytes(std::string_view got, FrameKind kind, std::size_t most) {
  // A wrong kind is detected before the header is complete.
  std::uint64_t words[2] = {static_cast<std::uint64_t>(kind), 0};
  if (got.substr(0, sizeof words[0]) != std::string_view(reinterpret_cast<const char *>(words),
                                                         std::min(got.size(), sizeof words[0])))
    return 0;
  if (got.size() < kFrameHeader)
    return kFrameHeader;
  std::memcpy(words, got.data(), sizeof words);
  return words[1] <= most ? kFrameOverhead + words[1] : 0;
}

std::optional<std::string_view> openFrame(std::string_view frame, std::string_view key,
                                          std::string_view context) {
  if (frame.size() < kFrameOverhead)
    return std::nullopt;
  Digest256 proof;
  const std::string_view headed = frame.substr(0, frame.size() - sizeof proof);
  std::memcpy(proof.data(), frame.data() + headed.size(), sizeof proof);
  if (!sameDigest(proof, hmacSha256(key, proofContext(context, headed))))
    return std::nullopt;
  return headed.substr(kFrameHeader);
}

bool receiveFrame(Socket &socket, FrameKind kind, std::size_t most, double seconds,
                  std::string &frame) {
  frame.assign(kFrameHeader, '\0');
  if (!socket.receiveAll(frame.data(), frame.size(), seconds))
    return false;
  const std::size_t whole = frameBytes(frame, kind, most);
  if (whole == 0)
    return false;
  frame.resize(whole);
  return socket.receiveAll(frame.data() + kFrameHeader, whole - kFrameHeader, seconds);
}

std::string rejection() { return sealFrame(FrameKind::Rejected, "", "", ""); }

bool beginsRejection(std::string_view got) {
  return frameBytes(got, FrameKind::Rejected, 0) > 0 && got.size() >= kFrameHeader;
}

std::string randomNonce() {
  std::random_device random;
  std::string nonce;
  while (nonce.size() < kNonceBytes) {
    const std::uint32_t word = random();
    nonce.append(reinterpret_cast<const char *>(&word), sizeof word);
  }
  return nonce;
}

//===----------------------------------------------------------------------===//
// Payloads
//===----------------------------------------------------------------------===//

std::string JoinRequest::encode() const {
  FieldWriter writer;
  writer.number(static_cast<std::uint64_t>(rank));
  writer.number(static_cast<std::uint64_t>(size));
  writer.number(static_cast<std::uint64_t>(port));
  writer.text(machine, kMaxOfMachine);
  writer.text(host, kMaxOfHost);
  writer.text(job, kMaxOfJob);
  writer.text(identity.text(), RunIdentity::kMaxBytes);
  writer.text(nonce, kNonceBytes);
  return writer.take();
}

std::optional<JoinRequest> JoinRequest::decode(std::string_view payload) {
  FieldReader reader(payload);
  JoinRequest request;
  request.rank = reader.number(0, kMaxRanks);
  request.size = reader.number(1, kMaxRanks);
  request.port = reader.number(1, kLastPort);
  request.machine = printable(reader.text(kMaxOfMachine), kMaxOfMachine);
  request.host = printableHost(reader.text(kMaxOfHost));
  request.job = printable(reader.text(kMaxOfJob), kMaxOfJob);
  request.identity = RunIdentity::parse(reader.text(RunIdentity::kMaxBytes));
  request.nonce = reader.text(kNonceBytes);
  if (!reader.good() || request.nonce.size() != kNonceBytes)
    return std::nullopt;
  return request;
}

std::string JoinAnswer::encode() const {
  FieldWriter writer;
  writer.number(kind);
  writer.number(nonce);
  writer.text(reason, kMaxOfReason);
  writer.number(peers.size());
  for (const PeerInfo &peer : peers) {
    writer.number(static_cast<std::uint64_t>(peer.machine));
    writer.number(static_cast<std::uint64_t>(peer.address.port));
    writer.text(peer.address.host, kMaxOfAddress);
    writer.text(peer.host, kMaxOfHost);
  }
  return writer.take();
}

std::optional<JoinAnswer> JoinAnswer::decode(std::string_view payload, int size) {
  FieldReader reader(payload);
  JoinAnswer answer;
  answer.kind = static_cast<Kind>(reader.number(Welcome, AllJoined));
  answer.nonce = reader.number();
  answer.reason = printable(reader.text(kMaxOfReason), kMaxOfReason);
  const int peers = answer.kind == AllJoined ? size : 0;
  reader.number(peers, peers);
  for (int rank = 0; rank < peers; ++rank) {
    PeerInfo peer;
    peer.machine = reader.number(0, size - 1);
    peer.address.port = reader.number(1, kLastPort);
    peer.address.host = reader.text(kMaxOfAddress);
    peer.host = printableHost(reader.text(kMaxOfHost));
    if (!peer.address.host.empty() && !isNumericHost(peer.address.host))
      return std::nullopt;
    answer.peers.push_back(std::move(peer));
  }
  if (!reader.good())
    return std::nullopt;
  return answer;
}

std::string ConnectRequest::encode() const {
  FieldWriter writer;
  for (std::uint64_t value : {nonce, id, std::uint64_t(from), std::uint64_t(to)})
    writer.number(value);
  return writer.take();
}

std::optional<ConnectRequest> ConnectRequest::decode(std::string_view payload, int size) {
  FieldReader reader(payload);
  ConnectRequest request;
  request.nonce = reader.number();
  request.id = reader.number();
  request.from = reader.number(0, size - 1);
  request.to = reader.number(0, size - 1);
  if (!reader.good())
    return std::nullopt;
  return request;
}

//===----------------------------------------------------------------------===//
// While the job runs
//===----------------------------------------------------------------------===//

namespace {

struct ControlHeader {
  std::uint32_t kind, bytes;
};

static_assert(sizeof(ControlHeader) + sizeof(ErrorRecord) <= ControlMessage::kMax);

} // namespace

std::size_t ControlMessage::encode(Kind kind, const Error *error, char (&to)[kMax]) {
  ControlHeader header{kind, 0};
  if (error) {
    const ErrorRecord record(*error);
    header.bytes = sizeof record;
    std::memcpy(to + sizeof header, &record, sizeof record);
  }
  std::memcpy(to, &header, sizeof header);
  return sizeof header + header.bytes;
}

std::size_t ControlMessage::decode(std::string_view got, int size, ControlMessage &message) {
  ControlHeader header{};
  if (got.size() < sizeof header)
    return 0;
  std::memcpy(&header, got.data(), sizeof header);
  if (header.kind > AllDone || header.bytes != (header.kind == Failed ? sizeof(ErrorRecord) : 0))
    return kMalformed;
  if (got.size() < sizeof header + header.bytes)
    return 0;
  message.kind = static_cast<Kind>(header.kind);
  message.error.reset();
  if (message.kind == Failed) {
    ErrorRecord record;
    std::memcpy(&record, got.data() + sizeof header, sizeof record);
    // A failure has no status that means success, or that no process can end with.
    record.status = std::clamp<int>(record.status, kExitFailure, 255);
    record.rank = record.rank < size ? std::max(record.rank, -1) : -1;
    message.error = record.error();
  }
  return sizeof header + header.bytes;
}

} // namespace fsdp::rt
