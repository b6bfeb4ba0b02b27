# SPDX-License-Identifier: Apache-2.0
# Tests that hold the house itself: layers, tidy, and headers that compile alone.
if(SIGNALBOX_TESTS)
  get_property(modules GLOBAL PROPERTY SIGNALBOX_MODULES)
  set(lines "")
  foreach(entry ${modules})
    string(APPEND lines "${entry}\n")
  endforeach()
endif()
