//===- PageData.cpp -------------------------------------------------------===//

#include "passes/explain/PageData.h"
#include "dialect/fsdp/AxisParts.h"
#include "passes/scheduled/MemoryReport.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

/// Limits of a page: separate launches, buffers with lifetimes, points of the curve.
static constexpr size_t kMaxLaunches = 20000, kMaxLives = 20000, kMaxPoints = 2000;

static int64_t nanoseconds(double seconds) {
  return static_cast<int64_t>(std::llround(seconds * 1e9));
}

namespace {

/// Texts by number.
class Names {
public:
  int64_t operator()(StringRef text) {
    auto [at, isNew] = known.try_emplace(text, static_cast<int64_t>(all.size()));
    if (isNew)
      all.push_back(llvm::json::fixUTF8(text));
    return at->second;
  }
  llvm::json::Array take() { return std::move(all); }

private:
  llvm::StringMap<int64_t> known;
  llvm::json::Array all;
};

/// A launch of the step, or several.
struct Bar {
  const schedule::Launch *first;
  const cost::LaunchRun *run;
  double end;
  int64_t count = 0, bytes = 0, flops = 0;
  double alone = 0;
};

class StepData {
public:
  explicit StepData(const StepSimulation &simulation)
      : schedule(simulation.getSchedule()), index(simulation.getDearestRole()),
        role(schedule.problem.roles[index]), time(simulation.getSimulation().roles[index]),
        seconds(simulation.getTimes().seconds[index]), step(simulation.getSimulation().step) {
    end = step;
    for (const cost::LaunchRun &run : time.runs)
      end = std::max(end, run.end);
  }

  llvm::json::Object describe() {
    llvm::json::Object data{{"step", nanoseconds(step)}, {"end", nanoseconds(end)}};
    llvm::json::Array kinds;
    for (int kind = 0; kind < kBufferKinds; ++kind)
      kinds.push_back(stringifyBufferKind(static_cast<BufferKind>(kind)));
    kinds.push_back("alignment");
    data["kinds"] = std::move(kinds);
    if (schedule.problem.roles.size() > 1)
      data["role"] = role.name;
    data["streams"] = llvm::json::Array(role.streams);
    addBars(data);
    data["exposed"] = findExposed();
    addMemory(data);
    data["names"] = names.take();
    return data;
  }

private:
  const schedule::Launch &launchOf(const cost::LaunchRun &run) const {
    return role.segments[run.segment].launches[run.launch];
  }

  void addBars(llvm::json::Object &data) {
    std::vector<Bar> bars;
    std::vector<int64_t> barOf(time.runs.size());
    std::vector<int64_t> latest(role.streams.size(), -1);
    const bool joins = time.runs.size() > kMaxLaunches;
    auto continues = [&](const Bar &bar, const cost::LaunchRun &run) {
      const schedule::Launch &launch = launchOf(run);
      return bar.run->run == run.run && bar.first->unit == launch.unit &&
             bar.first->direction == launch.direction &&
             (bar.first->collective ? bar.first->collective->kind : "") ==
                 (launch.collective ? launch.collective->kind : "");
    };
    for (auto [i, run] : llvm::enumerate(time.runs)) {
      const schedule::Launch &launch = launchOf(run);
      int64_t &last = latest[launch.stream];
      if (!joins || last < 0 || !continues(bars[last], run)) {
        last = static_cast<int64_t>(bars.size());
        bars.push_back({&launch, &run, run.end});
      }
      Bar &bar = bars[last];
      bar.end = run.end;
      ++bar.count;
      bar.bytes += launch.cost.bytesRead + launch.cost.bytesWritten;
      bar.flops += launch.cost.flops;
      bar.alone += seconds[run.segment][run.launch];
      barOf[i] = last;
    }
    llvm::json::Array rows;
    for (const Bar &bar : bars) {
      const int64_t start = nanoseconds(bar.run->start);
      const StringRef kind = bar.first->kind;
      rows.push_back(llvm::json::Array{
          names(bar.first->name), bar.first->stream, start, nanoseconds(bar.end) - start,
          names(bar.first->unit), names(bar.first->direction),
          names(kind.contains('.') ? kind.split('.').second : kind), bar.count, bar.bytes,
          bar.flops, nanoseconds(bar.alone), bar.first->collective ? 1 : 0});
    }
    data["bars"] = std::move(rows);
    data["edges"] = findEdges(bars, barOf);
  }

