#include "runtime/train/Batches.h"

#include "runtime/program/Roles.h"

#include <algorithm>
#include <utility>

namespace fsdp::rt {

RankPosition positionOf(const Program &program, const Job &job) {
  return {program.axes, job.mesh().coordinates(job.rank())};
}

Batches::Batches(const Program &program, const Dataset &data, SampleOrder order, const Job &job)
    : program(program), data(data), order(order), next(program.inputs.size()) {
  std::size_t widest = 0;
  for (const Input &input : program.inputs) {
    coordinates.push_back(positionOf(program, job).along(input.axes));
    widest = std::max(widest, static_cast<std::size_t>(elements(input.sample)) *
                                  sizeInBytes(input.slice.dtype));
  }
  if (!program.inputs.empty()) {
    const auto replica = replicaAt(program, program.inputs[0], positionOf(program, job));
    isReplica = !replica || replica->index != 0;
  }
  rows.assign(program.inputs.size(), std::vector<std::byte>(widest));
}

void Batches::load(int index, void *target, std::size_t) {
  const auto i = static_cast<std::size_t>(index);
  const Input &input = program.inputs[i];
  const BatchRows taken =
      rowsOf(input, ranksOver(program, input.axes), coordinates[i], next[i].part);
  const std::int64_t first = next[i].first;
  const std::uint64_t digest =
      readBatch(data, order, input, i, first, taken, rows[i].data(), target);
  data.requireWhole();
  readAhead(data, order, i, first + input.batch, taken, input.rows);
  if (i == 0) {
    if (digests[0].first != first)
      digests[1] = std::exchange(digests[0], {first, 0});
    digests[0].sum += digest;
  }
  next[i].next(input);
}

std::uint64_t Batches::digestOf(std::int64_t position) const {
  for (const Digest &digest : digests)
    if (digest.first == position && !isReplica)
      return digest.sum & kSampleDigestMask;
  return 0;
}

void Batches::goTo(std::int64_t position) {
  std::fill(next.begin(), next.end(), LoadPosition{position, 0});
}

} // namespace fsdp::rt
