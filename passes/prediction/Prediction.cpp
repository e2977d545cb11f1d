//===- Prediction.cpp -----------------------------------------------------===//

#include "passes/prediction/Prediction.h"
#include "dialect/fsdp/AxisParts.h"
#include "passes/scheduled/PipelineParts.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// The segments of a step of this kind of role `index`, as often as they run.
static std::vector<int> findStep(const ScheduleProblem &schedule, int index,
                                 StepKind kind = StepKind::train) {
  const schedule::Role &role = schedule.problem.roles[index];
  const std::string trains = stringifyStepKind(kind).str();
  auto trainsIn = [&](int segment) {
    return role.segments[segment].kind == trains &&
           !SegmentOp(schedule.segments[index][segment]).getDrain();
  };
  std::vector<int> step;
  for (const schedule::ExecutionPlan &walk : role.walks) {
    if (!step.empty() || !trainsIn(walk.segments.front()))
      continue;
    for (auto [segment, times] : llvm::zip_equal(walk.segments, walk.times))
      step.insert(step.end(), static_cast<size_t>(times), segment);
  }
  for (int segment = 0; segment < static_cast<int>(role.segments.size()) && step.empty(); ++segment)
    if (role.walks.empty() && trainsIn(segment))
      step.push_back(segment);
  return step;
}

/// Three times the products of `step` (segments of role `index`) that `counts` selects.
static ModelWork countProducts(const ScheduleProblem &schedule, int index, ArrayRef<int> step,
                               llvm::function_ref<bool(const schedule::Launch &)> counts) {
  ModelWork work;
  for (int segment : step)
    for (const schedule::Launch &launch : schedule.problem.roles[index].segments[segment].launches)
      if (launch.cost.productFlops > 0 && counts(launch)) {
        const double flops = 3 * static_cast<double>(launch.cost.productFlops);
        work.flops += flops;
        work.ofType[launch.cost.productType.str()] += flops;
      }
  return work;
}

static ModelWork countModelWork(const ScheduleProblem &schedule, int index) {
  ModelWork train =
      countProducts(schedule, index, findStep(schedule, index), [](const schedule::Launch &launch) {
        return launch.direction == stringifyDirection(Direction::forward);
      });
  // All of an evaluation is forward. In a training step a product may be part of a launch of
  // backward, with the loops that read it.
  ModelWork evaluation =
      countProducts(schedule, index, findStep(schedule, index, StepKind::evaluate),
                    [](const schedule::Launch &) { return true; });
  return evaluation.flops > train.flops ? evaluation : train;
}

/// The part of the samples that ranks and microbatches compute that are the step's, not padding.
static double countRealSamples(const ScheduleProblem &schedule) {
  for (const auto &program : schedule.launches)
    for (const auto &segment : program)
      for (LaunchOp launch : segment)
        for (InputOp input : launch.getBody().getOps<InputOp>()) {
          if (!input.getGlobalBatch())
            continue;
          int64_t computed =
              cast<RankedTensorType>(input.getType()).getDimSize(input.getSampleDim()) *
              input.getMicrobatches().value_or(1);
          const MeshAttr mesh = getMesh(input);
          for (StringAttr axis : input.getOverAttr().getAsRange<StringAttr>())
            computed *= mesh.getAxisSize(axis);
          return static_cast<double>(*input.getGlobalBatch()) / static_cast<double>(computed);
        }
  return 1;
}

ModelWork mlir::fsdp::countModelWork(const ScheduleProblem &schedule) {
  // Every program has as many ranks as another.
  const int count = static_cast<int>(schedule.programs.size());
  const double share = countRealSamples(schedule) / count;
  ModelWork mean;
  for (int index = 0; index < count; ++index) {
    const ModelWork work = ::countModelWork(schedule, index);
    mean.flops += work.flops * share;
    for (const auto &[type, flops] : work.ofType)
      mean.ofType[type] += flops * share;
  }
  return mean;
}

double ModelWork::secondsAtPeak(const cost::Machine &machine) const {
  double seconds = 0;
  for (const auto &[type, ofThem] : ofType)
    seconds += ofThem / machine.peakOf(type);
  return seconds;
}

/// The axes of each communicator.
static std::vector<SmallVector<StringAttr>> findCommunicatorAxes(const ScheduleProblem &schedule) {
  std::vector<SmallVector<StringAttr>> axes(schedule.problem.communicators.size());
  for (auto [role, segments] : llvm::enumerate(schedule.problem.roles))
    for (auto [segment, launches] : llvm::enumerate(segments.segments))
      for (auto [number, launch] : llvm::enumerate(launches.launches))
        if (launch.collective)
          for (auto op : LaunchOp(schedule.launches[role][segment][number])
                             .getBody()
                             .getOps<CollectiveOpInterface>())
            axes[launch.collective->communicator] = op.getAxes();
  return axes;
}

/// The shape of the slowest group along `axes`.
static cost::GroupShape shapeOf(MeshAttr mesh, ArrayRef<StringAttr> axes,
                                const cost::Machine &machine) {
  std::optional<cost::GroupShape> shape;
  for (int64_t rank = 0, end = mesh.getNumRanks(); rank < end; ++rank) {
    if (mesh.getIndexIn(rank, axes) != 0)
      continue;
    cost::GroupShape group = cost::shapeOf(mesh.getGroup(rank, axes), machine);
    shape = shape ? cost::slowerOf(*shape, group) : group;
  }
  return *shape;
}

