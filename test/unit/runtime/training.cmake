# Tests of what trains: files, kernels, the driver. The driver is tested through a generated program
# written by hand, one binary for each number of ranks.
add_unit_test(runtime-training-tests
  SOURCES DatasetTest.cpp DriverTest.cpp GemmTest.cpp KernelsTest.cpp LogTest.cpp RandomTest.cpp
          SafetensorsTest.cpp
  LINK fsdp_runtime)
set(handwritten ${CMAKE_SOURCE_DIR}/test/e2e/handwritten)
foreach(ranks 1 2 3 4 7)
  add_executable(linear_regression-${ranks} ${handwritten}/linear_regression.cpp)
  target_compile_definitions(linear_regression-${ranks} PRIVATE RANKS=${ranks})
  target_link_libraries(linear_regression-${ranks} PRIVATE fsdp_runtime)
  list(APPEND programs linear_regression-${ranks})
endforeach()
# Recording needs the headers alone.
add_executable(linear_regression-record ${handwritten}/linear_regression.cpp)
target_compile_definitions(linear_regression-record PRIVATE FSDP_RECORD)
add_library(count_allocations SHARED CountAllocations.cpp)
list(APPEND programs linear_regression-record count_allocations)
set_target_properties(${programs} PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/unit/handwritten
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/unit/handwritten)
add_dependencies(runtime-training-tests ${programs})
target_compile_definitions(runtime-training-tests PRIVATE
  HANDWRITTEN_FOLDER="${CMAKE_BINARY_DIR}/test/unit/handwritten"
  HANDWRITTEN_SOURCE="${handwritten}"
  COUNT_ALLOCATIONS="$<TARGET_FILE:count_allocations>")
