#include "runtime/train/RunHeader.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "runtime/job/Launcher.h"
#include "runtime/job/RunIdentity.h"
#include "runtime/program/Roles.h"
#include "runtime/train/Log.h"
#include "runtime/train/Plans.h"
#include "runtime/train/Version.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string_view>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

/// Of the f32 that training uses: 0.1, not 0.10000000149011612.
double numberOf(float used) { return std::strtod(shortest(used).c_str(), nullptr); }

using Json = nlohmann::ordered_json;

Json entryOf(const FileContent &content) {
  Json entry = {
      {"path", content.path}, {"bytes", content.bytes}, {"digest", digestText(content.digest)}};
  if (content.tensors)
    entry["tensors"] = content.tensors;
  if (!content.pattern.empty())
    entry["pattern"] = content.pattern;
  return entry;
}

/// An object for one file, a list for several. Of many one object, as every checkpoint has it.
void add(Json &run, const char *name, const std::vector<FileContent> &contents) {
  constexpr std::size_t kMaxListed = 64;
  if (contents.size() == 1)
    run[name] = entryOf(contents.front());
  else if (contents.size() > kMaxListed)
    run[name] = {{"files", contents.size()},
                 {"bytes", sumOf(contents).bytes},
                 {"digest", digestText(sumOf(contents).digest)}};
  else
    for (const FileContent &content : contents)
      run[name].push_back(entryOf(content));
}

std::string currentFolder() {
  char *path = getcwd(nullptr, 0);
  const std::string text = path ? path : "";
  std::free(path);
  return text;
}

/// The variables that this program and its libraries read, without those that launchers set for one
/// rank or job, that of compilers, and the token of the job, which is a secret.
Json environmentOfRun() {
  constexpr std::string_view kPrefixes[] = {"FSDP_",   "NCCL_", "CUDA_",   "CUBLAS_", "CUDNN_",
                                            "NVIDIA_", "OMP_",  "ONEDNN_", "DNNL_",   "LD_PRELOAD"};
  constexpr std::string_view kOthers[] = {"FSDP_JOB_TOKEN", "FSDP_JOB_ID", "FSDP_PORT",
                                          "FSDP_MACHINE",   "CUDA_HOME",   "CUDA_PATH"};
  std::map<std::string, std::string> found; // in the order of the names
  for (char **entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry, name = text.substr(0, text.find('='));
    const bool isRead =
        std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [&](std::string_view prefix) {
          return name.substr(0, prefix.size()) == prefix;
        });
    if (isRead && name.size() < text.size() &&
        std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers))
      found.emplace(name, text.substr(name.size() + 1));
  }
  return found.empty() ? Json::object() : Json(found);
}

/// Elements of all parameters, or of those that are trained.
std::int64_t elementsOf(const Program &program, bool trainedOnly) {
  std::int64_t count = 0;
  for (const Storage &storage : program.storages)
    for (const Parameter &member : storage.members)
      count += trainedOnly && member.frozen ? 0 : elements(member.shape);
  return count;
}

