// SPDX-License-Identifier: Apache-2.0
// Looks at files once a second; calls back when a change has settled.
#include "app/file_watch.h"

#include <sys/stat.h>

namespace signalbox::app {
namespace {

constexpr Duration kInterval = std::chrono::seconds(1);

}  // namespace

FileWatch::FileWatch(net::Loop& loop, std::function<void()> changed)
    : loop_(loop), changed_(std::move(changed)), timer_([this] { look(); }) {
  loop_.arm_after(timer_, kInterval);
}

void FileWatch::set_files(std::vector<std::string> files) {
  stamps_.clear();
  for (const std::string& file : files) stamps_[file] = stamp(file);
}

FileWatch::Stamp FileWatch::stamp(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return {};
  return {s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec, s.st_size, s.st_ino};
}

void FileWatch::look() {
  bool changed = false;
  for (auto& [file, known] : stamps_) {
    const Stamp present = stamp(file);
    if (present == known) continue;
    known = present;
    changed = true;
  }
  const bool report = settling_ && !changed;
  settling_ = changed;
  loop_.arm_after(timer_, kInterval);
  if (report) changed_();
}

}  // namespace signalbox::app
