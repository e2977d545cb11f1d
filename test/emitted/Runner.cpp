//===- Runner.cpp - run emitted programs beside what they should leave ------===//
//
//   PROGRAM CASES [--seed=N]
//
// Runs the programs that this binary is linked from (Registered.h), each in a process of its own,
// and compares what each leaves with the case of its seed in CASES: the numbers that it logs, on
// every rank, and on every rank what it stores of each parameter and optimizer state, padding
// included. Prints `differs SEED ...` for a case that differs, says at the end how many did not and
// how far they were, and exits with 1 if one did.
//
//===----------------------------------------------------------------------===//

#include "test/emitted/Case.h"
#include "test/emitted/Registered.h"

#include "base/Error.h"
#include "runtime/data/Dataset.h"
#include "runtime/execution/Device.h"
#include "runtime/job/Bootstrap.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/program/Roles.h"
#include "runtime/program/Shard.h"
#include "runtime/train/ParameterNames.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace base;
using namespace fsdp::rt;
using namespace fsdp::emitted;

std::map<std::uint64_t, const Program *> &Registered::all() {
  static std::map<std::uint64_t, const Program *> programs;
  return programs;
}

namespace {

/// Seconds after which a case counts as hanging.
constexpr unsigned kTimeLimit = 120;

/// The deviation of a case from the expectation, shared by its ranks.
struct Verdict {
  enum Level : int { Tight, Loose, Differs };
  std::atomic<int> level{Tight};
  std::atomic<int> said{0}; ///< differences that were printed

  void atLeast(Level found) {
    int before = level;
    while (before < found && !level.compare_exchange_weak(before, found)) {
    }
  }
};

const Numbers &find(const std::vector<Numbers> &list, std::string_view name) {
  for (const Numbers &numbers : list)
    if (numbers.name == name)
      return numbers;
  throw Error(format("the case has no '%s'", std::string(name).c_str()));
}

const Expected *findExpected(const std::vector<Expected> &list, const std::string &name) {
  for (const Expected &expected : list)
    if (expected.name == name)
      return &expected;
  return nullptr;
}

/// The data set of a case.
class Samples final : public Dataset {
public:
  Samples(const Program &program, const Case &wanted) : program(program), wanted(wanted) {
    for (const Input &input : program.inputs)
      values.push_back(&find(wanted.inputs, input.name).values);
  }
  std::int64_t samples() const override { return wanted.samples; }
  void read(std::size_t input, std::int64_t sample, void *to) const override {
    const auto count = static_cast<std::size_t>(elements(program.inputs[input].sample));
    const double *from = values[input]->data() + static_cast<std::size_t>(sample) * count;
    switch (program.inputs[input].slice.dtype) {
    case DType::F32:
      return convert<float>(from, count, to);
    case DType::F64:
      return convert<double>(from, count, to);
    case DType::I32:
      return convert<std::int32_t>(from, count, to);
    case DType::I64:
      return convert<std::int64_t>(from, count, to);
    case DType::BF16:
      return convert<bf16>(from, count, to);
    case DType::Bool:
      return convert<bool>(from, count, to);
    }
  }
  void requireWhole() const override {}
  void readAhead(std::size_t, std::int64_t) const override {}
  const char *form() const override { return "values"; }

private:
  template <class T> static void convert(const double *from, std::size_t count, void *to) {
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      if constexpr (std::is_same_v<T, bf16>)
        value = T(static_cast<float>(from[i]));
      else
        value = static_cast<T>(from[i]);
      std::memcpy(static_cast<char *>(to) + i * sizeof value, &value, sizeof value);
    }
  }

  const Program &program;
  const Case &wanted;
  std::vector<const std::vector<double> *> values;
};

/// The samples of one rank, batch after batch.
class Batches final : public InputSource {
public:
  Batches(const Program &program, const Case &wanted, const Job &job)
      : program(program), data(program, wanted), job(job), next(program.inputs.size()) {}

  /// Goes to the batch of step `step`, from 0, of every input.
  void seek(std::int64_t step) {
    for (std::size_t i = 0; i < next.size(); ++i)
      next[i] = {step * program.inputs[i].batch, 0};
  }

