//===- NamedMachines.cpp - machines by name, by file, of several nodes ----===//

#include "base/PrintableText.h"
#include "passes/cost/Machine.h"

#include "base/Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir::fsdp::cost;

namespace {

struct NamedText {
  llvm::StringRef name, text;
};

/// Every file of passes/cost/machines.
constexpr NamedText files[] = {
#include "passes/cost/NamedMachines.inc"
};

/// The file of all networks.
constexpr llvm::StringLiteral networksName = "networks";

} // namespace

static llvm::StringRef textOf(llvm::StringRef name) {
  for (const NamedText &file : files)
    if (file.name == name)
      return file.text;
  return {};
}

std::vector<std::string> mlir::fsdp::cost::getMachineNames() {
  std::vector<std::string> names;
  for (const NamedText &file : files)
    if (file.name != networksName)
      names.push_back(file.name.str());
  return names;
}

/// The networks, each a link without ranks.
static const llvm::json::Object &getNetworks() {
  static const llvm::json::Object networks = [] {
    llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(textOf(networksName));
    return *llvm::cantFail(std::move(parsed)).getAsObject();
  }();
  return networks;
}

std::vector<std::string> mlir::fsdp::cost::getNetworkNames() {
  std::vector<std::string> names;
  for (const auto &entry : getNetworks())
    names.push_back(entry.first.str());
  llvm::sort(names);
  return names;
}

/// Connects `nodes` of `machine` by the network `name`.
static void addNetwork(Machine &machine, const std::string &name, int64_t nodes) {
  const llvm::json::Object &network = *getNetworks().getObject(name);
  Link link;
  link.name = name;
  link.ranks = machine.links.back().ranks * nodes;
  link.bandwidth = *network.getNumber("bandwidth");
  link.latency = *network.getNumber("latency");
  machine.links.push_back(link);
}

/// The machine in the file or of the name `place`.
static std::optional<Machine> readMachine(llvm::StringRef place, std::string &error) {
  if (llvm::is_contained(getMachineNames(), place.str()))
    return parseMachine(textOf(place), error);
  if (!llvm::sys::fs::exists(place)) {
    error = "got " + base::inQuotes(place.str()) + ", expected a file or one of " +
            llvm::join(getMachineNames(), ", ");
    return std::nullopt;
  }
  auto buffer = llvm::MemoryBuffer::getFile(place, /*IsText=*/true);
  if (!buffer) {
    error = "cannot read " + base::inQuotes(place.str()) + ": " + buffer.getError().message();
    return std::nullopt;
  }
  std::optional<Machine> machine = parseMachine((*buffer)->getBuffer(), error);
  if (!machine)
    error = base::inQuotes(place.str()) + ": " + error;
  return machine;
}

/// Implementations of kernels other than this project's.
static std::string listNames(const Machine &machine) {
  std::vector<std::string> names;
  for (const auto &entry : machine.otherKernels)
    names.push_back(entry.first);
  return llvm::join(names, ", ");
}

/// Gives `machine` the rates of the implementation `name`. False with an `error`.
static bool useKernels(Machine &machine, const std::string &name, std::string &error) {
  auto found = machine.otherKernels.find(name);
  if (found != machine.otherKernels.end()) {
    static_cast<KernelRates &>(machine) = found->second;
    machine.kernels = name;
    return true;
  }
  if (name == machine.kernels)
    return true;
  error = "kernels: " +
          base::mismatch(name, machine.otherKernels.empty()
                                   ? "own, the only ones of " + base::inQuotes(machine.name)
                                   : "one of own, " + listNames(machine));
  return false;
}

std::optional<Machine> mlir::fsdp::cost::findMachine(llvm::StringRef request, int64_t ranks,
                                                     std::string &error) {
  llvm::SmallVector<llvm::StringRef> options(llvm::split(request, ','));
  const llvm::StringRef place = options.front();
  std::optional<int64_t> nodes;
  std::string network, kernels;
  llvm::StringSet<> known;
  for (llvm::StringRef option : llvm::drop_begin(options)) {
    auto [key, value] = option.split('=');
    if (!known.insert(key).second) {
      error = base::mismatch(option.str(), "one " + key.str() + "= behind the machine");
      return std::nullopt;
    }
    if (key == "nodes") {
      int64_t count = 0;
      error = base::parseInteger(value.str(), base::IntegerRange<int64_t>{1, 1 << 20}, count);
      if (!error.empty()) {
        error = "nodes: " + error;
        return std::nullopt;
      }
      nodes = count;
    } else if ((key == "network" || key == "kernels") && !value.empty()) {
      (key == "network" ? network : kernels) = value.str();
    } else {
      error =
          base::mismatch(option.str(), "nodes=N, network=NAME or kernels=NAME behind the machine");
      return std::nullopt;
    }
  }
  std::optional<Machine> machine = readMachine(place, error);
  if (!machine)
    return std::nullopt;
  if (!kernels.empty() && !useKernels(*machine, kernels, error))
    return std::nullopt;
  const int64_t node = machine->links.back().ranks;
  if (network.empty())
    network = machine->network;
  const bool isGrown = nodes.value_or(0) > 1 || (!nodes && node && ranks > node);
  if (!network.empty() && !llvm::is_contained(getNetworkNames(), network)) {
    error = "network: " + base::mismatch(network, "one of " + llvm::join(getNetworkNames(), ", "));
    return std::nullopt;
  }
  if (isGrown && (network.empty() || node == 0)) {
    error = base::inQuotes(machine->name) + " cannot be one of several nodes: " +
            (node == 0 ? "its links connect any number of ranks, expected 'ranks' of the last one"
                       : "it names no network; add network=NAME with one of " +
                             llvm::join(getNetworkNames(), ", "));
    return std::nullopt;
  }
  if (isGrown)
    addNetwork(*machine, network, nodes.value_or(llvm::divideCeil(ranks, node)));
  const int64_t most = machine->links.back().ranks;
  if (most && ranks > most) {
    error = base::inQuotes(machine->name) + " has " + std::to_string(most) +
            " ranks, got a mesh of " + std::to_string(ranks) +
            "; give nodes=" + std::to_string(llvm::divideCeil(ranks, node));
    return std::nullopt;
  }
  return machine;
}
