//===- Machine.cpp - choose a machine, initialize it ----------------------===//

#include "interpreter/Machine.h"

#include "interpreter/Draws.h"
#include "llvm/Support/MathExtras.h"
#include <unistd.h>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

/// Groups of ranks are kept for each rank and collective: more would be slow beyond use.
static constexpr int64_t kMaxRanks = 1024;

/// Fails if one tensor or one arena, times the number of ranks, is larger than the memory of this
/// machine.
static LogicalResult checkSize(ModuleOp module, Phase phase) {
  int64_t ranks = phase == Phase::global ? 1 : getMesh(module).getNumRanks();
  if (ranks > kMaxRanks)
    return module.emitError() << "has a mesh of " << ranks << " ranks, expected at most "
                              << kMaxRanks << " to simulate";
  int64_t needed = 0;
  auto need = [&](Type type, int64_t bytesOfOne) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return;
    // A dimension of size 0 saves memory, but not the time that loops over the others take.
    SmallVector<int64_t> shape = llvm::map_to_vector(
        tensor.getShape(), [](int64_t size) { return std::max<int64_t>(size, 1); });
    std::optional<int64_t> elements = nn::countElements(shape);
    uint64_t bytes =
        llvm::SaturatingMultiply<uint64_t>(elements.value_or(INT64_MAX), bytesOfOne * ranks);
    needed = std::max<int64_t>(needed, std::min<uint64_t>(bytes, INT64_MAX));
  };
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      need(type, sizeof(Element));
    if (auto param = dyn_cast<ParamOp>(op))
      need(param.getType(), sizeof(Element));
    if (auto storage = dyn_cast<StorageOp>(op))
      need(storage.getShard(), sizeof(Element));
    // An element for each byte, its size and its owner; see Arena.
    if (auto buffer = dyn_cast<BufferOp>(op)) {
      auto bytes = RankedTensorType::get({static_cast<int64_t>(buffer.getOffset().value_or(0)) +
                                          buffer.getType().getSizeInBytes()},
                                         IntegerType::get(op->getContext(), 8));
      need(bytes, sizeof(Element) + 9);
    }
  });
  int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (needed > memory)
    return module.emitError() << "cannot be simulated: it needs at least " << needed
                              << " bytes, and this machine has " << memory;
  return success();
}

FailureOr<std::unique_ptr<Machine>> Machine::create(ModuleOp module,
                                                    const MachineOptions &options) {
  Phase phase = getPhase(module);
  // Hand-written text may omit the phase; its ops determine it.
  if (!module->hasAttr(FSDPDialect::phaseAttrName) && !module.getOps<ProgramOp>().empty()) {
    bool launches = module.walk([](LaunchOp) { return WalkResult::interrupt(); }).wasInterrupted();
    phase = launches ? Phase::scheduled : Phase::local;
  }
  if (failed(verifyPhase(module, phase)) || failed(checkSize(module, phase)))
    return failure();
  std::unique_ptr<Machine> machine =
      phase == Phase::global  ? detail::makeGlobalMachine(module, options)
      : phase == Phase::local ? detail::makeLocalMachine(module, options)
                              : detail::makeScheduledMachine(module, options);
  if (failed(machine->compile()) || failed(machine->restart(options.seed)))
    return failure();
  return machine;
}

FailureOr<std::vector<Outputs>> Machine::runAhead(ArrayRef<StringRef> walks, const DataSet &data) {
  std::vector<Outputs> all;
  for (StringRef walk : walks) {
    FailureOr<Outputs> outputs = run(walk, data);
    if (failed(outputs))
      return failure();
    all.push_back(std::move(*outputs));
  }
  return all;
}

void Machine::addState(StringRef name) {
  if (!llvm::is_contained(states, name))
    states.push_back(name.str());
}

LogicalResult Machine::restart(uint64_t seed) {
  options.seed = seed;
  stepState = StepState();
  clear();
  return initialize();
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