  void load(int index, void *target, std::size_t) override {
    const auto i = static_cast<std::size_t>(index);
    const Input &input = program.inputs[i];
    int coordinate = 0;
    for (int axis : input.axes)
      coordinate = coordinate * program.axes[axis].size + job.mesh().coordinate(job.rank(), axis);
    std::vector<std::byte> row(static_cast<std::size_t>(elements(input.sample)) *
                               sizeInBytes(input.slice.dtype));
    const BatchRows taken = rowsOf(input, ranksOver(program, input.axes), coordinate, next[i].part);
    readBatch(data, SampleOrder(), input, i, next[i].first, taken, row.data(), target);
    next[i].next(input);
  }

private:
  const Program &program;
  Samples data;
  const Job &job;
  std::vector<LoadPosition> next; ///< of each input
};

/// One rank of a case.
class RankOfCase {
public:
  RankOfCase(const Program &program, const Case &wanted, Job &job, Verdict &verdict)
      : program(program), wanted(wanted), job(job), verdict(verdict), batches(program, wanted, job),
        device(target::open(program, job)) {}

  void run() {
    const std::int64_t batch = program.inputs.empty() ? 1 : program.inputs[0].batch;
    fill(batch);
    device->world().barrier();
    for (std::size_t step = 0; step < 2; ++step) {
      device->run(program.train, &batches, /*again=*/step == 0);
      compareOutputs(step, program.train,
                     [&](std::size_t i) { return double(device->outputs()[i]); });
    }
    if (!program.drain.runs.empty())
      device->run(program.drain, nullptr, /*again=*/false);
    device->setSamples(wanted.evaluated);
    batches.seek(2);
    device->run(program.evaluate, &batches, /*again=*/false);
    compareOutputs(2, program.evaluate, [&](std::size_t i) {
      const WeightedSum &sum = device->sums()[i];
      return double(float(sum.sum / sum.weight));
    });
    for (const Storage &storage : program.storages) {
      if (!replicaAt(program, storage, position()))
        continue;
      if (storage.shard.isPlaced())
        compareShard(storage, "parameter", storage.shard);
      else
        compareShard(storage.asReplicated(), "parameter", storage.copy);
      for (const State &state : storage.states)
        compareShard(storage, state.name, state.shard);
    }
    if (device->peakBytes() > program.arenaBytes)
      say(format("touched %zu bytes of an arena of %zu", device->peakBytes(), program.arenaBytes));
    // No rank ends while others compare.
    device->world().barrier();
  }

private:
  RankPosition position() const {
    return {program.axes, device->job().mesh().coordinates(device->rank())};
  }

  void fill(std::int64_t batch) {
    for (const Storage &storage : program.storages) {
      if (!replicaAt(program, storage, position()))
        continue;
      if (storage.shard.isPlaced())
        fill(storage);
      if (storage.hasCopy())
        fill(storage.asReplicated());
    }
    StepState start{};
    start.schedule = program.schedule.over(wanted.totalSteps);
    start.seed = wanted.seed;
    start.baseLearningRate = program.defaultLearningRate;
    start.clip = program.clip;
    for (std::size_t i = 0; i < program.updateConstants.size(); ++i)
      start.constants[i] = program.updateConstants[i].value;
    start.samples = batch;
    device->setState(start);
    device->setUpdates(updateSettings(program, compiledGroups(program)));
  }

  void fill(const Storage &storage) {
    device->write(storage.shard, [&](float *shard) {
      std::fill_n(shard, storage.shard.count, 0.0f);
      for (const Run &run : shardRuns(storage, position())) {
        const Numbers &from = find(wanted.parameters, storage.members[run.member].name);
        for (std::size_t i = 0; i < run.count; ++i)
          shard[run.inShard + i] = static_cast<float>(from.values[run.inParameter + i]);
      }
    });
  }

  template <class Value>
  void compareOutputs(std::size_t step, const ExecutionPlan &walk, Value value) {
    const char *const names[] = {"step 1", "step 2", "the evaluation"};
    const std::vector<Expected> &expected = wanted.outputs[step];
    if (walk.outputs.size() != expected.size())
      say(format("%s logs %zu numbers, expected %zu", names[step], walk.outputs.size(),
                 expected.size()));
    for (std::size_t i = 0; i < walk.outputs.size(); ++i) {
      const char *name = walk.outputs[i];
      const Expected *e = findExpected(expected, name);
      if (!e)
        say(format("%s logs '%s', which the interpreter does not", names[step], name));
      else
        compare(*e, 0, value(i), names[step], name);
    }
  }