/// Paths need not be UTF-8.
std::string dump(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace

std::string restartLine(std::int64_t number, std::int64_t step, const std::string &mesh,
                        const std::string &cause) {
  Json line;
  line["restart"] = {{"number", number}, {"after_step", step}, {"mesh", mesh}, {"cause", cause}};
  return dump(line) + "\n";
}

std::string describeDrawn(const std::vector<std::string> &drawn) {
  if (drawn.empty())
    return "";
  NameList names;
  for (const std::string &name : drawn)
    names.add(name);
  return format("--init has no tensor of %zu parameter%s, whose values are drawn: ", drawn.size(),
                drawn.size() == 1 ? "" : "s") +
         printableMessage(names.list()) + "\n";
}

std::string RunHeader::text() const {
  const int ranks = worldSize(program);
  const std::int64_t all = elementsOf(program, false), trained = elementsOf(program, true);
  std::string size = formatCount(static_cast<double>(all)) + " parameters";
  if (trained != all)
    size = formatCount(static_cast<double>(trained)) + " of " + size + " trainable";
  std::string text = format("%s: %s, %d rank%s, mesh %s, arena %s per rank, ", program.name,
                            size.c_str(), ranks, ranks == 1 ? "" : "s", mesh.c_str(),
                            formatBytes(static_cast<double>(arenaBytesOf(program))).c_str());
  text += options.onlyEvaluates() && !options.valData.empty()
              ? std::string("evaluation in batches")
              : format("%lld step%s", static_cast<long long>(steps), steps == 1 ? "" : "s");
  text += format(" of %lld sample%s\n", static_cast<long long>(globalBatch(program)),
                 globalBatch(program) == 1 ? "" : "s");
  text += format("fsdpc %s", runtimeVersion());
  if (*program.options)
    text += "  " + printableMessage(program.options);
  if (!options.onlyEvaluates())
    text += format("  --seed=%llu  --lr=%g", static_cast<unsigned long long>(options.seed),
                   numberOf(hyper.rate));
  if (const std::string other = hyper.describeOther(program);
      !other.empty() && !options.onlyEvaluates())
    text += "  " + printableMessage(other);
  if (threads)
    text += format("  --threads=%d", threads);
  if (!libraries.empty())
    text += "  " + libraries;
  if (!collectives.empty())
    text += "\n" + collectives;
  if (!attention.name.empty())
    text += "\nattention by " + attention.name +
            (attention.workspace.empty() ? "" : ", scratch memory " + attention.workspace);
  text += "\n";
  text += describeData();
  return text + describeDrawn(drawn);
}

std::string RunHeader::describeData() const {
  std::string text;
  for (const DataSource &source : data.training) {
    const std::size_t files = source.files.size();
    if (data.training.size() == 1 && files == 1)
      return "";
    text += epochs.empty() ? "data: "
                           : format("data: %.3g%% from '%s', ", 100 * source.weight,
                                    printableMessage(source.name).c_str());
    text += format("%zu file%s, %lld sample%s", files, files == 1 ? "" : "s",
                   static_cast<long long>(source.samples), source.samples == 1 ? "" : "s");
    if (!epochs.empty())
      text +=
          format(", %.3g epochs", epochs[static_cast<std::size_t>(&source - &data.training[0])]);
    text += "\n";
  }
  return text;
}

void RunHeader::warn() const {
  const std::int64_t warmup = hyper.schedule.warmup;
  if (warmup > steps)
    std::fprintf(stderr,
                 "%s: warning: the learning rate rises over %lld steps (--warmup), and this run "
                 "has %lld; train longer or with a smaller --warmup\n",
                 program.name, static_cast<long long>(warmup), static_cast<long long>(steps));
  else if (hyper.ends() && warmup > hyper.end)
    std::fprintf(
        stderr,
        "%s: warning: the learning rate rises over %lld steps (--warmup), and the schedule "
        "ends at step %lld (--schedule-steps): the steps after the warmup have the minimum "
        "rate; give a smaller --warmup or more --schedule-steps\n",
        program.name, static_cast<long long>(warmup), static_cast<long long>(hyper.end));
  if (const std::string remark = hyper.remarkOnNoDecay(program);
      options.groups.noDecay && !remark.empty())
    std::fprintf(stderr, "%s: warning: %s\n", program.name, printableMessage(remark).c_str());
  for (std::size_t i = 0; i < epochs.size(); ++i)
    if (epochs[i] == 0)
      std::fprintf(stderr,
                   "%s: warning: no sample of '%s' is drawn by the end of this run, as its weight "
                   "is %.3g of all: train longer, or give it a larger weight\n",
                   program.name, printableMessage(data.training[i].name).c_str(),
                   data.training[i].weight);
}

std::string RunHeader::record() const {
  Json run;
  run["model"] = program.name;
  run["version"] = runtimeVersion();
  const std::int64_t all = elementsOf(program, false), trained = elementsOf(program, true);
  run["parameters"] = all;
  if (trained != all)
    run["trainable"] = trained;
  run["mesh"] = mesh;
  run["ranks"] = worldSize(program);
  run["steps"] = steps;
  run["batch"] = globalBatch(program);
  run["arena_bytes"] = arenaBytesOf(program);
  run["compiled"] = program.options;
  run["seed"] = options.seed;
  run["lr"] = numberOf(hyper.rate);
  run["data"] = options.data.size() == 1 ? Json(options.data.front())
                : options.data.empty()   ? Json("")
                                         : Json(options.data);
  for (std::size_t i = 0; i < epochs.size(); ++i)
    run["sources"].push_back({{"name", data.training[i].name},
                              {"weight", data.training[i].weight},
                              {"files", data.training[i].files.size()},
                              {"samples", data.training[i].samples},
                              {"epochs", epochs[i]}});
  if (threads)
    run["threads"] = threads;
  run["libraries"] = libraries;
  if (!collectives.empty())
    run["collectives"] = collectives;
  if (!attention.name.empty())
    run["attention"] = attention.name;
  run["digest"] = digestText(digestOf(program));
  run["model_digest"] = program.modelDigest;
  run["compiler"] = *program.compilation ? Json::parse(program.compilation) : Json::object();
  run["arguments"] = options.arguments;
  run["program"] = options.command;
  run["directory"] = currentFolder();
  run["environment"] = environmentOfRun();
  if (const auto launched = detectLauncher())
    run["launcher"] = launched->by;
  run["plan"] = meshOf(program);
  run["tokens_per_sample"] = program.tokensPerSample;
  run["shuffle"] = options.shuffle;
  const ScheduleOptions &schedule = hyper.schedule;
  run["schedule"] = {{"kind", kScheduleNames[schedule.kind]},
                     {"warmup", schedule.warmup},
                     {"min_lr", numberOf(schedule.minimum)},
                     {"decay_share", numberOf(schedule.decayShare)}};
  if (hyper.ends() && !options.onlyEvaluates())
    run["schedule"]["steps"] = hyper.end;
  run["optimizer"] = {{"rule", hyper.rule}, {"clip", numberOf(hyper.clip)}};
  for (const Hyperparameters::Constant &constant : hyper.constants)
    run["optimizer"][constant.name] = numberOf(constant.value);
  if (!hyper.groups.rateScales.empty())
    run["optimizer"]["lr_scale"] = hyper.groups.rateScaleTexts();
  if (!hyper.groups.noDecay.empty())
    run["optimizer"]["no_decay"] = hyper.groups.noDecay;
  run["files"] = Json::object();
  add(run["files"], "data", contents.data);
  add(run["files"], "val_data", contents.valData);
  add(run["files"], "init", contents.init);
  if (!drawn.empty())
    run["drawn"] = drawn;
  if (!folder.empty())
    run["resumed"] = {{"folder", folder},
                      {"step", from.step},
                      {"digest", digestText(contentDigest(from.text()))}};
  for (const ChangedSetting &change : hyper.changes) {
    const auto value = [&](const std::string &text) {
      const bool isText =
          change.name == "schedule" || change.name == "lr_scale" || change.name == "no_decay";
      return isText ? Json(text) : Json::parse(text);
    };
    run["changed"][change.name] = {{"from", value(change.before)}, {"to", value(change.now)}};
  }
  if (options.restarts)
    run["restart"] = options.restarts;
  return dump(run);
}

std::string RunHeader::line() const { return "{\"run\":" + record() + "}\n"; }

} // namespace fsdp::rt
