//===- RunIdentity.h - options that all ranks must share ------------------===//
#ifndef FSDP_RUNTIME_JOB_RUNIDENTITY_H
#define FSDP_RUNTIME_JOB_RUNIDENTITY_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::rt {

/// Options and contents of files with which a rank was started, as named fields. Ranks compare them
/// when they connect, before they exchange anything else: ranks that differ would train with wrong
/// results.
class RunIdentity {
public:
  struct Field {
    std::string name;                 ///< "--lr"
    std::optional<std::string> value; ///< nothing: not given; "": a flag
  };

  /// The most bytes of text().
  static constexpr std::size_t kMaxBytes = 8192;

  /// A long value is replaced by its beginning and a digest.
  void add(const std::string &name, const std::optional<std::string> &value);
  const std::vector<Field> &fields() const { return fields_; }

  /// The encoded fields; at most kMaxBytes.
  std::string text() const;
  /// Decodes the result of text(). Any other text gives some fields.
  static RunIdentity parse(std::string_view text);

  /// "rank 1 was started with --lr 0.1, rank 0 with --lr 0.01; start all …": every field in which
  /// this identity, of `rank`, differs from that of rank 0. Empty if none does.
  std::string differenceFrom(const RunIdentity &first, int rank) const;

private:
  std::vector<Field> fields_;
};

/// A 64-bit digest. Not secure against deliberate collisions.
std::uint64_t contentDigest(std::string_view bytes, std::uint64_t seed = 0);

/// A digest of all bytes up to kWholeDigest; of larger texts a digest of the first and the last
/// MiB, 4,096 blocks of 4 KiB evenly spaced between them, and the size.
std::uint64_t sampledDigest(std::string_view bytes, std::uint64_t seed = 0);
constexpr std::size_t kWholeDigest = std::size_t(64) << 20;

/// Sixteen hexadecimal digits.
std::string digestText(std::uint64_t digest);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_RUNIDENTITY_H
