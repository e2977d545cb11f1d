//===- Sha256.h - SHA-256 and HMAC ----------------------------------------===//
#ifndef FSDP_RUNTIME_JOB_SHA256_H
#define FSDP_RUNTIME_JOB_SHA256_H

#include <array>
#include <cstdint>
#include <string_view>

namespace fsdp::rt {

using Digest256 = std::array<unsigned char, 32>;

/// SHA-256 (FIPS 180-4).
Digest256 sha256(std::string_view bytes);

/// HMAC-SHA-256 (RFC 2104) of the bytes.
Digest256 hmacSha256(std::string_view key, std::string_view bytes);

/// Compares in constant time.
bool sameDigest(const Digest256 &a, const Digest256 &b);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_SHA256_H
