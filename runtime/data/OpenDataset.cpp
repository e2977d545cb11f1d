#include "runtime/data/OpenDataset.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "base/Safetensors.h"
#include "runtime/numerics/BFloat16.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <sys/resource.h>
#include <utility>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// One tensor per input; the first dimension counts samples.
class SafetensorsDataset final : public Dataset {
public:
  SafetensorsDataset(const std::string &path, Table<Input> inputs) : file(path), inputs(inputs) {
    for (const Input &input : inputs)
      tensors.push_back(&check(input));
    count = inputs.empty() ? 1 : tensors.front()->shape[0];
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i]->shape[0] != count)
        throw Error("'" + path + "': tensor '" + inputs[i].name + "': got " +
                    std::to_string(tensors[i]->shape[0]) + " samples, expected " +
                    std::to_string(count) + " as '" + inputs[0].name + "' has");
    if (count == 0)
      throw Error("'" + path + "': got no samples, expected at least one");
    for (std::size_t i = 0; i < tensors.size(); ++i)
      isInteger(inputs[i]) ? checkIntegers(inputs[i], *tensors[i])
                           : checkFloats(inputs[i], *tensors[i]);
    file.releasePages(); // checked; ranks read their parts
  }

  std::int64_t samples() const override { return count; }
  void requireWhole() const override { file.requireWhole(); }
  const char *form() const override { return "safetensors"; }
  void readAhead(std::size_t input, std::int64_t sample) const override {
    const FileTensor &tensor = *tensors[input];
    const std::size_t bytes = tensor.bytes / static_cast<std::size_t>(count);
    file.readAhead(tensor.data + static_cast<std::size_t>(sample) * bytes, bytes);
  }

  void read(std::size_t input, std::int64_t sample, void *to) const override {
    const auto width = static_cast<std::size_t>(elements(inputs[input].sample));
    const std::size_t first = static_cast<std::size_t>(sample) * width;
    const FileTensor &tensor = *tensors[input];
    switch (inputs[input].slice.dtype) {
    case DType::I32:
      return tensor.readIntegers(first, width, static_cast<std::int32_t *>(to));
    case DType::I64:
      return tensor.readIntegers(first, width, static_cast<std::int64_t *>(to));
    case DType::BF16:
      return readRounded(tensor, first, width, static_cast<bf16 *>(to));
    default:
      return tensor.readFloats(first, width, static_cast<float *>(to));
    }
  }

private:
  /// Elements [first, first + count) of `tensor`, rounded.
  static void readRounded(const FileTensor &tensor, std::size_t first, std::size_t count,
                          bf16 *to) {
    float values[1024];
    for (std::size_t begin = 0; begin < count; begin += std::size(values)) {
      const std::size_t block = std::min(std::size(values), count - begin);
      tensor.readFloats(first + begin, block, values);
      convert(values, block, to + begin);
    }
  }

  static bool isInteger(const Input &input) {
    return input.slice.dtype == DType::I32 || input.slice.dtype == DType::I64;
  }

  [[noreturn]] void refuse(const Input &input, const std::string &why) const {
    throw Error("'" + file.path() + "': tensor '" + input.name + "': " + why);
  }

  /// The place of an element for messages: its sample, and its index in the sample.
  std::string place(const Input &input, std::size_t element) const {
    const auto width = static_cast<std::size_t>(elements(input.sample));
    return "sample " + std::to_string(element / width) + ", element " +
           std::to_string(element % width);
  }

  const FileTensor &check(const Input &input) const {
    const FileTensor *tensor = file.find(input.name);
    if (!tensor) {
      NameList names;
      for (const FileTensor &each : file.tensors())
        names.add(each.name);
      refuse(input, "got " + (names.size() == 0 ? "no tensors" : "only " + names.list()) +
                        ", expected one tensor for each input of the model");
    }
    const bool integer = isInteger(input);
    if (integer ? !tensor->isInteger() : !tensor->isFloat())
      refuse(input, "got dtype " + tensor->dtype + ", expected " +
                        (integer ? "I32 or I64" : "F32, BF16, F16 or F64"));

    const auto &shape = tensor->shape;
    if (shape.empty() ||
        !std::equal(shape.begin() + 1, shape.end(), input.sample.begin(), input.sample.end())) {
      const std::string extents = shapeText(input.sample);
      refuse(input, "got shape " + shapeText(shape) + ", expected [samples" +
                        (input.sample.empty() ? "]" : ", ") +
                        (input.sample.empty() ? "" : extents.substr(1)));
    }
    return *tensor;
  }

  void checkFloats(const Input &input, const FileTensor &tensor) const {
    const std::size_t bad = tensor.firstNonfinite();
    if (bad == tensor.elements())
      return;
    float value;
    tensor.readFloats(bad, 1, &value);
    refuse(input, "got " + std::to_string(value) + " at " + place(input, bad) +
                      ", expected finite numbers; clean the data");
  }

  void checkIntegers(const Input &input, const FileTensor &tensor) const {
    std::int64_t low = INT64_MIN, high = INT64_MAX;
    if (input.slice.dtype == DType::I32)
      low = INT32_MIN, high = INT32_MAX;
    if (input.limit > 0)
      low = 0, high = input.limit - 1;
    const std::size_t total = tensor.elements();
    std::int64_t values[1024];
    for (std::size_t begin = 0; begin < total; begin += std::size(values)) {
      const std::size_t block = std::min(std::size(values), total - begin);
      tensor.readIntegers(begin, block, values);
      for (std::size_t i = 0; i < block; ++i)
        if (values[i] < low || values[i] > high)
          refuse(input, "got " + std::to_string(values[i]) + " at " + place(input, begin + i) +
                            ", expected values from " + std::to_string(low) + " to " +
                            std::to_string(high));
    }
  }

  SafetensorsFile file;
  Table<Input> inputs;
  std::vector<const FileTensor *> tensors;
  std::int64_t count = 0;
};

