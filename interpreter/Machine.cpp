//===- Machine.cpp - choose a machine, initialize it ----------------------===//

#include "interpreter/Machine.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

FailureOr<std::unique_ptr<Machine>> Machine::create(ModuleOp module,
                                                    const MachineOptions &options) {
  Phase phase = getPhase(module);
  // Text written by hand may leave the phase out; its ops tell it.
  if (!module->hasAttr(FSDPDialect::phaseAttrName) && !module.getOps<ProgramOp>().empty()) {
    bool launches = module.walk([](LaunchOp) { return WalkResult::interrupt(); }).wasInterrupted();
    phase = launches ? Phase::scheduled : Phase::local;
  }
  switch (phase) {
  case Phase::global:
    return detail::createGlobalMachine(module, options);
  case Phase::local:
    return detail::createLocalMachine(module, options);
  case Phase::scheduled:
    return detail::createScheduledMachine(module, options);
  }
  llvm_unreachable("unknown phase");
}

void Machine::addState(StringRef name) {
  if (!llvm::is_contained(states, name))
    states.push_back(name.str());
}

LogicalResult Machine::initialize() {
  for (ParamOp param : module.getOps<ParamOp>()) {
    if (failed(set(param.getSymName(), "parameter", initialValue(param, options.seed))))
      return failure();
    for (const std::string &state : states)
      if (failed(set(param.getSymName(), state, Tensor(param.getTensorType()))))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Initial values
//===----------------------------------------------------------------------===//

// Counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), drawn exactly as the runtime of generated programs draws
// them, of which this is a copy: neither may include the other.
namespace {

class Draws {
public:
  Draws(uint64_t seed, StringRef name)
      : key(mix(seed + 0x9E3779B97F4A7C15u * (mix(hashName(name)) | 1))) {}

  float uniform(uint64_t index) const {
    return static_cast<float>(words(index / 4)[index % 4] >> 8) * 0x1p-24f;
  }

  float normal(uint64_t index) const {
    const auto block = words(index / 4);
    const int pair = index % 4 & 2;
    const double radius = std::sqrt(-2.0 * std::log((block[pair] + 1.0) * 0x1p-32));
    const double angle = 6.283185307179586476925 * (block[pair + 1] * 0x1p-32);
    return static_cast<float>(radius * (index & 1 ? std::sin(angle) : std::cos(angle)));
  }

private:
  std::array<uint32_t, 4> words(uint64_t group) const {
    std::array<uint32_t, 4> counter = {uint32_t(group), uint32_t(group >> 32), 0, 0};
    std::array<uint32_t, 2> round = {uint32_t(key), uint32_t(key >> 32)};
    for (int i = 0; i < 10; ++i) {
      const uint64_t p0 = uint64_t(0xD2511F53u) * counter[0];
      const uint64_t p1 = uint64_t(0xCD9E8D57u) * counter[2];
      counter = {uint32_t(p1 >> 32) ^ counter[1] ^ round[0], uint32_t(p1),
                 uint32_t(p0 >> 32) ^ counter[3] ^ round[1], uint32_t(p0)};
      round = {round[0] + 0x9E3779B9u, round[1] + 0xBB67AE85u};
    }
    return counter;
  }

  static uint64_t hashName(StringRef name) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (char c : name)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
  }

  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  uint64_t key;
};

} // namespace

Tensor interpreter::initialValue(ParamOp param, uint64_t seed) {
  InitAttr init = param.getInit();
  double value = init.getValue().getValueAsDouble();
  Tensor result(param.getTensorType());
  Element *to = result.mutableData();
  Draws draws(seed, param.getSymName());
  for (int64_t i = 0; i < result.size(); ++i) {
    double drawn = value;
    if (init.getKind() == InitKind::normal)
      drawn = value * draws.normal(i);
    else if (init.getKind() == InitKind::uniform)
      drawn = -value + 2 * value * draws.uniform(i);
    to[i].f = static_cast<float>(drawn);
  }
  return result;
}
