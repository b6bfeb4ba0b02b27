# SPDX-License-Identifier: Apache-2.0
# Tests that hold the house itself. Headers that compile alone are a build target of CMake's
# (all_verify_interface_header_sets); scripts/test builds it.
if(SIGNALBOX_TESTS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME house.layers
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/layers.py ${CMAKE_SOURCE_DIR})
  add_test(NAME house.tidy
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/tidy.py ${CMAKE_SOURCE_DIR})
endif()
