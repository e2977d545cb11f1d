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

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

using Word = std::uint32_t;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr Word kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
constexpr std::size_t kBlock = 64;

Word turned(Word x, int by) { return x >> by | x << (32 - by); }

void absorb(Word (&state)[8], const unsigned char *block) {
  Word w[64];
  for (int t = 0; t < 16; ++t)
    w[t] = Word(block[4 * t]) << 24 | Word(block[4 * t + 1]) << 16 | Word(block[4 * t + 2]) << 8 |
           block[4 * t + 3];
  for (int t = 16; t < 64; ++t)
    w[t] = w[t - 16] + w[t - 7] + (turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ w[t - 15] >> 3) +
           (turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ w[t - 2] >> 10);
  auto [a, b, c, d, e, f, g, h] = state;
  for (int t = 0; t < 64; ++t) {
    const Word first = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) +
                       kRound[t] + w[t];
    const Word second =
        (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const Word rounds[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    state[i] += rounds[i];
}

/// Compares digests in constant time.
bool sameDigest(std::string_view a, std::string_view b) {
  int difference = 0;
  for (std::size_t i = 0; i < kDigest; ++i)
    difference |= a[i] ^ b[i];
  return difference == 0;
}

} // namespace

std::string sha256(std::string_view bytes) {
  Word state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  // A one bit, zeros, and the length in bits fill up the last block.
  std::string padded(bytes);
  padded += '\x80';
  padded.resize((padded.size() + 8 + kBlock - 1) / kBlock * kBlock - 8, '\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    padded += static_cast<char>(std::uint64_t(bytes.size()) * 8 >> shift);
  for (std::size_t at = 0; at < padded.size(); at += kBlock)
    absorb(state, reinterpret_cast<const unsigned char *>(padded.data()) + at);
  std::string digest;
  for (std::size_t i = 0; i < kDigest; ++i)
    digest += static_cast<char>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string hmacSha256(std::string_view key, std::string_view bytes) {
  std::string block = key.size() > kBlock ? sha256(key) : std::string(key);
  block.resize(kBlock, '\0');
  std::string inner, outer;
  for (char c : block) {
    inner += static_cast<char>(c ^ 0x36);
    outer += static_cast<char>(c ^ 0x5c);
  }
  return sha256(outer.append(sha256(inner.append(bytes))));
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

std::string sealFrame(FrameKind kind, std::string_view payload, std::string_view key,
                      std::string_view context) {
  FieldWriter writer;
  writer.number(static_cast<std::uint64_t>(kind));
  writer.text(payload, payload.size());
  std::string frame = writer.take();
  return frame + hmacSha256(key, proofContext(context, frame));
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
  const std::string_view headed = frame.substr(0, frame.size() - kDigest);
  if (!sameDigest(frame.substr(headed.size()), hmacSha256(key, proofContext(context, headed))))
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