  llvm::json::Array findEdges(ArrayRef<Bar> bars, ArrayRef<int64_t> barOf) const {
    std::set<std::pair<int64_t, int64_t>> edges;
    auto add = [&](size_t from, size_t to) {
      const int64_t one = barOf[from], other = barOf[to];
      if (bars[one].first->stream != bars[other].first->stream)
        edges.insert({one, other});
    };
    std::map<std::tuple<int, int, int>, size_t> runOf; // by run, segment and launch
    std::map<int, size_t> recorded;                    // by event
    for (auto [i, run] : llvm::enumerate(time.runs)) {
      const schedule::Launch &launch = launchOf(run);
      runOf[{run.run, run.segment, run.launch}] = i;
      for (int wait : launch.waits)
        if (auto at = runOf.find({run.run, run.segment, wait}); at != runOf.end())
          add(at->second, i);
      for (int event : launch.awaits)
        if (auto at = recorded.find(event); at != recorded.end())
          add(at->second, i);
      for (int event : launch.records)
        recorded[event] = i;
    }
    llvm::json::Array rows;
    for (const auto &[from, to] : edges)
      rows.push_back(llvm::json::Array{from, to});
    return rows;
  }

  /// Launches that run beyond the step overlap with the next step, so launches of the previous step
  /// appear at the beginning of this one.
  llvm::json::Array findExposed() const {
    std::vector<std::tuple<double, bool, int>> changes;
    for (const cost::LaunchRun &run : time.runs)
      for (double before = 0; step > 0 && before < run.end; before += step) {
        const double from = std::max(run.start - before, 0.0);
        const double to = std::min(run.end - before, step);
        if (from >= to)
          continue;
        const bool isCollective = launchOf(run).collective.has_value();
        changes.push_back({from, isCollective, 1});
        changes.push_back({to, isCollective, -1});
      }
    llvm::sort(changes);
    llvm::json::Array rows;
    int running[2] = {0, 0}; // kernels, collectives
    double since = -1;
    for (size_t i = 0; i < changes.size();) {
      const double at = std::get<0>(changes[i]);
      for (; i < changes.size() && std::get<0>(changes[i]) == at; ++i)
        running[std::get<1>(changes[i])] += std::get<2>(changes[i]);
      const bool isExposed = running[1] > 0 && running[0] == 0;
      if (since >= 0 && !isExposed) {
        if (nanoseconds(at) > nanoseconds(since))
          rows.push_back(llvm::json::Array{nanoseconds(since), nanoseconds(at)});
        since = -1;
      } else if (since < 0 && isExposed) {
        since = at;
      }
    }
    return rows;
  }

  void addMemory(llvm::json::Object &data) {
    const std::vector<BufferKind> kinds = classifyBuffers(schedule, index);
    const std::vector<StringAttr> units = findBufferUnits(schedule, index);
    std::vector<cost::BufferLife> lives = time.lives;
    int64_t alignment = 0;
    for (auto [index, buffer] : llvm::enumerate(role.buffers))
      if (buffer.isPersistent()) {
        lives.push_back({static_cast<int>(index), 0, end});
        alignment +=
            static_cast<int64_t>(llvm::alignTo(buffer.size, schedule::kAlignment)) - buffer.size;
      }
    data["curve"] = sumUp(lives, kinds, alignment);
    llvm::stable_sort(lives, [&](const cost::BufferLife &one, const cost::BufferLife &other) {
      return role.buffers[one.buffer].size > role.buffers[other.buffer].size;
    });
    data["lives_left_out"] = static_cast<int64_t>(lives.size() - std::min(lives.size(), kMaxLives));
    lives.resize(std::min(lives.size(), kMaxLives));
    llvm::MapVector<int, int64_t> numbers;
    llvm::json::Array buffers, rows;
    for (const cost::BufferLife &life : lives) {
      auto [at, isNew] = numbers.insert({life.buffer, static_cast<int64_t>(numbers.size())});
      if (isNew) {
        const schedule::Buffer &buffer = role.buffers[life.buffer];
        StringAttr unit = units[life.buffer];
        buffers.push_back(llvm::json::Array{names(buffer.name), names(unit ? unit.strref() : ""),
                                            static_cast<int>(kinds[life.buffer]), buffer.size});
      }
      const bool lasts = role.buffers[life.buffer].isPersistent(); // at the very end, too
      rows.push_back(llvm::json::Array{at->second, nanoseconds(life.from),
                                       nanoseconds(life.to) + (lasts ? 1 : 0)});
    }
    data["buffers"] = std::move(buffers);
    data["lives"] = std::move(rows);
  }

