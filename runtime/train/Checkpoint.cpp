#include "runtime/train/Checkpoint.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "base/Thread.h"
#include "runtime/program/Roles.h"
#include "runtime/program/Shard.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

const CheckpointManifest::File *find(const CheckpointManifest &manifest, const std::string &name) {
  for (const CheckpointManifest::File &file : manifest.files)
    if (file.name == name)
      return &file;
  return nullptr;
}

std::size_t tensorsOf(const CheckpointLayout &layout) {
  std::size_t count = 0;
  for (const CheckpointFile &file : layout.files())
    count += file.tensors.size();
  return count;
}

/// Sums over all ranks, modulo 2^64.
void addOverRanks(Communicator &ranks, std::vector<std::uint64_t> &sums) {
  auto *data = reinterpret_cast<std::int64_t *>(sums.data());
  ranks.allReduce(data, data, sums.size(), ReduceOp::Sum);
}

/// If ranks use every core, the calling thread gets only unused time and a seventieth of a core: a
/// save takes longer, and a step does not. When ranks wait for the save, all of them wait, and the
/// thread gets their cores.
void yieldToSteps() {
  constexpr int kLowestPriority = 19;
  // Without permission the save has the usual priority.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kLowestPriority);
}

} // namespace

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Checkpoint::Checkpoint(std::string path, const CheckpointLayout &layout)
    : layout(layout), folder(std::move(path)), description(CheckpointManifest::read(folder)) {
  for (const CheckpointFile &expected : layout.files()) {
    const CheckpointManifest::File *file = find(description, expected.name);
    if (!file)
      throw Error(
          "'" + folder + "' has no '" + expected.name +
          "', which this program's optimizer keeps: resume with a program compiled with the "
          "optimizer that wrote it, or start from its weights with --init");
    files.push_back(openCheckpointFile(folder, *file));
    std::vector<const FileTensor *> found;
    for (const CheckpointTensor &tensor : expected.tensors) {
      const FileTensor *held = files.back()->find(tensor.name);
      const std::string where = "'" + files.back()->path() + "': ";
      if (!held)
        throw Error(where + "got no tensor '" + tensor.name +
                    "', expected one for every parameter" +
                    (found.empty() && files.size() == 1 ? "" : " that this program has there") +
                    ": resume with the model that wrote it, or start from its weights with --init");
      if (held->shape != tensor.shape)
        throw Error(where + "tensor '" + tensor.name + "': got shape " + shapeText(held->shape) +
                    ", expected " + shapeText(tensor.shape) +
                    ": resume with the model that wrote it");
      found.push_back(held);
    }
    // Moments of parameters that are frozen now are ignored; missing weights are an error.
    if (files.size() == 1 && files.back()->tensors().size() != found.size())
      throw Error("'" + files.back()->path() + "': got " +
                  std::to_string(files.back()->tensors().size()) + " parameters, expected " +
                  std::to_string(found.size()) +
                  " as this program has: resume with the model that wrote it, or start from its "
                  "weights with --init");
    tensors.push_back(std::move(found));
  }
}

std::string Checkpoint::load(const std::vector<ShardShare> &shares, const Program &program,
                             Device &device) const {
  // A rank checks the part that it would write; replicas of a shard are checked once.
  std::vector<std::size_t> first; // number of the first tensor of each file
  std::size_t count = 0;
  for (const CheckpointFile &file : layout.files()) {
    first.push_back(count);
    count += file.tensors.size();
  }
  std::vector<std::uint64_t> sums(count);
  for (const ShardShare &share : shares)
    for (const CheckpointPiece &piece : share.pieces) {
      const FileTensor &tensor = *tensors[piece.file][piece.tensor];
      sums[first[piece.file] + piece.tensor] +=
          checksum(reinterpret_cast<const float *>(tensor.data) + piece.inTensor, piece.inTensor,
                   piece.count);
    }
  addOverRanks(device.world(), sums);
  for (std::size_t f = 0; f < files.size(); ++f)
    for (const CheckpointManifest::Tensor &tensor :
         find(description, layout.files()[f].name)->tensors)
      for (std::size_t t = 0; t < tensors[f].size(); ++t)
        if (tensors[f][t]->name == tensor.name)
          try {
            requireChecksum(files[f]->path(), tensor.name, sums[first[f] + t], tensor.checksum);
          } catch (const Error &error) {
            return error.what();
          }
  const RankPosition position{program.axes, device.job().mesh().coordinates(device.rank())};
  const auto fill = [&](const Storage &storage, const Buffer &buffer, std::size_t file) {
    std::vector<const FileTensor *> ofMember;
    for (const Parameter &member : storage.members)
      ofMember.push_back(
          *std::find_if(tensors[file].begin(), tensors[file].end(),
                        [&](const FileTensor *tensor) { return tensor->name == member.name; }));
    device.write(buffer, [&](float *shard) {
      std::fill_n(shard, buffer.count, 0.0f);
      for (const Run &run : shardRuns(storage, position))
        ofMember[run.member]->readFloats(run.inParameter, run.count, shard + run.inShard);
    });
  };
  for (const Storage &storage : program.storages) {
    if (!replicaAt(program, storage, position))
      continue;
    if (storage.shard.isPlaced())
      fill(storage, storage.shard, 0);
    if (storage.hasCopy())
      fill(storage.asReplicated(), storage.copy, 0);
    for (const State &state : storage.states)
      for (std::size_t f = 1; f < files.size(); ++f)
        if (layout.files()[f].name == std::string(state.name) + ".safetensors")
          fill(storage, state.shard, f);
  }
  return "";
}

