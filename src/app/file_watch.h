// SPDX-License-Identifier: Apache-2.0
// Tells when one of a few files changes. By the second look at size, time and inode: that works on
// every file system and with files that are replaced through symbolic links.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "io/net/loop.h"

namespace signalbox::app {

class FileWatch {
 public:
  FileWatch(net::Loop& loop, std::function<void()> changed);

  void set_files(std::vector<std::string> files);

 private:
  using Stamp = std::tuple<std::int64_t, std::int64_t, std::uint64_t>;
  static Stamp stamp(const std::string& path);
  void look();

  net::Loop& loop_;
  std::function<void()> changed_;
  std::map<std::string, Stamp> stamps_;
  bool settling_ = false;  // a change was seen; the writer may not be done
  net::Timer timer_;
};

}  // namespace signalbox::app
