# SPDX-License-Identifier: Apache-2.0
# Tests that hold the house itself. Headers that compile alone are a build target of CMake's
# (all_verify_interface_header_sets); scripts/test builds it.
if(SIGNALBOX_TESTS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME house.layers
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/layers.py ${CMAKE_SOURCE_DIR})
  add_test(NAME house.tidy
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/tidy.py ${CMAKE_SOURCE_DIR})
  set_tests_properties(house.layers house.tidy PROPERTIES LABELS house TIMEOUT 60)

  # The pages of docs/reference that a running program tells.
  add_test(NAME house.reference COMMAND ${Python3_EXECUTABLE}
           ${CMAKE_SOURCE_DIR}/scripts/reference.py $<TARGET_FILE:signalbox> --check)
  set_tests_properties(house.reference PROPERTIES LABELS house TIMEOUT 120)

  # Scenarios with what they expect; those of recorded traffic where the records are.
  file(GLOB scenarios CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scenarios/*/*.yaml)
  set(recorded ${scenarios})
  list(FILTER scenarios EXCLUDE REGEX "/traces/")
  list(FILTER recorded INCLUDE REGEX "/traces/")
  add_test(NAME scenarios COMMAND signalbox sim run ${scenarios})
  set_tests_properties(scenarios PROPERTIES LABELS scenarios TIMEOUT 300)
  if(EXISTS ${CMAKE_SOURCE_DIR}/../shared/data/traces)
    add_test(NAME scenarios.traces COMMAND signalbox sim run ${recorded})
    set_tests_properties(scenarios.traces PROPERTIES LABELS scenarios TIMEOUT 600)
  endif()

  # End to end: one test per e2e/test_SUITE.py. Sanitized programs get more time.
  file(GLOB suites CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/e2e/test_*.py)
  if(SIGNALBOX_SANITIZE)
    set(patience 5)
  else()
    set(patience 1)
  endif()
  math(EXPR limit "300 * ${patience}")
  foreach(path ${suites})
    string(REGEX REPLACE ".*/test_(.*)\\.py$" "\\1" suite ${path})
    add_test(NAME e2e.${suite}
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/e2e/run ${suite})
    set(environment SIGNALBOX=$<TARGET_FILE:signalbox> SIGNALBOX_E2E_PATIENCE=${patience}
                    SIGNALBOX_E2E_SANITIZE=${SIGNALBOX_SANITIZE})
    set_tests_properties(e2e.${suite} PROPERTIES LABELS e2e TIMEOUT ${limit} COST 1000
                         ENVIRONMENT "${environment}")
  endforeach()
endif()

# Fuzzers: src/MODULE/NAME_fuzz.cc becomes NAME_fuzz, linked with its module; scripts/fuzz runs
# them.
if(SIGNALBOX_FUZZ)
  add_custom_target(fuzzers)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*_fuzz.cc)
  foreach(path ${sources})
    get_filename_component(name ${path} NAME_WE)
    file(RELATIVE_PATH module ${CMAKE_SOURCE_DIR}/src ${path})
    get_filename_component(module ${module} DIRECTORY)
    string(REPLACE "/" "_" module ${module})
    add_executable(${name} ${path})
    target_link_libraries(${name} PRIVATE sb_${module})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    add_dependencies(fuzzers ${name})
  endforeach()
endif()