std::vector<SavedStep> checkpointsAt(const std::string &path) {
  std::vector<std::string> names;
  FileSystem &system = FileSystem::real();
  if (system.list(path, names) == 0 &&
      std::binary_search(names.begin(), names.end(), CheckpointManifest::kName))
    return {{0, path}};
  return CheckpointRoot(system, path).saved();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

CheckpointSaver::CheckpointSaver(const Program &program, Device &device,
                                 const CheckpointLayout &layout, std::vector<ShardShare> shares,
                                 Settings settings, FileSystem &system)
    : program(program), device(device), layout(layout), shares(std::move(shares)),
      settings(std::move(settings)),
      root(system, this->settings.root, filesBeside(program, this->settings.carried)),
      ranks(device.job().communicator(static_cast<int>(device.job().options().communicators.size()),
                                      /*channel=*/1)) {}

CheckpointSaver::~CheckpointSaver() {
  if (!writer.joinable())
    return;
  // After an exception the thread may wait for ranks that will not join.
  device.job().setClosing(true);
  writer.join();
  device.job().setClosing(false);
}

void CheckpointSaver::attempt(const std::function<void()> &action) noexcept {
  if (problem.empty())
    try {
      action();
    } catch (const std::exception &error) {
      problem = error.what();
    }
}

bool CheckpointSaver::anyFailed() {
  std::int64_t bad = !problem.empty();
  ranks->allReduce(&bad, &bad, 1, ReduceOp::Max);
  return bad != 0;
}

void CheckpointSaver::createRoot() {
  if (device.rank() == 0)
    root.create();
}

std::vector<std::string> CheckpointSaver::open(std::optional<std::int64_t> after) {
  std::vector<std::string> renamed;
  if (device.rank() == 0)
    renamed = root.setAside(after);
  if (settings.behind) { // allocated now, so that a step does not wait for memory
    std::size_t count = 0;
    for (const ShardShare &share : shares)
      count += share.end - share.begin;
    hostCopy = device.hostMemory(count);
  }
  ranks->barrier();
  return renamed;
}

void CheckpointSaver::copyToHost() {
  float *next = hostCopy.get();
  for (const ShardShare &share : shares) {
    device.copyToHost(share.shard, share.begin, share.end - share.begin, next);
    next += share.end - share.begin;
  }
  device.awaitCopies();
}

void CheckpointSaver::save(CheckpointManifest next) {
  finish();
  manifest = std::move(next);
  manifest.fingerprint = layout.fingerprint();
  manifest.files = CheckpointManifest::filesOf(layout);
  manifest.extraFiles = CheckpointManifest::extrasOf(filesBeside(program, settings.carried));
  problem.clear();
  pruneFault.clear();
  failed = false;
  if (!settings.behind) {
    write([&](std::size_t i) { return device.read(shares[i].shard); });
    report(/*together=*/true);
    return;
  }
  copyToHost();
  written = false;
  writer = startThread("the save", [this] {
    yieldToSteps();
    std::vector<const float *> first; // the address that element 0 of each shard would have
    const float *at = hostCopy.get();
    for (const ShardShare &share : shares) {
      first.push_back(at - share.begin);
      at += share.end - share.begin;
    }
    try {
      write([&](std::size_t i) { return first[i]; });
    } catch (const Aborted &) { // the job has failed, and the failure is reported
    } catch (const Error &error) {
      device.job().failure().raise(error.at(device.rank(), "save"));
    }
    written = true;
  });
}

/// [Note: commit] of CheckpointFolder.h. A rank that fails takes part in the remaining collectives.
void CheckpointSaver::write(const std::function<const float *(std::size_t)> &valuesOf) {
  const bool isFirst = device.rank() == 0;
  const std::int64_t step = manifest.step;
  attempt([&] {
    if (isFirst)
      root.begin(step, layout);
  });
  failed = anyFailed();
  std::vector<std::uint64_t> sums(tensorsOf(layout));
  if (!failed) {
    attempt([&] { root.write(step, layout, shares, valuesOf, sums); });
    addOverRanks(*ranks, sums);
    failed = anyFailed();
  }
  if (!failed) {
    auto sum = sums.begin();
    for (CheckpointManifest::File &file : manifest.files)
      for (CheckpointManifest::Tensor &tensor : file.tensors)
        tensor.checksum = *sum++;
    attempt([&] {
      if (isFirst)
        root.commit(step, manifest);
    });
    failed = anyFailed();
  }
  if (failed) {
    if (isFirst)
      root.discard(step);
    return;
  }
  folder = root.folderOf(step);
  if (isFirst)
    try {
      root.prune(step, settings.keep);
    } catch (const Error &error) { // this checkpoint is complete
      pruneFault = error.what();
    }
}

void CheckpointSaver::finish() {
  if (!writer.joinable())
    return;
  writer.join();
  device.job().failure().check();
  report(/*together=*/false);
}

void CheckpointSaver::report(bool together) {
  if (!pruneFault.empty())
    std::fprintf(stderr, "%s: warning: %s\n", program.name, printable(pruneFault).c_str());
  if (!std::exchange(failed, false)) {
    saved.push_back(folder);
    return;
  }
  if (settings.warns) {
    if (!problem.empty())
      std::fprintf(stderr, "%s: warning: rank %d: step %lld is not saved: %s\n", program.name,
                   device.rank(), static_cast<long long>(manifest.step),
                   printable(problem).c_str());
    return;
  }
  if (!problem.empty())
    throw Error(problem + "; with --save-errors=warn training would continue")
        .at(device.rank(), "save");
  // Another rank reports the cause. If ranks do not arrive here together, the next collective of
  // this rank detects the failure.
  if (!together)
    return;
  device.world().barrier();
  throw Aborted("stopped, as another rank could not save");
}

std::vector<std::string> CheckpointSaver::takeSaved() {
  if (written)
    finish();
  return std::exchange(saved, {});
}

} // namespace fsdp::rt
