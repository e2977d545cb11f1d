# Tests as programs for a GPU; bench/gpu_check builds the same where one is. FOLDER holds runtime/ and test/.

# fsdp_add_device_tests(TARGET FOLDER GOOGLETEST [KERNELS kinds...]): the tests of kernels and products, or of some kernels,
# with the CPU's kernels as reference: all but the products, which need oneDNN.
function(fsdp_add_device_tests target folder googletest)
  cmake_parse_arguments(ARG "" "" "KERNELS" ${ARGN})
  # Of some kernels the reference is the library of this build, where it has one.
  set(reference fsdp_runtime)
  if(NOT ARG_KERNELS OR NOT TARGET fsdp_runtime)
    set(reference ${target}-reference)
    fsdp_add_device_reference(${reference} ${folder})
  endif()

  set(sources "")
  if(NOT ARG_KERNELS)
    set(ARG_KERNELS Attention Copy Generation InPlace Loss Row Update Variant)
    set(sources unit/emulator/MatmulTest.cpp unit/emulator/ProductEpilogueTest.cpp)
  endif()
  foreach(kernels IN LISTS ARG_KERNELS)
    list(APPEND sources unit/cuda/${kernels}KernelsTest.cpp)
  endforeach()
  list(TRANSFORM sources PREPEND ${folder}/test/)
  fsdp_add_device_program(${target} ${folder} ${sources})
  fsdp_add_kernels(${target} ${folder}/test/unit/cuda/TestRules.cu)
  target_link_libraries(${target} PRIVATE fsdp_runtime_cuda ${reference} ${googletest})
endfunction()

# fsdp_add_device_reference(TARGET FOLDER): a library of the CPU's kernels, all but the products, which need oneDNN.
function(fsdp_add_device_reference target folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/runtime/*.cpp)
  get_target_property(host fsdp_runtime_host SOURCES)
  get_target_property(options fsdp_runtime_host COMPILE_OPTIONS) # the same: a compiler's cache has most of it
  foreach(source ${sources})
    file(STRINGS ${source} products REGEX "include.*GemmPlan")
    file(RELATIVE_PATH name ${folder}/runtime ${source})
    if(products OR name IN_LIST host OR name MATCHES "/cuda/")
      list(REMOVE_ITEM sources ${source})
    endif()
  endforeach()
  add_library(${target} STATIC ${sources})
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_options(${target} PRIVATE ${options})
  target_include_directories(${target} PRIVATE ${folder})
  target_include_directories(${target} SYSTEM PRIVATE ${folder}/test/unit/cuda/without-onednn)
  target_link_libraries(${target} PUBLIC fsdp_runtime_cuda)
  if(FSDP_LIBRARY_LAUNCHER) # which finds them after preprocessing: their include folders are others
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${FSDP_LIBRARY_LAUNCHER}")
  endif()
endfunction()

# fsdp_add_device_ranks(TARGET FOLDER): jobs of the runtime whose ranks share the GPU.
function(fsdp_add_device_ranks target folder)
  fsdp_add_device_program(${target} ${folder} ${folder}/test/unit/runtime/comm/cuda/CudaRanksMain.cpp
    ${folder}/test/unit/runtime/comm/Conformance.cpp)
  target_link_libraries(${target} PRIVATE fsdp_runtime_cuda)
endfunction()

function(fsdp_add_device_program target folder)
  add_executable(${target} ${ARGN})
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_options(${target} PRIVATE -O1 -fexceptions -frtti)
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
