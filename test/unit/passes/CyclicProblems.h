//===- CyclicProblems.h - hand-written schedules that never end -*- C++ -*-===//
//
// Right ones. Tests and the mutator break them.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_PASSES_CYCLICPROBLEMS_H
#define TEST_UNIT_PASSES_CYCLICPROBLEMS_H

#include "passes/schedule/Problem.h"

#include <stdexcept>

namespace mlir::fsdp::schedule {

/// The launch of that name; there must be one.
inline Launch &launchOf(Problem &problem, const std::string &segment, const std::string &launch,
                        int role = 0) {
  for (Segment &candidate : problem.roles[role].segments)
    for (Launch &found : candidate.launches)
      if (candidate.name == segment && found.name == launch)
        return found;
  throw std::logic_error("no launch " + launch);
}

inline Segment &segmentOf(Problem &problem, const std::string &segment, int role = 0) {
  for (Segment &candidate : problem.roles[role].segments)
    if (candidate.name == segment)
      return candidate;
  throw std::logic_error("no segment " + segment);
}

inline Buffer &bufferOf(Problem &problem, const std::string &name, int role = 0) {
  for (Buffer &candidate : problem.roles[role].buffers)
    if (candidate.name == name)
      return candidate;
  throw std::logic_error("no buffer " + name);
}

/// Gradient accumulation: first -> middle* -> last -> first, none of them joined; last updates.
/// Evaluation, which is joined, may follow last. Memory is planned: the segments take the same
/// bytes.
inline Problem makeAccumulation() {
  enum { compute, gather, reduce };
  enum { updated, used, reduced };
  enum { weights, sum, state };
  enum { first, middle, last, evaluate };
  Role role{"all", {"compute", "gather", "reduce"}, {}, {}, 512, {"updated", "used", "reduced"}};
  role.buffers = {{"weights", 64, -1, 0}, {"sum", 64, -1, 64, {}, false}, {"state", 64, -1, 128}};
  const char *names[] = {"first", "middle", "last", "evaluate"};
  for (int s = first; s <= evaluate; ++s) {
    int whole = static_cast<int>(role.buffers.size()), gradient = whole + 1, part = whole + 2;
    role.buffers.push_back({std::string("whole of ") + names[s], 128, s, 192});
    role.buffers.push_back({std::string("gradient of ") + names[s], 128, s, 320});
    role.buffers.push_back({std::string("part of ") + names[s], 64, s, 448});
    Segment segment{names[s], {}, {}, s == evaluate, s == evaluate ? "evaluate" : "train"};
    Launch unit{"gather",
                gather,
                {},
                {{weights, 0, 64}},
                {{whole, 0, 128}},
                {},
                Collective{0, "all_gather", 128}};
    unit.awaits = {updated, used};
    Launch use{
        "use", compute, {0},           {{whole, 0, 128}, {state, 0, 64}}, {{gradient, 0, 128}},
        {},    {},      StepUse::reads};
    use.awaits = {reduced};
    use.records = {used};
    segment.launches = {unit, use};
    if (s != evaluate) {
      Launch scatter{"reduce",
                     reduce,
                     {1},
                     {{gradient, 0, 128}},
                     {{part, 0, 64}},
                     {},
                     Collective{1, "reduce_scatter", 128}};
      scatter.records = {reduced};
      Launch add{"add", reduce, {}, {{part, 0, 64}}, {{sum, 0, 64}}, {}, {}};
      if (s == first)
        add.awaits = {updated};
      else {
        add.reads.push_back({sum, 0, 64});
        add.inPlace = {{1, 0}};
      }
      segment.launches.push_back(scatter);
      segment.launches.push_back(add);
    }
    if (s == last) {
      Launch update{
          "update",           compute,  {3}, {{sum, 0, 64}, {weights, 0, 64}, {state, 0, 64}},
          {{weights, 0, 64}}, {{1, 0}}, {},  StepUse::reads};
      update.records = {updated};
      update.updates = {"s"};
      Launch advance{"advance",        compute,  {}, {{state, 0, 64}},
                     {{state, 0, 64}}, {{0, 0}}, {}, StepUse::advances};
      segment.launches.push_back(update);
      segment.launches.push_back(advance);
    }
    role.segments.push_back(segment);
  }
  role.segments[first].next = {middle, last};
  role.segments[middle].next = {middle, last};
  role.segments[last].next = {first, evaluate};
  role.segments[evaluate].next = {first, evaluate};
  role.walks = {{"train", {first, middle, last}, {1, 2, 1}}, {"evaluate", {evaluate}, {1}}};
  return {{{"gather over [fsdp]", {0}}, {"reduce over [fsdp]", {0}}}, {role}};
}

/// An update that is deferred to the next step, before the gather; drained before an evaluation.
inline Problem makeDeferredUpdate() {
  enum { compute, gather, reduce };
  enum { reduced };
  enum { weights, kept, ok, state, whole, gradient, evaluated };
  enum { step, drain, evaluate };
  Role role{"all", {"compute", "gather", "reduce"}, {}, {}, -1, {"reduced"}};
  role.buffers = {{"weights", 64},
                  {"kept", 64},
                  {"ok", 1},
                  {"state", 64},
                  {"whole", 128, step},
                  {"gradient", 128, step},
                  {"evaluated", 128, evaluate}};
  Launch update{"update",           compute,  {}, {{kept, 0, 64}, {ok, 0, 1}, {weights, 0, 64}},
                {{weights, 0, 64}}, {{2, 0}}, {}};
  update.updates = {"s"};
  update.condition = 1;
  update.deferred = true;
  update.awaits = {reduced};
  Launch unit{"gather",
              gather,
              {0},
              {{weights, 0, 64}},
              {{whole, 0, 128}},
              {},
              Collective{0, "all_gather", 128}};
  Launch use{"use", compute, {1},           {{whole, 0, 128}, {state, 0, 64}}, {{gradient, 0, 128}},
             {},    {},      StepUse::reads};
  Launch scatter{"reduce",
                 reduce,
                 {2},
                 {{gradient, 0, 128}},
                 {{kept, 0, 64}},
                 {},
                 Collective{1, "reduce_scatter", 128}};
  scatter.records = {reduced};
  Launch check{"check", compute, {3}, {{kept, 0, 64}}, {{ok, 0, 1}}, {}, {}};
  Launch advance{"advance",        compute,  {}, {{state, 0, 64}, {ok, 0, 1}},
                 {{state, 0, 64}}, {{0, 0}}, {}, StepUse::advances};
  role.segments.push_back(
      {"step", {update, unit, use, scatter, check, advance}, {step, drain}, false, "train"});
  Launch off{"off", compute, {}, {}, {{ok, 0, 1}}, {}, {}};
  off.clears = {0};
  role.segments.push_back({"drain", {update, off}, {evaluate}, true, "evaluate"});
  unit.writes = {{evaluated, 0, 128}};
  unit.waits.clear();
  role.segments.push_back({"evaluate", {unit}, {step, evaluate}, true, "evaluate"});
  role.walks = {{"train", {step}, {1}}, {"evaluate", {evaluate}, {1}}};
  return {{{"gather over [fsdp]", {0}}, {"reduce over [fsdp]", {0}}}, {role}};
}

/// Two roles as the stages of a pipeline: the second issues the collectives of the first one
/// segment later, and sends a value back.
inline Problem makePipeline() {
  enum { compute, link, back };
  enum { fill, steady, drain };
  Problem problem{{{"forward", {0, 1}}, {"back", {0, 1}}}, {}};
  Collective there{0, "permute", 64, "", "f32", "16", "16"},
      home{1, "permute", 32, "", "f32", "8", "8"};
  for (int number : {0, 1}) {
    Role role{number == 0 ? "first" : "second",
              {"compute", "link", "back"},
              {},
              {},
              -1,
              {"sent", "returned"}};
    role.buffers = {{"weights", 64}, {"seen", 32}};
    const char *names[] = {"fill", "steady", "drain"};
    for (int s = fill; s <= drain; ++s) {
      Segment segment{names[s], {}, {}, s == drain, "train"};
      int x = static_cast<int>(role.buffers.size()), y = x + 1;
      role.buffers.push_back({std::string("x of ") + names[s], 64, s});
      role.buffers.push_back({std::string("y of ") + names[s], 32, s});
      Launch send{"forward", link, {}, {}, {}, {}, there}, receive = send;
      Launch give{"back", back, {}, {}, {}, {}, home}, take = give;
      if (number == 0 && s != drain) {
        Launch make{"make", compute, {}, {{0, 0, 64}}, {{x, 0, 64}}, {}, {}};
        make.awaits = {0};
        send.waits = {0};
        send.reads = {{x, 0, 64}};
        send.records = {0};
        segment.launches = {make, send};
      }
      if (number == 0 && s != fill) {
        take.writes = {{1, 0, 32}};
        segment.launches.push_back(take);
      }
      if (number == 1 && s != fill) {
        receive.writes = {{x, 0, 64}};
        Launch use{"use", compute, {0}, {{x, 0, 64}}, {{y, 0, 32}}, {}, {}};
        receive.awaits = {0};
        use.awaits = {1};
        use.records = {0};
        give.waits = {1};
        give.reads = {{y, 0, 32}};
        give.records = {1};
        segment.launches = {receive, use, give};
      }
      role.segments.push_back(segment);
    }
    role.segments[fill].next = {steady};
    role.segments[steady].next = {steady, drain};
    role.segments[drain].next = {fill};
    role.walks = {{"train", {fill, steady, drain}, {1, 3, 1}}};
    problem.roles.push_back(role);
  }
  return problem;
}

} // namespace mlir::fsdp::schedule

#endif // TEST_UNIT_PASSES_CYCLICPROBLEMS_H
