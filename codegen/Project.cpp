//===- Project.cpp --------------------------------------------------------===//

#include "codegen/Project.h"

#include "codegen/Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir::fsdp;
using llvm::StringRef;

/// The files of `program` with this ending, each after a blank.
static std::string filesEnding(const EmittedProgram &program, StringRef extension) {
  std::string list;
  for (const auto &[name, text] : program.files)
    if (StringRef(name).ends_with(extension))
      list += " " + name;
  return list;
}

std::string mlir::fsdp::projectFile(const EmittedProgram &program, StringRef name,
                                    TargetKind target, llvm::ArrayRef<std::string> architectures) {
  const bool cuda = target == TargetKind::Cuda;
  const std::string kernels = filesEnding(program, ".cu"), sources = filesEnding(program, ".cpp");
  std::string text = "# Builds " + escaped(name) + (cuda ? " for CUDA" : "") +
                     ": cmake -S . -B build && cmake --build build -j\n";
  if (cuda)
    text += "# Needs the CUDA toolkit, NCCL and a C++20 compiler; nvcc compiles kernels only.\n";
  text += R"(cmake_minimum_required(VERSION 3.18)
project(train LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
)";
  if (cuda)
    text += R"(set(FSDP_TARGETS cuda CACHE STRING "" FORCE)
set(FSDP_CUDA_ARCHITECTURES ")" +
            llvm::join(architectures, ";") +
            R"(" CACHE STRING "compute capabilities that kernels are compiled for")
)";
  text += R"(add_subdirectory(runtime)
include(runtime/Numerics.cmake)
include(runtime/Hardening.cmake)

add_executable(train)" +
          sources + ")\n" + (kernels.empty() ? "" : "fsdp_add_kernels(train" + kernels + ")\n") +
          "target_link_libraries(train PRIVATE " + (cuda ? "fsdp_runtime_cuda" : "fsdp_runtime") +
          ")\n# Prints its actions instead of executing them; needs " +
          (cuda ? "neither CUDA nor a" : "no") + R"( library.
add_executable(record EXCLUDE_FROM_ALL)" +
          sources + R"()
target_compile_definitions(record PRIVATE FSDP_RECORD)
foreach(program train record)
  target_compile_features(${program} PRIVATE cxx_std_20)
  target_compile_options(${program} PRIVATE )" +
          (cuda ? "" : "${FSDP_NUMERICS_FLAGS} ${FSDP_ARCH_FLAGS} ") +
          R"(${FSDP_HARDENING_FLAGS} ${FSDP_PIE_FLAGS})
  target_link_options(${program} PRIVATE -pie ${FSDP_HARDENING_LINK_FLAGS})
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endforeach()
)";
  return text;
}

/// Compiles one file to `object`; empty for files that are not sources.
static BuildCommand compileCommand(StringRef file, const std::string &object,
                                   const BuildPlaces &places) {
  bool cuda = places.target == TargetKind::Cuda, kernels = file.ends_with(".cu");
  if (!file.ends_with(".cpp") && (!kernels || places.record))
    return {};
  BuildCommand command = {kernels ? places.toolchain.nvcc : places.toolchain.compiler,
                          kernels ? "-std=c++17" : "-std=c++20"};
  // The recorded program computes nothing, so it is not worth optimizing; neither are the calls of
  // a host program.
  if (places.record)
    command.insert(command.end(), {"-O0", "-DFSDP_RECORD"});
  else if (kernels) {
    command.insert(command.end(),
                   {"-O3", "--fmad=false", "--expt-relaxed-constexpr", "-Xcompiler=-fPIC"});
    for (std::string &option : codeOptions(places.architectures))
      command.push_back(std::move(option));
  } else if (cuda)
    command.push_back("-O1");
  else
    llvm::append_range(command, places.toolchain.flags);
  if (!kernels && !places.record)
    llvm::append_range(command, places.toolchain.hardening);
  command.push_back("-I" + places.runtimeRoot);
  if (cuda && !places.record)
    for (const std::string &folder : places.toolchain.includes)
      command.insert(command.end(), {"-isystem", folder});
  const bool whole = llvm::sys::path::is_absolute(file);
  command.insert(command.end(),
                 {"-c", whole ? file.str() : places.sources + "/" + file.str(), "-o", object});
  return command;
}

std::vector<BuildCommand> mlir::fsdp::buildCommands(const EmittedProgram &program,
                                                    const BuildPlaces &places) {
  std::vector<BuildCommand> commands;
  BuildCommand link = {places.toolchain.compiler};
  for (const auto &[name, text] : program.files) {
    std::string object = places.sources + "/" + name + ".o";
    BuildCommand compile = compileCommand(name, object, places);
    if (compile.empty())
      continue;
    link.push_back(object);
    commands.push_back(std::move(compile));
  }
  // Their definitions replace those of the library.
  for (const std::string &file : places.runtimeKernels) {
    link.push_back(places.sources + "/runtime." + llvm::sys::path::filename(file).str() + ".o");
    commands.push_back(compileCommand(file, link.back(), places));
  }
  link.insert(link.end(), {"-o", places.output});
  // The program depends only on the libraries that it uses.
  link.push_back("-Wl,--as-needed");
  if (!places.record)
    llvm::append_range(link, places.toolchain.libraries);
  commands.push_back(std::move(link));
  return commands;
}
