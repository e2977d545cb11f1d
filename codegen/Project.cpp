//===- Project.cpp --------------------------------------------------------===//
//
// FSDP_PROGRAM_COMPILER, _FLAGS and _LIBRARIES are defined by CMakeLists.txt; lists are separated
// by bars.
//
//===----------------------------------------------------------------------===//

#include "codegen/Project.h"

#include "llvm/ADT/SmallVector.h"

using namespace mlir::fsdp;
using llvm::StringRef;

static std::vector<std::string> sourceFiles(const EmittedProgram &program) {
  std::vector<std::string> sources;
  for (const auto &[name, text] : program.files)
    if (StringRef(name).ends_with(".cpp"))
      sources.push_back(name);
  return sources;
}

std::string mlir::fsdp::projectFile(const EmittedProgram &program, StringRef name) {
  std::string sources;
  for (const std::string &source : sourceFiles(program))
    sources += " " + source;
  return "# Builds " + name.str() + R"(: cmake -S . -B build && cmake --build build -j
cmake_minimum_required(VERSION 3.18)
project(train LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_subdirectory(runtime)
include(runtime/Numerics.cmake)

add_executable(train)" +
         sources + R"()
target_link_libraries(train PRIVATE fsdp_runtime)
# Writes its actions down instead of performing them; needs no library.
add_executable(record EXCLUDE_FROM_ALL)" +
         sources + R"()
target_compile_definitions(record PRIVATE FSDP_RECORD)
foreach(program train record)
  target_compile_features(${program} PRIVATE cxx_std_17)
  target_compile_options(${program} PRIVATE ${FSDP_NUMERICS_FLAGS} ${FSDP_ARCH_FLAGS})
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endforeach()
)";
}

static void appendList(BuildCommand &command, StringRef list) {
  llvm::SmallVector<StringRef> parts;
  list.split(parts, '|', -1, /*KeepEmpty=*/false);
  command.insert(command.end(), parts.begin(), parts.end());
}

std::vector<BuildCommand> mlir::fsdp::buildCommands(const EmittedProgram &program,
                                                    const BuildPlaces &places) {
  std::vector<BuildCommand> commands;
  BuildCommand link = {FSDP_PROGRAM_COMPILER};
  for (const std::string &source : sourceFiles(program)) {
    BuildCommand compile = {FSDP_PROGRAM_COMPILER, "-std=c++17"};
    // The recorded program computes nothing, so it is not worth optimizing.
    if (places.record)
      compile.insert(compile.end(), {"-O0", "-DFSDP_RECORD"});
    else
      appendList(compile, FSDP_PROGRAM_FLAGS);
    std::string path = places.sources + "/" + source, object = path + ".o";
    compile.insert(compile.end(), {"-I" + places.runtimeRoot, "-c", path, "-o", object});
    link.push_back(object);
    commands.push_back(std::move(compile));
  }
  link.insert(link.end(), {"-o", places.output});
  if (!places.record) {
    link.push_back(places.runtimeLibrary);
    appendList(link, FSDP_PROGRAM_LIBRARIES);
  }
  commands.push_back(std::move(link));
  return commands;
}