  void compareShard(const Storage &storage, const std::string &what, const Buffer &buffer) {
    const float *shard = device->read(buffer);
    std::vector<bool> meant(buffer.count, false);
    for (const Run &run : shardRuns(storage, position())) {
      const std::string name = std::string(storage.members[run.member].name) + "." + what;
      const Expected *e = findExpected(wanted.tensors, name);
      if (!e) {
        say(format("the interpreter has no '%s'", name.c_str()));
        continue;
      }
      for (std::size_t i = 0; i < run.count; ++i) {
        meant[run.inShard + i] = true;
        compare(*e, run.inParameter + i, shard[run.inShard + i], "in the end", name.c_str());
      }
    }
    for (std::size_t i = 0; i < buffer.count; ++i)
      if (!meant[i] && shard[i] != 0)
        say(format("padding %zu of '%s' of storage '%s' is %.9g, expected 0", i, what.c_str(),
                   storage.name, double(shard[i])));
  }

  void compare(const Expected &e, std::size_t i, double got, const char *when, const char *name) {
    const double value = e.values[i], distance = std::fabs(got - value);
    if ((std::isnan(got) && std::isnan(value)) || got == value || distance <= e.tight[i])
      return;
    if (distance <= e.loose[i])
      return verdict.atLeast(Verdict::Loose);
    say(format("%s: %s[%zu] is %.9g, expected %.9g within %.3g (tight: %.3g)", when, name, i, got,
               value, e.loose[i], e.tight[i]));
  }

  /// The case differs; the first differences are printed.
  void say(const std::string &what) {
    verdict.atLeast(Verdict::Differs);
    if (verdict.said++ >= 3)
      return;
    const std::string line =
        format("differs %llu rank %d of %d: %s\n", static_cast<unsigned long long>(wanted.seed),
               job.rank(), job.worldSize(), what.c_str());
    // One write, so that lines of several processes do not mix.
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0)
      std::abort();
  }

  const Program &program;
  const Case &wanted;
  Job &job;
  Verdict &verdict;
  Batches batches;
  std::unique_ptr<Device> device;
};

int runCase(const Program &program, const Case &wanted, Verdict &verdict) {
  try {
    const JobOptions options = target::jobOptions(program, program.communicator);
    target::requireDevices(options, worldSize(program));
    return runRanks(Mesh(program.axes, program.deviceOrder), options, [&](Job &job) {
      const RankPosition position{program.axes, job.mesh().coordinates(job.rank())};
      RankOfCase(programAt(program, position), wanted, job, verdict).run();
      return 0;
    });
  } catch (const Error &error) {
    return report(error);
  }
}

/// As `runCase`, in a separate process.
int runApart(const Program &program, const Case &wanted, Verdict &verdict) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kTimeLimit);
    // Programs of CUDA are emulated in one of all orders that their streams allow.
    const std::string emulator = wanted.seed % 3 == 0
                                     ? std::string("inline,guard")
                                     : "deferred,guard,seed=" + std::to_string(wanted.seed);
    setenv("FSDP_EMULATOR", emulator.c_str(), /*overwrite=*/0);
    const int status = runCase(program, wanted, verdict);
    std::fflush(nullptr);
    _exit(status);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

int main(int argc, char **argv) {
  std::uint64_t only = 0;
  bool bad = argc < 2 || argc > 3;
  if (argc == 3 && std::strncmp(argv[2], "--seed=", 7) == 0)
    only = std::strtoull(argv[2] + 7, nullptr, 10);
  else
    bad |= argc == 3;
  if (bad)
    return std::fprintf(stderr, "usage: %s CASES [--seed=N]\n", argv[0]), 2;
  CaseFile file(argv[1], /*writes=*/false);
  void *shared =
      mmap(nullptr, sizeof(Verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!file || shared == MAP_FAILED)
    return std::fprintf(stderr, "cannot read '%s'\n", argv[1]), 2;
  int count[3] = {};
  while (!file.atEnd()) {
    Case wanted;
    file.pass(wanted);
    if (!file)
      return std::fprintf(stderr, "'%s' ends in a case\n", argv[1]), 2;
    const auto program = Registered::all().find(wanted.seed);
    if (program == Registered::all().end() || (only && only != wanted.seed))
      continue;
    auto *verdict = new (shared) Verdict();
    const int status = runApart(*program->second, wanted, *verdict);
    if (status != 0) {
      std::printf("differs %llu: ended with status %d\n",
                  static_cast<unsigned long long>(wanted.seed), status);
      verdict->atLeast(Verdict::Differs);
    }
    ++count[verdict->level];
  }
  std::printf("cases %d: tight %d, loose %d, differ %d\n", count[0] + count[1] + count[2], count[0],
              count[1], count[2]);
  return count[Verdict::Differs] != 0 || count[0] + count[1] == 0;
}
