//===- PipelineOrder.cpp - pipeline schedules as one rule with two numbers -===//

#include "passes/schedule/PipelineOrder.h"

#include "base/Numbers.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <map>
#include <numeric>
#include <optional>

using namespace mlir::fsdp::schedule;
using Kind = PipelineAction::Kind;

std::string mlir::fsdp::schedule::parsePipelineSchedule(std::string_view text,
                                                        PipelineSchedule &schedule) {
  using Schedule = PipelineSchedule::Kind;
  static const std::pair<std::string_view, Schedule> words[] = {
      {"gpipe", Schedule::gpipe},
      {"1f1b", Schedule::oneForwardOneBackward},
      {"zb", Schedule::zeroBubble}};
  for (const auto &[word, kind] : words)
    if (text == word) {
      schedule = {kind, 1};
      return "";
    }
  constexpr std::string_view prefix = "interleaved:";
  const base::IntegerRange<int64_t> range = {1, PipelineSchedule::kMaxChunks};
  int64_t chunks = 0;
  if (text.substr(0, prefix.size()) != prefix ||
      !base::parseInteger(text.substr(prefix.size()), range, chunks).empty())
    return base::mismatch(text, "gpipe, 1f1b, zb, or interleaved:V with V " + range.describe());
  schedule = {Schedule::interleaved, chunks};
  return "";
}

std::string PipelineAction::describe() const {
  const char *name = kind == Kind::forward    ? "forward"
                     : kind == Kind::backward ? "backward"
                                              : "weight gradient";
  return std::string(name) + " of microbatch " + std::to_string(microbatch) + " in stage " +
         std::to_string(stage);
}

namespace {

/// The parameters of a schedule on one rank: after `warmup` forwards, forwards and backwards
/// alternate.
struct AlternationRule {
  int64_t warmup = 0;
  /// A weight gradient is issued behind the backward that follows its backward by this number.
  /// None: weight gradients are part of backwards.
  std::optional<int64_t> weightGradientLag = std::nullopt;
};

/// 1f1b: the first backward reaches a rank when the `after` ranks behind it have run the first
/// microbatch both ways; with no more forwards than these, all ranks alternate without a gap.
///
/// interleaved: groups of `ranks` microbatches go through all ranks once for each chunk. Before the
/// first backward, which is of the last chunk, a rank runs a group in each other chunk; and between
/// its forward and its backward the first microbatch goes through the `after` ranks and back, so
/// that this many forwards more are ready.
///
/// zb: 1f1b leaves rank r memory for r microbatches more than it needs, if all ranks have that of
/// the first. Weight gradients that lag by r use it: the last rank gives the first cotangents
/// without gaps, and all ranks have weight gradients left when they wait for the last cotangents.
AlternationRule ruleOf(const PipelineSchedule &schedule, int64_t ranks, int64_t microbatches,
                       int64_t rank) {
  const int64_t after = ranks - 1 - rank;
  switch (schedule.kind) {
  case PipelineSchedule::Kind::gpipe:
    return {microbatches};
  case PipelineSchedule::Kind::oneForwardOneBackward:
    return {after};
  case PipelineSchedule::Kind::interleaved:
    return {2 * after + (schedule.chunks - 1) * ranks};
  case PipelineSchedule::Kind::zeroBubble:
    return {after, rank};
  }
  return {};
}

bool hasWeightGradients(const RankOrder &order) {
  return std::any_of(order.begin(), order.end(), [](const PipelineAction &action) {
    return action.kind == Kind::weightGradient;
  });
}

/// The actions of other ranks whose results `action` uses, and those of its own rank that an order
/// must have before it.
std::vector<PipelineAction> operandsOf(const PipelineAction &action, int64_t stages) {
  const auto [kind, stage, microbatch] = std::tie(action.kind, action.stage, action.microbatch);
  std::vector<PipelineAction> operands;
  if (kind == Kind::forward && stage > 0)
    operands.push_back({Kind::forward, stage - 1, microbatch});
  if (kind == Kind::backward)
    operands.push_back({Kind::forward, stage, microbatch});
  if (kind == Kind::backward && stage + 1 < stages)
    operands.push_back({Kind::backward, stage + 1, microbatch});
  if (kind == Kind::weightGradient)
    operands.push_back({Kind::backward, stage, microbatch});
  return operands;
}

} // namespace