/// Raises the limit of open files, if permitted, to allow `count` more: each file of a data set
/// stays open. If that is not permitted, opening a file beyond the limit is an error.
void allowOpenFiles(std::size_t count) {
  constexpr rlim_t kOthers = 256; // of ranks, logs, libraries
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count + kOthers)
    return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, limit.rlim_cur + count);
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Whether the file is safetensors with a tensor for each of `inputs`, as a bad step leaves it.
bool hasSamples(const std::string &path, Table<Input> inputs) {
  if (!looksLikeSafetensors(MappedFile(path)))
    return false;
  try {
    const SafetensorsFile file(path);
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](const Input &input) { return file.find(input.name); });
  } catch (const Error &) { // of another kind: not a token file
    return false;
  }
}

class ConcatenatedDataset final : public Dataset {
public:
  explicit ConcatenatedDataset(std::vector<std::unique_ptr<Dataset>> given)
      : parts(std::move(given)), wasRead(parts.size()) {
    std::int64_t end = 0;
    for (const auto &part : parts)
      ends.push_back(end += part->samples());
  }

  std::int64_t samples() const override { return ends.back(); }
  void read(std::size_t input, std::int64_t sample, void *to) const override {
    const std::size_t part = partOf(sample);
    parts[part]->read(input, sample - firstOf(part), to);
    wasRead[part].store(true, std::memory_order_relaxed);
  }
  void readAhead(std::size_t input, std::int64_t sample) const override {
    const std::size_t part = partOf(sample);
    parts[part]->readAhead(input, sample - firstOf(part));
  }
  /// Checks the files that have been read since the last call.
  void requireWhole() const override {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (wasRead[i].exchange(false, std::memory_order_relaxed))
        parts[i]->requireWhole();
  }
  const char *form() const override { return parts.front()->form(); }

private:
  std::size_t partOf(std::int64_t sample) const {
    return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), sample) -
                                    ends.begin());
  }
  std::int64_t firstOf(std::size_t part) const { return part ? ends[part - 1] : 0; }

  std::vector<std::unique_ptr<Dataset>> parts;
  std::vector<std::int64_t> ends;                 ///< the sample after the last one of each part
  mutable std::vector<std::atomic<bool>> wasRead; ///< of each part
};

} // namespace

std::unique_ptr<Dataset> concatenate(std::vector<std::unique_ptr<Dataset>> parts) {
  return std::make_unique<ConcatenatedDataset>(std::move(parts));
}

std::unique_ptr<Dataset> openDataset(const std::string &path, Table<Input> inputs) {
  const auto isTokens = [](const Input &input) { return input.source != Source::Tensor; };
  if (std::any_of(inputs.begin(), inputs.end(), isTokens)) {
    if (hasSamples(path, inputs))
      return std::make_unique<SafetensorsDataset>(path, inputs);
    return openTokens(path, inputs);
  }
  if (isTokenFile(path))
    throw Error("'" + path +
                "': got a token file, expected a safetensors file with one tensor for "
                "each input of the model");
  return std::make_unique<SafetensorsDataset>(path, inputs);
}

std::unique_ptr<Dataset> openDataset(const std::vector<std::string> &paths, Table<Input> inputs,
                                     std::vector<std::int64_t> &samples) {
  allowOpenFiles(paths.size());
  std::vector<std::unique_ptr<Dataset>> parts;
  for (const std::string &path : paths) {
    parts.push_back(openDataset(path, inputs));
    samples.push_back(parts.back()->samples());
    const std::string form = parts.back()->form(), first = parts.front()->form();
    if (form != first)
      throw Error("'" + path + "': got " + form + ", expected " + first + " as '" + paths.front() +
                  "' has: the files of a run are written by one tokenizer, in one form; convert "
                  "this one or leave it out");
  }
  return parts.size() == 1 ? std::move(parts.front()) : concatenate(std::move(parts));
}

} // namespace fsdp::rt
