# SPDX-License-Identifier: Apache-2.0
# Compiler, warnings, linker, cache and sanitizers, the same for every module.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(SIGNALBOX_SANITIZE "" CACHE STRING "Sanitizers for every target: address,undefined or thread")
option(SIGNALBOX_BENCH "Build bench/" OFF)
option(SIGNALBOX_FUZZ "Build the fuzzers (clang only)" OFF)
option(SIGNALBOX_TESTS "Build unit tests and checks" ON)

add_compile_options(-Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                    -Woverloaded-virtual -Wimplicit-fallthrough -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++'s stable_sort calls what libstdc++ itself has deprecated.
  add_compile_options(-Wthread-safety -Wno-deprecated-declarations)
else()
  # g++-12 reports std::string and std::variant internals under -O2 and sanitizers (GCC 105329).
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow)
  add_link_options(-Wno-stringop-overflow)  # said again by link-time optimization
endif()

if(SIGNALBOX_SANITIZE)
  add_compile_options(-fsanitize=${SIGNALBOX_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SIGNALBOX_SANITIZE})
endif()

if(SIGNALBOX_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# What runs often, as counted under load by scripts/profile: the compiler lays out and inlines by
# it. A function that has changed since is compiled as if nothing were known of it, or with counts
# that are made to fit (without -fprofile-correction, counts that do not add up are an error). The
# compiler says so under no warning that could be switched off by name, so none is an error here.
set(SIGNALBOX_PROFILE "" CACHE STRING "Profile of the build: empty, use or record")
if(SIGNALBOX_PROFILE STREQUAL "record")
  set(profile_options -fprofile-generate -fprofile-update=atomic
                      -fprofile-dir=${CMAKE_BINARY_DIR}/profile)
  add_link_options(-fprofile-generate)
elseif(SIGNALBOX_PROFILE STREQUAL "use" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(profile_archive ${CMAKE_CURRENT_LIST_DIR}/profile.tar.xz)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profile_archive})
  file(SHA256 ${profile_archive} profile_hash)
  string(SUBSTRING ${profile_hash} 0 16 profile_hash)
  # The hash in the path tells ccache and ninja that another profile makes another object.
  set(profile_folder ${CMAKE_BINARY_DIR}/profile/${profile_hash})
  if(NOT EXISTS ${profile_folder})
    file(ARCHIVE_EXTRACT INPUT ${profile_archive} DESTINATION ${profile_folder})
  endif()
  set(profile_options -fprofile-use=${profile_folder} -fprofile-partial-training
                      -fprofile-correction
                      -Wno-missing-profile -Wno-coverage-mismatch -Wno-error)
endif()
if(profile_options)
  add_compile_options(${profile_options} -fprofile-prefix-path=${CMAKE_BINARY_DIR})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT SIGNALBOX_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(simdjson REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(absl REQUIRED)
add_library(xxhash INTERFACE)
target_link_libraries(xxhash INTERFACE -lxxhash)
add_library(CLI11 INTERFACE)
if(TARGET simdjson::simdjson AND NOT TARGET simdjson)
  add_library(simdjson ALIAS simdjson::simdjson)
endif()
if(SIGNALBOX_TESTS)
  find_package(GTest REQUIRED)
endif()