StepSimulation::StepSimulation(ModuleOp module, const cost::Machine &machine,
                               ScheduleProblem translated)
    : schedule(std::move(translated)), machine(machine) {
  MeshAttr mesh =
      getMesh(module.getBody()->empty() ? module.getOperation() : &module.getBody()->front());
  ranks = mesh.getNumRanks();
  axes = findCommunicatorAxes(schedule);
  std::vector<cost::GroupShape> shapes;
  std::vector<bool> isAlone;
  for (const SmallVector<StringAttr> &ofCommunicator : axes) {
    shapes.push_back(shapeOf(mesh, ofCommunicator, machine));
    isAlone.push_back(shapes.back().ranks() == 1);
  }
  times = cost::timeLaunches(schedule.problem, shapes, machine);
  for (int index = 0, end = static_cast<int>(schedule.programs.size()); index < end; ++index)
    steps.push_back(findStep(schedule, index));
  cost::Sharing sharing{machine.capacity(ranks), 1, machine.collectiveShare};
  simulation = cost::simulate({schedule.problem, steps, times.seconds, sharing, isAlone});
  if (!simulation.fault.empty())
    llvm::report_fatal_error("a verified schedule cannot be simulated: " +
                             llvm::Twine(simulation.fault));
}

/// Adds the samples of a step, or the tokens of it: samples of whole numbers are rows of tokens.
static void countItems(const ScheduleProblem &schedule, ArrayRef<int> step, Prediction &result) {
  int64_t batch = 0, tokens = 1;
  for (int segment : step)
    for (LaunchOp launch : schedule.launches.front()[segment])
      for (InputOp input : launch.getBody().getOps<InputOp>()) {
        auto type = cast<RankedTensorType>(input.getType());
        const int64_t rows = type.getDimSize(input.getSampleDim());
        const int64_t parts = input.getMicrobatches() ? *input.getMicrobatches() : 1;
        batch = input.getGlobalBatch() ? *input.getGlobalBatch() : rows * parts;
        if (isa<IntegerType>(type.getElementType()) && rows > 0)
          tokens = std::max(tokens, type.getNumElements() / rows);
      }
  result.items = static_cast<double>(batch * tokens);
  result.itemsAreTokens = tokens > 1;
}

std::vector<double> StepSimulation::findPipelineIdle() const {
  const PipelineParts parts(schedule);
  if (parts.getAxis().empty())
    return {};
  double begin = HUGE_VAL, end = 0;
  std::vector<double> busy(simulation.roles.size(), 0);
  for (int role = 0, count = static_cast<int>(busy.size()); role < count; ++role)
    for (const cost::LaunchRun &run : simulation.roles[role].runs)
      if (parts.of(role, run.segment, run.launch)) {
        begin = std::min(begin, run.start);
        end = std::max(end, run.end);
        busy[role] += run.end - run.start;
      }
  std::vector<double> idle;
  for (double time : busy)
    idle.push_back(1 - time / (end - begin));
  return idle;
}

int StepSimulation::getDearestRole() const {
  return static_cast<int>(
      llvm::max_element(simulation.roles,
                        [](const cost::RoleTime &one, const cost::RoleTime &other) {
                          return one.computing < other.computing;
                        }) -
      simulation.roles.begin());
}

Prediction StepSimulation::predict() const {
  Prediction result;
  result.machine = machine.name;
  result.kernels = machine.kernels;
  const int dearest = getDearestRole();
  const cost::RoleTime &time = simulation.roles[dearest];
  const schedule::Role &role = schedule.problem.roles[dearest];
  result.role = simulation.roles.size() > 1 ? role.name : "";
  result.step = simulation.step;
  countItems(schedule, steps.front(), result);
  result.computing = time.computing;
  result.communicating = time.communicating;
  result.exposed = time.exposed;
  const double both = time.computing + time.exposed;
  result.efficiency = both > 0 ? time.computing / both : 0;
  for (const cost::StreamTime &stream : time.streams)
    if (stream.busy > 0)
      result.streams.push_back(stream);
  for (const auto &[when, bytes] : time.alive)
    result.alive = std::max(result.alive, bytes);
  const ModelWork work = countModelWork(schedule);
  result.modelFlops = work.flops;
  for (const cost::LaunchRun &run : time.runs) {
    const schedule::Launch &launch = role.segments[run.segment].launches[run.launch];
    if (!launch.collective)
      continue;
    PredictedCollective call{launch.collective->kind,
                             {},
                             launch.collective->bytes,
                             1,
                             times.collectives[dearest][run.segment][run.launch]};
    MeshAttr mesh = getMesh(schedule.programs.front());
    for (const std::string &axis : spellAxes(mesh, axes[launch.collective->communicator]))
      call.axes.push_back(axis);
    auto same = llvm::find_if(result.collectives, [&](const PredictedCollective &other) {
      return other.kind == call.kind && other.axes == call.axes && other.bytes == call.bytes;
    });
    if (same == result.collectives.end())
      result.collectives.push_back(std::move(call));
    else
      ++same->count;
  }
  result.pipelineIdle = findPipelineIdle();
  result.mfu = result.step > 0 ? work.secondsAtPeak(machine) / result.step : 0;
  return result;
}
