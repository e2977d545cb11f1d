//===- RunIdentity.h - what has to be the same on every rank ----------------===//
#ifndef FSDP_RUNTIME_JOB_RUNIDENTITY_H
#define FSDP_RUNTIME_JOB_RUNIDENTITY_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::rt {

/// Options and contents that ranks were started with, as named fields. Ranks compare them where
/// they meet, before they exchange anything else: ranks that differ would train, and train wrong.
class RunIdentity {
public:
  struct Field {
    std::string name;                 ///< "--lr"
    std::optional<std::string> value; ///< nothing: without it; "": a flag
  };

  /// The most bytes of text().
  static constexpr std::size_t kMaxBytes = 8192;

  /// A value that is too long is given by its beginning and a digest.
  void add(const std::string &name, const std::optional<std::string> &value);
  const std::vector<Field> &fields() const { return fields_; }

  /// As it is sent; at most kMaxBytes.
  std::string text() const;
  /// What text() wrote; of anything else, some fields.
  static RunIdentity parse(std::string_view text);

  /// "rank 1 was started with --lr 0.1, rank 0 with --lr 0.01; start all …": every field in which
  /// this one, of `rank`, differs from rank 0's. Empty where none does.
  std::string differenceFrom(const RunIdentity &first, int rank) const;

private:
  std::vector<Field> fields_;
};

/// 64 bits that differ, but for bad luck, where the bytes do. Not for use against an adversary.
std::uint64_t contentDigest(std::string_view bytes, std::uint64_t seed = 0);

/// The same of all bytes up to kWholeDigest, and beyond that of the first and the last MiB and
/// 4,096 blocks of 4 KiB spread evenly between them; always of the number of bytes.
std::uint64_t sampledDigest(std::string_view bytes, std::uint64_t seed = 0);
constexpr std::size_t kWholeDigest = std::size_t(64) << 20;

/// Sixteen hexadecimal digits.
std::string digestText(std::uint64_t digest);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_RUNIDENTITY_H
