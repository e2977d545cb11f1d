//===- EachPassTest.cpp - every pass alone on every test file -------------===//
//
// A pass may be run on a module that the pipeline would not pass to it: of another phase, or of few
// dialects. It may then fail with a diagnostic, but not crash. Each case has a separate context, in
// which only the dialects that the module and the pass request are loaded.
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Passes.h"
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

namespace {

std::string readFile(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The names of all passes of passes/Passes.td.
std::vector<std::string> readPasses(const std::filesystem::path &source) {
  const std::string text = readFile(source / "passes" / "Passes.td");
  static const std::regex pass("Pass<\"([a-z-]+)\"");
  std::vector<std::string> names;
  for (std::sregex_iterator found(text.begin(), text.end(), pass), end; found != end; ++found)
    names.push_back((*found)[1]);
  return names;
}

/// The modules of a test file: it may have several, divided by `// -----` or, for split-file, by
/// `//--- NAME`.
std::vector<std::string> splitModules(const std::string &text) {
  std::vector<std::string> modules(1);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("// -----", 0) == 0 || line.rfind("//--- ", 0) == 0)
      modules.emplace_back();
    else
      modules.back() += line + "\n";
  }
  return modules;
}

/// Runs `pass` on `text` in a new context. False if the text is not a valid module. Ends the
/// process where the pass has no name.
bool runAlone(const DialectRegistry &registry, const std::string &pass, const std::string &text) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return false;
  PassManager manager(&context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
  const PassInfo *known = PassInfo::lookup(pass); // text would not be nested implicitly
  if (!known || failed(known->addToPipeline(manager, "", [](const Twine &) { return failure(); })))
    _exit(1);
  (void)manager.run(*module);
  return true;
}

/// The state and progress of a child process, in memory that it shares with its parent.
struct Progress {
  char doing[1024];
  int modules;
};

} // namespace

TEST(EachPass, FailsWithoutACrash) {
  const char *source = std::getenv("FSDP_SOURCE_DIR");
  const std::filesystem::path root = source ? source : ".";
  DialectRegistry registry;
  registry.insert<nn::NNDialect, mlir::fsdp::FSDPDialect, arith::ArithDialect, math::MathDialect,
                  func::FuncDialect>();
  nn::registerElementwiseModels(registry);
  mlir::fsdp::registerFSDPPasses();
  const std::vector<std::string> passes = readPasses(root);
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(root / "test"))
    if (entry.path().extension() == ".mlir")
      files.push_back(entry.path());
  auto *progress = static_cast<Progress *>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(progress, MAP_FAILED);
  progress->modules = 0;
  for (const std::filesystem::path &file : files) {
    std::vector<std::string> modules = splitModules(readFile(file));
    // A crash ends the pass in which it is, not the test.
    for (size_t next = 0; next < passes.size();) {
      std::cout.flush();
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        // Some passes print.
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        for (; next < passes.size(); ++next)
          for (size_t part = 0; part < modules.size(); ++part) {
            if (modules[part].empty())
              continue;
            std::snprintf(progress->doing, sizeof(progress->doing), "%s on module %zu of %s",
                          passes[next].c_str(), part, file.c_str());
            if (runAlone(registry, passes[next], modules[part]))
              ++progress->modules;
            else
              modules[part].clear(); // no pass runs on it
          }
        _exit(0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        break;
      ADD_FAILURE() << progress->doing << ": "
                    << (WIFSIGNALED(status) ? std::string("ended by ") + strsignal(WTERMSIG(status))
                                            : "status " + std::to_string(WEXITSTATUS(status)));
      const std::string doing = progress->doing;
      while (passes[next++] + " " != doing.substr(0, doing.find(' ') + 1))
        ;
    }
  }
  std::cout << progress->modules << " runs of " << passes.size() << " passes on modules of "
            << files.size() << " files\n";
  EXPECT_GE(passes.size(), 20U);
  EXPECT_GE(progress->modules, 5000);
  munmap(progress, sizeof(Progress));
}