  /// The bytes of each kind over time. If there are more changes than points, the maximum of each
  /// interval.
  llvm::json::Array sumUp(ArrayRef<cost::BufferLife> lives, ArrayRef<BufferKind> kinds,
                          int64_t alignment) const {
    std::map<double, std::map<int, int64_t>> changes;
    for (const cost::BufferLife &life : lives) {
      const int kind = static_cast<int>(kinds[life.buffer]);
      changes[life.from][kind] += role.buffers[life.buffer].size;
      if (life.to < end || !role.buffers[life.buffer].isPersistent())
        changes[life.to][kind] -= role.buffers[life.buffer].size;
    }
    std::vector<int64_t> state(kBufferKinds + 1); // bytes of each kind
    state[kBufferKinds] = alignment;
    int64_t total = alignment;
    auto apply = [&](const std::map<int, int64_t> &change) {
      for (const auto &[kind, more] : change) {
        state[kind] += more;
        total += more;
      }
    };
    struct Point {
      double at;
      int64_t total;
      std::vector<int64_t> bytes;
    };
    std::vector<Point> points;
    if (changes.size() <= kMaxPoints) {
      for (const auto &[at, change] : changes) {
        apply(change);
        points.push_back({at, total, state});
      }
    } else {
      const double width = end / kMaxPoints;
      double part = 0;
      Point most{0, total, state};
      for (const auto &[at, change] : changes) {
        if (const double now = std::floor(at / width); now != part) {
          points.push_back(std::move(most));
          if (now > part + 1)
            points.push_back({(part + 1) * width, total, state});
          part = now;
          most = {part * width, total, state};
        }
        apply(change);
        if (total > most.total)
          most = {part * width, total, state};
      }
      points.push_back(std::move(most));
    }
    llvm::json::Array rows;
    for (const Point &point : points) {
      llvm::json::Array row{nanoseconds(point.at)};
      for (int64_t bytes : point.bytes)
        row.push_back(bytes);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  const ScheduleProblem &schedule;
  const int index; ///< of the role that is shown
  const schedule::Role &role;
  const cost::RoleTime &time;
  const std::vector<std::vector<double>> &seconds; ///< of a launch alone: [segment][launch]
  double step, end;
  Names names;
};

} // namespace

llvm::json::Object mlir::fsdp::describeStep(const StepSimulation &simulation) {
  return StepData(simulation).describe();
}

llvm::json::Array mlir::fsdp::describeStorages(ModuleOp module) {
  SymbolTable symbols(module);
  MeshAttr mesh = getMesh(&module.getBody()->front());
  llvm::json::Array groups;
  std::map<std::string, size_t> known; // by equal properties
  for (auto storage : module.getOps<StorageOp>()) {
    llvm::json::Array members, axes, states;
    std::string alike, unit;
    llvm::raw_string_ostream key(alike);
    key << storage.getKind() << storage.getDim() << storage.getAxes() << storage.getStates()
        << storage.getShard();
    for (auto member : storage.getMembers().getAsRange<MemberAttr>()) {
      auto param = symbols.lookup<ParamOp>(member.getParam().getAttr());
      std::string type;
      llvm::raw_string_ostream(type) << param.getTensorType();
      key << " " << member.getOffset() << type;
      unit = param.getUnit().str();
      members.push_back(llvm::json::Array{llvm::json::fixUTF8(member.getParam().getValue()),
                                          member.getOffset(), type,
                                          param.getTensorType().getNumElements()});
    }
    SmallVector<StringAttr> over(storage.getAxes().getAsRange<StringAttr>());
    for (const std::string &axis : spellAxes(mesh, over))
      axes.push_back(axis);
    for (auto state : storage.getStates().getAsRange<StringAttr>())
      states.push_back(state.getValue());
    auto [at, isNew] = known.try_emplace(alike, groups.size());
    if (isNew) {
      std::string shard;
      llvm::raw_string_ostream(shard) << storage.getShardType();
      groups.push_back(llvm::json::Object{
          {"kind", stringifyStorageKind(storage.getKind())},
          {"dim", storage.getDim()},
          {"axes", std::move(axes)},
          {"parts", mesh.getSize(over)},
          {"states", std::move(states)},
          {"shard", shard},
          {"shard_elements", storage.getShardType().getNumElements()},
          {"shard_bytes",
           BufferType::get(module.getContext(), storage.getShardType()).getSizeInBytes()},
          {"members", std::move(members)},
          {"units", llvm::json::Array{}}});
    }
    groups[at->second].getAsObject()->getArray("units")->push_back(llvm::json::fixUTF8(unit));
  }
  return groups;
}
