# The library that generated CUDA programs link. The compiler of the program compiles everything but
# the kernels; nvcc is called only for those, and not as a CMake language, which would make every
# configuration look for it.

# Host files, and kernels.
set(host_sources
  comm/cuda/DevicePeer.cpp
  comm/cuda/HeldReceives.cpp
  comm/cuda/LoopbackCollectives.cpp
  comm/cuda/Monitor.cpp
  comm/cuda/NcclChoices.cpp
  comm/cuda/NcclCollectives.cpp
  comm/cuda/NcclWindows.cpp
  comm/cuda/PendingActions.cpp
  comm/cuda/ShardedCollectives.cpp
  execution/cuda/AttentionChoice.cpp
  execution/cuda/Context.cpp
  execution/cuda/CudaDevice.cpp
  execution/cuda/EventTrace.cpp
  execution/cuda/InputStaging.cpp
  execution/cuda/Launch.cpp
  execution/cuda/ProductTuner.cpp
  execution/cuda/ProfilerRanges.cpp
  execution/cuda/SegmentGraphs.cpp
  kernels/cuda/CudnnAttention.cpp
  kernels/cuda/CudnnGraph.cpp
  kernels/cuda/CudnnLibrary.cpp
  kernels/cuda/Matmul.cpp
  kernels/cuda/ProductTimes.cpp
)
file(GLOB kernel_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
     ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/*.cu)

# For builds of the same sources by other means, such as the tests' emulator.
list(TRANSFORM host_sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
list(TRANSFORM kernel_sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
set_property(GLOBAL PROPERTY FSDP_CUDA_HOST_SOURCES ${host_sources})
set_property(GLOBAL PROPERTY FSDP_CUDA_KERNEL_SOURCES ${kernel_sources})

find_program(FSDP_NVCC nvcc HINTS /usr/local/cuda/bin $ENV{CUDA_HOME}/bin)
if(FSDP_NVCC)
  get_filename_component(toolkit ${FSDP_NVCC} REALPATH)
  get_filename_component(toolkit ${toolkit} DIRECTORY)
  get_filename_component(toolkit ${toolkit} DIRECTORY)
endif()
find_path(FSDP_CUDA_INCLUDE_DIR cuda_runtime.h HINTS ${toolkit}/include)
find_library(FSDP_CUDART_LIBRARY cudart HINTS ${toolkit}/lib64)
find_library(FSDP_CUBLASLT_LIBRARY cublasLt HINTS ${toolkit}/lib64)
find_path(FSDP_NCCL_INCLUDE_DIR nccl.h HINTS ${toolkit}/include)
find_library(FSDP_NCCL_LIBRARY nccl HINTS ${toolkit}/lib64)
set(missing "")
set(missing_files "")
foreach(part_and_file NVCC=nvcc CUDA_INCLUDE_DIR=cuda_runtime.h CUDART_LIBRARY=libcudart CUBLASLT_LIBRARY=libcublasLt
        NCCL_INCLUDE_DIR=nccl.h NCCL_LIBRARY=libnccl)
  string(REPLACE "=" ";" part_and_file ${part_and_file})
  list(POP_FRONT part_and_file part file)
  if(NOT FSDP_${part})
    list(APPEND missing FSDP_${part})
    list(APPEND missing_files ${file})
  endif()
endforeach()
if(missing AND "cuda" IN_LIST FSDP_TARGETS)
  # fsdpc, which configures this folder for the first program, uses the file for its message.
  list(JOIN missing_files ", " missing_files)
  file(WRITE ${CMAKE_BINARY_DIR}/missing.txt "${missing_files}")
  message(FATAL_ERROR "the CUDA toolkit and NCCL are needed: install them, or set ${missing}")
elseif(missing)
  message(VERBOSE "no fsdp_runtime_cuda: ${missing} not found")
  return()
endif()
if(POLICY CMP0116)
  cmake_policy(SET CMP0116 NEW) # paths in depfiles are as nvcc writes them: absolute
endif()
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/program/CudaArchitectures.def architectures
     REGEX "^FSDP_CUDA_ARCHITECTURE\\(\"[0-9]+[af]?\"\\)$")
string(REGEX REPLACE "FSDP_CUDA_ARCHITECTURE\\(\"([0-9]+[af]?)\"\\)" "\\1" architectures "${architectures}")
if(NOT architectures)
  message(FATAL_ERROR "runtime/program/CudaArchitectures.def got no line of the form FSDP_CUDA_ARCHITECTURE(\"90\"), expected at least one")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/program/CudaArchitectures.def)
# A build folder follows changes of the list, unless another value was set.
if(DEFINED CACHE{FSDP_DEFAULT_ARCHITECTURES} AND NOT FSDP_DEFAULT_ARCHITECTURES STREQUAL "${architectures}"
   AND FSDP_DEFAULT_ARCHITECTURES STREQUAL "${FSDP_CUDA_ARCHITECTURES}")
  unset(FSDP_CUDA_ARCHITECTURES CACHE)
endif()
set(FSDP_DEFAULT_ARCHITECTURES ${architectures} CACHE INTERNAL "the list when the folder was configured last")
set(FSDP_CUDA_ARCHITECTURES ${architectures} CACHE STRING "compute capabilities that kernels are compiled for")
# Machine code for each, and PTX for the newest, from which a driver compiles for devices that are
# newer still (codegen/CudaArchitectures.cpp has the same).
set(FSDP_CUDA_CODE "")
set(newest 0)
set(distinct ${FSDP_CUDA_ARCHITECTURES})
list(REMOVE_DUPLICATES distinct)
foreach(architecture IN LISTS FSDP_CUDA_ARCHITECTURES)
  if(NOT architecture MATCHES "^([0-9]+)[af]?$" OR CMAKE_MATCH_1 LESS 80)
    set(distinct "")
    break()
  endif()
  if(CMAKE_MATCH_1 GREATER newest)
    set(newest ${CMAKE_MATCH_1})
  endif()
  list(APPEND FSDP_CUDA_CODE -gencode=arch=compute_${architecture},code=sm_${architecture})
endforeach()
if(NOT distinct OR NOT distinct STREQUAL "${FSDP_CUDA_ARCHITECTURES}")
  message(FATAL_ERROR "FSDP_CUDA_ARCHITECTURES got '${FSDP_CUDA_ARCHITECTURES}', expected different compute capabilities from 80 on, such as 80;90a;100")
endif()
# Without it, kernels run on devices of FSDP_CUDA_ARCHITECTURES alone, and nvcc needs a third less time: ./check on a machine without a GPU.
option(FSDP_PTX_FOR_NEWER "the runtime's kernels have PTX for devices that are newer than all of FSDP_CUDA_ARCHITECTURES" ON)
if(FSDP_PTX_FOR_NEWER)
  list(APPEND FSDP_CUDA_CODE -gencode=arch=compute_${newest},code=compute_${newest})
endif()
# With FSDP_KEEP_PTX, which a build with tests sets, objects hold the PTX from which ptxas made the machine code of the last architecture too:
# tests interpret it (test/unit/cuda), and nvcc compiles each kernel once. Its statements name lines of the source with FSDP_KERNEL_LINES, which
# makes objects about twice as large.
option(FSDP_KERNEL_LINES "PTX of the runtime's kernels has lines of the source" OFF)
if(FSDP_KEEP_PTX)
  list(GET FSDP_CUDA_ARCHITECTURES -1 architecture)
  list(APPEND FSDP_CUDA_CODE -gencode=arch=compute_${architecture},code=compute_${architecture})
  list(REMOVE_DUPLICATES FSDP_CUDA_CODE)
  if(FSDP_KERNEL_LINES)
    list(APPEND FSDP_CUDA_CODE -Xcicc=-generate-line-info)
  endif()
endif()
set(FSDP_CUDA_CODE ${FSDP_CUDA_CODE} CACHE INTERNAL "nvcc's options for them")

set(FSDP_COMPILE_KERNELS ${CMAKE_CURRENT_SOURCE_DIR}/CompileKernels.cmake CACHE INTERNAL "")

# fsdp_add_kernels(TARGET FILE.cu ...): compiles kernels into the target. As on the CPU, products
# and sums are rounded separately unless a kernel calls fmaf. The resources that each kernel uses
# are written next to its object, in FILE.cu.o.resources (test/e2e/kernel-resources.test).
function(fsdp_add_kernels target)
  foreach(file IN LISTS ARGN)
    get_filename_component(path ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.dir/${name}.o)
    set(depfile "")
    if(CMAKE_GENERATOR MATCHES "Ninja")
      set(depfile DEPFILE ${object}.d)
    endif()
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/${target}.dir
      COMMAND ${CMAKE_COMMAND} -DRESOURCES=${object}.resources -P ${FSDP_COMPILE_KERNELS} --
              ${FSDP_NVCC_LAUNCHER} ${FSDP_NVCC} -std=c++17 -O3 --fmad=false --expt-relaxed-constexpr --resource-usage
              ${FSDP_CUDA_CODE} -Xcompiler=-fPIC
              -I${FSDP_RUNTIME_ROOT} -I${CMAKE_CURRENT_SOURCE_DIR} -I${FSDP_NCCL_INCLUDE_DIR}
              -MD -MF ${object}.d -c ${path} -o ${object}
      DEPENDS ${path} ${depfile} COMMENT "Compiling kernels ${name}" VERBATIM)
    target_sources(${target} PRIVATE ${object})
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  endforeach()
endfunction()
set(FSDP_RUNTIME_ROOT ${FSDP_RUNTIME_ROOT} CACHE INTERNAL "where includes are rooted")

set_source_files_properties(comm/cuda/ShardedCollectives.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON) # a name others have
add_library(fsdp_runtime_cuda STATIC ${FSDP_HOST_OBJECTS} ${host_sources})
fsdp_add_kernels(fsdp_runtime_cuda ${kernel_sources})
target_compile_features(fsdp_runtime_cuda PUBLIC cxx_std_17)
target_compile_options(fsdp_runtime_cuda PRIVATE ${FSDP_WARNINGS} ${FSDP_NUMERICS_FLAGS} ${FSDP_LIBRARY_FLAGS}
                       -fexceptions -frtti)
target_include_directories(fsdp_runtime_cuda PUBLIC ${FSDP_RUNTIME_ROOT})
target_include_directories(fsdp_runtime_cuda SYSTEM PUBLIC ${FSDP_CUDA_INCLUDE_DIR}
                           ${FSDP_NCCL_INCLUDE_DIR})
# Never the driver's library: a program that links it does not start without a driver.
target_link_libraries(fsdp_runtime_cuda PUBLIC ${FSDP_NCCL_LIBRARY} ${FSDP_CUBLASLT_LIBRARY}
                      ${FSDP_CUDART_LIBRARY} ${FSDP_HOST_LIBRARIES})
