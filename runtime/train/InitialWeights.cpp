#include "runtime/train/InitialWeights.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/NamePattern.h"
#include "base/PrintableText.h"
#include "runtime/program/Shard.h"
#include "runtime/train/AdapterFiles.h"
#include "runtime/train/ParameterNames.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

namespace fsdp::rt {

using namespace base;

namespace {

/// Prefixes that wrappers of a model add to the names of its tensors.
constexpr std::string_view kWrappers[] = {"transformer.", "model."};
/// The ends of the names of constants that old files contain beside the parameters.
constexpr std::string_view kBuffers[] = {"attn.bias", "attn.masked_bias", "rotary_emb.inv_freq"};

/// The tensor of the parameter in the file, or nullptr.
const FileTensor *tensorOf(const InitialWeights::Source &source, const Parameter &parameter) {
  const auto nameInFile = [&](const char *name) -> std::optional<std::string_view> {
    if (!name)
      return std::nullopt;
    return source.from.isMapped() ? partOfPattern(source.from.pattern, name)
                                  : std::optional<std::string_view>(name);
  };
  const std::optional<std::string_view> name = nameInFile(parameter.name);
  for (const auto &exact : {name, nameInFile(parameter.alias)})
    if (exact)
      if (const FileTensor *tensor = source.files.find(*exact))
        return tensor;
  if (!name)
    return nullptr;
  for (std::string_view wrapper : kWrappers) {
    const bool wrapped = name->substr(0, wrapper.size()) == wrapper;
    const FileTensor *tensor = wrapped ? source.files.find(name->substr(wrapper.size()))
                                       : source.files.find(std::string(wrapper).append(*name));
    if (tensor)
      return tensor;
  }
  return nullptr;
}

void checkTensor(const WeightFiles &file, const Parameter &parameter, const FileTensor &tensor) {
  const auto refuse = [&](const std::string &why) {
    throw Error("'" + file.path() + "': parameter '" + parameter.name + "': " + why);
  };
  if (!tensor.isFloat())
    refuse("got dtype " + tensor.dtype + ", expected F32, BF16, F16 or F64");
  const Shape &shape = parameter.fileShape;
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin(), shape.end()))
    refuse("got shape " + shapeText(tensor.shape) + ", expected " + shapeText(shape));
  const std::size_t bad = tensor.firstNonfinite();
  if (bad != tensor.elements())
    refuse("got a value that is not finite at element " + std::to_string(bad) +
           ", expected finite numbers");
}

bool isBuffer(std::string_view name) {
  const auto endsName = [name](std::string_view end) {
    if (name.size() < end.size() || name.substr(name.size() - end.size()) != end)
      return false;
    return name.size() == end.size() || name[name.size() - end.size() - 1] == '.';
  };
  return std::any_of(std::begin(kBuffers), std::end(kBuffers), endsName);
}

using Tensors = std::vector<const FileTensor *>;

/// Whether the tensor is a copy of one that a parameter uses: older files contain tied weights
/// twice.
bool isCopy(const FileTensor &tensor, const Tensors &used) {
  return std::any_of(used.begin(), used.end(), [&](const FileTensor *other) {
    return tensor.dtype == other->dtype && tensor.shape == other->shape &&
           std::memcmp(tensor.data, other->data, tensor.bytes) == 0;
  });
}

void addUnused(NameList &unused, const WeightFiles &file, const Tensors &used) {
  for (const FileTensor *tensor : file.tensors())
    if (std::find(used.begin(), used.end(), tensor) == used.end() && !isBuffer(tensor->name) &&
        !isCopy(*tensor, used))
      unused.add(tensor->name);
}

/// Error: the file has tensors of adapters which the program does not use, and which transformers
/// adds to the model.
void requireNoOtherAdapters(const Program &program, const InitialWeights::Source &source,
                            const Tensors &used) {
  NameList others;
  for (const FileTensor *tensor : source.files.tensors())
    if (std::find(used.begin(), used.end(), tensor) == used.end() && isNameOfAdapters(tensor->name))
      others.add(tensor->name);
  if (others.size() == 0)
    return;
  const std::vector<std::string> &files = source.files.files();
  const bool hasBoth = files.size() > 1 && nameIn(files.back()) == kAdapterWeights;
  const std::string pattern = "--init " + inQuotes("*=" + source.files.path());
  throw Error("'" + (hasBoth ? files.back() : source.files.path()) + "' has " +
              std::to_string(others.size()) +
              " tensor(s) of adapters that the program does not use: " + others.list() +
              "; expected " +
              (adapterNames(program).empty()
                   ? "a model alone, as this program has no adapters (--lora of its compiler): "
                     "merge them first (--export-merged of a program that has them); the model "
                     "without them is " +
                         (hasBoth ? "--init " + inQuotes(files.front()) : pattern)
                   : "adapters of this program's projections alone (--lora-on of its compiler); " +
                         pattern + " leaves the others out"));
}

