//===- Kernels.cpp - finds the PTX of a kernel, and runs a grid of it ------------------------===//

#include "Kernels.h"

#include "Emulator.h"
#include "Failure.h"
#include "Machine.h"
#include "Symbols.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

namespace emulator::ptx {

namespace {

struct Kernel {
  std::string mangled;
  std::unique_ptr<Code> code; ///< once it has been launched
};

struct File {
  std::string path, text;
  std::unique_ptr<Module> module;        ///< once a kernel of it has been launched
  std::map<std::string, Kernel> kernels; ///< by their names in C++
};

/// The modules of a folder. Kernels of unnamed namespaces have names with numbers in PTX, which C++
/// names do not show.
class Folder {
public:
  explicit Folder(const std::string &path) : path(path) {
    std::error_code error;
    for (const auto &entry : std::filesystem::directory_iterator(path, error))
      if (entry.path().extension() == ".ptx")
        read(entry.path().string());
    if (files.empty())
      throw Refusal("FSDP_EMULATOR: got 'ptx=" + path + "', expected a folder with files *.ptx");
  }

  const Code &codeOf(const std::string &mangled) {
    const std::string name = demangled(mangled);
    for (const auto &file : files) {
      const auto kernel = file->kernels.find(name);
      if (kernel == file->kernels.end())
        continue;
      if (!file->module)
        file->module = parse(file->text, file->path);
      if (!kernel->second.code)
        kernel->second.code = std::make_unique<Code>(
            decode(*file->module, *file->module->find(kernel->second.mangled)));
      return *kernel->second.code;
    }
    throw Refusal("kernel " + name + ": no module of '" + path + "' has it");
  }

private:
  void read(const std::string &file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    auto read = std::make_unique<File>();
    read->path = file;
    read->text = text.str();
    const std::string entry = ".entry ";
    for (std::size_t at = read->text.find(entry); at != std::string::npos;
         at = read->text.find(entry, at)) {
      at += entry.size();
      const std::string mangled =
          read->text.substr(at, read->text.find_first_of("( \t\n", at) - at);
      read->kernels[demangled(mangled)].mangled = mangled;
    }
    files.push_back(std::move(read));
  }

  std::string path;
  std::vector<std::unique_ptr<File>> files;
};

std::string run(const Code &code, const Launch &launch, bool followsRaces) {
  const std::string name = kernelName(launch.kernel);
  const auto &parameters = code.function->parameters;
  Grid grid{
      launch.grid, launch.block,       launch.sharedBytes, std::vector<char>(code.parameterBytes),
      0,           settings().shuffle, followsRaces,       name};
  grid.seed = settings().seed * 0x9E3779B97F4A7C15u + launch.number;
  const std::vector<const void *> arguments = launch.arguments();
  if (parameters.size() != arguments.size())
    return formatted("kernel %s: got %zu arguments, its PTX expects %zu", name.c_str(),
                     arguments.size(), parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::size_t bytes = launch.type.sizes[i];
    if (parameters[i].bytes != bytes)
      return formatted("kernel %s: argument %zu has %zu bytes, its PTX expects %zu", name.c_str(),
                       i, bytes, static_cast<std::size_t>(parameters[i].bytes));
    std::copy_n(static_cast<const char *>(arguments[i]), bytes,
                grid.parameters.begin() + static_cast<std::ptrdiff_t>(parameters[i].offset));
  }
  try {
    Block(code, grid).runAll();
  } catch (const Fault &reason) {
    return reason.text;
  }
  return "";
}

} // namespace

std::string runGrid(const Launch &launch, const std::string &path) {
  static std::mutex mutex;
  static auto *folders = new std::map<std::string, std::unique_ptr<Folder>>;
  const Code *code = nullptr;
  try {
    std::lock_guard<std::mutex> lock(mutex);
    auto &folder = (*folders)[path];
    if (!folder)
      folder = std::make_unique<Folder>(path);
    code = &folder->codeOf(symbolOf(launch.kernel).name);
  } catch (const Refusal &refusal) {
    return refusal.what();
  }
  return run(*code, launch, settings().races);
}

std::string runText(const std::string &text, const std::string &name, const Launch &launch,
                    bool followsRaces) {
  const std::unique_ptr<Module> module = parse(text, "text.ptx");
  const Function *function = module->find(name);
  if (!function)
    throw Refusal("text.ptx: no kernel " + name);
  const Code code = decode(*module, *function);
  return run(code, launch, followsRaces);
}

} // namespace emulator::ptx
