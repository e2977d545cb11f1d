//===- Machine.cpp - machine files ----------------------------------------===//

#include "passes/cost/Machine.h"
#include "base/JsonObject.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace mlir::fsdp::cost;
namespace json = llvm::json;

double RateCurve::at(double size) const {
  auto above = std::find_if(points.begin(), points.end(),
                            [&](const Point &point) { return point.size >= size; });
  if (above == points.end())
    return points.back().rate;
  if (above == points.begin() || above->size == size)
    return above->rate;
  const Point &below = *(above - 1);
  const double share = std::log(size / below.size) / std::log(above->size / below.size);
  return below.rate + share * (above->rate - below.rate);
}

double KernelRates::productRate(const std::string &kind, const std::string &type, int64_t extent,
                                int64_t keys) const {
  auto found = products.find({kind, type});
  if (found == products.end())
    found = products.find({"matrix", type});
  if (found == products.end())
    found = products.begin();
  const double rate = found->second.at(static_cast<double>(std::max<int64_t>(extent, 1)));
  auto factor = keyFactors.find({kind, type});
  if (factor == keyFactors.end())
    return rate;
  return rate * factor->second.at(static_cast<double>(std::max<int64_t>(keys, 1)));
}

double KernelRates::memoryRate(const std::string &kind, double bytes) const {
  auto found = memoryRatesOfKinds.find(kind);
  return (found == memoryRatesOfKinds.end() ? memoryRates : found->second).at(bytes);
}

double Machine::peakOf(const std::string &type) const {
  auto found = peak.find(type);
  if (found != peak.end())
    return found->second;
  double least = peak.begin()->second;
  for (const auto &[name, rate] : peak)
    least = std::min(least, rate);
  return least;
}

double Machine::capacity(int64_t ranks) const {
  if (!cores)
    return 1;
  const int64_t node =
      links.empty() || links.front().ranks == 0 ? ranks : std::min(ranks, links.front().ranks);
  return static_cast<double>(*cores) / static_cast<double>(std::max<int64_t>(node, 1));
}

namespace {

/// The values that a number may have. 1e30 and 1000 s are beyond any device; within these ranges
/// all times of a step are finite.
struct Range {
  double least, most;
};
constexpr Range kRate = {1, 1e30};    ///< flop/s and bytes/s
constexpr Range kSize = {1, 1e30};    ///< extents, bytes and numbers of keys
constexpr Range kSeconds = {0, 1000}; ///< of a launch, or of a step of an algorithm
constexpr Range kShare = {0, 1};      ///< of a device
constexpr Range kFactor = {0.001, 1}; ///< of a rate
constexpr int64_t kMemory = int64_t(1) << 60, kRanks = 1 << 30, kCores = 1 << 20;

/// Reads fields of objects, and keeps the first fault.
class Reader {
public:
  explicit Reader(std::string &error) : error(error) {}

  void fail(const std::string &field, const json::Value *got, const std::string &expected) {
    if (!error.empty())
      return;
    std::string text = "nothing";
    if (got) {
      text.clear();
      llvm::raw_string_ostream(text) << *got;
      if (text.size() > 40)
        text = text.substr(0, 37) + "...";
    }
    error = "field '" + field + "': got " + text + ", expected " + expected;
  }

  /// The object `value`, whose fields must be among `known`; an empty one after a fault.
  json::Object object(const std::string &field, const json::Value *value,
                      llvm::ArrayRef<const char *> known) {
    const json::Object *object = value ? value->getAsObject() : nullptr;
    if (!object) {
      fail(field, value, "an object");
      return {};
    }
    for (const auto &entry : *object)
      if (!llvm::is_contained(known, entry.first.str()))
        fail(join(field, entry.first.str()), &entry.second,
             "no such field; the fields are " + llvm::join(known, ", "));
    return *object;
  }

  double number(const std::string &field, const json::Value *value, Range range) {
    auto number = value ? value->getAsNumber() : std::nullopt;
    if (number && *number >= range.least && *number <= range.most)
      return *number;
    std::string expected;
    llvm::raw_string_ostream(expected)
        << "a number from " << llvm::format("%g to %g", range.least, range.most);
    fail(field, value, expected);
    return range.most;
  }