std::vector<RankOrder> mlir::fsdp::schedule::orderPipeline(const PipelineSchedule &schedule,
                                                           int64_t ranks, int64_t microbatches) {
  const int64_t chunks = schedule.chunks, count = microbatches * chunks;
  assert((schedule.kind == PipelineSchedule::Kind::interleaved ? microbatches % ranks == 0
                                                               : chunks == 1) &&
         "checked by the caller");
  std::vector<RankOrder> orders(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const AlternationRule rule = ruleOf(schedule, ranks, microbatches, rank);
    // Groups of `ranks` microbatches go through all chunks, forward or backward.
    auto issue = [&](Kind kind, int64_t index) {
      const int64_t turn = index / ranks % chunks;
      const int64_t chunk = kind == Kind::forward ? turn : chunks - 1 - turn;
      const int64_t microbatch = index / (ranks * chunks) * ranks + index % ranks;
      orders[rank].push_back({kind, chunk * ranks + rank, microbatch});
    };
    int64_t forward = 0, weightGradient = 0;
    for (int64_t backward = 0; backward < count; ++backward) {
      while (forward < std::min(count, backward + rule.warmup + 1))
        issue(Kind::forward, forward++);
      issue(Kind::backward, backward);
      if (rule.weightGradientLag && backward >= *rule.weightGradientLag)
        issue(Kind::weightGradient, weightGradient++);
    }
    while (rule.weightGradientLag && weightGradient < count)
      issue(Kind::weightGradient, weightGradient++);
  }
  return orders;
}

PipelineTimes mlir::fsdp::schedule::timePipeline(const std::vector<RankOrder> &orders,
                                                 const PipelineDurations &durations,
                                                 const std::set<int64_t> &frozen) {
  int64_t stages = 0;
  bool isSplit = false;
  for (const RankOrder &order : orders) {
    isSplit |= hasWeightGradients(order);
    for (const PipelineAction &action : order)
      stages = std::max(stages, action.stage + 1);
  }
  auto durationOf = [&](const PipelineAction &action) {
    switch (action.kind) {
    case Kind::forward:
      return durations.forward;
    case Kind::backward:
      return durations.backward +
             (isSplit || frozen.count(action.stage) ? 0 : durations.weightGradient);
    case Kind::weightGradient:
      return durations.weightGradient;
    }
    return int64_t(0);
  };

  PipelineTimes times;
  times.runs.resize(orders.size());
  std::map<PipelineAction, int64_t> ends; // of the actions that have run
  auto isPending = [&](const PipelineAction &operand) { return ends.count(operand) == 0; };
  // Ranks that may have an action that can run: all, and later the neighbours of one that has run
  // some, on which their stages are.
  std::deque<size_t> left(orders.size());
  std::iota(left.begin(), left.end(), 0);
  for (; !left.empty(); left.pop_front()) {
    const size_t rank = left.front();
    std::vector<PipelineTimes::Run> &runs = times.runs[rank];
    const size_t before = runs.size();
    while (runs.size() < orders[rank].size()) {
      const PipelineAction &action = orders[rank][runs.size()];
      const std::vector<PipelineAction> operands = operandsOf(action, stages);
      if (std::any_of(operands.begin(), operands.end(), isPending))
        break;
      int64_t start = runs.empty() ? 0 : runs.back().end;
      for (const PipelineAction &operand : operands)
        start = std::max(start, ends[operand]);
      runs.push_back({start, start + durationOf(action)});
      ends[action] = runs.back().end;
      times.makespan = std::max(times.makespan, runs.back().end);
    }
    if (runs.size() > before) {
      left.push_back((rank + 1) % orders.size());
      left.push_back((rank + orders.size() - 1) % orders.size());
    }
  }

  std::string fault;
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    int64_t idle = times.makespan;
    for (const PipelineTimes::Run &run : times.runs[rank])
      idle -= run.end - run.start;
    times.idle.push_back(idle);
    if (times.runs[rank].size() == orders[rank].size())
      continue;
    const PipelineAction &action = orders[rank][times.runs[rank].size()];
    const std::vector<PipelineAction> operands = operandsOf(action, stages);
    const auto pending = std::find_if(operands.begin(), operands.end(), isPending);
    fault += (fault.empty() ? "" : "; ") + ("rank " + std::to_string(rank)) + " cannot run " +
             action.describe() + " before " + pending->describe();
  }
  if (!fault.empty()) {
    times = {};
    times.fault = fault;
  }
  return times;
}
