//===- Machine.h - the rates of a machine -----------------------*- C++ -*-===//
// The cost model's description of the devices and links that a program runs on: a JSON file, whose
// fields docs/cost-model.md describes. Named machines are such files (passes/cost/machines).
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_COST_MACHINE_H
#define PASSES_COST_MACHINE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp::cost {

/// A rate that depends on a size: linear in the logarithm of the size between two points, and that
/// of the nearest point outside of them.
class RateCurve {
public:
  struct Point {
    double size, rate;
  };
  RateCurve() = default;
  /// At least one point; sizes above 0 and rising.
  explicit RateCurve(std::vector<Point> points) : points(std::move(points)) {}
  double at(double size) const;
  bool isEmpty() const { return points.empty(); }

private:
  std::vector<Point> points;
};

/// One level of the links between ranks: NVLink in a node, a network between nodes.
struct Link {
  std::string name;
  /// Blocks of so many consecutive ranks are connected by this level; those of a level are a
  /// multiple of those of the one below. 0, of the last level alone: any number.
  int64_t ranks = 0;
  double bandwidth = 0; ///< bytes/s that a rank sends, and receives at the same time
  double latency = 0;   ///< seconds of a step of an algorithm
  /// Other bandwidths of single kinds of collectives, where switches or memory treat them
  /// differently.
  std::map<std::string, double> bandwidths = {};

  double bandwidthOf(const std::string &kind) const {
    auto found = bandwidths.find(kind);
    return found == bandwidths.end() ? bandwidth : found->second;
  }
};

/// Which loops after a product run as a separate kernel.
enum class Epilogues {
  fused,    ///< none
  separate, ///< all but a bias
  library   ///< all but those that libraries of products compute (dialect/nn/LibraryEpilogue.h)
};

/// The rates that programs attain with an implementation of the kernels.
struct KernelRates {
  /// Flop/s of products by kind ("matrix", "attention", "attention_grad"), element type, and extent
  /// (schedule::LaunchCost).
  std::map<std::pair<std::string, std::string>, RateCurve> products;
  /// For kinds and types whose rate depends on the number of keys: the fraction of the rate by that
  /// number.
  std::map<std::pair<std::string, std::string>, RateCurve> keyFactors;
  double loopFlops = 0;  ///< flop/s of everything except products
  RateCurve memoryRates; ///< bytes/s by the bytes that a launch reads and writes
  /// Memory rates of ops whose kernels attain other rates, by the mnemonic of the op
  /// ("layer_norm_grad").
  std::map<std::string, RateCurve> memoryRatesOfKinds;
  double launchSeconds = 0; ///< of each launch, besides its work
  Epilogues epilogues = Epilogues::fused;

  /// Flop/s of a product; for an unknown kind or type, the rate of the kind "matrix", then that of
  /// any type.
  double productRate(const std::string &kind, const std::string &type, int64_t extent,
                     int64_t keys = 0) const;
  /// Bytes/s of a launch of the op `kind` that touches `bytes`.
  double memoryRate(const std::string &kind, double bytes) const;
};

/// A machine with the rates of one implementation of the kernels, by default those of this project.
struct Machine : KernelRates {
  std::string name;
  int64_t memory = 0;                 ///< bytes of a rank
  std::map<std::string, double> peak; ///< flop/s of a rank by element type, of its data sheet
  std::string kernels = "own";        ///< the implementation whose rates these are
  std::map<std::string, KernelRates> otherKernels;
  /// Cores that the ranks of a node share; nothing if each rank has its own device.
  std::optional<int64_t> cores;
  /// The part of a rank's device that a running collective takes from computation.
  double collectiveShare = 0;
  std::vector<std::string> algorithms; ///< of collectives (passes/cost/Collectives.h)
  std::vector<Link> links;             ///< from the innermost level
  std::string network;                 ///< between nodes, unless another is requested

  /// Flop/s; for an unknown type the least.
  double peakOf(const std::string &type) const;
  /// The total share of a rank's device, or of its part of the cores, that its launches may use at
  /// once if `ranks` run on the machine: computation uses 1, a collective `collectiveShare`.
  double capacity(int64_t ranks) const;
};

/// The algorithms of collectives (Collectives.h): "ring", "tree", "recursive", "hierarchical",
/// "direct".
const std::vector<std::string> &getAlgorithmNames();
/// The kinds of collectives that have bandwidths of links, mnemonics of their ops: "all_gather".
const std::vector<std::string> &getCollectiveNames();
/// The kinds of products: "matrix", "attention", "attention_grad".
const std::vector<std::string> &getProductNames();
/// The element types of products.
const std::vector<std::string> &getRateTypeNames();

/// Reads the text of a machine file. Returns nothing and an `error` that names the field, the value
/// found and the value expected.
std::optional<Machine> parseMachine(llvm::StringRef text, std::string &error);

/// The names of machines and of networks.
std::vector<std::string> getMachineNames();
std::vector<std::string> getNetworkNames();

/// The machine that `request` names for a mesh of `ranks`: NAME or FILE, then options
/// `,nodes=N`, `,network=NAME` and `,kernels=NAME`, the implementation. Without `nodes` it has as
/// many as the ranks need. Returns nothing and an `error` if it is not valid.
std::optional<Machine> findMachine(llvm::StringRef request, int64_t ranks, std::string &error);

} // namespace mlir::fsdp::cost

#endif // PASSES_COST_MACHINE_H