  int64_t integer(const std::string &field, const json::Value *value, int64_t least, int64_t most) {
    auto number = value ? value->getAsInteger() : std::nullopt;
    if (number && *number >= least && *number <= most)
      return *number;
    fail(field, value, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }

  std::string text(const std::string &field, const json::Value *value) {
    auto text = value ? value->getAsString() : std::nullopt;
    if (text && !text->empty())
      return text->str();
    fail(field, value, "a text");
    return "";
  }

  /// One of the texts `known`.
  std::string name(const std::string &field, const json::Value *value,
                   llvm::ArrayRef<std::string> known) {
    std::string name = text(field, value);
    if (!llvm::is_contained(known, name))
      fail(field, value, "one of " + llvm::join(known, ", "));
    return name;
  }

  json::Array array(const std::string &field, const json::Value *value) {
    const json::Array *array = value ? value->getAsArray() : nullptr;
    if (array && !array->empty())
      return *array;
    fail(field, value, "a list that is not empty");
    return {};
  }

  /// {"f32": 1e12}, whose names are among `known`
  std::map<std::string, double> rates(const std::string &field, const json::Value *value,
                                      llvm::ArrayRef<std::string> known) {
    std::map<std::string, double> rates;
    const json::Object *object = value ? value->getAsObject() : nullptr;
    if (!object || object->empty()) {
      fail(field, value, "an object of numbers");
      return {{known.front(), 1}};
    }
    for (const auto &entry : *object) {
      const std::string rate = entry.first.str();
      const json::Value got(rate);
      name(field, &got, known);
      rates[rate] = number(join(field, rate), &entry.second, kRate);
    }
    return rates;
  }

  /// [[size, rate], ...], the rates within `range`
  RateCurve curve(const std::string &field, const json::Value *value, Range range) {
    std::vector<RateCurve::Point> points;
    for (auto [index, pair] : llvm::enumerate(array(field, value))) {
      const std::string name = field + "[" + std::to_string(index) + "]";
      const json::Array *both = pair.getAsArray();
      if (!both || both->size() != 2) {
        fail(name, &pair, "[SIZE, RATE]");
        continue;
      }
      const double size = number(name + "[0]", &(*both)[0], kSize);
      if (!points.empty() && size <= points.back().size)
        fail(name + "[0]", &(*both)[0], "a size above that of the entry before");
      points.push_back({size, number(name + "[1]", &(*both)[1], range)});
    }
    if (points.empty())
      points.push_back({1, 1});
    return RateCurve(std::move(points));
  }

  static std::string join(const std::string &field, const std::string &name) {
    return field.empty() ? name : field + "." + name;
  }

private:
  std::string &error;
};

} // namespace

static Link readLink(Reader &reader, const std::string &field, const json::Value &value) {
  json::Object object = reader.object(
      field, &value, {"name", "ranks", "bandwidth", "latency", "bandwidths", "source"});
  Link link;
  link.name = reader.text(field + ".name", object.get("name"));
  link.ranks = reader.integer(field + ".ranks", object.get("ranks"), 0, kRanks);
  link.bandwidth = reader.number(field + ".bandwidth", object.get("bandwidth"), kRate);
  link.latency = reader.number(field + ".latency", object.get("latency"), kSeconds);
  if (const json::Value *bandwidths = object.get("bandwidths"))
    link.bandwidths = reader.rates(field + ".bandwidths", bandwidths, getCollectiveNames());
  return link;
}

/// The links from the innermost level, each of which connects blocks of the level below.
static std::vector<Link> readLinks(Reader &reader, const json::Value *value) {
  std::vector<Link> links;
  const json::Array entries = reader.array("links", value);
  for (auto [index, entry] : llvm::enumerate(entries)) {
    const std::string field = "links[" + std::to_string(index) + "]";
    links.push_back(readLink(reader, field, entry));
    const json::Value *given = entry.getAsObject() ? entry.getAsObject()->get("ranks") : nullptr;
    const bool isLast = index + 1 == entries.size();
    const int64_t ranks = links.back().ranks, below = index ? links[index - 1].ranks : 1;
    if (ranks == 0 && !isLast)
      reader.fail(field + ".ranks", given,
                  "at least 1; only the last level may have 0, for any number of ranks");
    else if (ranks != 0 && index && below != 0 && (ranks % below || ranks <= below))
      reader.fail(field + ".ranks", given,
                  "a multiple of the " + std::to_string(below) + " of the level below" +
                      (isLast ? ", or 0 for any number" : ""));
  }
  return links;
}

static void readProducts(Reader &reader, const std::string &list, const json::Value *value,
                         KernelRates &kernels) {
  std::set<std::pair<std::string, std::string>> read;
  for (auto [index, entry] : llvm::enumerate(reader.array(list, value))) {
    const std::string field = list + "[" + std::to_string(index) + "]";
    json::Object object =
        reader.object(field, &entry, {"kind", "type", "rates", "key_factors", "source"});
    const std::pair<std::string, std::string> product = {
        reader.name(field + ".kind", object.get("kind"), getProductNames()),
        reader.name(field + ".type", object.get("type"), getRateTypeNames())};
    if (!read.insert(product).second)
      reader.fail(field + ".kind", object.get("kind"), "each kind once for a type");
    kernels.products[product] = reader.curve(field + ".rates", object.get("rates"), kRate);
    kernels.keyFactors.erase(product);
    if (const json::Value *factors = object.get("key_factors"))
      kernels.keyFactors[product] = reader.curve(field + ".key_factors", factors, kFactor);
  }
}

static void readKinds(Reader &reader, const std::string &list, const json::Value *value,
                      KernelRates &kernels) {
  for (auto [index, entry] : llvm::enumerate(reader.array(list, value))) {
    const std::string field = list + "[" + std::to_string(index) + "]";
    json::Object object = reader.object(field, &entry, {"kind", "memory_rates", "source"});
    const std::string kind = reader.text(field + ".kind", object.get("kind"));
    RateCurve rates = reader.curve(field + ".memory_rates", object.get("memory_rates"), kRate);
    if (!kernels.memoryRatesOfKinds.try_emplace(kind, std::move(rates)).second)
      reader.fail(field + ".kind", object.get("kind"), "each kind once");
  }
}

/// The fields of an implementation of the kernels: all fields for `own`, the machine itself; for
/// others, those that differ. A `field` ends with a point, or is empty.
static void readKernels(Reader &reader, const std::string &field, const json::Object &object,
                        bool isOwn, KernelRates &kernels) {
  auto get = [&](const char *name) -> const json::Value * { return object.get(name); };
  auto has = [&](const char *name) { return isOwn || get(name); };
  if (has("products"))
    readProducts(reader, field + "products", get("products"), kernels);
  if (has("loop_flops"))
    kernels.loopFlops = reader.number(field + "loop_flops", get("loop_flops"), kRate);
  if (has("memory_rates")) {
    kernels.memoryRates = reader.curve(field + "memory_rates", get("memory_rates"), kRate);
    kernels.memoryRatesOfKinds.clear();
  }
  if (const json::Value *kinds = get("kinds"))
    readKinds(reader, field + "kinds", kinds, kernels);
  if (has("launch_seconds"))
    kernels.launchSeconds =
        reader.number(field + "launch_seconds", get("launch_seconds"), kSeconds);
  if (const json::Value *epilogues = get("epilogues")) {
    const std::string text = reader.text(field + "epilogues", epilogues);
    if (text == "fused")
      kernels.epilogues = Epilogues::fused;
    else if (text == "separate")
      kernels.epilogues = Epilogues::separate;
    else if (text == "library")
      kernels.epilogues = Epilogues::library;
    else
      reader.fail(field + "epilogues", epilogues, "fused, separate or library");
  }
}

std::optional<Machine> mlir::fsdp::cost::parseMachine(llvm::StringRef text, std::string &error) {
  error = base::findStructureFault(text);
  if (!error.empty())
    return std::nullopt;
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    error = "is not JSON: " + llvm::toString(parsed.takeError());
    return std::nullopt;
  }
  Reader reader(error);
  json::Object object =
      reader.object("", &*parsed,
                    {"name", "source", "memory", "peak", "products", "loop_flops", "memory_rates",
                     "kinds", "launch_seconds", "epilogues", "cores", "collective_share",
                     "algorithms", "links", "network", "kernels"});
  Machine machine;
  machine.name = reader.text("name", object.get("name"));
  machine.memory = reader.integer("memory", object.get("memory"), 1, kMemory);
  machine.peak = reader.rates("peak", object.get("peak"), getRateTypeNames());
  readKernels(reader, "", object, /*isOwn=*/true, machine);
  if (const json::Value *kernels = object.get("kernels")) {
    const json::Object *sets = kernels->getAsObject();
    if (!sets)
      reader.fail("kernels", kernels, "an object of implementations by name");
    for (const auto &entry : sets ? *sets : json::Object()) {
      const std::string name = entry.first.str(), field = "kernels." + name;
      if (name == machine.kernels)
        reader.fail(field, &entry.second, "another name; the fields of the machine are those");
      KernelRates &rates = machine.otherKernels[name];
      rates = machine;
      readKernels(reader, field + ".",
                  reader.object(field, &entry.second,
                                {"source", "products", "loop_flops", "memory_rates", "kinds",
                                 "launch_seconds", "epilogues"}),
                  /*isOwn=*/false, rates);
    }
  }
  if (const json::Value *cores = object.get("cores"))
    machine.cores = reader.integer("cores", cores, 1, kCores);
  machine.collectiveShare =
      reader.number("collective_share", object.get("collective_share"), kShare);
  for (auto [index, entry] : llvm::enumerate(reader.array("algorithms", object.get("algorithms"))))
    machine.algorithms.push_back(
        reader.name("algorithms[" + std::to_string(index) + "]", &entry, getAlgorithmNames()));
  machine.links = readLinks(reader, object.get("links"));
  if (const json::Value *network = object.get("network"))
    machine.network = reader.text("network", network);
  return error.empty() ? std::optional<Machine>(std::move(machine)) : std::nullopt;
}
