# The runtime library for levels of x86-64, for the package: the first program of an installed
# compiler then need not wait for a build for its processor. tools/fsdpc/PackagedRuntime.cpp chooses
# one of them.
option(FSDP_PACKAGE_RUNTIMES "compile the runtime library for levels of x86-64, for the package" OFF)
if(NOT FSDP_PACKAGE_RUNTIMES)
  return()
endif()
set(levels x86-64-v3 x86-64-v4 x86-64-v4-bf16)
set(switches_x86-64-v3 -march=x86-64-v3)
set(switches_x86-64-v4 -march=x86-64-v4)
set(switches_x86-64-v4-bf16 -march=x86-64-v4 -mavx512bf16)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/* ${PROJECT_SOURCE_DIR}/base/* ${PROJECT_SOURCE_DIR}/tokenizer/*)
foreach(level ${levels})
  set(built ${CMAKE_BINARY_DIR}/package-runtimes/${level})
  add_custom_command(OUTPUT ${built}/toolchain.json
    COMMAND ${CMAKE_COMMAND} "-DSOURCES=${PROJECT_SOURCE_DIR}/runtime" "-DBUILD=${CMAKE_BINARY_DIR}/build-runtimes/${level}" "-DTO=${built}"
            "-DSWITCHES=${switches_${level}}" "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DLAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}"
            "-DVERSION=${FSDP_VERSION}" "-DGENERATOR=${CMAKE_GENERATOR}" -P ${CMAKE_CURRENT_SOURCE_DIR}/BuildRuntime.cmake
    DEPENDS ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/BuildRuntime.cmake
    COMMENT "Building the runtime library for ${level}" USES_TERMINAL VERBATIM)
  list(APPEND toolchains ${built}/toolchain.json)
endforeach()
add_custom_target(fsdpc-runtimes ALL DEPENDS ${toolchains})
install(DIRECTORY ${CMAKE_BINARY_DIR}/package-runtimes/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/fsdpc)
