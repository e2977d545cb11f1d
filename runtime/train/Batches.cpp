#include "runtime/train/Batches.h"

#include <algorithm>

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
  rows.assign(program.inputs.size(), std::vector<std::byte>(widest));
}

void Batches::load(int index, void *target, std::size_t) {
  const auto i = static_cast<std::size_t>(index);
  const Input &input = program.inputs[i];
  const BatchRows taken =
      rowsOf(input, ranksOver(program, input.axes), coordinates[i], next[i].part);
  readBatch(data, order, input, i, next[i].first, taken, rows[i].data(), target);
  data.requireWhole();
  next[i].next(input);
}

void Batches::goTo(std::int64_t position) {
  std::fill(next.begin(), next.end(), LoadPosition{position, 0});
}

} // namespace fsdp::rt
