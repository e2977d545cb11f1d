# Headers that are precompiled: those of MLIR and of the dialects for all libraries of the compiler; those of GoogleTest,
# with MLIR's and without, for unit tests; and the runtime's for the programs that fsdpc and tests
# compile. CMake's support for precompiled headers passes absolute paths to the compiler, which
# would prevent clones from sharing ccache. ccache identifies the result by a checksum of the header
# and the flags (CCACHE_PCH_EXTSUM), as the file itself differs from clone to clone.
#
# A target whose property FSDP_PRECOMPILED is one of the names uses that header, or none if the
# property is empty. Other targets that link MLIR, directly or through a library of the compiler,
# use `Precompiled`.
if(NOT FSDP_PRECOMPILES)
  return()
endif()

# fsdp_precompile(NAME HEADER [INSTANTIATE] FLAG...): NAME.pch of the header, compiled with these flags. The target is
# NAME_headers. INSTANTIATE: its templates are instantiated once, which saves time but may change the order of functions.
function(fsdp_precompile name header)
  cmake_parse_arguments(ARG "INSTANTIATE" "" "" ${ARGN})
  set(flags ${ARG_UNPARSED_ARGUMENTS})
  string(SHA256 how "${flags} ${MLIR_VERSION} ${LLVM_PACKAGE_VERSION} ${CMAKE_CXX_COMPILER_VERSION}")
  set(command ${CMAKE_CXX_COMPILER} ${flags} -I${CMAKE_SOURCE_DIR} -I${CMAKE_BINARY_DIR} -x c++-header)
  set(instantiate)
  if(ARG_INSTANTIATE)
    set(instantiate -fpch-instantiate-templates)
  endif()
  add_custom_command(OUTPUT ${name}.pch.sum ${name}.pch
    COMMAND ${command} -E -P ${CMAKE_SOURCE_DIR}/${header} -o ${name}.pch.text
    COMMAND ${CMAKE_COMMAND} -E echo ${how} >> ${name}.pch.text
    COMMAND ${CMAKE_COMMAND} -E sha256sum ${name}.pch.text > ${name}.pch.sum
    COMMAND ${CMAKE_COMMAND} -E rm ${name}.pch.text
    COMMAND ${command} ${instantiate} -Xclang -fno-pch-timestamp -MD -MT ${name}.pch.sum -MF ${name}.pch.d ${CMAKE_SOURCE_DIR}/${header}
            -o ${name}.pch
    DEPENDS ${CMAKE_SOURCE_DIR}/${header} nn_tablegen fsdp_tablegen
    DEPFILE ${CMAKE_BINARY_DIR}/${name}.pch.d
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    COMMENT "Precompiling ${header}")
  add_custom_target(${name}_headers DEPENDS ${name}.pch)
endfunction()

function(targets_below folder result)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder ${subfolders})
    targets_below(${subfolder} below)
    list(APPEND targets ${below})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

# As CMake compiles libraries and programs of this project. Programs are compiled as position-independent code too.
string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
separate_arguments(definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
get_directory_property(options COMPILE_OPTIONS)
list(APPEND flags -fPIC ${definitions} ${options} -std=c++17)
foreach(folder ${MLIR_INCLUDE_DIRS})
  list(APPEND flags -isystem ${folder})
endforeach()
fsdp_precompile(Precompiled dialect/PrecompiledHeaders.h INSTANTIATE ${flags})
fsdp_precompile(PrecompiledTest test/unit/PrecompiledHeaders.h INSTANTIATE ${flags} ${FSDP_TEST_FLAGS})
fsdp_precompile(PrecompiledMlirTest test/unit/PrecompiledMlirHeaders.h INSTANTIATE ${flags} ${FSDP_TEST_FLAGS})
# With the flags with which fsdpc compiles programs (runtime/CMakeLists.txt, `toolchain.json`).
# fsdpc finds the file next to the runtime's sources. An installed compiler has no precompiled
# header: an update of the system's headers would invalidate it.
include(runtime/Numerics.cmake)
fsdp_precompile(Runtime runtime/Runtime.h INSTANTIATE ${FSDP_NUMERICS_FLAGS} ${FSDP_ARCH_FLAGS} ${FSDP_SANITIZER_FLAGS}
                ${FSDP_HARDENING_FLAGS} ${FSDP_PIE_FLAGS} -std=c++20)
# As fsdpc compiles programs that print their actions, of both targets (codegen/Project.cpp).
fsdp_precompile(Record runtime/Runtime.h INSTANTIATE -std=c++20 -O0 -DFSDP_RECORD)
foreach(file Runtime.pch Runtime.pch.sum Record.pch Record.pch.sum)
  file(CREATE_LINK ${CMAKE_BINARY_DIR}/${file} ${CMAKE_BINARY_DIR}/share/fsdpc/${file} SYMBOLIC)
endforeach()
add_dependencies(fsdpc_driver Runtime_headers Record_headers)
# With the flags with which tests compile programs: CPU programs that need not be fast
# (test/unoptimized.in), for which fsdpc omits the processor flags because the compiler is not the
# build's, and GPU programs for the emulator (test/emulator).
set(flags ${FSDP_NUMERICS_FLAGS} ${FSDP_SANITIZER_FLAGS} ${FSDP_HARDENING_FLAGS} ${FSDP_PIE_FLAGS} -std=c++20 -march=native)
list(FILTER flags EXCLUDE REGEX "^-m[^a]")
fsdp_precompile(Unoptimized runtime/Runtime.h INSTANTIATE ${flags} -O0 -U_FORTIFY_SOURCE -fno-stack-protector)
add_dependencies(fsdpc_driver Unoptimized_headers)
if(TARGET cuda_emulator)
  separate_arguments(flags UNIX_COMMAND "${FSDP_EMULATED_FLAGS}")
  fsdp_precompile(EmulatedHost runtime/CudaRuntime.h INSTANTIATE ${flags} -O0)
  separate_arguments(kernel_flags UNIX_COMMAND "${FSDP_EMULATED_PROGRAM_KERNEL_FLAGS}")
  list(REMOVE_ITEM kernel_flags -xc++)
  fsdp_precompile(EmulatedKernels runtime/kernels/cuda/FusedKernel.h INSTANTIATE ${flags} ${kernel_flags})
  add_dependencies(cuda_emulator EmulatedHost_headers EmulatedKernels_headers)
endif()

targets_below(${CMAKE_SOURCE_DIR} targets)
foreach(target ${targets})
  get_target_property(kind ${target} TYPE)
  if(NOT kind MATCHES "EXECUTABLE|LIBRARY")
    continue()
  endif()
  get_property(chosen TARGET ${target} PROPERTY FSDP_PRECOMPILED SET)
  get_property(name TARGET ${target} PROPERTY FSDP_PRECOMPILED)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(NOT chosen AND "${libraries}" MATCHES "${FSDP_USES_MLIR}")
    set(name Precompiled)
  endif()
  if(name)
    if(kind STREQUAL EXECUTABLE)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
    add_dependencies(${target} ${name}_headers)
    # Relative to the build folder, where Ninja starts compilers.
    target_compile_options(${target} PRIVATE "SHELL:-include-pch ${name}.pch" "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endforeach()