/// Whether the weight of the model's head is that of its embedding, by its config.json.
bool tiesHead(const Program &program) {
  const Table<ConfigEntry> &entries = program.config.entries;
  return std::any_of(entries.begin(), entries.end(), [](const ConfigEntry &entry) {
    return std::string_view(entry.names) == "tie_word_embeddings" &&
           std::string_view(entry.value) == "true";
  });
}

} // namespace

InitialWeights::InitialWeights(const std::vector<InitialFile> &files) {
  for (const InitialFile &file : files)
    opened.push_back({file, WeightFiles(file.path)});
}

std::vector<std::string> InitialWeights::match(const Program &program, bool drawsMissing) {
  for (const Source &source : opened)
    if (source.from.isMapped())
      requireMatch(program, "--init", source.from.pattern,
                   "; a file whose name has '=' is written " +
                       inQuotes("./" + source.from.pattern + "=…"));
  byParameter.clear();
  missing.clear();
  const std::vector<Member> members = membersOf(program);
  std::map<const Source *, Tensors> used;
  std::vector<const Source *> sourceOf; // of each parameter
  for (const auto &[storage, parameter] : members) {
    const Source *from = nullptr;
    for (const Source &source : opened) {
      const FileTensor *tensor = tensorOf(source, *parameter);
      if (!tensor)
        continue;
      if (from)
        throw Error(std::string("got parameter '") + parameter->name + "' in '" +
                    from->files.path() + "' and in '" + source.files.path() +
                    "', expected it in one file of --init: leave a file out, or give it a pattern "
                    "of the parameters that it is for (PATTERN=FILE)");
      from = &source;
      byParameter[parameter->name] = tensor;
      used[from].push_back(tensor);
    }
    sourceOf.push_back(from);
    if (!from)
      missing.push_back(parameter->name);
  }
  // The files of a base model have no adapters: then all adapters are drawn.
  std::vector<std::string> adapters = adapterNames(program);
  if (std::any_of(adapters.begin(), adapters.end(),
                  [&](const std::string &name) { return byParameter.count(name) > 0; }))
    adapters.clear();
  NameList missed;
  for (const std::string &name : missing)
    if (std::find(adapters.begin(), adapters.end(), name) == adapters.end())
      missed.add(name);
  std::string names;
  for (const Source &source : opened)
    names += (names.empty() ? "'" : ", '") + source.files.path() + "'";
  if (missed.size() > 0 && !drawsMissing) {
    NameList unused;
    for (const Source &source : opened)
      addUnused(unused, source.files, used[&source]);
    throw Error(names + ": got no tensor for " + std::to_string(missed.size()) + " parameter(s): " +
                missed.list() + "; expected one for every parameter of the model" +
                (unused.size() ? ", which does not use: " + unused.list() : "") +
                "; with --init-missing=draw they keep the values that are drawn");
  }
  for (const Source &source : opened)
    if (used[&source].empty())
      throw Error(
          "'" + source.files.path() + "': got no tensor of a parameter" +
          (source.from.isMapped() ? " that " + inQuotes(source.from.pattern) + " matches" : "") +
          ", expected one at least");
  for (std::size_t i = 0; i < members.size(); ++i)
    if (sourceOf[i])
      checkTensor(sourceOf[i]->files, *members[i].parameter,
                  *byParameter[members[i].parameter->name]);
  std::vector<std::string> remarks;
  for (const Source &source : opened) {
    const FileTensor *head = source.files.find("lm_head.weight");
    if (head && !source.from.isMapped() && tiesHead(program) && !isCopy(*head, used[&source]))
      throw Error("'" + source.files.path() +
                  "': 'lm_head.weight' is not the weight of the embedding, with which the head of "
                  "this model is tied; expected equal tensors, or a model with a separate head "
                  "('tie_word_embeddings' false)");
    if (!source.from.isMapped())
      requireNoOtherAdapters(program, source, used[&source]);
    NameList unused;
    addUnused(unused, source.files, used[&source]);
    if (unused.size() > 0)
      remarks.push_back("'" + source.files.path() + "' has " + std::to_string(unused.size()) +
                        " tensor(s) that the model does not use: " + unused.list());
  }
  return remarks;
}

const FileTensor *InitialWeights::find(std::string_view parameter) const {
  const auto found = byParameter.find(parameter);
  return found == byParameter.end() ? nullptr : found->second;
}

void InitialWeights::releasePages() const {
  for (const Source &source : opened)
    source.files.releasePages();
}

void loadShard(const InitialWeights &weights, const Storage &storage, const RankPosition &position,
               std::uint64_t seed, float *shard) {
  std::vector<const FileTensor *> tensors;
  for (const Parameter &member : storage.members)
    tensors.push_back(weights.find(member.name));
  if (std::find(tensors.begin(), tensors.end(), nullptr) != tensors.end())
    initializeShard(storage, position, seed, shard);
  else
    std::fill_n(shard, storage.shard.count, 0.0f);
  for (const Run &run : shardRuns(storage, position))
    if (const FileTensor *tensor = tensors[run.member])
      tensor->readFloats(run.inParameter, run.count, shard + run.inShard);
}

} // namespace fsdp::rt
